package durable

// executor.go: replays the outcomes of calls, and records what is needed to replay new ones.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// executor stores the outcomes of calls. No call starts early: the reply that made it must be
// stored first.
type executor struct {
	session *session
	inner   pawl.Executor // the agent's own; nil means none
}

var _ pawl.Executor = (*executor)(nil)

// Do executes a call that has no stored outcome, and puts its end into the next commit. The call
// has not ended for the run before session.store returns.
func (x *executor) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	s := x.session
	step := s.stepOf(t.Key)
	step.enter()
	e := s.ready(t).DoBy(ctx, x.inner, emit)
	step.ends(t.Key, s.addEnd(step, t, &e))
	return e, nil
}

// begin returns the stored outcomes of tasks, and prepares the execution of the others:
// pawl.Engine.Begin.
func (s *session) begin(ctx context.Context, tasks []pawl.Task) (stored []*pawl.Execution, done func()) {
	stored = make([]*pawl.Execution, len(tasks))
	var open []pawl.Task
	for i, t := range tasks {
		stored[i] = s.outcome(t)
		if stored[i] == nil {
			s.checkStarted(t)
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return stored, func() {}
	}

	// ReplayEvents shows a run that waits, so that its calls stay pending.
	if s.eventsOnly {
		if was := s.history.PendingAt(open); was != nil {
			for i := range was {
				stored[was[i].Index] = &was[i]
			}
			return stored, func() {}
		}
	}
	s.leavePast()
	return stored, s.expect(ctx, open)
}

// outcome returns the stored outcome of t. nil means none.
func (s *session) outcome(t pawl.Task) *pawl.Execution {
	stored := s.history.Outcomes[t.Key]
	if stored == nil {
		return nil
	}

	was := t.Replayed(stored.Call, stored.Execution)
	if errors.Is(was.Err(), pawl.ErrDiverged) {
		_ = s.fail(fmt.Errorf("%w: %s: %s", ErrChanged, t.Key, was.Error))
	}
	return &was
}

// checkStarted ends the run if the call of t that was started before was another one.
func (s *session) checkStarted(t pawl.Task) {
	started := s.history.Attempts[t.Key]
	if len(started) == 0 {
		return
	}
	if was := t.Replayed(started[len(started)-1].Asked, pawl.Execution{}); errors.Is(was.Err(), pawl.ErrDiverged) {
		_ = s.fail(fmt.Errorf("%w: %s: %s", ErrChanged, t.Key, was.Error))
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
	case len(started) > 0 && started[len(started)-1].Effect == pawl.EffectWrite:
		t.Pending = unknownOutcome(t, started[len(started)-1].Call)
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
	if err := s.mayBegin(ctx); err != nil {
		return err
	}
	if err := s.calls.admit(ctx, t.Key); err != nil {
		return err
	}
	step := s.stepOf(t.Key)
	if step == nil { // a tool that was abandoned wants to send
		return errOver
	}

	// A call that only reads may be repeated after a crash, so that an intent would protect
	// nothing. An approved one has an intent, because it uses the approval up.
	if onlyReads(tool) && len(t.Decisions) == 0 {
		step.startsRead(t.Key, tool.Effect)
		return s.checkLease()
	}

	body := record.Intent{Asked: t.Call, Call: call, Effect: tool.Effect.Assumed(), Tool: s.digest(tool.Spec())}
	if v := pawl.InvocationFrom(ctx); v != nil && v.Key == t.Key {
		body.Key = v.IdempotencyKey()
	}
	n, err := s.enqueue(record.KindIntent, record.Numbered(t.Key, record.KindIntent, attempt), body)
	if err != nil {
		return err
	}
	step.intends(t.Key)

	// Intents of concurrent calls share a commit.
	step.awaitIntents()
	if err := s.flushTo(n, nil); err != nil {
		return err
	}
	step.stored()
	return s.checkLease()
}

// onlyReads reports whether the calls of a tool may be repeated without an effect.
func onlyReads(t *pawl.Tool) bool { return t.Effect == pawl.EffectRead || t.Effect == pawl.EffectPure }
