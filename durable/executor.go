package durable

// executor.go: replays the outcomes of calls, and records what is needed to replay new ones.

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

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
		var open []pawl.Task
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
				return
			}
		}
		if len(open) == 0 {
			return
		}

		if s.eventsOnly {
			if was := s.history.PendingAt(open); was != nil {
				for i, t := range open {
					if !yield(t.Completed(was[i])) {
						return
					}
				}
				return
			}
		}

		s.leavePast()
		b := &step{session: s, ctx: ctx, tasks: open}
		defer s.expect(open)()
		if len(open) == 1 {
			b.alone(x.inner, yield)
		} else {
			b.together(x.inner, yield)
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

	s.mu.Lock()
	at, known := s.history.RepliedAt[t.Run+"/"+llm.Key(strconv.Itoa(t.Step-1))+"/model"]
	s.mu.Unlock()
	if known {
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
	case s.doubtful(t):
		t.Pending = &pawl.PendingCall{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomeUnknown, Attempt: t.Attempt,
			Why: afterBackup}
		t.Decisions = nil

	case question != nil:
		waiting := question.Waiting
		t.Pending = &waiting
		if question.Answer != nil {
			t.Decisions = []llm.Decision{*question.Answer}
		}

	// An interrupted write may have happened.
	case last != nil && last.Effect == pawl.EffectWrite:
		t.Pending = &pawl.PendingCall{Key: t.Key, Call: last.Call, Outcome: pawl.OutcomeUnknown, Attempt: t.Attempt}
	}
	return t
}

// intend stores the intent of a call, and returns when it is on disk.
func (s *session) intend(ctx context.Context, t pawl.Task, call llm.ToolCall, tool *pawl.Tool, attempt int) error {
	if err := s.admit(ctx, t.Key); err != nil {
		return err
	}
	body := record.Intent{Asked: t.Call, Call: call, Effect: tool.Effect, Tool: s.digest(tool.Spec())}
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
