package journal

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// EffectState is the known progress of a call with an effect.
type EffectState string

// The states of an effect.
const (
	EffectIntended  EffectState = "intended"  // pending approval, not started
	EffectStarted   EffectState = "started"   // its intent is on disk, and its process is alive
	EffectCompleted EffectState = "completed" // it succeeded
	EffectFailed    EffectState = "failed"    // it started and reported a failure
	EffectUnknown   EffectState = "unknown"   // it started, and its outcome is unknown
)

// LedgerEntry is a call of a tool with an effect, and its known state.
type LedgerEntry struct {
	Key            llm.Key      `json:"key"`
	Tool           string       `json:"tool"`
	Effect         pawl.Effect  `json:"effect"`
	State          EffectState  `json:"state"`
	IdempotencyKey string       `json:"idempotency_key,omitzero"` // "" means not started
	Call           llm.ToolCall `json:"call"`                     // with the arguments of its start
	Attempts       int          `json:"attempts"`
	Began          time.Time    `json:"began,omitzero"` // the last attempt
	Ended          time.Time    `json:"ended,omitzero"`
	Outcome        pawl.Outcome `json:"outcome,omitzero"`
	Error          string       `json:"error,omitzero"`

	// Question is the pending question whose answer (Engine.Decide) lets the run continue. Nil
	// means none. For an unknown effect, the question is asked when the run resumes.
	Question *pawl.PendingCall `json:"question,omitzero"`
	// Answer is the stored answer that the run will act on when it resumes. Nil means that there is
	// no answer, or that the run has acted on it.
	Answer *llm.Decision `json:"answer,omitzero"`
}

func effects(h *record.History, alive bool) []LedgerEntry {
	out := []LedgerEntry{}
	for key, started := range h.Attempts {
		last := started[len(started)-1]
		f := LedgerEntry{Key: key, Tool: last.Call.Name, Effect: last.Effect, State: EffectUnknown,
			IdempotencyKey: last.Key, Call: last.Call, Attempts: len(started), Began: h.Records[last.Seq-1].At}
		if done := h.Outcomes[key]; done != nil {
			x := done.Execution
			f.Outcome, f.Error, f.Ended, f.State = x.Outcome, x.Error, x.Ended,
				EffectFailed
			if x.Outcome == pawl.OutcomeOK {
				f.State = EffectCompleted
			}
		} else if alive {
			f.State = EffectStarted
		}
		f.ask(h.OpenQuestion(key))
		out = append(out, f)
	}
	for key := range h.Questions {
		if q := h.OpenQuestion(key); q != nil && len(h.Attempts[key]) == 0 && !q.Waiting.Passive {
			f := LedgerEntry{Key: key, Tool: q.Waiting.Call.Name, State: EffectIntended, Call: q.Waiting.Call,
				Attempts: q.Waiting.Attempt}
			// From before the start of the run: Runner.From.
			if q.Waiting.Outcome == pawl.OutcomeUnknown {
				f.State = EffectUnknown
			}
			f.ask(q)
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b LedgerEntry) int { return CompareKeys(a.Key, b.Key) })
	return out
}

func (f *LedgerEntry) ask(q *record.Question) {
	switch {
	case q == nil:
	case q.Answer != nil:
		f.Answer = q.Answer
	default:
		f.Question = &q.Waiting
	}
}
