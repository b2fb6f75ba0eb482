package pawl

// call.go: the records of a call: Task, Invocation, Outcome, Execution and PendingCall.

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/intent"
	"github.com/pawl-go/pawl/internal/slots"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
)

// Task is one tool call to execute. Its exported fields are plain data and may be sent to another
// process; Engine.Attach makes a received Task executable there.
type Task struct {
	Agent string       `json:"agent"` // the name of the agent
	Run   llm.Key      `json:"run"`   // the key of the run
	Step  int          `json:"step"`  // the step of the call, from 1
	Key   llm.Key      `json:"key"`   // identifies the call in all attempts
	Index int          `json:"index"` // the place among the open calls of the step
	Call  llm.ToolCall `json:"call"`  // with arguments as the model wrote them

	Decisions []llm.Decision `json:"decisions,omitzero"` // for this call and for its nested calls
	Values    Values         `json:"values,omitzero"`    // of the run, at the start of the step

	// Refuse is the reason, for the model, why the call must not run. Empty means that it may run.
	Refuse  string `json:"refuse,omitzero"`
	Attempt int    `json:"attempt,omitzero"` // the number of earlier attempts

	// Pending is the question of the call when the run was resumed. nil means none. PendingInside
	// has the questions of its nested calls.
	Pending       *PendingCall  `json:"question,omitzero"`
	PendingInside []PendingCall `json:"inside,omitzero"` // see Pending

	// HeldBy is the name of an earlier call that this call waits for (Parallel.Order), and that has
	// an open question. If the tool may change the world itself, the call may then ask its
	// own question, but it does not run: it stays open. Empty means that there is no such call.
	HeldBy string `json:"held_by,omitzero"`

	// Since is the time when the call first became open. It stays the same when the call is
	// executed again. The zero time means that it is not recorded.
	Since time.Time `json:"since,omitzero"`

	scope     *scope
	messages  []llm.Message // the conversation at the start of the step
	earlyCall *earlyCall    // executes the call already; nil means that it did not start early
}

// Tool returns the tool that the call names. It must not be changed. nil means that the run has no
// such tool, or that the task came from another process.
func (t Task) Tool() *Tool {
	if t.scope == nil {
		return nil
	}
	return find(t.scope.tools, t.Call.Name)
}

// completed returns the call_completed event of x. The event has a copy, which its receiver may
// keep: when all calls of the step have ended, x may still get a question or a warning.
func (t *Task) completed(x *Execution) Event {
	e := Event{Kind: EventCallCompleted, Run: t.Run, Step: t.Step, Path: t.Key}
	if t.scope.watched {
		ended := *x
		e.Execution = &ended
	}
	return e
}

// work is a call during its execution. Its fields belong to the goroutine that executes the call,
// except for the atomic ones and the Invocation: another goroutine may abandon the call.
type work struct {
	task *Task
	emit func(Event)
	exec Execution // its Call is the last validated call
	tool *Tool
	inv  Invocation
	with callContext // of inv

	// ctx and end serve abandonment: ctx is the context of the batch, and end is called once, with
	// the outcome. A nil end means that the call cannot be abandoned.
	ctx     context.Context
	end     func(*work, *Execution)
	state   atomic.Int32
	taken   bool                      // whether a goroutine executes it; guarded by batch.mu
	started atomic.Pointer[Execution] // x when the last attempt started; nil before the first
	watched atomic.Pointer[Execution] // the attempt whose timer runs
	slot    slots.Holder              // one of scope.slots while a tool executes

	// the intent that the tool stores; nil means that it is stored before each attempt
	late *intent.Late
	// whether an attempt of this process before the last may have happened
	lost         atomic.Bool
	isReconciled bool // whether Reconcile found that no attempt before took effect

	// holder holds the events of the call until its reply is complete. nil means that the call did
	// not start early.
	holder *earlyCall
}

// The states of a work. The goroutine that changes workRuns completes the call.
const (
	workRuns int32 = iota
	workEnded
	workAbandoned
)

// scope is the part of a run that its calls share.
type scope struct {
	tools    []*Tool
	answer   *Tool  // tool of tools that takes the answer; nil means an answer as text
	layers   layers // middleware around calls
	parallel Parallel
	executor Executor         // nil means that calls are executed here
	slots    *slots.Semaphore // of the outermost run, shared by nested calls and runs
	budget   *budget
	watched  bool        // the events of the calls have a receiver
	depth    int         // nesting depth of calls
	within   *Invocation // call that these calls are nested in; nil means none
	engine   Engine      // makes the run durable; the zero value means none
	canPend  bool        // calls may become pending
	whole    bool        // replies are requested whole
	remote   bool        // the run is in another process
	label    llm.Label   // of the instructions (setup.instructions)
	shelf    *shelf      // storage for results that are too large for the model; nil means none
}

