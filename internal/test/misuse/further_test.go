package misuse_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/thread"
)

// nils are values that a program forgot to make.
var nils = []row{
	{"nil Runner", func(t *testing.T) error { return failed(pawl.Run(t.Context(), nil, ask)) }, "pass an agent"},
	{"Into with a nil Runner", func(t *testing.T) error { return into(t, nil) }, "pass an agent"},
	{"Into with a nil agent", func(t *testing.T) error { return into(t, (*pawl.Agent)(nil)) }, "needs at least a Model"},
	{"Into with a nil durable Runner", func(t *testing.T) error { return into(t, (*durable.Runner)(nil)) }, "Engine.Runner"},
	{"Into with a nil conversation", func(t *testing.T) error { return into(t, (*thread.Runner)(nil)) }, "set Runner to an agent"},
	{"durable Runner that no engine made", func(t *testing.T) error { return failed(new(durable.Runner).Run(t.Context(), ask)) }, "Engine.Runner"},
	{"nil engine", func(t *testing.T) error {
		var e *durable.Engine
		return failed(e.Runner("r", &pawl.Agent{Model: says("Hi.")}).Run(t.Context(), ask))
	}, "Engine.Runner"},
	{"durable run of a nil agent", func(t *testing.T) error {
		e := &durable.Engine{Journal: new(store.MemoryJournal)}
		return failed(e.Runner("r", (*pawl.Agent)(nil)).Run(t.Context(), ask))
	}, "pass an agent"},
	{"observer of nothing", func(t *testing.T) error {
		return failed(pawl.Run(t.Context(), observe.Sync(nil, func(pawl.Event) {}), ask))
	}, "pass an agent"},
	{"nil agent as a tool", func(t *testing.T) error {
		var a *pawl.Agent
		return failed((&pawl.Agent{Model: says("Hi."), Tools: []pawl.Toolset{a.Tool("")}}).Run(t.Context(), ask))
	}, "remove it, or put a tool"},
	{"arguments for a nil tool", func(*testing.T) error { return (*pawl.Tool)(nil).Validate(nil) }, "the tool is nil"},
	{"nil Steering", func(t *testing.T) error { return (*pawl.Steering)(nil).Steer(t.Context(), ask) }, "new(pawl.Steering)"},
	{"Result of a run that did not start", func(t *testing.T) error {
		res, _ := new(pawl.Agent).Run(t.Context(), ask)
		if res.Text() != "" || res.Calls() != nil {
			t.Error("a nil Result has a text, or calls")
		}
		return res.Err()
	}, "did not start"},
	{"nil function of a tool", func(*testing.T) error {
		_, err := pawl.NewFunc[none, string]("pay", "Pays.", nil)
		return err
	}, "the function is nil"},
	{"nil function of Filter", func(t *testing.T) error {
		a := &pawl.Agent{Model: says("Hi."), Tools: []pawl.Toolset{pawl.Filter(does("look"), nil)}}
		return failed(a.Run(t.Context(), ask))
	}, "Filter has no function"},
	{"nil function of For", func(t *testing.T) error {
		some := pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) { return c, nil }).For(nil)
		return failed((&pawl.Agent{Model: says("Hi."), Middleware: []pawl.Middleware{some}}).Run(t.Context(), ask))
	}, "For has no function"},
	{"nil events for a page", func(*testing.T) error {
		return uistream.Write(httptest.NewRecorder(), nil, uistream.Options{})
	}, "pass what Stream returned"},
	{"text of nil events", func(*testing.T) error {
		_, end := observe.Text(nil)
		return failed(end())
	}, "pass what Stream returned"},
	{"nil flow", func(t *testing.T) error { return around(t, (*policy.Flow)(nil).Middleware()) }, "use &policy.Flow{}"},
	{"conversation that was not loaded", func(t *testing.T) error {
		return new(thread.Thread).Save(t.Context(), new(pawl.Result))
	}, "Load did not return"},
	{"conversation without a Result", func(t *testing.T) error {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		c, _, err := thread.Load(t.Context(), db, store.Scope{}, "c")
		if err != nil {
			t.Fatal(err)
		}
		return c.Save(t.Context(), nil)
	}, "the run did not start"},
	{"options of a run without a context", func(*testing.T) error {
		var forgotten context.Context
		return panicOf(func() { pawl.WithRunOptions(forgotten, pawl.RunOptions{}) })
	}, "the context is nil"},
	{"call outside of a run", outside, "there is no call"},
}

// outside uses an Invocation where there is none, as a function does that a tool shares with other
// code.
func outside(t *testing.T) error {
	v := pawl.InvocationFrom(t.Context())
	v.Emit("half", nil)
	v.FromCache()
	if v.IdempotencyKey() != "" || v.Messages() != nil || v.Tools() != nil || v.Tool() != nil || v.Label() != nil {
		t.Error("a nil Invocation says something")
	}
	if v.CanWait() || v.WaitForReply() || !v.Since().IsZero() {
		t.Error("a nil Invocation waits")
	}

	var value int
	_, getErr := v.Get("n", &value)
	_, callErr := v.Do(t.Context(), llm.ToolCall{Name: "look"})
	_, readErr := v.Artifact(t.Context(), "run/1/0")
	for _, err := range []error{getErr, v.Set("n", 1), readErr} {
		if err == nil {
			t.Error("a method of a nil Invocation returns no error")
		}
	}
	return callErr
}

