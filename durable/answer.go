package durable

// answer.go: AnswerError, and the check of answers, which is the same on every engine.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// AnswerError is the error for an answer that a run does not take. Nothing is stored, and an open
// question stays open. Every engine and the server return it for the same answers. Except for
// AnswerMisfit, store.ErrConflict is in its tree.
type AnswerError struct {
	Key  llm.Key `json:"key"`  // of the call
	Code string  `json:"code"` // one of the constants
	Text string  `json:"text"` // what is wrong, and what would be right
}

// The codes of AnswerError.
const (
	AnswerNotOpen = "not_open"       // the call is not pending
	AnswerOther   = "other_question" // tool, arguments, attempt or question differ
	AnswerTaken   = "answered"       // the question has another answer
	AnswerPassive = "passive"        // an approval of a call that the caller executes
	AnswerMisfit  = "misfit"         // the arguments do not fit the schema of the tool
)

// Error returns the key and the text.
func (e *AnswerError) Error() string { return string(e.Key) + ": " + e.Text }

// Unwrap returns store.ErrConflict, or nil for AnswerMisfit.
func (e *AnswerError) Unwrap() error {
	if e.Code == AnswerMisfit {
		return nil
	}
	return store.ErrConflict
}

// CheckAnswer returns an *AnswerError if d does not answer the question q, and whether d repeats
// the answer before. A nil q means that the call is not pending. before is the answer that q has;
// nil means that it has none.
func CheckAnswer(q *pawl.PendingCall, before *llm.Decision, d llm.Decision) (repeated bool, err error) {
	bad := func(code, format string, args ...any) (bool, error) {
		return false, &AnswerError{d.Key, code, fmt.Sprintf(format, args...)}
	}
	switch {
	case q == nil:
		return bad(AnswerNotOpen, "the call does not wait for an answer; the list of pending calls shows which do")
	case q.Digest != d.Digest:
		return bad(AnswerOther, "the answer is to another question: tool, arguments, attempt or question differ; "+
			"read the pending question, and answer it with its digest")
	case before != nil && sameDecision(*before, d):
		return true, nil
	case before != nil:
		return bad(AnswerTaken, "the call was answered otherwise by %q; only that answer counts", before.By)
	case q.Passive && d.Approve && d.Result == nil:
		return bad(AnswerPassive, "the call is executed by the caller; answer it with its result")
	case d.Result == nil && d.Approve && d.Args != nil && len(q.Schema) > 0:
		spec := llm.ToolSpec{Name: q.Call.Name, Input: q.Schema, NoRepair: true}
		if err := spec.Validate(d.Args); err != nil {
			return bad(AnswerMisfit, "%s", strings.TrimSpace(err.Error())) // it says what would fit
		}
	}
	return false, nil
}

// sameDecision reports whether a and b are equal, apart from the decider and the time.
func sameDecision(a, b llm.Decision) bool {
	x, errA := json.Marshal([]any{a.Key, a.Digest, a.Approve, a.Args, a.Reason, a.Result})
	y, errB := json.Marshal([]any{b.Key, b.Digest, b.Approve, b.Args, b.Reason, b.Result})
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// decided records the answer r to a question.
func (h *history) decided(r store.Record) error {
	var d llm.Decision
	if err := json.Unmarshal(r.Body, &d); err != nil {
		return err
	}
	d.At = r.At
	key := r.Key[:max(0, strings.LastIndex(r.Key, "/decision"))]
	for i := range h.asked[d.Key] {
		if q := &h.asked[d.Key][i]; q.key == key {
			q.answer = &d
			q.answers++
			return nil
		}
	}
	return fmt.Errorf("it answers %s, which was not asked", key)
}

// latest returns the last question of the call at key if it is open, or if it has an answer and the
// call has not ended.
func (h *history) latest(key llm.Key) *question {
	q, asked := h.open(key), h.asked[key]
	if n := len(asked); q == nil && n > 0 && h.outcomes[key] == nil && asked[n-1].answer != nil {
		q = &asked[n-1]
	}
	return q
}

// check is CheckAnswer for the latest question of a call, which it returns.
func (h *history) check(d llm.Decision) (q *question, repeated bool, err error) {
	q = h.latest(d.Key)
	if q == nil {
		_, err = CheckAnswer(nil, nil, d)
		return nil, false, err
	}
	repeated, err = CheckAnswer(&q.waiting, q.answer, d)
	return q, repeated, err
}

// expire removes the approvals that were not used in time, so that their questions are open again.
// The approval of a call that has made calls was used.
func (h *history) expire(now time.Time) {
	for key := range h.asked {
		q := h.open(key)
		switch {
		case q == nil || q.answer == nil || !q.answer.Expired(q.waiting.ValidFor, now):
		case h.composed(key):
			q.answer.At = time.Time{}
		default:
			q.answer = nil
		}
	}
}

// composed reports whether the call at key has made calls.
func (h *history) composed(key llm.Key) bool {
	inside := string(key) + "/"
	for _, r := range h.records {
		if strings.HasPrefix(r.Key, inside) && (r.Kind == kindReply || r.Kind == kindOutcome ||
			r.Kind == kindQuestion && !strings.HasPrefix(r.Key[len(inside):], kindQuestion)) {
			return true
		}
	}
	return false
}
