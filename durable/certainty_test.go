package durable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// The ledger says of a call what its text says: a Write that was too slow, cancelled or lost may
// have happened, so it is unknown; a Write that was not sent or refused has failed. A read has
// failed in any case.
func TestLedgerHasTheCertainty(t *testing.T) {
	lost := func(c delivery.Certainty) func(context.Context) error {
		return func(context.Context) error { return delivery.NewError(c, "no answer", nil) }
	}
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, c := range []struct {
		name      string
		effect    pawl.Effect
		run       func(context.Context) error
		cancelled bool
		outcome   pawl.Outcome
		certainty delivery.Certainty
		state     journal.EffectState
	}{
		{"it works", pawl.EffectWrite, func(context.Context) error { return nil }, false, pawl.OutcomeOK, "",
			journal.EffectCompleted},
		{"it fails", pawl.EffectWrite, func(context.Context) error { return errors.New("no") }, false, pawl.OutcomeError, "",
			journal.EffectFailed},
		{"not sent", pawl.EffectWrite, lost(delivery.NotSent), false, pawl.OutcomeError, delivery.NotSent, journal.EffectFailed},
		{"refused", pawl.EffectWrite, lost(delivery.Refused), false, pawl.OutcomeError, delivery.Refused, journal.EffectFailed},
		{"lost", pawl.EffectWrite, lost(delivery.Unknown), false, pawl.OutcomeError, delivery.Unknown, journal.EffectUnknown},
		{"too slow", pawl.EffectWrite, waits, false, pawl.OutcomeTimeout, delivery.Unknown, journal.EffectUnknown},
		{"too slow, and idempotent", pawl.EffectIdempotent, waits, false, pawl.OutcomeTimeout, delivery.Unknown,
			journal.EffectUnknown},
		{"too slow, and a read", pawl.EffectRead, waits, false, pawl.OutcomeTimeout, "", journal.EffectFailed},
		{"cancelled", pawl.EffectWrite, waits, true, pawl.OutcomeCancelled, delivery.Unknown, journal.EffectUnknown},
		{"cancelled, and a read", pawl.EffectRead, waits, true, pawl.OutcomeCancelled, "", journal.EffectFailed},
	} {
		synctest.Test(t, func(t *testing.T) {
			pay := pawl.Func("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) { return "paid", c.run(ctx) })
			pay.Effect = c.effect
			pay.Timeout = time.Hour
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if c.cancelled {
				time.AfterFunc(time.Minute, func() { cancel(pawl.ErrCancelled) })
			} else {
				pay.Timeout = time.Minute
			}
			agent := &pawl.Agent{Model: script.New(script.Call("pay", `{}`), script.Say("done")), Tools: []pawl.Toolset{pay}}
			eng := &durable.Engine{Journal: new(store.MemoryJournal)}
			if _, err := runtest.Ended(eng.Runner("r", agent).Run(ctx, llm.User("pay"))); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}

			all, err := eng.Effects(t.Context(), "r")
			if err != nil || len(all) != 1 {
				t.Fatalf("%s: %v, %v", c.name, all, err)
			}
			got := all[0]
			if got.Outcome != c.outcome || got.Certainty != c.certainty || got.State != c.state || got.Question != nil {
				t.Errorf("%s: %s, %q, %s; want %s, %q, %s", c.name, got.Outcome, got.Certainty, got.State, c.outcome, c.certainty, c.state)
			}
		})
	}
}
