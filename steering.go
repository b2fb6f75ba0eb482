package pawl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl/llm"
)

// Steering sends messages to a run that is under way, from another goroutine:
//
//	var steering pawl.Steering
//	go func() { … steering.Steer(ctx, llm.User("Only the first page, please.")) }()
//	res, err := agent.Run(pawl.WithMessages(ctx, &steering), llm.User("Summarise the report."))
//
// A message takes its place behind the next results, never between a call and its result; if the model has answered meanwhile, the run goes on with
// it. That counts as a round, so a run of N rounds still makes at most N+1 requests. What no request had when the run ended is in Result.Unread.
// The zero value is ready; it serves one run, and may be used concurrently.
type Steering struct {
	mu    sync.Mutex
	msgs  []llm.Message
	ended bool
}

var _ MessageSource = (*Steering)(nil)

// ErrRunEnded says that a message came too late: the run has ended.
var ErrRunEnded = errors.New("the run has ended")

// Steer sends messages of the user, in order. The error is ErrEnded when the run has ended, that of ctx, or says which message is none that a
// user could send; then none is sent.
func (s *Steering) Steer(ctx context.Context, msgs ...llm.Message) error {
	for i, m := range msgs {
		if m.Role != llm.RoleUser || len(m.Parts) == 0 {
			return fmt.Errorf("message %d: a run can be steered by messages of the user, not by an empty one or one of %q", i, m.Role)
		}
		for _, p := range m.Parts {
			switch p.(type) {
			case llm.Text, llm.Media:
			default:
				return fmt.Errorf("message %d: a run cannot be steered by %T", i, p)
			}
		}
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

// Take returns what was sent since it was called last.
func (s *Steering) Take(context.Context, llm.Key) []llm.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	msgs := s.msgs
	s.msgs = nil
	return msgs
}

// Close returns what nobody took. From then on Steer returns ErrEnded.
func (s *Steering) Close(context.Context) []llm.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	msgs := s.msgs
	s.msgs, s.ended = nil, true
	return msgs
}

// MessageSource is where a run finds the messages that are sent to it while it is under way. Steering is the one in memory; an engine has one that keeps
// what was taken for which request, so that a repeated run takes the same.
type MessageSource interface {
	// Take returns what came since it was called last, in order: messages of the user. at is the key of the request that will have them. It does
	// not wait for any.
	Take(ctx context.Context, at llm.Key) []llm.Message
	// Close is called once, when the run ends, and returns what was not taken.
	Close(ctx context.Context) []llm.Message
}

type inboxKey struct{}

// WithMessages returns the context for a run that takes messages from in while it is under way. Runs inside that one do not: a message is for the
// whole.
func WithMessages(ctx context.Context, in MessageSource) context.Context {
	return context.WithValue(ctx, inboxKey{}, in)
}

// MessageSourceFrom returns where a run with ctx takes messages from; nil: nowhere. An engine puts its own around it.
func MessageSourceFrom(ctx context.Context) MessageSource {
	if InvocationFrom(ctx) != nil {
		return nil
	}
	in, _ := ctx.Value(inboxKey{}).(MessageSource)
	return in
}

// takeMessages takes what was sent to the run for its next request, and reports whether there is any.
func (r *run) takeMessages(ctx context.Context) bool {
	if r.inbox == nil {
		return false
	}
	msgs := r.inbox.Take(ctx, r.requestKey())
	for i := range msgs {
		r.emit(Event{Kind: EventSteered, Step: r.history.replies + 1, Path: r.requestKey(), Message: &msgs[i]})
	}
	r.history.then = append(r.history.then, msgs...)
	return len(msgs) > 0
}

// steered reports whether the run goes on after an answer, because a message came meanwhile. The answer then is a round like any other.
func (r *run) steered(ctx context.Context, resp *llm.Response) bool {
	if resp.Finish.Cut() || r.reply.final.limit != "" || r.exhausted() || ctx.Err() != nil || r.output.unfit() || !r.takeMessages(ctx) {
		return false
	}
	r.res.Spent.Rounds++
	r.res.Output, r.res.Repairs = nil, nil // it was not the last word
	return true
}