// Invocation is what a tool, or the middleware around it, can know and do during a call, in
// addition to its arguments. InvocationFrom finds it in the context. It is safe for concurrent use
// until the call has ended.
//
// Outside of a call it is nil. The methods of a nil Invocation return zero values, and an error if
// they have one; Sending returns nil.
type Invocation struct {
	Key     llm.Key      // the place of the call in the run
	Agent   string       // the name of the agent
	Call    llm.ToolCall // the validated call
	Attempt int          // 1 for the first attempt

	work    *work
	mu      sync.Mutex
	set     Values
	spent   Spent         // by nested calls and runs
	inner   int           // the number of calls by Do so far
	ends    *Execution    // a nested call that ends the run; nil means none
	pending []PendingCall // nested calls with open questions
	read    *authors      // of the results of nested calls; nil means none

	emitting              sync.Mutex
	cached, sealed, ended bool
	accepted              bool // whether the pipeline has accepted Call

	busy  atomic.Bool // whether the tool runs
	wrote atomic.Bool // whether a nested Write has started
}

type invocationKey struct{}

// callContext is the context of a call: the one around it, with its Invocation.
type callContext struct {
	context.Context
	inv *Invocation
}

// Value returns the Invocation, or a value of the context around the call.
func (c *callContext) Value(key any) any {
	if key == (invocationKey{}) {
		return c.inv
	}
	return c.Context.Value(key)
}

// InvocationFrom returns the call that ctx belongs to. nil means none.
func InvocationFrom(ctx context.Context) *Invocation {
	if ctx == nil {
		return nil
	}
	v, _ := ctx.Value(invocationKey{}).(*Invocation)
	return v
}

// Outcome is the result of a call in one word, from a closed list.
type Outcome string

// The outcomes. All but OutcomePending and OutcomeUnknown are final: the call has its result.
const (
	// The tool ran and succeeded.
	OutcomeOK Outcome = "ok"
	// The tool ran and reported a failure.
	OutcomeError Outcome = "error"
	// The arguments do not fit the schema. The tool did not run.
	OutcomeInvalid Outcome = "invalid"
	// No tool has the name.
	OutcomeUnknownTool Outcome = "unknown_tool"
	// A middleware rejected the call.
	OutcomeBlocked Outcome = "blocked"
	// A person or a policy rejected the call.
	OutcomeDenied Outcome = "denied"
	// The tool did not end within its timeout.
	OutcomeTimeout Outcome = "timeout"
	// The run was cancelled before or during the call.
	OutcomeCancelled Outcome = "cancelled"
	// The tool panicked.
	OutcomePanicked Outcome = "panicked"
	// Not started: the reply was cut, a limit was reached, or another call stopped the step.
	OutcomeSkipped Outcome = "skipped"
	// The call waits for an approval or for a result from outside.
	OutcomePending Outcome = "pending"
	// The call was interrupted and may have taken effect. It waits for a decision.
	OutcomeUnknown Outcome = "unknown"
)

// Settled reports whether the outcome is final: the call has its result.
func (o Outcome) Settled() bool { return o != OutcomePending && o != OutcomeUnknown }

// Failed reports whether the call itself failed. FailFast does not stop for rejections.
func (o Outcome) Failed() bool {
	switch o {
	case OutcomeError, OutcomeInvalid, OutcomeUnknownTool, OutcomeTimeout, OutcomePanicked:
		return true
	}
	return false
}

// known reports whether o is on the list of outcomes.
func (o Outcome) known() bool {
	switch o {
	case OutcomeOK, OutcomeError, OutcomeInvalid, OutcomeUnknownTool, OutcomeBlocked, OutcomeDenied, OutcomeTimeout,
		OutcomeCancelled, OutcomePanicked, OutcomeSkipped, OutcomePending, OutcomeUnknown:
		return true
	}
	return false
}

