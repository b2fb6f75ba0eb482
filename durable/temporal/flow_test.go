package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// step is a tool that counts.
func step(effect pawl.Effect, did *atomic.Int64) *pawl.Tool {
	t := pawl.Func("step", "takes a step", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprintf("step %d", in.N), func() error { did.Add(1); return nil }()
	})
	t.Effect = effect
	return t
}

func steps(n int) []script.Turn {
	var turns []script.Turn
	for i := range n {
		turns = append(turns, script.Call("step", map[string]any{"n": i}))
	}
	return append(turns, script.Say("done"))
}

func start(t *testing.T, a *pawl.Agent) *env {
	t.Helper()
	e, err := newEnv(t.Context(), "run-1", a)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var ask = []llm.Message{llm.User("Go.")}

// A cancelled run answers its open calls and is not an error of the workflow.
func TestCancel(t *testing.T) {
	var did atomic.Int64
	for _, how := range []string{"signal", "cluster"} {
		form := &pawl.Tool{Name: "form", Passive: true}
		a := &pawl.Agent{Model: script.New(script.Together(script.Call("form", nil), script.Call("step", map[string]any{"n": 1})),
			script.Say("never")), Tools: []pawl.Toolset{form, step(pawl.EffectWrite, &did)}}
		e := start(t, a)
		e.tick = func() error {
			if s, err := e.state(); err != nil || !s.Waits {
				return err
			}
			if how == "cluster" {
				e.CancelWorkflow()
			} else {
				e.SignalWorkflow(signalCancel, nil)
			}
			return nil
		}
		out, err := e.run(input{Messages: ask})
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		results := out.Result.Messages[len(out.Result.Messages)-1]
		if out.Result.Stop != pawl.StopCancelled || len(results.Parts) != 2 || !strings.Contains(text(t, results), "cancelled") {
			t.Errorf("%s: stopped by %s with %s", how, out.Result.Stop, text(t, results))
		}
	}
}

// Answers to another question are rejected. The right answer counts once, for any number of
// repetitions. A signal answers a passive call.
func TestAnswers(t *testing.T) {
	var did atomic.Int64
	form := &pawl.Tool{Name: "form", Passive: true}
	a := &pawl.Agent{Model: script.New(script.Together(script.Call("step", map[string]any{"n": 1}), script.Call("form", nil)),
		script.Say("done")),
		Tools:      []pawl.Toolset{step(pawl.EffectWrite, &did), form},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	e := start(t, a)
	got, first := map[string]error{}, true
	e.tick = func() error {
		s, err := e.state()
		if err != nil || !s.Waits {
			return err
		}
		if len(s.Pending) == 2 && first {
			first = false
			yes, wrong := s.Pending[0].Approve("me"), s.Pending[0].Approve("me")
			wrong.Digest = "another"
			for id, d := range map[string]llm.Decision{"digest": wrong, "key": {Key: "run/9/9"}, "passive": s.Pending[1].Approve("me"), "yes": yes, "yes again": yes} {
				e.updateThen(updateDecide, id, []llm.Decision{d}, func(err error) { got[id] = err })
			}
			return nil
		}
		if len(s.Pending) == 2 {
			return nil
		}
		res := llm.TextResult("filled in")
		e.SignalWorkflow(signalResult, llm.Decision{Key: s.Pending[0].Key, By: "me", Result: &res})
		return nil
	}
	out, err := e.run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	for id, err := range got {
		if refused := err != nil && refusedAnswer(err); refused != !strings.HasPrefix(id, "yes") {
			t.Errorf("the answer %q gave %v", id, err)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d answers were taken or refused, of 5", len(got))
	}
	if got := text(t, out.Result.Messages); out.Result.Stop != pawl.StopAnswer || did.Load() != 1 ||
		!strings.Contains(got, "filled in") {
		t.Errorf("stopped by %s, the tool ran %d times: %s", out.Result.Stop, did.Load(), got)
	}
}

// A message that arrives during the run is in the next request.
func TestSteer(t *testing.T) {
	form := &pawl.Tool{Name: "form", Passive: true}
	m := script.New(script.Call("form", nil), script.Say("done"))
	e := start(t, &pawl.Agent{Model: m, Tools: []pawl.Toolset{form}})
	steered := false
	e.tick = func() error {
		s, err := e.state()
		if err != nil || !s.Waits {
			return err
		}
		if !steered {
			steered = true
			return e.update(updateSteer, "s", []llm.Message{llm.User("Only the first page.")})
		}
		return e.update(updateDecide, "d", []llm.Decision{s.Pending[0].Answer("me", llm.TextResult("filled in"))})
	}
	if _, err := e.run(input{Messages: ask}); err != nil {
		t.Fatal(err)
	}
	reqs := m.Requests()
	if got := reqs[len(reqs)-1].Messages; got[len(got)-1].Text() != "Only the first page." {
		t.Errorf("the last request ends with %s", text(t, got[len(got)-1]))
	}
}

// The time of a run is the time of its workflow.
func TestTime(t *testing.T) {
	form := &pawl.Tool{Name: "form", Passive: true}
	a := &pawl.Agent{Model: script.New(script.Call("form", nil)), Tools: []pawl.Toolset{form},
		Limits: pawl.Limits{Time: time.Hour}}
	out, err := start(t, a).run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	if out.Result.Stop != pawl.StopLimit || !strings.Contains(out.Result.Cause, "time") {
		t.Errorf("stopped by %s: %s", out.Result.Stop, out.Result.Cause)
	}
}

// Calls beyond Limits.Calls get a result that says so, including the calls of inner agents.
func TestCallsLimit(t *testing.T) {
	var did atomic.Int64
	inner := &pawl.Agent{Name: "clerk", Model: script.New(steps(3)...), Tools: []pawl.Toolset{step(pawl.EffectRead, &did)}}
	a := &pawl.Agent{Model: script.New(script.Call("clerk", map[string]any{"task": "go"}), script.Say("done")),
		Tools: []pawl.Toolset{inner.Tool("a clerk")}, Limits: pawl.Limits{Calls: 3}}
	out, err := start(t, a).run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	if did.Load() != 2 || out.Result.Spent.Calls != 3 { // the call of clerk counts as one
		t.Errorf("the tool ran %d times, %d calls were spent", did.Load(), out.Result.Spent.Calls)
	}
}

// A run of 200 steps continues in new histories and has the same result.
func TestContinueAsNew(t *testing.T) {
	var did, want atomic.Int64
	agent := func(n *atomic.Int64) *pawl.Agent {
		return &pawl.Agent{Instructions: "Go on.", Model: script.New(steps(200)...),
			Tools: []pawl.Toolset{step(pawl.EffectWrite, n)}, Limits: pawl.Limits{Rounds: 300}}
	}
	whole, err := agent(&want).Run(t.Context(), ask...)
	if err != nil {
		t.Fatal(err)
	}
	in, segments := input{Messages: ask}, 0
	for {
		segments++
		e := start(t, agent(&did))
		n := int64(40 * segments)
		e.SetOnActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) {
			if segments < 5 && did.Load() >= n {
				e.SetContinueAsNewSuggested(true)
			}
		})
		out, err := e.run(in)
		var next *workflow.ContinueAsNewError
		if errors.As(err, &next) {
			if err := Converter(e.w.engine.Blobs).FromPayloads(next.Input, &in); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text(t, whole.Messages), text(t, out.Result.Messages)); diff != "" {
			t.Errorf("the conversation differs:\n%s", diff)
		}
		v, err := e.QueryWorkflow(queryExport)
		if err != nil {
			t.Fatal(err)
		}
		var x exported
		if err := v.Get(&x); err != nil {
			t.Fatal(err)
		}
		if len(x.Replies) != 201 || len(x.Calls) != 200 || len(x.Messages) != 1 {
			t.Errorf("the export has %d replies, %d calls, %d messages", len(x.Replies), len(x.Calls), len(x.Messages))
		}
		if did.Load() != 200 || out.Result.Spent.Requests != 201 || out.Result.Spent.Rounds != 200 {
			t.Errorf("%d steps were taken, %+v spent", did.Load(), out.Result.Spent)
		}
		break
	}
	if segments != 5 {
		t.Errorf("it took %d histories", segments)
	}
}

// An agent with features that Temporal does not support is rejected when it is added.
func TestAdd(t *testing.T) {
	m := script.New()
	for _, c := range []struct {
		agent *pawl.Agent
		want  string
	}{
		{&pawl.Agent{}, "has no model"},
		{&pawl.Agent{Model: m, Parallel: pawl.Parallel{FailFast: true}}, "FailFast"},
		{&pawl.Agent{Model: m,
			Tools: []pawl.Toolset{(&pawl.Agent{Name: "in", Model: m, Parallel: pawl.Parallel{FailFast: true}}).Tool("x")}}, "agent a/in: Parallel.FailFast"},
		{&pawl.Agent{Model: m, Middleware: []pawl.Middleware{pawl.Approve(nil)}}, "no policy"},
	} {
		w := (&Engine{Blobs: new(memory)}).Worker(nil)
		if err := w.Add(t.Context(), "a", c.agent); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Add gave %v, want %q", err, c.want)
		}
	}
	w := (&Engine{Blobs: new(memory)}).Worker(nil)
	if err := w.Add(t.Context(), "a", &pawl.Agent{Model: m}); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(t.Context(), "a", &pawl.Agent{Model: m}); err == nil {
		t.Error("the same name was taken twice")
	}
}

