package record

// question.go: questions and their answers.

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Question is a pending question of a call.
type Question struct {
	Seq     int64  // of the record
	Key     string // of the record
	Waiting pawl.PendingCall
	Answer  *llm.Decision // the last one; nil means none that counts
	Answers int           // the number of answers, also of expired ones
}

// approved reports whether the question has an answer that lets the call start.
func (q *Question) approved() bool { return q.Answer != nil && q.Answer.Approve }

// OpenQuestion returns the pending question of the call at key. Nil means that its last attempt has
// asked none.
func (h *History) OpenQuestion(key llm.Key) *Question {
	asked := h.Questions[key]
	if len(asked) == 0 || h.Outcomes[key] != nil {
		return nil
	}
	q := &asked[len(asked)-1]
	if started := h.Attempts[key]; len(started) > 0 && started[len(started)-1].Seq > q.Seq {
		return nil // it was answered, and the call started
	}
	return q
}

// OpenQuestions returns the open questions in the order of the calls.
func (h *History) OpenQuestions() []Question {
	var out []Question
	for _, r := range h.Records {
		if r.Kind != KindQuestion {
			continue
		}
		key := llm.Key(r.Key[:strings.LastIndex(r.Key, "/question/")])
		if q := h.OpenQuestion(key); q != nil && q.Key == r.Key {
			out = append(out, *q)
		}
	}
	return out
}

// LatestQuestion returns the last question of the call at key if it is open, or if it has an answer
// and the call has not ended.
func (h *History) LatestQuestion(key llm.Key) *Question {
	if q := h.OpenQuestion(key); q != nil {
		return q
	}
	asked := h.Questions[key]
	if len(asked) == 0 || h.Outcomes[key] != nil {
		return nil
	}
	last := &asked[len(asked)-1]
	if last.Answer == nil {
		return nil
	}
	return last
}

// decided records the answer r to a question.
func (h *History) decided(r store.Record) error {
	var d llm.Decision
	if err := json.Unmarshal(r.Body, &d); err != nil {
		return err
	}
	d.At = r.At

	key := r.Key[:max(0, strings.LastIndex(r.Key, "/decision"))]
	asked := h.Questions[d.Key]
	for i := range asked {
		if asked[i].Key == key {
			asked[i].Answer = &d
			asked[i].Answers++
			return nil
		}
	}
	return fmt.Errorf("it answers %s, which was not asked", key)
}

// MayHaveHappened reports whether a call may have happened after the backup from which the run was
// restored: since then it was neither asked about nor started.
func (h *History) MayHaveHappened(t pawl.Task) bool {
	tool := t.Tool()
	if h.RestoredAt == 0 || tool == nil {
		return false
	}
	if tool.Effect.Assumed() != pawl.EffectWrite || tool.Passive {
		return false
	}

	asked := h.Questions[t.Key]
	if n := len(asked); n > 0 && asked[n-1].Seq >= h.RestoredAt {
		return false
	}
	started := h.Attempts[t.Key]
	if n := len(started); n > 0 && started[n-1].Seq >= h.RestoredAt {
		return false
	}
	return true
}

// Expire removes the approvals that were not used in time, so that their questions are open again.
// The approval of a call that has made calls was used.
func (h *History) Expire(now time.Time) {
	for key := range h.Questions {
		q := h.OpenQuestion(key)
		switch {
		case q == nil || q.Answer == nil || !q.Answer.Expired(q.Waiting.ValidFor, now):
		case h.composed(key):
			q.Answer.At = time.Time{}
		default:
			q.Answer = nil
		}
	}
}

// composed reports whether the call at key has made calls.
func (h *History) composed(key llm.Key) bool {
	inside := string(key) + "/"
	for _, r := range h.Records {
		rest, ok := strings.CutPrefix(r.Key, inside)
		if !ok {
			continue
		}
		switch r.Kind {
		case KindReply, KindOutcome:
			return true
		case KindQuestion: // a question of key itself is key/question/N
			if !strings.HasPrefix(rest, KindQuestion) {
				return true
			}
		}
	}
	return false
}
