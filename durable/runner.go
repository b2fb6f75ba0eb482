package durable

// runner.go: Runner, which starts or resumes a run.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/agentname"
	"github.com/pawl-go/pawl/internal/runerr"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Runner is a run in a journal: see Engine.Runner. It is safe for concurrent use, also from several
// processes: one at a time works on the run, and the others get ErrLost.
type Runner struct {
	// ID is the ID of the run.
	ID string
	// Meta is stored when the run starts, for the programs that resume it: see Engine.Meta. Nil
	// means none.
	Meta json.RawMessage

	// From is a Result that the run starts from, as with Agent.Resume: messages, values, usage and
	// pending calls. It is stored, so that a resume does not need it. The Runner must be an Agent.
	// Nil means that the run starts with its messages only.
	From *pawl.Result
	// Gate is called before each call of a tool, also of a nested one, and before each request to a
	// model. It returns when they may begin, or the error that ends the run, such as the cause of
	// ctx. It is called concurrently. Nil means that they begin at once.
	Gate func(ctx context.Context) error

	engine *Engine
	runner pawl.Runner
}

var _ pawl.OutputRunner = (*Runner)(nil)

// Stream starts the run with msgs, or resumes it, and yields its events. The events of the stored
// part are repeated from the start, whole, without fragments. A notice with the code "attempt" and
// the number of the attempt precedes them, so that observers can drop earlier events.
//
// For an existing run, msgs may be empty, or the messages of its start, or Decisions on its open
// calls and results of passive calls. A run that has ended is replayed to its stored result.
//
// A run without a plain answer yields a *pawl.StopError after run_ended, as Agent.Stream does.
// Other errors are ErrLost if another process works on the run, ErrChanged if the agent or its
// tools have changed, store.ErrNotFound if there is no run and no message to start it with, and
// store.ErrConflict if the run has other messages or another decision.
func (r *Runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		s, ctx, in, err := r.open(ctx, msgs)
		if err != nil {
			yield(pawl.Event{}, err)
			return
		}
		defer s.close()

		if s.lease.Fence > 1 || s.readOnly {
			if !yield(s.attempt(), nil) {
				return
			}
		}

		for e, err := range in.stream(ctx, r.runner) {
			ended := e.Kind == pawl.EventRunEnded && e.Run == "run"
			switch {
			case err != nil:
				err = s.cause(err)
			case ended && e.Result != nil:
				// An end that is not stored is no end.
				if endErr := s.storeEnd(e.Result, e.Error); endErr != nil {
					yield(pawl.Event{}, endErr)
					return
				}
			}

			if !yield(e, err) {
				return
			}
		}
	}
}

// Run is Stream without events. If the run is an Agent's, replies are requested without fragments.
// The Result is also set with an error, unless the run could not start. A run without a plain
// answer returns a *pawl.StopError, as Agent.Run does.
func (r *Runner) Run(ctx context.Context, msgs ...llm.Message) (*pawl.Result, error) {
	if err := r.startable(ctx); err != nil {
		return nil, err
	}
	a, ok := r.runner.(*pawl.Agent)
	if !ok {
		return pawl.Collect(r.Stream(ctx, msgs...), nil)
	}

	s, ctx, in, err := r.open(ctx, msgs)
	var stop *pawl.StopError
	switch {
	case errors.As(err, &stop):
		return stop.Result, err
	case err != nil:
		return nil, err
	}
	defer s.close()

	res, err := in.run(ctx, a)
	if res == nil {
		return nil, s.cause(err)
	}
	if endErr := s.storeEnd(res, errorOf(err)); endErr != nil {
		return res, endErr
	}
	return res, s.cause(err)
}

// errorOf returns Event.Error of the end of a run that returned err.
func errorOf(err error) string {
	if err = runerr.Cause(err); err != nil {
		return err.Error()
	}
	return ""
}

// cause returns err, or the storage error behind it.
func (s *session) cause(err error) error {
	if why := s.failed(); why != nil && err != nil {
		return why
	}
	return err
}

