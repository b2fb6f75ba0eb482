package durable

// executor.go: replays the outcomes of calls, and records what is needed to replay new ones.

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// executor replays the outcomes of ended calls, and stores the outcomes of new ones. No call starts
// early: the reply that made it must be stored first.
type executor struct {
	session *session
	inner   pawl.Executor
}

var _ pawl.Executor = (*executor)(nil)

// Unwrap returns the agent's own executor.
func (x *executor) Unwrap() pawl.Executor { return x.inner }

// Execute yields the stored outcomes, and executes the other calls.
func (x *executor) Execute(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
	return func(yield func(pawl.Event) bool) {
		s := x.session
		open, more := s.replayEnded(tasks, yield)
		if !more || len(open) == 0 {
			return
		}
		if s.eventsOnly {
			if was := s.history.PendingAt(open); was != nil {
				yieldAll(open, was, yield)
				return
			}
		}

		s.leavePast()

		b := &step{session: s, ctx: ctx, tasks: open}
		done := s.expect(open)
		defer done()
		if len(open) == 1 {
			b.alone(x.inner, yield)
		} else {
			b.together(x.inner, yield)
		}
	}
}

// replayEnded yields the stored outcomes of tasks, and returns the other tasks with their stored
// state. more is false if yield was.
func (s *session) replayEnded(tasks []pawl.Task, yield func(pawl.Event) bool) (open []pawl.Task, more bool) {
	for _, t := range tasks {
		stored := s.history.Outcomes[t.Key]
		if stored == nil {
			open = append(open, s.ready(t))
			continue
		}

		was := t.Replayed(stored.Call, stored.Execution)
		if strings.HasPrefix(was.Error, pawl.ErrDiverged.Error()) {
			_ = s.fail(fmt.Errorf("%w: %s: %s", ErrChanged, t.Key, was.Error))
		}
		if !yield(t.Completed(was)) {
			return nil, false
		}
	}
	return open, true
}

// yieldAll yields the ends of tasks.
func yieldAll(tasks []pawl.Task, ends []pawl.Execution, yield func(pawl.Event) bool) {
	for i, t := range tasks {
		if !yield(t.Completed(ends[i])) {
			return
		}
	}
}

// ready adds the stored state to t: the number of its attempts, its question and the answer, but
// not its outcome. Without a stored state, t has the state from the Result that the run started
// from.
func (s *session) ready(t pawl.Task) pawl.Task {
	started := s.history.Attempts[t.Key]
	t.Attempt += len(started)
	if len(started)+len(s.history.Questions[t.Key]) > 0 {
		t.Pending = nil
		t.Decisions = nil
	}
	if at, known := s.repliedAt(t); known {
		t.Since = at
	}

	var last *record.Attempt
	if len(started) > 0 {
		last = &started[len(started)-1]
		if was := t.Replayed(last.Asked, pawl.Execution{}); was.Error != "" {
			_ = s.fail(fmt.Errorf("%w: %s: %s", ErrChanged, t.Key, was.Error))
		}
	}

	question := s.history.OpenQuestion(t.Key)
	switch {
	case s.history.MayHaveHappened(t):
		t.Pending = unknownOutcome(t, t.Call)
		t.Pending.Why = afterBackup
		t.Decisions = nil

	case question != nil:
		waiting := question.Waiting
		t.Pending = &waiting
		if question.Answer != nil {
			t.Decisions = []llm.Decision{*question.Answer}
		}

	// An interrupted write may have happened.
	case last != nil && last.Effect == pawl.EffectWrite:
		t.Pending = unknownOutcome(t, last.Call)
	}
	return t
}

// unknownOutcome returns the question about a call that may have happened, with the arguments of
// its start.
func unknownOutcome(t pawl.Task, call llm.ToolCall) *pawl.PendingCall {
	return &pawl.PendingCall{Key: t.Key, Call: call, Outcome: pawl.OutcomeUnknown, Attempt: t.Attempt}
}

// repliedAt returns the time of the reply that made the call of t. False means unknown: a call of
// the messages with which the run started, or of another call.
func (s *session) repliedAt(t pawl.Task) (at time.Time, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known = s.history.RepliedAt[t.Run+"/"+llm.Key(strconv.Itoa(t.Step-1))+"/model"]
	return at, known
}

// intend stores the intent of a call, and returns when it is on disk and the lease still belongs to
// this session: pawl.Engine.Intend.
func (s *session) intend(ctx context.Context, t pawl.Task, call llm.ToolCall, tool *pawl.Tool, attempt int) error {
	if err := s.calls.admit(ctx, t.Key); err != nil {
		return err
	}

	body := record.Intent{Asked: t.Call, Call: call, Effect: tool.Effect.Assumed(), Tool: s.digest(tool.Spec())}
	if v := pawl.InvocationFrom(ctx); v != nil && v.Key == t.Key {
		body.Key = v.IdempotencyKey()
	}
	if err := s.add(record.KindIntent, record.Numbered(t.Key, record.KindIntent, attempt), body); err != nil {
		return err
	}

	// Intents of concurrent calls share a commit.
	s.mu.Lock()
	g := s.waiters[t.Key]
	n := s.added
	s.mu.Unlock()
	g.arrive(t.Key)

	if err := s.flushTo(n, nil); err != nil {
		return err
	}
	return s.checkLease()
}
