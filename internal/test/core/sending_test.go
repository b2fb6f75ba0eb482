package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// intending runs a call under an engine that records its intents in log. refuse is the error with
// which the engine stores nothing.
func intending(t *testing.T, ctx context.Context, tool *pawl.Tool, log *[]string, refuse error) pawl.Execution {
	t.Helper()
	e := &pawl.Engine{Run: "r", Intend: func(context.Context, pawl.Task, llm.ToolCall, *pawl.Tool, int) error {
		*log = append(*log, "intent")
		return refuse
	}}
	task := pawl.Task{Run: "run", Key: "run/1/0", Call: llm.ToolCall{ID: "1", Name: tool.Name, Args: json.RawMessage(`{}`)}}
	task, err := e.Attach(ctx, &pawl.Agent{Tools: []pawl.Toolset{tool}}, task)
	if err != nil {
		t.Fatal(err)
	}
	return task.Do(ctx, nil)
}

// The intent of a write that states the moment of sending is stored at that moment, and never if
// nothing is sent. Other intents are stored before the tool starts.
func TestIntentOfASendingTool(t *testing.T) {
	lost := errors.New("the connection broke")
	noConnection := delivery.NewError(delivery.NotSent, "no connection", nil)
	for _, c := range []struct {
		name      string
		effect    pawl.Effect
		states    bool
		sends     bool
		fault     error // of the tool
		refuse    error // of the engine
		ends      error // with which the context ends during the call; nil means that it does not
		log       []string
		outcome   pawl.Outcome
		certainty delivery.Certainty
	}{
		{name: "it sends", effect: pawl.EffectWrite, states: true, sends: true,
			log: []string{"start", "intent", "sent"}, outcome: pawl.OutcomeOK},
		{name: "its effect is not stated", states: true, sends: true,
			log: []string{"start", "intent", "sent"}, outcome: pawl.OutcomeOK},
		{name: "it does not state", effect: pawl.EffectWrite, sends: true,
			log: []string{"intent", "start", "sent"}, outcome: pawl.OutcomeOK},
		{name: "it may be repeated", effect: pawl.EffectIdempotent, states: true, sends: true,
			log: []string{"intent", "start", "sent"}, outcome: pawl.OutcomeOK},
		{name: "it does not send", effect: pawl.EffectWrite, states: true, fault: noConnection,
			log: []string{"start"}, outcome: pawl.OutcomeError, certainty: delivery.NotSent},
		{name: "the engine refuses", effect: pawl.EffectWrite, states: true, sends: true, refuse: errors.New("no disk"),
			log: []string{"start", "intent"}, outcome: pawl.OutcomeCancelled},
		{name: "it is interrupted before", effect: pawl.EffectWrite, states: true, fault: lost, ends: errors.New("stops"),
			log: []string{"start"}, outcome: pawl.OutcomeCancelled, certainty: delivery.NotSent},
		{name: "it is interrupted after", effect: pawl.EffectWrite, states: true, sends: true, fault: lost, ends: errors.New("stops"),
			log: []string{"start", "intent", "sent"}, outcome: pawl.OutcomeUnknown, certainty: delivery.Unknown},
		{name: "it is cancelled before", effect: pawl.EffectWrite, states: true, fault: lost, ends: pawl.ErrCancelled,
			log: []string{"start"}, outcome: pawl.OutcomeCancelled, certainty: delivery.NotSent},
		// Its intent is stored, so that only the outcome says that nothing happened.
		{name: "it does not state, and is interrupted", effect: pawl.EffectWrite, fault: noConnection, ends: errors.New("stops"),
			log: []string{"intent", "start"}, outcome: pawl.OutcomeError, certainty: delivery.NotSent},
		{name: "it was refused, and is interrupted", effect: pawl.EffectWrite, states: true, sends: true, ends: errors.New("stops"),
			fault: delivery.NewError(delivery.Refused, "401", nil),
			log:   []string{"start", "intent", "sent"}, outcome: pawl.OutcomeError, certainty: delivery.Refused},
	} {
		var log []string
		ctx, stop := context.WithCancelCause(t.Context())
		var call *pawl.Invocation
		tool := &pawl.Tool{Name: "pay", Effect: c.effect, StatesSending: c.states,
			Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				call = pawl.InvocationFrom(ctx)
				log = append(log, "start")
				for range 2 { // the second time stores nothing
					if !c.sends {
						break
					}
					if err := call.Sending(ctx); err != nil {
						return llm.ToolResult{}, err
					}
				}
				if c.sends {
					log = append(log, "sent")
				}
				if c.ends != nil {
					stop(c.ends)
				}
				return llm.TextResult("paid"), c.fault
			}}
		x := intending(t, ctx, tool, &log, c.refuse)
		stop(nil)
		if !slices.Equal(log, c.log) || x.Outcome != c.outcome || x.Certainty != c.certainty {
			t.Errorf("%s: %v, %s, %q; want %v, %s, %q", c.name, log, x.Outcome, x.Certainty, c.log, c.outcome, c.certainty)
		}

		// After its end nothing may be sent, unless it was.
		late := call.Sending(t.Context())
		stated := c.states && c.effect.Assumed() == pawl.EffectWrite
		may := !stated || c.sends && c.refuse == nil
		if (late == nil) != may {
			t.Errorf("%s: sending after the end: %v", c.name, late)
		}
	}
}

