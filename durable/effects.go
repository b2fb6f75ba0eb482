package durable

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// EffectState is how far a call's effect is known.
type EffectState string

// The states of an effect.
const (
	EffectIntended  EffectState = "intended"  // it waits to be allowed; it has not begun
	EffectStarted   EffectState = "started"   // its intent is on disk, and the process that runs it is alive
	EffectCompleted EffectState = "completed" // it did what was asked
	EffectFailed    EffectState = "failed"    // it began, and told of a failure
	EffectUnknown   EffectState = "unknown"   // it began, and nobody knows what came of it
)

// Effect is an entry of the ledger: a call of a tool that acts, and what is known of it.
type Effect struct {
	Key            llm.Key      `json:"key"`
	Tool           string       `json:"tool"`
	Effect         pawl.Effect  `json:"effect"`
	State          EffectState  `json:"state"`
	IdempotencyKey string       `json:"idempotency_key,omitzero"` // "": it has not begun
	Call           llm.ToolCall `json:"call"`                     // as it was begun
	Attempts       int          `json:"attempts"`
	Began          time.Time    `json:"began,omitzero"` // the last attempt
	Ended          time.Time    `json:"ended,omitzero"`
	Outcome        pawl.Outcome `json:"outcome,omitzero"`
	Error          string       `json:"error,omitzero"`

	// Question is what is to be answered (Engine.Decide) so that the run goes on; nil: nothing. That of an unknown effect is put when the run is resumed.
	Question *pawl.Waiting `json:"question,omitzero"`
	// Answer is what was said to that, and what the run acts on when it is resumed; nil: nothing, or it has.
	Answer *llm.Decision `json:"answer,omitzero"`
}

// Effects returns the ledger of a run: each call of a tool that began, or waits to begin, in the order of their keys, those inside other calls too.
func (e *Engine) Effects(ctx context.Context, id string) ([]Effect, error) {
	head, err := e.Journal.JournalRun(ctx, scope(ctx), id)
	if err != nil {
		return nil, err
	}
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return nil, err
	}
	return h.effects(head.Owner != "" && head.Until.After(e.clock())), nil
}

func (h *history) effects(alive bool) []Effect {
	out := []Effect{}
	for key, begun := range h.intents {
		last := begun[len(begun)-1]
		f := Effect{Key: key, Tool: last.Call.Name, Effect: last.Effect, State: EffectUnknown, IdempotencyKey: last.Key, Call: last.Call, Attempts: len(begun), Began: h.records[last.seq-1].At}
		if done := h.outcomes[key]; done != nil {
			x := done.Execution
			if f.Outcome, f.Error, f.Ended, f.State = x.Outcome, x.Error, x.Ended, EffectFailed; x.Outcome == pawl.OutcomeOK {
				f.State = EffectCompleted
			}
		} else if alive {
			f.State = EffectStarted
		}
		f.ask(h.open(key))
		out = append(out, f)
	}
	for key := range h.asked {
		if q := h.open(key); q != nil && len(h.intents[key]) == 0 && !q.waiting.Passive {
			f := Effect{Key: key, Tool: q.waiting.Call.Name, State: EffectIntended, Call: q.waiting.Call, Attempts: q.waiting.Attempt}
			if q.waiting.Outcome == pawl.OutcomeUnknown { // since before the run was begun: Runner.From
				f.State = EffectUnknown
			}
			f.ask(q)
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Effect) int { return CompareKeys(a.Key, b.Key) })
	return out
}

func (f *Effect) ask(q *question) {
	switch {
	case q == nil:
	case q.answer != nil:
		f.Answer = q.answer
	default:
		f.Question = &q.waiting
	}
}
