package pawltest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
)

// executors are the Executors that the suite tests here. nil executes calls in this process.
func executors() map[string]func(t *testing.T, a *pawl.Agent) pawl.Executor {
	return map[string]func(t *testing.T, a *pawl.Agent) pawl.Executor{
		"none":   func(*testing.T, *pawl.Agent) pawl.Executor { return nil },
		"kept":   func(*testing.T, *pawl.Agent) pawl.Executor { return new(pawltest.Kept) },
		"remote": func(_ *testing.T, a *pawl.Agent) pawl.Executor { return remote{a} },
	}
}

func TestExecutorsPassTheSuite(t *testing.T) {
	for name, open := range executors() {
		t.Run(name, func(t *testing.T) { pawltest.TestExecutor(t, open) })
	}
}

// The suite finds each fault, in an Executor of this process and in one of another.
func TestScoreOfExecutors(t *testing.T) {
	for _, name := range []string{"none", "remote"} {
		t.Run(name, func(t *testing.T) {
			score := pawltest.ScoreExecutor(t, executors()[name])
			if len(score.Survived)+len(score.LeftOut) > 0 {
				t.Errorf("%s", score)
			}
		})
	}
}

// remote executes the calls of agent as another process does: tasks, events and executions pass
// through JSON.
type remote struct{ agent *pawl.Agent }

func (r remote) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	return t.RunRemote(func(t pawl.Task) (x pawl.Execution, err error) {
		there, err := passed(t)
		if err != nil {
			return x, err
		}
		there, err = new(pawl.Engine).Attach(ctx, r.agent, there)
		if err != nil {
			return x, err
		}
		return passed(there.Do(ctx, func(e pawl.Event) {
			if e, err := passed(e); err == nil {
				emit(e)
			}
		}))
	})
}

// passed returns v as it arrives in another process.
func passed[T any](v T) (out T, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}
