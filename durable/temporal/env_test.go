package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// env is an in-memory cluster for one run. Its clock jumps to the next timer when no activity is in
// progress.
type env struct {
	*testsuite.TestWorkflowEnvironment
	w     *Worker
	tick  func() error // called while the run waits
	err   error
	ticks int
}

// silent discards the log of the SDK.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

var _ log.Logger = silent{}

// memory stores blobs in this process.
type memory struct{ sync.Map }

func (m *memory) Put(_ context.Context, digest string, b []byte) error {
	m.Store(digest, b)
	return nil
}

func (m *memory) Get(_ context.Context, digest string) ([]byte, error) {
	if b, ok := m.Load(digest); ok {
		return b.([]byte), nil
	}
	return nil, fmt.Errorf("there is no blob %s", digest)
}

// newEnv returns the environment for a run of a under that ID.
func newEnv(ctx context.Context, id string, a *pawl.Agent) (*env, error) {
	eng := &Engine{Blobs: new(memory), Heartbeat: time.Minute}
	w := eng.Worker(nil)
	if err := w.Add(ctx, "agent", a); err != nil {
		return nil, err
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(silent{})
	e := &env{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), w: w}
	e.SetDataConverter(Converter(eng.Blobs))
	e.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: "pawl"})
	e.SetTestTimeout(10 * time.Minute)
	// a busy machine must not look like a deadlock
	e.SetWorkerOptions(sdkworker.Options{DeadlockDetectionTimeout: time.Minute})
	w.register(e)
	return e, nil
}

// run executes the workflow. While it waits, it calls e.tick once for each second of its clock.
func (e *env) run(in input) (*Outcome, error) {
	var again func()
	again = func() {
		if e.IsWorkflowCompleted() || e.err != nil {
			return
		}
		if e.ticks++; e.ticks > 10_000 {
			e.err = errors.New("it waits for ever")
		} else {
			e.err = e.tick()
		}
		if e.err != nil {
			e.CancelWorkflow()
			return
		}
		e.RegisterDelayedCallback(again, time.Second)
	}
	if e.tick != nil {
		e.RegisterDelayedCallback(again, time.Second)
	}
	in.State, in.Agent = cmp.Or(in.State, stateVersion), "agent"
	e.ExecuteWorkflow(workflowName, in)
	if e.err != nil {
		return nil, e.err
	}
	if err := e.GetWorkflowError(); err != nil {
		return nil, err
	}
	out := new(Outcome)
	return out, e.GetWorkflowResult(out)
}

func (e *env) state() (s State, err error) {
	v, err := e.QueryWorkflow(queryState)
	if err != nil {
		return s, err
	}
	return s, v.Get(&s)
}

// update sends an update. A rejected update ends the test's run.
func (e *env) update(name, id string, v any) error {
	e.updateThen(name, id, v, func(err error) {
		if err != nil {
			e.err = fmt.Errorf("update %s: %w", name, err)
		}
	})
	return nil
}

// updateThen sends an update, and calls then with its outcome before the clock advances.
func (e *env) updateThen(name, id string, v any, then func(error)) {
	e.UpdateWorkflow(name, id, &testsuite.TestUpdateCallback{
		OnAccept:   func() {},
		OnReject:   then,
		OnComplete: func(_ any, err error) { then(err) },
	}, v)
}

// inEnv makes the run of a case.
func inEnv(ctx context.Context, id string, c *durabletest.Case, world durabletest.World) (*journal.Export, error) {
	e, err := newEnv(ctx, id, c.Agent(world))
	if err != nil {
		return nil, err
	}
	e.tick = func() error {
		s, err := e.state()
		if err != nil || !s.Waits {
			return err
		}
		answers, err := durabletest.Answers(ctx, world, s.Pending)
		for i, m := range answers {
			if err == nil {
				err = e.update(updateDecide, fmt.Sprintf("%d-%d", e.ticks, i), []llm.Decision{m.Parts[0].(llm.Decision)})
			}
		}
		return err
	}
	if _, err := e.run(input{Messages: c.Messages()}); err != nil {
		return nil, err
	}
	v, err := e.QueryWorkflow(queryExport)
	if err != nil {
		return nil, err
	}
	x := new(journal.Export)
	return x, v.Get(x)
}

// Random runs have the same export and the same deliveries on Temporal as with a journal in memory.
func TestConformance(t *testing.T) {
	durabletest.Conform(t, soak.N(40, 1000), inEnv)
}