// Execution is the record of a call. It is plain data and may be stored and sent.
type Execution struct {
	// Key identifies the call in all attempts.
	Key llm.Key `json:"key"`
	// Position among the calls of the step, or of Invocation.Do.
	Index int `json:"index"`
	// The call as executed. A middleware may have changed it.
	Call    llm.ToolCall   `json:"call"`
	Outcome Outcome        `json:"outcome"` // how the call ended
	Result  llm.ToolResult `json:"result"`  // what the model reads
	// Error text for people. The model reads Result.
	Error string `json:"error,omitzero"`
	// Whether a call that has no result of its tool may have taken effect. "" means that the tool
	// returned, that it was not started, or that the call only reads.
	Certainty delivery.Certainty `json:"certainty,omitzero"`
	// StopFailed or StopFinished: the call ends the run. "" means that it does not.
	Ends StopReason `json:"ends,omitzero"`
	// Repairs of the arguments.
	Repairs []string `json:"repairs,omitzero"`
	// Pending calls, with OutcomePending and OutcomeUnknown: this one, or calls nested in it. Empty
	// means that the call has no question: it runs when an earlier call has its answer.
	Pending []PendingCall `json:"waiting,omitzero"`
	// Run values that the call set.
	Values Values `json:"values,omitzero"`
	// Usage of nested calls and runs.
	Spent Spent `json:"spent,omitzero"`
	// Number of times that the tool was started.
	Attempts int           `json:"attempts"`
	Decision *llm.Decision `json:"decision,omitzero"` // that allowed or denied the call
	// Why values of the call needed no question (Approval.Derivations). nil means that no policy
	// says so.
	Derivations []derivation.Value `json:"derivations,omitzero"`
	// The tool did not run: an earlier call supplied the result.
	Cached bool `json:"cached,omitzero"`
	local  bool // executed by this process, which has counted it in the budget
	// The value of Limits.Calls that prevented the call. 0 means none.
	Limited int       `json:"limited,omitzero"`
	Started time.Time `json:"started,omitzero"` // when work on the call began
	Ended   time.Time `json:"ended,omitzero"`   // when it had its outcome; zero before

	err error // of the tool, for errors.Is in this process
}

// Err returns the error of the tool or of the pipeline, for errors.Is. It is nil if there is none,
// or if the Execution was read from JSON.
func (x *Execution) Err() error { return x.err }

// SetErr replaces the error that Err returns. Package redact uses it to hide secrets.
func (x *Execution) SetErr(err error) { x.err = err }

// newCalls returns the number of calls that x adds to Spent.Calls: 1 if the tool was started since
// the call became pending, as one of before, else 0.
func newCalls(x *Execution, before []PendingCall) int {
	again := func(w PendingCall) bool { return w.Key == x.Key && x.Attempts <= w.Attempt }
	if x.Attempts == 0 || slices.ContainsFunc(before, again) {
		return 0
	}
	return 1
}

// waitsInside reports whether the call waits for calls nested in it. Its usage and values count
// when it has ended: until then it is executed again, and finds the results of the nested calls.
func (x *Execution) waitsInside() bool {
	return len(x.Pending) > 0 && x.Pending[0].Key != x.Key
}

// PendingCall is an open call that waits for a decision. Answer it with an llm.Decision that has
// the same Key and Digest, or use its methods.
type PendingCall struct {
	Key  llm.Key      `json:"key"`  // of the call
	Call llm.ToolCall `json:"call"` // as it waits
	// OutcomePending asks for an approval or a result, OutcomeUnknown whether the call took effect.
	Outcome Outcome `json:"outcome"`
	// Binds the decision to the question, the attempt, the tool, its schema and the arguments.
	Digest string `json:"digest"`
	// Number of times that the tool was started before.
	Attempt int `json:"attempt"`
	// Reason, for the person who decides.
	Why string `json:"why,omitzero"`
	// The values that a policy asks about, as data (Approval.Doubts). nil means none.
	Doubts []Doubt `json:"doubts,omitzero"`
	// Only a result answers the call, because pawl does not execute it.
	Passive bool `json:"passive,omitzero"`
	// Time from an approval to the start of the call (Approval.ValidFor). 0 means no limit.
	ValidFor time.Duration `json:"valid_for,omitzero"`
	// Schema of the arguments, for approvals with other arguments. Nil means unknown.
	Schema json.RawMessage `json:"schema,omitzero"`
	// Expires was set before version 0.1. It has no effect, because questions do not expire.
	Expires time.Time `json:"expires,omitzero"`

	// Granted are the decisions that approved the calls around this one, innermost first. They stay
	// valid when the run is resumed.
	Granted []llm.Decision `json:"granted,omitzero"`
}