// Attempt is the data of the notice "attempt", which says that the events of the run are repeated
// from the start.
type Attempt struct {
	// Attempt is the number of the attempt, from 1.
	Attempt int64 `json:"attempt"`
	// Kept is the number of stored records.
	Kept int `json:"kept"`
	// Trace is the position of the previous attempt in a trace, in the form of the W3C. Empty means
	// unknown.
	Trace string `json:"trace,omitzero"`
	// ForkedFrom is the original of a fork. Nil means no fork.
	ForkedFrom *journal.Origin `json:"forked_from,omitzero"`
}

// attempt returns the notice that the events of the run are repeated.
func (s *session) attempt() pawl.Event {
	n := s.lease.Fence
	if s.readOnly {
		n = int64(s.history.Leases())
	}
	data, _ := json.Marshal(Attempt{
		Attempt:    n,
		Kept:       len(s.history.Records),
		Trace:      s.history.Trace,
		ForkedFrom: (*journal.Origin)(s.history.Begin.ForkedFrom),
	}) // numbers and names: no error is possible
	return pawl.Event{
		Kind: pawl.EventNotice,
		Run:  "run",
		Code: "attempt",
		Data: data,
		Text: fmt.Sprintf("attempt %d: replays the stored events", n),
	}
}

// open starts or resumes the run, and returns its input.
func (r *Runner) open(ctx context.Context, msgs []llm.Message) (*session, context.Context, input, error) {
	e := r.engine
	if err := r.startable(ctx); err != nil {
		return nil, nil, input{}, err
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, nil, input{}, interrupted(cause, msgs)
	}

	who := scope(ctx)
	starts := len(msgs) > 0 || r.From != nil
	l, err := r.claim(ctx, who)
	switch {
	case errors.Is(err, store.ErrNotFound) && starts:
		return r.begin(ctx, who, msgs)
	// A store words the end of ctx in its own way.
	case err != nil && context.Cause(ctx) != nil:
		return nil, nil, input{}, interrupted(context.Cause(ctx), msgs)
	case err != nil:
		return nil, nil, input{}, err
	}

	h, in, err := r.takeUp(ctx, who, msgs)
	if err != nil {
		return nil, nil, input{}, errors.Join(err, e.release(ctx, l))
	}
	e.reportSkew(r.ID, h)
	if err := e.parkCrashed(ctx, l, h); err != nil {
		return nil, nil, input{}, err
	}
	s, ctx := e.start(ctx, l, h)
	s.gate = r.Gate
	return s, ctx, in, nil
}

// release releases a lease that was not used. The lease of a run that is over is zero.
func (e *Engine) release(ctx context.Context, l store.Lease) error {
	if l.Fence == 0 {
		return nil
	}
	_, err := e.Journal.RenewJournal(context.WithoutCancel(ctx), l, zeroTime)
	return err
}

// leasePoll is the time between two attempts to claim a lease.
const leasePoll = 100 * time.Millisecond

// claim acquires the lease of the run, and waits for it up to Engine.WaitLease. The lease of a run
// that is over is zero.
func (r *Runner) claim(ctx context.Context, who store.Scope) (store.Lease, error) {
	e := r.engine
	for began := time.Now(); ; {
		l := store.Lease{Scope: who, Run: r.ID}
		head, err := e.Journal.JournalRun(ctx, who, r.ID)
		if err != nil || head.State == store.JournalOver {
			return l, err
		}

		l, err = e.Journal.ClaimJournal(ctx, who, r.ID, newOwner(), e.clock(), e.clock().Add(e.lease()))
		if head.State != store.JournalOpen {
			l.Lapses = 0 // a person resumes it
		}
		switch {
		case !errors.Is(err, store.ErrConflict):
			return l, err
		case time.Since(began) >= e.WaitLease:
			return l, fmt.Errorf("%w: %w", ErrLost, err)
		}

		select {
		case <-time.After(leasePoll):
		case <-ctx.Done():
			return l, ctx.Err()
		}
	}
}

// interrupted returns the error of a run whose context had ended before the run was read.
func interrupted(cause error, msgs []llm.Message) error {
	res := &pawl.Result{Messages: msgs, Stop: pawl.StopCancelled, Cause: "the run was cancelled"}
	if cause == pawl.ErrCancelled {
		return &pawl.StopError{Reason: res.Stop, Result: res}
	}
	res.Cause = "interrupted: " + cause.Error()
	res.Interrupted = cause.Error()
	return &pawl.StopError{Reason: res.Stop, Result: res, Err: cause}
}

