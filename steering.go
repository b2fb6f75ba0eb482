package pawl

// steering.go: messages that are sent to an active run.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl/llm"
)

// Steering sends messages to an active run, from another goroutine:
//
//	var steering pawl.Steering
//	go func() { … steering.Steer(ctx, llm.User("Only the first page, please.")) }()
//	ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Messages: &steering})
//	res, err := agent.Run(ctx, llm.User("Summarise the report."))
//
// A message is placed after the next results, never between a call and its result. If the model has
// answered in the meantime, the run continues with the message; this counts as a round, so that a
// run of N rounds still makes at most N+1 requests. Messages that no request contains when the run
// ends are in Result.Unread.
//
// The zero value is ready. It serves one run and is safe for concurrent use.
type Steering struct {
	mu    sync.Mutex
	msgs  []llm.Message
	ended bool
}

var _ MessageSource = (*Steering)(nil)

// ErrRunEnded is the error of a message that is sent after the end of the run.
var ErrRunEnded = errors.New("the run has ended")

// Steer sends messages of the user, in order. The error is ErrRunEnded, the error of ctx, or names
// a message that is not a message of a user. After an error no message is sent.
func (s *Steering) Steer(ctx context.Context, msgs ...llm.Message) error {
	if s == nil {
		return errors.New("the *pawl.Steering is nil; use new(pawl.Steering), also in RunOptions.Messages")
	}
	if err := steerable(msgs); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.ended:
		return ErrRunEnded
	}
	s.msgs = append(s.msgs, msgs...)
	return nil
}

// Take returns the messages sent since the last Take.
func (s *Steering) Take(context.Context, llm.Key) []llm.Message { return s.take(false) }

// Close returns the remaining messages. From then on Steer returns ErrRunEnded.
func (s *Steering) Close(context.Context) []llm.Message { return s.take(true) }

func (s *Steering) take(ends bool) (msgs []llm.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	msgs, s.msgs, s.ended = s.msgs, nil, s.ended || ends
	return msgs
}

// MessageSource supplies the messages that are sent to an active run. Steering is the
// implementation in memory. An engine wraps it and stores which request took which messages, so
// that a replayed run takes the same.
type MessageSource interface {
	// Take returns the messages since the last Take, in order: messages of the user, with texts and
	// media. Others end the run as failed. at is the key of the request that will contain them.
	// Take does not wait.
	Take(ctx context.Context, at llm.Key) []llm.Message
	// Close is called once, when the run ends. It returns the remaining messages.
	Close(ctx context.Context) []llm.Message
}

// steerable returns an error for a message that is not one of a user.
func steerable(msgs []llm.Message) error {
	for i, m := range msgs {
		if m.Role != llm.RoleUser || len(m.Parts) == 0 {
			return fmt.Errorf("message %d: a run can be steered by messages of the user, not by an empty one or one of %q", i, m.Role)
		}
		for _, p := range m.Parts {
			if !isContent(p) {
				return fmt.Errorf("message %d: a run cannot be steered by %T", i, p)
			}
		}
	}
	return nil
}

// isContent reports whether p is a text or media.
func isContent(p llm.Part) bool {
	switch p.(type) {
	case llm.Text, llm.Media:
		return true
	}
	return false
}

// takeMessages adds the sent messages to the next request. It reports whether there are any. Other
// messages than a user's end the run before that request.
func (r *run) takeMessages(ctx context.Context) bool {
	if r.inbox == nil {
		return false
	}
	msgs := r.inbox.Take(ctx, r.requestKey())
	if err := steerable(msgs); err != nil {
		r.history.fault = fmt.Errorf("RunOptions.Messages: %w", err)
		return true
	}
	for i := range msgs {
		r.emit(Event{Kind: EventSteered, Step: r.history.replies + 1, Path: r.requestKey(), Message: &msgs[i]})
	}
	r.history.then = append(r.history.then, msgs...)
	return len(msgs) > 0
}

// steered reports whether a message continues the run after an answer. This counts as a round.
func (r *run) steered(ctx context.Context, resp *llm.Response) bool {
	last := r.reply.final.limit != "" || r.exhausted()
	unusable := resp.Finish.Cut() || r.output.rejected()
	if last || unusable || ctx.Err() != nil {
		return false
	}

	// Last, because a message that is taken must reach the model.
	if !r.takeMessages(ctx) {
		return false
	}
	r.res.Spent.Rounds++
	r.res.Output = nil
	r.res.Repairs = nil // of an answer that is not the last
	return true
}
