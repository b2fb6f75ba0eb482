package pawl

// agent.go: Agent, and the ways to run it: Run, Stream, Resume, ResumeStream and Once.

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/pawl-go/pawl/llm"
)

// Agent is a model with instructions, tools and limits. Fill in a literal; only Model is required.
//
// An Agent may serve any number of concurrent runs. A run has the agent as it was at its start; do
// not change it while a run starts.
type Agent struct {
	// Name of the agent in events and records. "" means "agent".
	Name string
	// System message at the start of the conversation. "" means none.
	Instructions string
	// Label says who wrote Instructions. nil means the operator. Instructions with a text of
	// others, such as the AGENTS.md of a repository, have the label of that text, and replies
	// count as written after it was read.
	Label *llm.Label
	// Model that answers and calls tools.
	Model llm.Model
	// Tools of the agent, in the order in which the model sees them.
	Tools []Toolset
	// Choice applies to the first request of a run. A forced choice is auto in later requests.
	Choice llm.ToolChoice
	// JSON Schema of the answer; see Result.Output. nil means free text.
	Output json.RawMessage
	// OutputCheck refuses an answer that fits Output: its error goes back to the model as a
	// correction (Limits.Corrections). It must depend on the answer alone, because a journal and a
	// workflow repeat it. CheckFor makes it from a Go type. nil means that Output says all; without
	// Output it is not used.
	OutputCheck func(answer json.RawMessage) error
	// Limits of each run. The zero value means 20 rounds.
	Limits Limits
	// Parallel says how the calls of a step are executed. The zero value executes up to ten at the
	// same time.
	Parallel Parallel

	// Executor executes each call. nil means that this process executes it (Task.Do).
	Executor Executor
	// Middleware around model requests and calls. Of equal ranks, the first is the outermost.
	// Without an approver among them (see Approve), calls with EffectWrite or EffectUnstated run
	// without a question.
	Middleware []Middleware
	// Settings of each request.
	Settings llm.Settings
	// Artifacts stores the part of a result that MaxResult removes, and adds the tool result_read.
	// nil means the Artifacts of the run around this one; if it has none, that part is dropped.
	Artifacts Artifacts
}

// Runner executes a task and emits its events: an agent, a team, a durable or a remote run.
//
// The sequence ends with run_ended, which carries the Result, or with an error. A run that ends
// without a plain answer yields both, first the event: the error is the error of the failure or a
// *StopError, as in Agent.Run. Run returns that result without the events. If the caller breaks out
// of the range, the run ends and its open calls stay open.
type Runner interface {
	Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[Event, error]
}

var _ Runner = (*Agent)(nil)

// Run executes the task in msgs, which is a conversation or a single message. Replies are requested
// whole.
//
// Run executes only calls that its model makes. msgs may come from a client: each of their calls
// without a result gets an error result, and the model is asked. Resume executes open calls.
//
// The error is nil if and only if there is a plain answer: Result.Stop is StopAnswer or
// StopFinished. It is a *StopError if calls are pending, a limit was reached, the model repeats
// itself, or ctx was cancelled; the cause of ctx is found by errors.Is. If the run failed (the
// model failed, a tool aborted the run, msgs is not a valid conversation), it is the error of the
// failure. The Result is not nil unless the run could not start. It can be resumed.
//
//	var stop *pawl.StopError
//	if errors.As(err, &stop) && stop.Reason == pawl.StopPending {
//		ask(stop.Result.Pending)
//	}
func (a *Agent) Run(ctx context.Context, msgs ...llm.Message) (*Result, error) {
	return a.run(ctx, nil, msgs, runOptions{whole: true})
}

// Stream is Run with events. Replies are streamed. The error of Run follows run_ended. A notice
// names each open call of msgs that got an error result. They are the events of one run: to range
// over them a second time is an error, and starts nothing.
func (a *Agent) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[Event, error] {
	return a.stream(ctx, nil, msgs)
}

// Resume continues from a Result. Decisions and tool results in msgs answer its open calls, which
// are executed first; other messages follow them. The usage of the earlier run counts towards the
// limits.
//
// The Result must come from a place that the program trusts, since its open calls are executed.
// Open calls of msgs are not. A program executes calls of its own with a Result that has only
// Messages.
//
// While a pending call has no answer, other messages are an error that names the call.
//
// A Result that stopped at a limit needs no message once the limit is raised. An answer that only
// passed Tokens or Cost is then the answer; in place of any other, the model is asked again.
//
// A Result whose open calls may write is resumed once: a second Resume of it is an error. That does
// not hold for copies, such as a Result that was stored as JSON. Of several requests that read the
// same stored Result, only thread.Runner and durable runs let one execute its calls.
func (a *Agent) Resume(ctx context.Context, from *Result, msgs ...llm.Message) (*Result, error) {
	return a.run(ctx, from, msgs, runOptions{whole: true})
}

// ResumeStream is Resume with events, as Stream is Run with events.
func (a *Agent) ResumeStream(ctx context.Context, from *Result, msgs ...llm.Message) iter.Seq2[Event, error] {
	return a.stream(ctx, from, msgs)
}

