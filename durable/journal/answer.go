package journal

// answer.go: which answers to open calls a run takes.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

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
		return false, &AnswerError{Key: d.Key, Code: code, Text: fmt.Sprintf(format, args...)}
	}
	newArgs := d.Approve && d.Result == nil && d.Args != nil
	switch {
	case q == nil:
		return bad(AnswerNotOpen, "the call does not wait for an answer; the list of pending calls shows which do")
	case q.Digest != d.Digest:
		return bad(AnswerOther, "the answer is to another question: tool, arguments, attempt or question differ; "+
			"read the pending question, and answer it with its digest")
	// A client that got no reply sends its answer again.
	case before != nil && sameDecision(*before, d):
		return true, nil
	case before != nil:
		return bad(AnswerTaken, "the call was answered otherwise by %q; only that answer counts", before.By)
	case q.Passive && d.Approve && d.Result == nil:
		return bad(AnswerPassive, "the call is executed by the caller; answer it with its result")
	case newArgs && len(q.Schema) > 0:
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