// fields are values that mean nothing.
var fields = []row{
	{"effect that does not exist", func(t *testing.T) error {
		tool := does("look")
		tool.Effect = 99
		return failed((&pawl.Agent{Model: says("Hi."), Tools: []pawl.Toolset{tool}}).Run(t.Context(), ask))
	}, "unknown Effect 99"},
	{"mode of choice that does not exist", func(t *testing.T) error {
		return failed((&pawl.Agent{Model: says("Hi."), Choice: llm.ToolChoice{Mode: 9}}).Run(t.Context(), ask))
	}, "unknown mode 9"},
	{"less than no calls at once", func(t *testing.T) error {
		return failed((&pawl.Agent{Model: says("Hi."), Parallel: pawl.Parallel{Limit: -1}}).Run(t.Context(), ask))
	}, "Parallel.Limit: it is negative"},
	{"lease of less than no time", func(t *testing.T) error {
		e := &durable.Engine{Journal: new(store.MemoryJournal), Lease: -time.Second}
		return failed(e.Runner("r", &pawl.Agent{Model: says("Hi.")}).Run(t.Context(), ask))
	}, "Lease is negative"},
	{"heartbeat of less than no time", func(*testing.T) error {
		_, err := server.New([]*pawl.Agent{{Name: "a", Model: says("Hi.")}}, new(store.MemoryJournal),
			&server.Options{Times: server.Times{Beat: -time.Second}})
		return err
	}, "Times.Beat is negative"},
	{"heartbeat of a page of less than no time", func(t *testing.T) error {
		events := (&pawl.Agent{Model: says("Hi.")}).Stream(t.Context(), ask)
		return uistream.Write(httptest.NewRecorder(), events, uistream.Options{Beat: -1})
	}, "Beat is negative"},
	{"rate with less than no wait", func(t *testing.T) error {
		return around(t, policy.Rate{Every: time.Second, Wait: -1}.Middleware())
	}, "rate limit: Wait is negative"},
	{"breaker with less than no pause", func(t *testing.T) error {
		return around(t, policy.Breaker{Pause: -1}.Middleware())
	}, "circuit breaker: Pause is negative"},
	{"cache of less than no bytes", func(t *testing.T) error {
		return around(t, policy.Cache{Bytes: -1}.Middleware())
	}, "cache: Bytes is negative"},
	{"approval for less than no time", func(t *testing.T) error {
		return around(t, policy.Rules{ValidFor: -1}.Middleware())
	}, "ValidFor is negative"},
	{"default verdict that does not exist", func(t *testing.T) error {
		return around(t, policy.Rules{Default: 99}.Middleware())
	}, "no Default 99"},
	{"panic in Sole", func(t *testing.T) error {
		w := pawl.Middleware{Sole: func([]*pawl.Tool) []string { panic("lost") }}
		return failed((&pawl.Agent{Model: says("Hi."), Middleware: []pawl.Middleware{w}}).Run(t.Context(), ask))
	}, "its Sole panicked: lost"},
	{"abort without an error", func(t *testing.T) error {
		tool := pawl.Func("pay", "", func(context.Context, none) (string, error) { return "", pawl.AbortError(nil) })
		return failed((&pawl.Agent{Model: calls("pay"), Tools: []pawl.Toolset{tool}}).Run(t.Context(), ask))
	}, "no error says why"},
	{"retry without an error", func(t *testing.T) error {
		tool := pawl.Func("look", "", func(context.Context, none) (string, error) { return "seen", pawl.RetryableError(nil) })
		return executed(t, &pawl.Agent{Model: calls("look"), Tools: []pawl.Toolset{tool}}, pawl.OutcomeOK)
	}, ""},
}

// runners are Runners whose Result contradicts itself.
var runners = []row{
	{"answer with an open call", func(t *testing.T) error {
		return failed(pawl.Run(t.Context(), ends{Stop: pawl.StopAnswer, Messages: []llm.Message{ask,
			llm.Assistant(llm.ToolCall{ID: "c1", Name: "pay", Args: json.RawMessage(`{}`)})}}, ask))
	}, `"c1" of pay has no result`},
	{"waiting for nothing", func(t *testing.T) error {
		return failed(pawl.Run(t.Context(), ends{Stop: pawl.StopPending}, ask))
	}, "no Pending"},
	{"reason that does not exist", func(t *testing.T) error {
		err := failed(pawl.Run(t.Context(), ends{Stop: "done"}, ask))
		if stop := (*pawl.StopError)(nil); !errors.As(err, &stop) {
			t.Errorf("got %v, want a StopError, since a later version may know the reason", err)
		}
		return err
	}, "does not know the reason"},
	{"neither a Result nor an error", func(t *testing.T) error {
		return failed(pawl.Run(t.Context(), silent{}, ask))
	}, "neither a Result nor an error"},
}

// around runs an agent with a middleware.
func around(t *testing.T, w pawl.Middleware) error {
	a := &pawl.Agent{Model: says("Hi."), Tools: []pawl.Toolset{does("look")}, Middleware: []pawl.Middleware{w}}
	return failed(a.Run(t.Context(), ask))
}

// into asks r for a city.
func into(t *testing.T, r pawl.OutputRunner) error {
	_, _, err := pawl.Into[city](t.Context(), r, ask)
	return err
}

// ends is a Runner whose runs end at once.
type ends pawl.Result

func (e ends) Stream(context.Context, ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		res := pawl.Result(e)
		yield(pawl.Event{Kind: pawl.EventRunEnded, Run: "run", Result: &res}, nil)
	}
}

// silent is a Runner whose method Run returns nothing.
type silent struct{ ends }

func (silent) Run(context.Context, ...llm.Message) (*pawl.Result, error) { return nil, nil }
