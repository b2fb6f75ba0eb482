package journal

// effects.go: the ledger of a run.

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
)

// EffectState is the known progress of a call with an effect.
type EffectState string

// The states of an effect.
const (
	EffectIntended  EffectState = "intended"  // pending approval, not started
	EffectStarted   EffectState = "started"   // its intent is on disk, and its process is alive
	EffectCompleted EffectState = "completed" // it succeeded
	EffectFailed    EffectState = "failed"    // it started and reported a failure, or was not sent
	// It started, and its outcome is unknown: it was interrupted, cancelled or too slow, or its
	// connection was lost. It may have happened.
	EffectUnknown EffectState = "unknown"
)

// LedgerEntry is a call of a tool with an effect, and its known state. A call that only reads has
// an entry from its end on, because it may be repeated, and its start is not stored.
type LedgerEntry struct {
	Key  llm.Key `json:"key"`  // of the call
	Tool string  `json:"tool"` // the name of the tool
	// Effect.Assumed of the tool when the call started; EffectWrite before.
	Effect pawl.Effect `json:"effect"`
	State  EffectState `json:"state"` // how far the call is known to be

	// IdempotencyKey is "" if the call has not started, or only reads.
	IdempotencyKey string       `json:"idempotency_key,omitzero"`
	Call           llm.ToolCall `json:"call"`             // with the arguments of its start
	Attempts       int          `json:"attempts"`         // how often it has started
	Began          time.Time    `json:"began,omitzero"`   // the start of the last attempt
	Ended          time.Time    `json:"ended,omitzero"`   // the zero Time means not ended
	Outcome        pawl.Outcome `json:"outcome,omitzero"` // "" means no outcome
	Error          string       `json:"error,omitzero"`   // Execution.Error
	// Execution.Certainty. Empty means that the tool returned, or that the call only reads.
	Certainty delivery.Certainty `json:"certainty,omitzero"`
	// Execution.Derivations: why its values needed no question. Nil means that no policy says so.
	Derivations []derivation.Value `json:"derivations,omitzero"`

	// Question is the pending question whose answer (Engine.Decide) lets the run continue. Nil
	// means none. For an unknown effect without an Outcome, the question is asked when the run
	// resumes. With an Outcome the run went on: the model has read that the call may have happened.
	Question *pawl.PendingCall `json:"question,omitzero"`
	// Answer is the stored answer that the run will act on when it resumes. Nil means that there is
	// no answer, or that the run has acted on it.
	Answer *llm.Decision `json:"answer,omitzero"`
}

// effects returns the ledger of a run. alive means that a process has its lease.
func effects(h *record.History, alive bool) []LedgerEntry {
	out := []LedgerEntry{}
	for key := range h.Attempts {
		out = append(out, started(h, key, alive))
	}
	for key, done := range h.Outcomes {
		if len(h.Attempts[key]) == 0 && startedWithoutIntent(done) {
			out = append(out, withoutIntent(key, done))
		}
	}
	for key := range h.Questions {
		// What the caller executes is not an effect of the run.
		q := h.OpenQuestion(key)
		if q == nil || len(h.Attempts[key]) > 0 || q.Waiting.Passive {
			continue
		}
		out = append(out, intended(key, q))
	}
	slices.SortFunc(out, func(a, b LedgerEntry) int { return CompareKeys(a.Key, b.Key) })
	return out
}

// started returns the entry of a call that has started.
func started(h *record.History, key llm.Key, alive bool) LedgerEntry {
	attempts := h.Attempts[key]
	last := attempts[len(attempts)-1]
	f := LedgerEntry{
		Key:            key,
		Tool:           last.Call.Name,
		Effect:         last.Effect,
		State:          EffectUnknown,
		IdempotencyKey: last.Key,
		Call:           last.Call,
		Attempts:       len(attempts),
		Began:          h.Records[last.Seq-1].At,
	}

	done := h.Outcomes[key]
	switch {
	case done != nil:
		x := done.Execution
		f.Outcome = x.Outcome
		f.Error = x.Error
		f.Ended = x.Ended
		f.Certainty = certaintyOf(&x, last.Effect)
		f.Derivations = x.Derivations
		f.State = stateOf(x.Outcome, f.Certainty)
	case alive:
		f.State = EffectStarted
	}
	f.setQuestion(h.OpenQuestion(key))
	return f
}

// startedWithoutIntent reports whether a call that has no intent was started: it only reads, or it
// sent nothing (pawl.Tool.StatesSending).
func startedWithoutIntent(done *record.Outcome) bool {
	x := &done.Execution
	return x.Attempts > 0 && (done.Effect != pawl.EffectUnstated || x.Certainty != "")
}

// withoutIntent returns the entry of a call that was started without an intent.
func withoutIntent(key llm.Key, done *record.Outcome) LedgerEntry {
	x := done.Execution
	return LedgerEntry{
		Key:       key,
		Tool:      x.Call.Name,
		Effect:    cmp.Or(done.Effect, pawl.EffectWrite),
		State:     stateOf(x.Outcome, x.Certainty),
		Call:      x.Call,
		Attempts:  x.Attempts,
		Began:     x.Started,
		Ended:     x.Ended,
		Outcome:   x.Outcome,
		Error:     x.Error,
		Certainty: x.Certainty,

		Derivations: x.Derivations,
	}
}

// stateOf returns the state of a call that has ended.
func stateOf(outcome pawl.Outcome, c delivery.Certainty) EffectState {
	switch {
	case outcome == pawl.OutcomeOK:
		return EffectCompleted
	case c == delivery.Unknown:
		return EffectUnknown
	}
	return EffectFailed
}

// certaintyOf returns the certainty of a call that has ended. Journals from before it was recorded
// have the outcome alone.
func certaintyOf(x *pawl.Execution, effect pawl.Effect) delivery.Certainty {
	stopped := x.Outcome == pawl.OutcomeTimeout || x.Outcome == pawl.OutcomeCancelled
	changes := effect == pawl.EffectWrite || effect == pawl.EffectIdempotent
	if x.Certainty == "" && stopped && changes {
		return delivery.Unknown
	}
	return x.Certainty
}

// intended returns the entry of a call that has not started in this run.
func intended(key llm.Key, q *record.Question) LedgerEntry {
	f := LedgerEntry{
		Key:      key,
		Tool:     q.Waiting.Call.Name,
		Effect:   pawl.EffectWrite,
		State:    EffectIntended,
		Call:     q.Waiting.Call,
		Attempts: q.Waiting.Attempt,
	}
	if q.Waiting.Outcome == pawl.OutcomeUnknown { // it started before the run: Runner.From
		f.State = EffectUnknown
	}
	f.setQuestion(q)
	return f
}

// setQuestion sets the question, or the answer that it has. q may be nil.
func (f *LedgerEntry) setQuestion(q *record.Question) {
	switch {
	case q == nil:
	case q.Answer != nil:
		f.Answer = q.Answer
	default:
		f.Question = &q.Waiting
	}
}