// Once is Run with at most one round: the calls of the second reply are returned open
// (Result.Calls) with a *StopError whose Reason is StopLimit. Limits.Rounds and Limits.AtLimit
// replace these defaults.
func (a *Agent) Once(ctx context.Context, msgs ...llm.Message) (*Result, error) {
	if err := a.startable(ctx); err != nil {
		return nil, err
	}

	b := *a
	if b.Limits.Rounds == 0 {
		b.Limits.Rounds = 1
	}
	if b.Limits.AtLimit == 0 {
		b.Limits.AtLimit = AtLimitReturn
	}
	return b.Run(ctx, msgs...)
}

var (
	errNoContext = errors.New("the context is nil; use context.Background() or the context of the request")
	errNoRunner  = errors.New("the Runner is nil; pass an agent, or another Runner")
	errBroken    = errors.New("the caller stopped reading the events")
	errReadTwice = errors.New("the events of this run were read before; call Stream or ResumeStream for another run")
)

// startable returns the error of a program that starts a run with a nil agent or a nil context.
func (a *Agent) startable(ctx context.Context) error {
	switch {
	case a == nil:
		return errors.New("the *pawl.Agent is nil; an agent needs at least a Model")
	case ctx == nil:
		return errNoContext
	}
	return nil
}

func (a *Agent) stream(ctx context.Context, from *Result, msgs []llm.Message) iter.Seq2[Event, error] {
	var read atomic.Bool
	return func(yield func(Event, error) bool) {
		err := a.startable(ctx)
		if err == nil && read.Swap(true) {
			err = errReadTwice
		}
		if err != nil {
			yield(Event{}, err)
			return
		}

		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		more := true
		_, err = a.run(ctx, from, msgs, runOptions{emit: func(e Event) {
			if more && !yield(e, nil) {
				more = false
				cancel(errBroken)
			}
		}})
		if err != nil && more {
			yield(Event{}, err)
		}
	}
}

// wholeRunner is a Runner that can execute a task without events.
type wholeRunner interface {
	Run(ctx context.Context, msgs ...llm.Message) (*Result, error)
}

// Run executes the task in msgs by r, which may be any Runner: an agent, a team, a conversation, a
// durable or a remote run. It returns the result and the error that Agent.Run describes. It calls
// the method Run of r, or reads the events of Stream to their end if r has no such method.
func Run(ctx context.Context, r Runner, msgs ...llm.Message) (*Result, error) {
	switch r := r.(type) {
	case nil:
		return nil, errNoRunner
	case wholeRunner:
		res, err := r.Run(ctx, msgs...)
		if err == nil {
			err = res.fault()
		}
		return res, err
	}
	return Collect(r.Stream(ctx, msgs...), nil)
}

// Collect reads the events of a run to its end, and returns its Result and its error as Agent.Run
// does. each receives the events in their order; nil means none. The Result is nil if the run did
// not start, or if its events end without run_ended, which is an error. So are a second run_ended,
// a nil stream, and a Result that contradicts itself, such as an answer although a call has no
// result.
func Collect(stream iter.Seq2[Event, error], each func(Event)) (res *Result, err error) {
	if stream == nil {
		return nil, errors.New("the stream is nil; pass what Stream returned")
	}

	for e, err := range stream {
		if err != nil {
			return res, err
		}

		// The key of a nested run begins with the key of its call, which has a slash.
		ends := e.Kind == EventRunEnded && !strings.Contains(string(e.Run), "/")
		switch {
		case ends && res != nil:
			return res, errors.New("the events contain the end of the run twice; run_ended is the last event")
		case ends && e.Result == nil:
			return nil, errors.New("the end of the run has no Result")
		case ends:
			res = e.Result
		}
		if each != nil {
			each(e)
		}
	}
	if res == nil {
		return nil, errors.New("the events end without the end of the run")
	}
	if err := res.fault(); err != nil {
		return res, err
	}
	return res, res.Err()
}

// run starts a run, executes the loop, and ends the run.
func (a *Agent) run(ctx context.Context, from *Result, msgs []llm.Message, o runOptions) (*Result, error) {
	if err := a.startable(ctx); err != nil {
		return nil, err
	}

	// A run that a tool starts itself is part of the effect of the tool: it has no engine.
	if o.inside != nil || InvocationFrom(ctx) == nil {
		o.engine = engineIn(ctx)
	}
	if o.engine.Bind != nil {
		a = o.engine.Bind(a, o.key)
	}
	r, err := a.newRun(ctx, from, msgs, o)
	if err != nil {
		return nil, err
	}
	if d := a.Limits.Time; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = endsAfter(ctx, d)
		defer cancel()
	}
	defer r.release(ctx) // if the model or the receiver of events panics
	if r.out.sink != nil {
		r.emit(Event{Kind: EventRunStarted, Agent: r.name, Offered: r.scope.tools})
		for _, repaired := range r.resumed.repairs {
			n := repaired.Notice()
			r.emit(Event{Kind: EventNotice, Code: n.Code, Text: n.Text, Data: n.Data})
		}
	}
	// Agent.Check finds this for the agent's own limit. A run around this one has limits too.
	if r.scope.budget.costs() && !r.priced() {
		return r.end(ctx, StopFailed, r.unpriced())
	}
	if answer := r.resumed.answer; answer != nil {
		r.reply.answer = answer
		if answer.From == AnswerTool {
			return r.end(ctx, StopFinished, nil)
		}
		return r.end(ctx, StopAnswer, nil)
	}
	stop, err := r.loop(ctx)
	return r.end(ctx, stop, err)
}