// Each message travels once: the data that a request adds does not grow with the length of the
// conversation.
func TestByReference(t *testing.T) {
	var did atomic.Int64
	e := start(t,
		&pawl.Agent{Model: script.New(steps(50)...), Tools: []pawl.Toolset{step(pawl.EffectRead, &did)},
			Limits: pawl.Limits{Rounds: 60}})
	var most int
	model := func(ctx context.Context, in modelInput) (modelOutput, error) {
		b, err := json.Marshal(in)
		if most = max(most, len(b)); err != nil {
			return modelOutput{}, err
		}
		return e.w.act.model(ctx, in)
	}
	e.OnActivity(activityModel, mock.Anything, mock.Anything).Return(model)
	if _, err := e.run(input{Messages: ask}); err != nil {
		t.Fatal(err)
	}
	if most == 0 || most > 1500 {
		t.Errorf("the largest request has %d bytes in its history", most)
	}
}

// A run executes the open calls of Runner.From and no others. The input of an earlier version has
// no mark for that, and its run executes the calls that it began with.
func TestOpenCallsOfTheInput(t *testing.T) {
	msgs := []llm.Message{llm.User("Pay."), llm.Assistant(llm.ToolCall{ID: "c", Name: "pay", Args: []byte(`{}`)})}
	for name, test := range map[string]struct {
		in   input
		want int32
		all  []llm.Message
	}{
		"messages":                  {input{Messages: msgs, Answered: true}, 0, msgs},
		"messages, earlier version": {input{Messages: msgs}, 1, msgs},
		"a Result": {input{From: &pawl.Result{Messages: msgs}, Messages: []llm.Message{llm.User("And?")}}, 1,
			append(msgs[:2:2], llm.User("And?"))},
	} {
		var ran atomic.Int32
		pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { ran.Add(1); return "paid", nil })
		e, err := newEnv(t.Context(), "r", &pawl.Agent{Name: "agent", Model: script.New(script.Loop(script.Say("Done."))),
			Tools: []pawl.Toolset{pay}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.run(test.in)
		if err != nil || out.Result.Text() != "Done." || ran.Load() != test.want {
			t.Errorf("%s: got %v, %+v; %d calls ran", name, err, out, ran.Load())
			continue
		}
		v, err := e.QueryWorkflow(queryExport)
		x := new(journal.Export)
		if err == nil {
			err = v.Get(x)
		}
		if diff := cmp.Diff(x.Messages, test.all); err != nil || diff != "" {
			t.Errorf("%s: exported %v, %s", name, err, diff)
		}
	}
}

// refusedAnswer reports whether a run did not take an answer.
func refusedAnswer(err error) bool {
	var app *sdk.ApplicationError
	return errors.As(err, &app) && app.Type() == answerRefused
}

// A run that a tool ends has the result of the tool as its answer, although it has no Steps.
func TestAnswerOfATool(t *testing.T) {
	answertest.PlayReport(t, "Temporal", func(t *testing.T, task string) string {
		e := start(t, answertest.Writer())
		out, err := e.run(input{Messages: []llm.Message{llm.User(task)}})
		if err != nil {
			t.Fatal(err)
		}
		want := &pawl.Answer{Text: answertest.Report, From: pawl.AnswerTool, Key: "run/1/0"}
		if diff := cmp.Diff(want, out.Result.Answer); diff != "" {
			t.Errorf("the answer (-want +got):\n%s", diff)
		}
		return out.Result.Text()
	})
}

// A number of rounds means the same on a cluster.
func TestRounds(t *testing.T) {
	answertest.PlayRounds(t, "Temporal", func(t *testing.T, l *answertest.Looker, _ int) string {
		out, err := start(t, l.Agent).run(input{Messages: ask})
		if err != nil {
			t.Fatal(err)
		}
		return answertest.ShownBy(out.Result)
	})
}
