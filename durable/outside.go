package durable

// outside.go: answers, cancellations and messages from any process.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// zeroTime is the time until which a released lease holds.
var zeroTime time.Time

// Decide stores answers to open calls of a run, from any process. The run continues with them when
// it is resumed. An equal answer may be given twice until the run uses it.
//
// The error is a *journal.AnswerError if the run does not take an answer: the call is not pending,
// the tool, the arguments or the attempt have changed, the question has another answer, or the
// arguments of an approval do not fit the schema of the tool. Then no answer is stored.
//
// A question does not expire. An approval that was not used within PendingCall.ValidFor does not
// count, and its question is open again.
func (e *Engine) Decide(ctx context.Context, id string, ds ...llm.Decision) error {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return err
	}
	return e.decide(ctx, scope(ctx), id, h, ds)
}

// decide is Decide for a run whose history was read.
func (e *Engine) decide(ctx context.Context, who store.Scope, id string, h *record.History, ds []llm.Decision) error {
	records, err := e.decisions(h, ds)
	switch {
	case err != nil:
		return fmt.Errorf("run %s: %w", id, err)
	case len(records) == 0:
		return nil
	}

	err = e.Journal.AppendOutside(ctx, who, id, store.JournalOpen, records...)
	if !errors.Is(err, store.ErrConflict) {
		return err
	}

	// Another process was faster; an equal answer is no conflict.
	h, readErr := e.history(ctx, who, id)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	missing, bad := e.decisions(h, ds)
	switch {
	case bad != nil:
		return fmt.Errorf("run %s: %w", id, bad)
	case len(missing) > 0:
		return err
	}
	return nil
}

// decisions returns the records of answers that the run does not have. It returns an error if the
// run does not take one of them.
func (e *Engine) decisions(h *record.History, ds []llm.Decision) (records []store.Record, err error) {
	for _, d := range ds {
		q, repeated, err := checkAnswer(h, d)
		if err != nil {
			return nil, err
		}
		if repeated {
			continue
		}

		d.At = zeroTime // the record has the time
		body, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		key := q.Key + "/" + record.KindDecision
		if q.Answers > 0 {
			key += fmt.Sprintf("/%d", q.Answers+1)
		}
		records = append(records, store.Record{Key: key, Kind: record.KindDecision, At: e.clock(), Body: body})
	}
	return records, nil
}

// checkAnswer is journal.CheckAnswer for the latest question of a call, which it returns.
func checkAnswer(h *record.History, d llm.Decision) (q *record.Question, repeated bool, err error) {
	q = h.LatestQuestion(d.Key)
	if q == nil {
		_, err = journal.CheckAnswer(nil, nil, d)
		return nil, false, err
	}
	repeated, err = journal.CheckAnswer(&q.Waiting, q.Answer, d)
	return q, repeated, err
}

// Pending returns the open questions of a run that have no answer.
func (e *Engine) Pending(ctx context.Context, id string) ([]pawl.PendingCall, error) {
	open, _, err := e.Questions(ctx, id)
	return open, err
}

// Questions returns the open questions of a run that have no answer, and the questions with an
// answer whose calls have not ended.
func (e *Engine) Questions(ctx context.Context, id string) (open, answered []pawl.PendingCall, err error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return nil, nil, err
	}
	for _, q := range h.OpenQuestions() {
		if q.Answer == nil {
			open = append(open, q.Waiting)
		}
	}
	for key := range h.Questions {
		if q := h.LatestQuestion(key); q != nil && q.Answer != nil {
			answered = append(answered, q.Waiting)
		}
	}
	slices.SortFunc(answered, func(a, b pawl.PendingCall) int { return journal.CompareKeys(a.Key, b.Key) })
	return open, answered, nil
}

// Cancel marks a run as cancelled. The process that works on it stops it within Engine.Look;
// otherwise it stops when it is resumed. Each open call gets a result that says that
// the run was cancelled. A second Cancel has no effect.
func (e *Engine) Cancel(ctx context.Context, id string) error {
	mark := store.Record{Key: record.KindCancel, Kind: record.KindCancel, At: e.clock(), Body: json.RawMessage(`{}`)}
	err := e.Journal.AppendOutside(ctx, scope(ctx), id, store.JournalOpen, mark)
	if !errors.Is(err, store.ErrConflict) {
		return err
	}

	h, readErr := e.history(ctx, scope(ctx), id)
	if readErr == nil && h.Cancelled {
		return nil // by an earlier Cancel
	}
	return err
}

// Steer sends messages of the user to a run, which receives them with its next request.
func (e *Engine) Steer(ctx context.Context, id string, msgs ...llm.Message) error {
	// An unused Steering reports what cannot be sent.
	if err := new(pawl.Steering).Steer(ctx, msgs...); err != nil {
		return err
	}
	body, err := json.Marshal(record.Messages{Messages: msgs})
	if err != nil {
		return err
	}
	key := record.KindMessage + "/" + rand.Text()
	message := store.Record{Key: key, Kind: record.KindMessage, At: e.clock(), Body: body}
	return e.Journal.AppendOutside(ctx, scope(ctx), id, "", message) // the state does not change
}

// inbox records which messages each request received.
type inbox struct {
	session *session
	outer   pawl.MessageSource // the caller's; nil means none
}

var _ pawl.MessageSource = (*inbox)(nil)

// Take returns the recorded messages of the request at key, or takes the waiting ones.
func (in *inbox) Take(ctx context.Context, at llm.Key) []llm.Message {
	s := in.session
	if b := s.history.Steered[at]; b != nil {
		return b.Messages
	}

	// A stored request without a record of messages was sent without any.
	if s.history.Replies[at] != nil || s.readOnly || s.failed() != nil {
		return nil
	}

	body := s.waitingMessages()
	if in.outer != nil {
		sent := in.outer.Take(ctx, at)

		// What is not a user's ends the run. It is not stored, so that a resume does not read it
		// again.
		if new(pawl.Steering).Steer(context.WithoutCancel(ctx), sent...) != nil {
			return sent
		}
		body.Messages = append(body.Messages, sent...)
	}
	if len(body.Messages) == 0 {
		return nil
	}
	if s.add(record.KindSteer, string(at)+"/steer", body) != nil || s.flush(nil) != nil {
		return nil
	}
	return slices.Clip(body.Messages)
}

// waitingMessages returns the messages from outside that no request has received, and marks them as
// received.
func (s *session) waitingMessages() (body record.Messages) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.history.Incoming {
		if s.history.Received[m.Key] {
			continue
		}
		s.history.Received[m.Key] = true
		body.Messages = append(body.Messages, m.Body.Messages...)
		body.From = append(body.From, m.Key)
	}
	return body
}

// Close returns the messages that no request received.
func (in *inbox) Close(ctx context.Context) []llm.Message {
	if in.outer == nil {
		return nil
	}
	return in.outer.Close(ctx)
}