// takeUp reads an existing run, and stores the answers in msgs to its open calls.
func (r *Runner) takeUp(ctx context.Context, who store.Scope, msgs []llm.Message) (*record.History, input, error) {
	h, err := r.engine.history(ctx, who, r.ID)
	if err != nil {
		return nil, input{}, err
	}
	if err := r.begunBy(h); err != nil {
		return nil, input{}, err
	}
	if err := r.answer(ctx, who, h, msgs); err != nil {
		return nil, input{}, err
	}
	if len(msgs) > 0 { // the history has the answers now
		h, err = r.engine.history(ctx, who, r.ID)
		if err != nil {
			return nil, input{}, err
		}
	}
	in, err := inputOf(h)
	return h, in, err
}

// begunBy returns ErrChanged if another agent has begun the run. NAME@1 and NAME@2 are one agent. A
// run that was begun by another Runner than an Agent has no name.
func (r *Runner) begunBy(h *record.History) error {
	a, ok := r.runner.(*pawl.Agent)
	known := h.Begin.Agent != "" || h.Begin.Unnamed
	if !ok || !known || r.engine.AcceptChanges {
		return nil
	}

	if agentname.Same(h.Begin.Agent, a.Name) {
		return nil
	}
	return fmt.Errorf("run %s: %w: the agent %q has begun it, and this is %q; resume it with that agent, or take another ID",
		r.ID, ErrChanged, h.Begin.Agent, a.Name)
}

// history reads the records of a run.
func (e *Engine) history(ctx context.Context, who store.Scope, id string) (*record.History, error) {
	return record.Load(ctx, e.Journal, who, id, e.clock())
}

// Enqueue stores the start of the run without executing it: as Stream starts it, but without a
// lease. It is then the first run of Recover, and a Stream without messages executes it. It returns
// store.ErrConflict if the run exists.
func (r *Runner) Enqueue(ctx context.Context, msgs ...llm.Message) error {
	if err := r.startable(ctx); err != nil {
		return err
	}
	_, _, _, err := r.create(ctx, scope(ctx), "", msgs)
	return err
}

var errNoJournal = errors.New("durable.Engine has no Journal; set one, such as a store of store/sqlite")

// startable returns the error of a program that starts a run without what it needs.
func (r *Runner) startable(ctx context.Context) error {
	switch {
	case ctx == nil:
		return errors.New("the context is nil; use context.Background() or the context of the request")
	case r == nil || r.engine == nil:
		return errors.New("durable: the Runner has no engine; make it by Engine.Runner")
	case r.engine.Journal == nil:
		return errNoJournal
	case r.engine.Lease < 0:
		return errors.New("durable: Engine.Lease is negative; 0 means 30 s")
	case r.ID == "":
		return errors.New(`durable: the run has no ID; name it, such as "invoice-7", so that it can be resumed`)
	case isNil(r.runner):
		return errors.New("durable: the Runner of the run is nil; pass an agent")
	}
	return nil
}

// isNil reports whether r is nil or a nil agent.
func isNil(r pawl.Runner) bool {
	a, ok := r.(*pawl.Agent)
	return r == nil || ok && a == nil
}

// begin stores the start of the run, and returns its session and input.
func (r *Runner) begin(ctx context.Context, who store.Scope, msgs []llm.Message) (*session, context.Context,
	input, error) {
	l, first, in, err := r.create(ctx, who, newOwner(), msgs)
	if err != nil {
		return nil, nil, input{}, err
	}
	h, err := record.Begun(r.ID, first, l.Fence)
	if err != nil {
		return nil, nil, input{}, err
	}
	s, ctx := r.engine.start(ctx, l, h)
	s.gate = r.Gate
	return s, ctx, in, nil
}

