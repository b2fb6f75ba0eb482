package whatif

// calls.go: what a call of a replay gets in place of an execution.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// madeCall is a call of the replay that has ended, or waits.
type madeCall struct {
	key    llm.Key
	call   llm.ToolCall // as executed
	id     string       // callID of it
	effect pawl.Effect
	ran    bool // the tool was started
	waits  bool // it has an open question
}

// begin returns the stored outcomes of equal calls, unless they pass the rules again:
// pawl.Engine.Begin.
func (s *session) begin(_ context.Context, tasks []pawl.Task) (stored []*pawl.Execution, done func()) {
	stored = make([]*pawl.Execution, len(tasks))
	for i, t := range tasks {
		stored[i] = s.storedOutcome(t)
	}
	return stored, func() {}
}

// storedOutcome returns the outcome of the equal call at the key of t. Nil means that the call goes
// through the pipeline.
func (s *session) storedOutcome(t pawl.Task) *pawl.Execution {
	was := s.history.Outcomes[t.Key]
	tool := t.Tool()
	switch {
	case s.trial.Change.judges(), was == nil, tool == nil:
		return nil
	case t.Refuse != "" || tool.Agent() != nil: // the requests of a nested agent are compared
		return nil
	case callID(was.Call) != callID(t.Call):
		return nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.results.take(t.Key, was.Execution.Call, false)
	s.addStored(t.Key)
	x := t.Replayed(was.Call, was.Execution)
	return &x
}

// addStored records that the stored call at key was made again, with the calls nested in it and
// their questions. The caller holds mu.
func (s *session) addStored(key llm.Key) {
	nested := string(key) + "/"
	isOf := func(at llm.Key) bool { return at == key || strings.HasPrefix(string(at), nested) }
	for at, o := range s.history.Outcomes {
		if isOf(at) {
			s.made = append(s.made, s.storedCall(at, o))
		}
	}
	for at, asked := range s.history.Questions {
		if isOf(at) {
			s.run.Questions.Is += len(asked)
		}
	}
}

// executor executes the calls of a replay, whose tools have been replaced. No call goes to the
// Executor of the agent.
type executor struct{ session *session }

var _ pawl.Executor = executor{}

// Do executes the call, with the stored answers to its questions.
func (e executor) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	s := e.session
	x := t.Do(ctx, emit)
	for len(x.Pending) > 0 && x.Pending[0].Key == t.Key && x.Outcome == pawl.OutcomePending {
		question := x.Pending[0]
		d, ok := s.answer(question)
		if !ok {
			break
		}
		t.Pending = &question
		t.Decisions = []llm.Decision{d}
		x = t.Do(ctx, emit)
	}
	s.end(t, &x)
	return x, nil
}

// answer returns the stored answer to an equal question, for this one.
func (s *session) answer(w pawl.PendingCall) (llm.Decision, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run.Questions.Is++
	was, ok := s.answers.take(w.Key, w.Call, false)
	if !ok {
		return llm.Decision{}, false
	}

	var d llm.Decision
	switch {
	case was.Result != nil:
		d = w.Answer(was.By, *was.Result)
	case !was.Approve:
		d = w.Deny(was.By, was.Reason)
	case was.Args != nil:
		d = w.Edit(was.By, was.Args)
	default:
		d = w.Approve(was.By)
	}
	d.At = time.Now() // an approval is valid from now on, as it was then
	return d, true
}

// end records the end of a call. A call that got a stored result ends as it did then: what
// middleware does to a result has happened to the stored one.
func (s *session) end(t pawl.Task, x *pawl.Execution) {
	tool := t.Tool()
	effect := pawl.EffectWrite
	if tool != nil {
		effect = tool.Effect.Assumed()
	}

	s.mu.Lock()
	if was := s.reused[t.Key]; was != nil && returned(x) {
		setOutcome(x, was)
	}
	s.made = append(s.made, madeCall{
		key:    t.Key,
		call:   x.Call,
		id:     callID(x.Call),
		effect: effect,
		ran:    x.Attempts > 0 && x.Outcome.Settled(),
		waits:  len(x.Pending) > 0 && x.Pending[0].Key == t.Key,
	})
	s.mu.Unlock()
	s.compareOutcome(t, x)
}

// returned reports whether the tool of x has returned.
func returned(x *pawl.Execution) bool {
	return x.Outcome == pawl.OutcomeOK || x.Outcome == pawl.OutcomeError
}

// setOutcome gives x the stored end of an equal call.
func setOutcome(x *pawl.Execution, was *record.Outcome) {
	x.Result = was.Execution.Result
	x.Result.CallID = x.Call.ID
	x.Result.Key = x.Key
	x.Outcome = was.Execution.Outcome
	x.Error = was.Execution.Error
	x.Certainty = was.Execution.Certainty
	x.Ends = was.Execution.Ends
	x.Values = was.Execution.Values
	x.Spent = was.Execution.Spent
}

// compareOutcome records a difference if the call ended otherwise than the equal call at its key.
func (s *session) compareOutcome(t pawl.Task, x *pawl.Execution) {
	was := s.history.Outcomes[t.Key]
	if was == nil || callID(was.Call) != callID(t.Call) || s.isOver() {
		return
	}
	if x.Outcome != was.Execution.Outcome {
		s.differ(t.Key, fmt.Sprintf("call: %s was %s, is %s", t.Call.Name, was.Execution.Outcome, x.Outcome))
	}
}

