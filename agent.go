package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/pawl-go/pawl/llm"
)

// Agent is a model with tools, instructions and limits. Fill in a literal; only Model is required. An Agent may be used by many
// runs at once and must not be changed meanwhile.
type Agent struct {
	Name         string          // for events and records; "": "agent"
	Instructions string          // put in front of the conversation as a system message; "": none
	Model        llm.Model       // what decides
	Tools        []Toolset       // what it may call, in the order it sees them
	Choice       llm.ToolChoice  // for the first request of a run; then a forced choice is auto
	Output       json.RawMessage // JSON Schema that the answer must fit: see Result.Output; nil: free text
	Limits       Limits          // zero: 20 rounds
	Executor     Executor        // nil: Parallel{}
	Middleware   []Middleware    // around model requests and calls; the first is outermost
	Settings     llm.Settings    // sent with each request
	Artifacts    Artifacts       // keeps what results are too long to tell, and offers result_read to read it; nil: it is lost, or kept by the run around
}

// Runner is whatever carries out a task and tells of it: an Agent, a team, a durable or a remote run. The sequence ends after
// run_ended, which carries the Result, or with an error; a run that fails yields both, the event first.
// Breaking out of the loop ends the run; what it left open stays open.
type Runner interface {
	Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[Event, error]
}

var _ Runner = (*Agent)(nil)

// Run carries out the task in msgs, a transcript or a single message, and returns how it ended. Replies are asked for whole.
//
// The error is not nil when the run failed (the model did, a tool aborted it, msgs are no conversation) or ctx ended with a
// cause other than ErrCancelled. The Result is there all the same, unless nothing was begun: it can be resumed.
func (a *Agent) Run(ctx context.Context, msgs ...llm.Message) (*Result, error) {
	return a.run(ctx, nil, msgs, runOptions{whole: true})
}

// Stream carries out the same run as Run, and tells of it as it happens. Replies are streamed.
func (a *Agent) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[Event, error] {
	return a.stream(ctx, nil, msgs)
}

// Resume goes on from a Result: open calls are settled first, with the Decisions and results in msgs; other messages follow them.
// What was spent counts on. Messages that are neither cannot be given while calls still pend unanswered: the error says which.
func (a *Agent) Resume(ctx context.Context, from *Result, msgs ...llm.Message) (*Result, error) {
	return a.run(ctx, from, msgs, runOptions{whole: true})
}

// ResumeStream is Resume, told as it happens.
func (a *Agent) ResumeStream(ctx context.Context, from *Result, msgs ...llm.Message) iter.Seq2[Event, error] {
	return a.stream(ctx, from, msgs)
}

// Once is Run with at most one round: the calls of the second reply are returned open (Result.Calls).
// Limits.Rounds and Limits.AtLimit replace these defaults.
func (a *Agent) Once(ctx context.Context, msgs ...llm.Message) (*Result, error) {
	b := *a
	if b.Limits.Rounds == 0 {
		b.Limits.Rounds = 1
	}
	if b.Limits.AtLimit == 0 {
		b.Limits.AtLimit = AtLimitReturn
	}
	return b.Run(ctx, msgs...)
}

var errBroken = errors.New("the caller broke off")

func (a *Agent) stream(ctx context.Context, from *Result, msgs []llm.Message) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		more := true
		_, err := a.run(ctx, from, msgs, runOptions{emit: func(e Event) {
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

// run prepares a run, goes through the loop, and closes it.
func (a *Agent) run(ctx context.Context, from *Result, msgs []llm.Message, o runOptions) (*Result, error) {
	if o.inside != nil || InvocationFrom(ctx) == nil { // a run that a tool starts itself is part of its effect
		o.engine = engineIn(ctx)
	}
	if o.engine.Bind != nil {
		a = o.engine.Bind(a)
	}
	r, err := a.prepare(ctx, from, msgs, o)
	if err != nil {
		return nil, err
	}
	if d := a.Limits.Time; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = endsAfter(ctx, d)
		defer cancel()
	}
	defer r.leave(ctx) // where a model or whoever watches panics
	if r.sink != nil {
		r.emit(Event{Kind: EventRunStarted, Agent: r.name, Offered: r.scope.tools})
		for _, repaired := range r.mends {
			n := repaired.Notice()
			r.emit(Event{Kind: EventNotice, Code: n.Code, Text: n.Text, Data: n.Data})
		}
	}
	stop, err := StopFailed, r.affordable()
	if err == nil {
		stop, err = r.loop(ctx)
	}
	r.leave(ctx)
	r.res.Stop = stop
	r.res.Messages = append(r.res.Messages, r.then...) // what still waits for open calls is not lost
	ended := Event{Kind: EventRunEnded, Result: r.res}
	if err != nil {
		ended.Error = err.Error()
		if r.res.Cause == "" {
			r.res.Cause = err.Error()
		}
	}
	r.emit(ended)
	return r.res, err
}

// leave ends what the run has begun and holds; once is enough.
func (r *run) leave(ctx context.Context) {
	r.drop()
	r.paid(llm.Usage{})
	if in := r.inbox; in != nil {
		r.inbox = nil
		r.res.Unread = in.Close(ctx)
	}
	if r.branch != nil {
		r.branch.refused(r.own.outer)
	}
}