// A tool that ignores the end of its time is abandoned. If it had sent nothing, it cannot send
// anything any more, so that the result says that nothing was sent.
func TestAbandonedBeforeSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late error
		over := make(chan struct{})
		tool := &pawl.Tool{Name: "pay", Effect: pawl.EffectWrite, StatesSending: true, Timeout: time.Second,
			Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				defer close(over)
				time.Sleep(time.Minute)
				late = pawl.InvocationFrom(ctx).Sending(context.WithoutCancel(ctx))
				return llm.TextResult("paid"), nil
			}}
		agent := &pawl.Agent{Model: script.New(script.Call("pay", `{}`), script.Say("done")), Tools: []pawl.Toolset{tool}}
		res, err := agent.Run(t.Context(), llm.User("pay"))
		if err != nil {
			t.Fatal(err)
		}
		x := res.Steps[0].Executions[0]
		if x.Outcome != pawl.OutcomeTimeout || x.Certainty != delivery.NotSent {
			t.Errorf("%s, %q", x.Outcome, x.Certainty)
		}
		<-over
		if late == nil {
			t.Error("it could be sent after its result said that it was not")
		}
	})
}

// What is known about a call includes its earlier attempts: if an earlier attempt may have
// happened, the last one does not make it certain.
func TestCertaintyOfAllAttempts(t *testing.T) {
	fault := func(c delivery.Certainty) error {
		return delivery.NewError(c, "no", pawl.RetryableError(errors.New("no")))
	}
	u, n, r := delivery.Unknown, delivery.NotSent, delivery.Refused
	for _, c := range []struct {
		attempts []delivery.Certainty
		want     delivery.Certainty
	}{
		{[]delivery.Certainty{n, n, n}, n},
		{[]delivery.Certainty{u, n, n}, u},
		{[]delivery.Certainty{n, u, r}, u},
		{[]delivery.Certainty{n, r, u}, u},
		{[]delivery.Certainty{r, n, r}, r},
	} {
		synctest.Test(t, func(t *testing.T) {
			tool := pawl.Func("put", "Puts.", func(ctx context.Context, _ struct{}) (string, error) {
				return "", fault(c.attempts[pawl.InvocationFrom(ctx).Attempt-1])
			})
			tool.Effect = pawl.EffectIdempotent
			x := pawl.Toolsets{tool}.Execute(t.Context(), llm.ToolCall{ID: "1", Name: "put"})
			if x.Certainty != c.want || x.Attempts != len(c.attempts) {
				t.Errorf("%v: %q after %d attempts, want %q", c.attempts, x.Certainty, x.Attempts, c.want)
			}
		})
	}
}