// isOver reports whether the replay was stopped.
func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped != nil
}

// intend refuses the execution of a call that could act on the world: pawl.Engine.Intend. A tool
// that was replaced passes; a tool that came in another way does not.
func (s *session) intend(_ context.Context, t pawl.Task, _ llm.ToolCall, tool *pawl.Tool, _ int) error {
	s.mu.Lock()
	known := s.shadows[tool]
	s.mu.Unlock()
	if known || tool.Effect == pawl.EffectPure {
		return nil
	}
	return s.stop(fmt.Errorf("%w: %s (%s, %s)", ErrLeak, tool.Name, tool.Effect, t.Key))
}

// shadowed is the tools of an agent, replaced.
type shadowed struct {
	pawl.Toolset
	session *session
}

// Tools returns the replacements of the tools of the agent.
func (s *shadowed) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	all, err := s.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}
	return s.session.shadowAll(all), nil
}

// shadowAll replaces tools. An agent as a tool and an Inline tool act through nested calls alone,
// which are replaced themselves, and the caller executes a passive tool.
func (s *session) shadowAll(all []*pawl.Tool) []*pawl.Tool {
	out := make([]*pawl.Tool, len(all))
	for i, t := range all {
		out[i] = t
		if t.Agent() == nil && !t.Inline && !t.Passive {
			out[i] = s.shadow(t)
		}
	}
	return out
}

// shadow returns the tool that stands in place of t. It is one, because an agent may list the
// reader of its artifacts among its tools.
func (s *session) shadow(t *pawl.Tool) *pawl.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.replacements[t]; c != nil {
		return c
	}

	c := t.Clone()
	c.Reconcile = nil
	c.StatesSending = false // Intend is then called before each attempt
	c.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		return s.resultOf(ctx, t, call)
	}
	s.replacements[t] = c
	s.shadows[c] = true
	return c
}

// resultOf returns the result of a call of t: the stored one of an equal call, or what its effect
// allows.
func (s *session) resultOf(ctx context.Context, t *pawl.Tool, call llm.ToolCall) (llm.ToolResult, error) {
	key := pawl.InvocationFrom(ctx).Key
	effect := t.Effect.Assumed()
	writes := changesWorld(effect)
	if effect == pawl.EffectCompose && s.trial.Change.judges() {
		return llm.ToolResult{}, pawl.AbortError(s.stop(&UnstoredError{Key: key, Call: call, Effect: effect}))
	}
	if res, ok := s.storedResult(key, call, !writes); ok {
		return res, nil
	}

	s.differ(key, "call: "+call.Name+" with arguments that are not stored")
	switch {
	case writes:
		return s.toLedger(t, key, call), nil
	case effect == pawl.EffectPure:
		return t.Run(ctx, call)
	case effect == pawl.EffectRead && s.trial.LiveReads:
		s.mu.Lock()
		s.run.LiveReads++
		s.mu.Unlock()
		return t.Run(ctx, call)
	}
	return llm.ToolResult{}, pawl.AbortError(s.stop(&UnstoredError{Key: key, Call: call, Effect: effect}))
}

// storedResult returns the stored result of an equal call.
func (s *session) storedResult(key llm.Key, call llm.ToolCall, again bool) (llm.ToolResult, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.results.take(key, call, again)
	if !ok {
		return llm.ToolResult{}, false
	}
	s.reused[key] = was
	return was.Execution.Result, true
}

// toLedger records a Write that is not executed, and returns its result.
func (s *session) toLedger(t *pawl.Tool, key llm.Key, call llm.ToolCall) llm.ToolResult {
	s.mu.Lock()
	s.run.Shadowed = append(s.run.Shadowed, Shadow{Key: key, Tool: call.Name, Args: json.RawMessage(call.Args)})
	s.mu.Unlock()
	if s.trial.Result != nil {
		return s.trial.Result(t, call)
	}
	return llm.TextResult("Done.")
}

// UnstoredError stops a replay at a call that must not be executed and whose result is not stored,
// or whose nested calls would have to pass the rules again (Change.Rules).
type UnstoredError struct {
	Key    llm.Key      // of the call
	Call   llm.ToolCall // with its arguments
	Effect pawl.Effect  // of its tool
}

// Error names the call, and does not show its arguments.
func (e *UnstoredError) Error() string {
	return fmt.Sprintf("no result is stored for this call of %s (%s, %s)", e.Call.Name, e.Effect, e.Key)
}

// shelf is the artifacts of an agent, without their changes.
type shelf struct {
	pawl.Artifacts
	session *session
}

// Put stores nothing.
func (s *shelf) Put(context.Context, string, pawl.Artifact) error { return nil }

// Tools returns the tools of the artifacts, replaced.
func (s *shelf) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	set, ok := s.Artifacts.(pawl.Toolset)
	if !ok {
		return nil, nil
	}
	all, err := set.Tools(ctx)
	if err != nil {
		return nil, err
	}
	return s.session.shadowAll(all), nil
}