// create stores the start of the run, with a lease unless owner is empty. It returns the stored
// record, and the input with the tools that were checked.
func (r *Runner) create(ctx context.Context, who store.Scope, owner string, msgs []llm.Message) (l store.Lease,
	first store.Record, in input, err error) {
	// A run that cannot start leaves no journal.
	e := r.engine
	if a, ok := r.runner.(*pawl.Agent); ok {
		in.agent = listed(ctx, a)
		if err := in.agent.Check(ctx); err != nil {
			return l, first, in, err
		}
	}

	begin, err := r.beginning(msgs)
	if err != nil {
		return l, first, in, err
	}
	in.Input, err = begin.Input()
	if err != nil {
		return l, first, in, err
	}
	body, err := json.Marshal(begin)
	if err != nil {
		return l, first, in, err
	}

	now := e.clock()
	until := zeroTime
	if owner != "" {
		until = now.Add(e.lease())
	}
	run := store.JournalRun{ID: r.ID, Agent: begin.Agent, Task: taskOf(in.All()), State: store.JournalOpen}
	first = store.Record{Key: record.KindBegin, Kind: record.KindBegin, At: now, Body: body}
	l, err = e.Journal.BeginJournal(ctx, who, run, owner, until, first)
	return l, first, in, err
}

// beginning returns the journal form of the start of r.
func (r *Runner) beginning(msgs []llm.Message) (body record.Begin, err error) {
	body = record.Begin{State: record.FormVersion, Meta: r.Meta}
	if a, ok := r.runner.(*pawl.Agent); ok {
		body.Agent = a.Name
		body.Unnamed = a.Name == ""
	} else if r.From != nil {
		return body, errors.New("durable: only an Agent can continue a Result (Runner.From)")
	}
	body.Messages, err = json.Marshal(append([]llm.Message{}, msgs...))
	if err != nil {
		return body, err
	}
	if r.From == nil {
		body.Answered = record.HasOpenCalls(msgs)
		return body, nil
	}

	from := &pawl.Result{
		Messages: r.From.Messages,
		Spent:    r.From.Spent,
		Values:   r.From.Values,
		Pending:  r.From.Pending,
		Stop:     r.From.Stop,
	}
	if from.Stop == pawl.StopLimit { // what Agent.Resume needs under a raised limit
		from.Limit = r.From.Limit
		from.Cause = r.From.Cause
		from.Output = r.From.Output
		from.Answer = r.From.Answer
	}
	body.From, err = json.Marshal(from)
	return body, err
}

// begunWith reports whether the run started with msgs and r.From. It returns an error if the run
// started from another Result.
func (r *Runner) begunWith(h *record.History, msgs []llm.Message) (bool, error) {
	now, err := r.beginning(msgs)
	if err != nil {
		return false, err
	}
	if r.From != nil && !bytes.Equal(now.From, h.Begin.From) {
		return false, fmt.Errorf("run %s was begun from another transcript: %w", r.ID, store.ErrConflict)
	}
	return equalMessages(now.Messages, h.Begin.Messages) && bytes.Equal(now.From, h.Begin.From), nil
}

// answer stores the answers in msgs to the open calls of an existing run.
func (r *Runner) answer(ctx context.Context, who store.Scope, h *record.History, msgs []llm.Message) error {
	same, err := r.begunWith(h, msgs)
	if err != nil || same || len(msgs) == 0 {
		return err // the start of the run again, or a resume
	}

	var ds []llm.Decision
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Decision:
				ds = append(ds, p)
			case llm.ToolResult:
				d, err := answerOf(h, p)
				if err != nil {
					return err
				}
				ds = append(ds, d)
			default:
				return fmt.Errorf("run %s was started with other messages; resume it without messages, "+
					"with decisions or with results of its open calls: %w", r.ID, store.ErrConflict)
			}
		}
	}
	return r.engine.decide(ctx, who, r.ID, h, ds)
}

// answerOf returns the decision that sets the result of an open call.
func answerOf(h *record.History, res llm.ToolResult) (llm.Decision, error) {
	open := h.OpenQuestions()
	i := slices.IndexFunc(open, func(q record.Question) bool { return q.Waiting.Call.ID == res.CallID })
	if i < 0 {
		return llm.Decision{}, fmt.Errorf("the result answers the call %q, which does not wait: %w",
			res.CallID, store.ErrConflict)
	}
	return open[i].Waiting.Answer("caller", res), nil
}
