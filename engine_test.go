package pawl_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// noting records the agents that its engine bound and the intents of their calls. refuse is the
// error of intents; nil means that intents are stored.
type noting struct {
	bound, intended []string
	refuse          error
	cancel          context.CancelCauseFunc
}

func (e *noting) engine(run string) *pawl.Engine {
	return &pawl.Engine{Run: run, Bind: e.bind, Replays: true, Intend: e.intend}
}

func (e *noting) bind(a *pawl.Agent, _ llm.Key) *pawl.Agent {
	e.bound = append(e.bound, a.Name)
	b := *a
	b.Executor = wrapping{pawl.Parallel{Limit: 3}}
	return &b
}

// wrapping is an executor that wraps another executor.
type wrapping struct{ inner pawl.Executor }

func (x wrapping) Unwrap() pawl.Executor { return x.inner }
func (x wrapping) Execute(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
	return x.inner.Execute(ctx, tasks)
}

func (e *noting) intend(_ context.Context, t pawl.Task, c llm.ToolCall, tool *pawl.Tool, attempt int) error {
	if t.Tool() != tool || c.Name != tool.Name || attempt != 1 {
		return errors.New("another call")
	}
	e.intended = append(e.intended, string(t.Key))
	if e.refuse != nil {
		e.cancel(e.refuse)
	}
	return e.refuse
}

// An engine binds each run to its context, inner runs included, but not a run that a tool starts on
// its own. It stores each call before the call starts, except composing calls.
func TestEngine(t *testing.T) {
	act := does("act", func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("done"), nil })
	inner := &pawl.Agent{Name: "clerk", Model: script.New(script.Call("act", `{}`), script.Say("ok")), Tools: []pawl.Toolset{act}}
	alone := does("alone", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		_, err := (&pawl.Agent{Name: "alone", Model: script.New(script.Say("ok"))}).Run(ctx, llm.User("go"))
		return llm.TextResult("done"), err
	})
	a := &pawl.Agent{Name: "main", Model: script.New(script.Call("clerk", `{"task":"go"}`),
		script.Call("alone", `{}`), script.Say("done")), Tools: []pawl.Toolset{inner.Tool("x"), alone}}
	e := new(noting)
	if res, err := a.Run(pawl.WithEngine(t.Context(), e.engine("r")), llm.User("go")); err != nil || res.Text() != "done" {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := strings.Join(e.bound, " "); got != "main clerk" {
		t.Errorf("bound were %s", got)
	}
	if want := []string{"run/1/0/clerk/1/0", "run/2/0"}; !slices.Equal(e.intended, want) {
		t.Errorf("kept was %v, want %v", e.intended, want)
	}
}

// A call whose intent cannot be stored does not start and stays open.
func TestEngineThatCannotKeep(t *testing.T) {
	ran := 0
	act := does("act", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		ran++
		return llm.TextResult("done"), nil
	})
	a := &pawl.Agent{Model: script.New(script.Call("act", `{}`), script.Say("ok")), Tools: []pawl.Toolset{act}}
	full := errors.New("the disk is full")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	res, err := runtest.Ended(a.Run(pawl.WithEngine(ctx, (&noting{refuse: full, cancel: cancel}).engine("r")), llm.User("go")))
	if !errors.Is(err, full) || ran != 0 || len(res.Calls()) != 1 || res.Spent.Calls != 0 {
		t.Errorf("%+v, %v; ran %d times", res, err, ran)
	}
}

// Runs with different IDs in an engine have different keys for the same call. Without an engine the
// keys do not depend on an ID.
func TestIdempotencyKeysOfRuns(t *testing.T) {
	keys := map[string]bool{}
	act := does("act", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		keys[pawl.InvocationFrom(ctx).IdempotencyKey()] = true
		return llm.TextResult("done"), nil
	})
	a := &pawl.Agent{Model: script.New(script.Call("act", `{}`), script.Say("ok")), Tools: []pawl.Toolset{act}}
	for _, id := range []string{"", "", "a", "a", "b"} {
		ctx := t.Context()
		if id != "" {
			ctx = pawl.WithEngine(ctx, new(noting).engine(id))
		}
		if _, err := a.Run(ctx, llm.User("go")); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d keys, want one for none, one for a, one for b", len(keys))
	}
}
