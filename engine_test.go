package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/conversation"
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
	b.Executor = here
	return &b
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
	ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Engine: e.engine("r")})
	if res, err := a.Run(ctx, llm.User("go")); err != nil || res.Text() != "done" {
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
	refusing := &noting{refuse: full, cancel: cancel}
	ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: refusing.engine("r")})
	res, err := runtest.Ended(a.Run(ctx, llm.User("go")))
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
			ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: new(noting).engine(id)})
		}
		if _, err := a.Run(ctx, llm.User("go")); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d keys, want one for none, one for a, one for b", len(keys))
	}
}

// remote is an Executor that sends its tasks through JSON to another process, which attaches them.
// The events of the calls return the same way.
type remote struct {
	agent  *pawl.Agent
	engine *pawl.Engine
}

func (x *remote) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	return t.RunRemote(func(t pawl.Task) (done pawl.Execution, err error) {
		task, err := json.Marshal(t)
		if err != nil {
			return done, err
		}

		execution, err := x.there(ctx, task, func(event []byte) {
			var e pawl.Event
			if err := json.Unmarshal(event, &e); err != nil {
				panic(err)
			}
			emit(e)
		})
		if err != nil {
			return done, err
		}
		return done, json.Unmarshal(execution, &done)
	})
}

// there executes a task in the other process.
func (x *remote) there(ctx context.Context, task []byte, send func(event []byte)) ([]byte, error) {
	var t pawl.Task
	if err := json.Unmarshal(task, &t); err != nil {
		return nil, err
	}
	t, err := x.engine.Attach(ctx, x.agent, t)
	if err != nil {
		return nil, err
	}

	done := t.Do(ctx, func(e pawl.Event) {
		b, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		send(b)
	})
	return json.Marshal(done)
}

// A task that another process attaches has the tools and policies of the agent, the ID of the run,
// and the conversation that the engine knows. Its events are the same as in this process.
func TestAttach(t *testing.T) {
	keys := map[string]bool{}
	agent := func() *pawl.Agent {
		act := does("act", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			v := pawl.InvocationFrom(ctx)
			v.Emit("half", json.RawMessage(`{"n":1}`))
			keys[v.IdempotencyKey()] = true
			known := conversation.Of(ctx)
			if len(known) == 0 {
				return llm.TextResult("nothing is known"), nil
			}
			return llm.TextResult(known[0].Text()), nil
		})
		act.Effect = pawl.EffectWrite
		return &pawl.Agent{Model: script.New(script.Call("act", `{}`), script.Say("done")), Tools: []pawl.Toolset{act}}
	}
	known := func() []llm.Message { return []llm.Message{llm.User("the whole story")} }
	remotely := agent()
	remotely.Executor = &remote{agent: agent(), engine: &pawl.Engine{Run: "r1", Conversation: known}}

	ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Engine: &pawl.Engine{Run: "r1"}})
	events, res, err := collect(remotely.Stream(ctx, llm.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Steps[0].Executions[0].Result.Text(); got != "the whole story" {
		t.Errorf("the call reads the conversation %q", got)
	}

	// The same call in the process of the run has the same key and the same events.
	local, _, err := collect(agent().Stream(ctx, llm.User("go")))
	if err != nil || len(keys) != 1 {
		t.Errorf("%v; the idempotency keys are %v", err, keys)
	}
	if diff := cmp.Diff(ofCall(events), ofCall(local)); diff != "" {
		t.Errorf("the events of the call in another process differ: %s", diff)
	}
}

// ofCall returns the events of the call run/1/0, in short.
func ofCall(events []pawl.Event) (all []string) {
	for _, e := range events {
		if e.Path == "run/1/0" {
			all = append(all, fmt.Sprint(e.Kind, " ", e.Run, " ", e.Step, " ", e.Attempt, " ", e.Text, " ", string(e.Data)))
		}
	}
	return all
}

// Task.Do without a receiver of events executes the call.
func TestDoWithoutEvents(t *testing.T) {
	agent := &pawl.Agent{Tools: []pawl.Toolset{says("act", "done")}}
	task, err := new(pawl.Engine).Attach(t.Context(), agent, pawl.Task{Key: "run/1/0", Call: call("c1", "act", `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if x := task.Do(t.Context(), nil); x.Outcome != pawl.OutcomeOK || x.Result.Text() != "done" {
		t.Errorf("%+v", x)
	}
}
