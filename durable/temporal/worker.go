package temporal

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
)

// WorkerOptions configure a Worker. The zero value has the defaults.
type WorkerOptions struct {
	Activities int           // concurrent model requests and calls; 0 means 100
	Stop       time.Duration // time for running activities when Run ends; 0 means 10 s
	// BuildID is the version of this program. It pins runs to the version they started with
	// (Temporal's worker versioning). Empty means that runs continue on any worker.
	BuildID string
	// Deployment is the deployment of the versions, with BuildID. Empty means "pawl".
	Deployment string
}

// Worker executes the runs of the agents that were added to it. All workers of a task queue must
// have the same agents. A Worker is safe for concurrent use.
type Worker struct {
	engine *Engine
	opts   WorkerOptions
	act    *activities

	mu    sync.Mutex
	trees map[string]*tree
	slots map[string]*slots // of runs with active composing tools
}

// slots limit the calls in progress of the composing tools of a run.
type slots struct {
	room  chan struct{}
	users int
}

// slotsOf returns the slots of a run. The caller calls done when it does not use them any more.
func (w *Worker) slotsOf(run string) (room chan struct{}, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.slots[run]
	if s == nil {
		s = &slots{room: make(chan struct{}, atOnce)}
		w.slots[run] = s
	}
	s.users++
	return s.room, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.users--
		if s.users == 0 {
			delete(w.slots, run)
		}
	}
}

// Worker returns a worker for the engine's task queue. opts may be nil.
func (e *Engine) Worker(opts *WorkerOptions) *Worker {
	w := &Worker{engine: e, trees: map[string]*tree{}, slots: map[string]*slots{}}
	if opts != nil {
		w.opts = *opts
	}
	w.act = &activities{worker: w, transcripts: transcripts{blobs: e.Blobs}}
	return w
}

// Add lets the worker run a under name, the name for Engine.Runner. It lists the tools of a and of
// its nested agents, without a caller (caller.OutsideRuns). It returns the error of Agent.Check, or
// an error if this package cannot run a part of a or if the name is taken.
func (w *Worker) Add(ctx context.Context, name string, a *pawl.Agent) error {
	ctx = caller.OutsideRuns(ctx)
	t, err := plant(ctx, name, a)
	if err != nil {
		return err
	}
	if err := a.Check(ctx); err != nil {
		return fmt.Errorf("agent %s: %w", name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trees[name] != nil {
		return fmt.Errorf("there is an agent %q already", name)
	}
	w.trees[name] = t
	return nil
}

func (w *Worker) tree(name string) *tree {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trees[name]
}

// registry registers workflows and activities: a worker of the SDK, its replayer, or its test
// environment.
type registry interface {
	workflows
	RegisterActivityWithOptions(a any, o activity.RegisterOptions)
}

type workflows interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}

func (w *Worker) register(r registry) {
	w.registerWorkflow(r)
	for name, fn := range map[string]any{
		activityDescribe: w.act.describe,
		activityModel:    w.act.model,
		activityCall:     w.act.call,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

func (w *Worker) registerWorkflow(r workflows) {
	o := workflow.RegisterOptions{Name: workflowName}
	if w.opts.BuildID != "" {
		o.VersioningBehavior = workflow.VersioningBehaviorPinned
	}
	r.RegisterWorkflowWithOptions(w.run, o)
	o.Name = branchName
	r.RegisterWorkflowWithOptions(w.branch, o)
}

// Run works until ctx ends, or until the cluster stops the worker, which is an error. Active work
// then has WorkerOptions.Stop to end. Other workers continue the rest.
func (w *Worker) Run(ctx context.Context) error {
	fatal := make(chan error, 1)
	o := sdkworker.Options{
		MaxConcurrentActivityExecutionSize: cmp.Or(w.opts.Activities, 100),
		WorkerStopTimeout:                  cmp.Or(w.opts.Stop, 10*time.Second),
		MaxHeartbeatThrottleInterval:       max(w.engine.heartbeat()/4, 10*time.Millisecond),
		OnFatalError: func(err error) {
			select {
			case fatal <- err:
			default: // the first one is returned
			}
		},
	}
	if w.opts.BuildID != "" {
		o.DeploymentOptions = sdkworker.DeploymentOptions{
			UseVersioning: true,
			Version: sdkworker.WorkerDeploymentVersion{
				DeploymentName: cmp.Or(w.opts.Deployment, "pawl"),
				BuildID:        w.opts.BuildID,
			},
		}
	}

	s := sdkworker.New(w.engine.Client, w.engine.queue(), o)
	w.register(s)
	if err := s.Start(); err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	select {
	case <-ctx.Done():
		s.Stop()
		return nil
	case err := <-fatal: // the worker has stopped itself
		return fmt.Errorf("temporal: %w", err)
	}
}
