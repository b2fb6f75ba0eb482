package temporal

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/stretchr/testify/mock"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A run on a cluster records of each call whether it may have happened, and its model reads the
// same. Only a call that may have happened says so, and only a Write whose worker was lost asks a
// person. Calls that end on their worker are recorded as by durable.Engine.
func TestCertainty(t *testing.T) {
	fails := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	stated := func(c delivery.Certainty) func(context.Context) error {
		return fails(delivery.NewError(c, "no answer", nil))
	}
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	lost := func(begun ...any) error { return sdk.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil, begun...) }
	cannotStart := sdk.NewNonRetryableApplicationError("there is no such tool", notStarted, nil)
	const write, read, idempotent = pawl.EffectWrite, pawl.EffectRead, pawl.EffectIdempotent

	for _, c := range []struct {
		name      string
		effect    pawl.Effect
		run       func(context.Context) error
		cancelled bool  // while it runs
		worker    error // of its activity instead of run; nil means none
		outcome   pawl.Outcome
		certainty delivery.Certainty
		asks      bool
	}{
		{name: "it works", effect: write, run: fails(nil), outcome: pawl.OutcomeOK},
		{name: "it fails", effect: write, run: fails(errors.New("no")), outcome: pawl.OutcomeError},
		{name: "not sent", effect: write, run: stated(delivery.NotSent), outcome: pawl.OutcomeError, certainty: delivery.NotSent},
		{name: "refused", effect: write, run: stated(delivery.Refused), outcome: pawl.OutcomeError, certainty: delivery.Refused},
		{name: "sent, and lost", effect: write, run: stated(delivery.Unknown), outcome: pawl.OutcomeError,
			certainty: delivery.Unknown},
		{name: "sent, and lost, idempotent", effect: idempotent, run: stated(delivery.Unknown), outcome: pawl.OutcomeError,
			certainty: delivery.Unknown},
		{name: "too slow", effect: write, run: waits, outcome: pawl.OutcomeTimeout, certainty: delivery.Unknown},
		{name: "too slow, idempotent", effect: idempotent, run: waits, outcome: pawl.OutcomeTimeout,
			certainty: delivery.Unknown},
		{name: "too slow, a read", effect: read, run: waits, outcome: pawl.OutcomeTimeout},
		{name: "too slow before it was sent", effect: write, run: func(ctx context.Context) error {
			return delivery.NewError(delivery.NotSent, "no connection", waits(ctx))
		}, outcome: pawl.OutcomeTimeout, certainty: delivery.NotSent},
		{name: "cancelled", effect: write, run: waits, cancelled: true, outcome: pawl.OutcomeCancelled,
			certainty: delivery.Unknown},
		{name: "cancelled, a read", effect: read, run: waits, cancelled: true, outcome: pawl.OutcomeCancelled},

		{name: "its worker was lost", effect: write, worker: lost(true), asks: true},
		{name: "its worker was lost, idempotent", effect: idempotent, worker: lost(true), outcome: pawl.OutcomeError,
			certainty: delivery.Unknown},
		{name: "its worker was lost, a read", effect: read, worker: lost(true), outcome: pawl.OutcomeError},
		{name: "its worker was lost before it began", effect: write, worker: lost(), outcome: pawl.OutcomeError,
			certainty: delivery.NotSent},
		{name: "no worker can execute it", effect: write, worker: cannotStart, outcome: pawl.OutcomeError,
			certainty: delivery.NotSent},
		{name: "no worker can execute it, a read", effect: read, worker: cannotStart, outcome: pawl.OutcomeError},
	} {
		t.Run(c.name, func(t *testing.T) {
			// agent is new for each engine, as its script is. ends ends the context of the call.
			agent := func(ends func(error)) *pawl.Agent {
				pay := pawl.Func("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
					if c.cancelled {
						ends(pawl.ErrCancelled)
					}
					return "paid", c.run(ctx)
				})
				pay.Effect = c.effect
				pay.Timeout = 20 * time.Millisecond
				if c.cancelled {
					pay.Timeout = time.Hour
				}
				return &pawl.Agent{Model: script.New(script.Call("pay", `{}`), script.Say("done")), Tools: []pawl.Toolset{pay}}
			}

			got, question := certaintyOnCluster(t, agent, c.worker)
			said := strings.Contains(got.Result.Text(), "may have happened")
			if c.asks {
				if question == nil || question.Outcome != pawl.OutcomeUnknown || got.Outcome != "" {
					t.Errorf("the question is %+v, and its record %+v", question, got)
				}
				return
			}
			if got.Outcome != c.outcome || got.Certainty != c.certainty {
				t.Errorf("%s, certainty %q, %q; want %s, %q",
					got.Outcome, got.Certainty, got.Result.Text(), c.outcome, c.certainty)
			}
			if said != (c.certainty == delivery.Unknown) || question != nil {
				t.Errorf("it says that it may have happened: %t, and asks %+v; %q", said, question, got.Result.Text())
			}
			if c.worker != nil {
				return
			}

			want := certaintyInMemory(t, agent)
			isEqual := got.Outcome == want.Outcome && got.Certainty == want.Certainty
			if !isEqual || got.Result.Text() != want.Result.Text() {
				t.Errorf("%s, %q, %q; with a journal %s, %q, %q", got.Outcome, got.Certainty, got.Result.Text(),
					want.Outcome, want.Certainty, want.Result.Text())
			}
		})
	}
}

// certaintyOnCluster runs an agent on a cluster, and returns the record of its one call. If worker
// is not nil, it is the error of each activity of the call. A run that asks is cancelled: it has no
// record of the call, whose result says that it may have taken effect.
func certaintyOnCluster(
	t *testing.T, agent func(func(error)) *pawl.Agent, worker error,
) (call pawl.Execution, question *pawl.PendingCall) {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	e := start(t, agent(end))
	// The context of a call ends with it, as on a cluster after a cancellation.
	e.SetWorkerOptions(sdkworker.Options{DeadlockDetectionTimeout: time.Minute, BackgroundActivityContext: ctx})
	if worker != nil {
		e.OnActivity(activityCall, mock.Anything, mock.Anything).Return(pawl.Execution{}, worker)
	}
	e.tick = func() error {
		s, err := e.state()
		if err != nil || !s.Waits {
			return err
		}
		question = &s.Pending[0]
		e.SignalWorkflow(signalCancel, nil)
		return nil
	}
	out, err := e.run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	if question != nil {
		results := out.Result.Messages[len(out.Result.Messages)-1]
		if !strings.Contains(text(t, results), "it may have taken effect") {
			t.Errorf("the result is %s", text(t, results))
		}
		return pawl.Execution{}, question
	}

	v, err := e.QueryWorkflow(queryExport)
	if err != nil {
		t.Fatal(err)
	}
	var x journal.Export
	if err := v.Get(&x); err != nil {
		t.Fatal(err)
	}
	return onlyCall(t, &x), nil
}

// certaintyInMemory runs an agent over a journal, and returns the record of its one call.
func certaintyInMemory(t *testing.T, agent func(func(error)) *pawl.Agent) pawl.Execution {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	if _, err := runtest.Ended(eng.Runner("r", agent(end)).Run(ctx, ask...)); err != nil {
		t.Fatal(err)
	}
	x, err := eng.Export(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	return onlyCall(t, x)
}

func onlyCall(t *testing.T, x *journal.Export) pawl.Execution {
	t.Helper()
	if len(x.Calls) != 1 {
		t.Fatalf("the record has the calls %+v", x.Calls)
	}
	return x.Calls[0].Execution
}
