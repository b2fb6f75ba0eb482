package temporal

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"go.temporal.io/sdk/activity"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// WorkerOptions are how a Worker works.
type WorkerOptions struct {
	Activities int           // how many model requests and calls at once; 0: 100
	Stop       time.Duration // how long those under way may take when Run is to end; 0: 10 s
	BuildID    string        // of this program, to pin runs to the version they began with (Temporal's worker versioning); "": they go on with whatever worker there is
	Deployment string        // with BuildID: the deployment that the versions are of; "": "pawl"
}

// Worker does the work of runs of the agents that were added to it: all that share a task queue must know the same ones. It may be used concurrently.
type Worker struct {
	engine *Engine
	opts   WorkerOptions
	act    *activities

	mu    sync.Mutex
	trees map[string]*tree
}

// Worker returns a worker for the engine's task queue; opts may be nil.
func (e *Engine) Worker(opts *WorkerOptions) *Worker {
	w := &Worker{engine: e, trees: map[string]*tree{}}
	if opts != nil {
		w.opts = *opts
	}
	w.act = &activities{w: w, transcripts: transcripts{blobs: e.Blobs}}
	return w
}

// Add lets the worker run a under name, by which Engine.Runner asks for it. It lists the tools of a and of the agents among them. The error says what cannot be run here, or that
// the name is taken.
func (w *Worker) Add(ctx context.Context, name string, a *pawl.Agent) error {
	t, err := plant(ctx, name, a)
	if err != nil {
		return err
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

// registry is where workflows and activities are registered: a worker of the SDK, its replayer, or its environment for tests.
type registry interface {
	workflows
	RegisterActivityWithOptions(a any, o activity.RegisterOptions)
}

type workflows interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}

func (w *Worker) register(r registry) {
	w.registerWorkflow(r)
	for name, fn := range map[string]any{activityDescribe: w.act.describe, activityModel: w.act.model, activityCall: w.act.call} {
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

// Run works until ctx ends, or the cluster does not let it work any more, which is an error. What is under way then has WorkerOptions.Stop to end; other workers go on with the rest.
func (w *Worker) Run(ctx context.Context) error {
	fatal := make(chan error, 1)
	o := sdkworker.Options{MaxConcurrentActivityExecutionSize: w.opts.Activities, WorkerStopTimeout: w.opts.Stop,
		MaxHeartbeatThrottleInterval: max(w.engine.heartbeat()/4, 10*time.Millisecond), OnFatalError: func(err error) {
			select {
			case fatal <- err:
			default:
			}
		}}
	if o.MaxConcurrentActivityExecutionSize == 0 {
		o.MaxConcurrentActivityExecutionSize = 100
	}
	if o.WorkerStopTimeout == 0 {
		o.WorkerStopTimeout = 10 * time.Second
	}
	if w.opts.BuildID != "" {
		name := w.opts.Deployment
		if name == "" {
			name = "pawl"
		}
		o.DeploymentOptions = sdkworker.DeploymentOptions{UseVersioning: true, Version: sdkworker.WorkerDeploymentVersion{DeploymentName: name, BuildID: w.opts.BuildID}}
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
	case err := <-fatal: // it has stopped itself
		return fmt.Errorf("temporal: %w", err)
	}
}
