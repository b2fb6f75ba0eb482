package server

// runner.go: Runner, a run of the server for code in the same process.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// RunnerOptions say which run a Runner is.
type RunnerOptions struct {
	// ID is the ID of the run. It is required.
	ID string
	// Agent is the name of its agent. Empty means the only one.
	Agent string
	// By is the name recorded with decisions that arrive through the Runner. Empty means the client
	// of the request to Options.MCP whose context it is.
	By string
	// Hold is the time for which Stream waits while the provider of the run's model is away. It
	// then ends with the error outage, and the run goes on by itself. 0 means as long as the run
	// needs.
	Hold time.Duration
}

// Runner is a run of the server, for code in the same process: see Server.Runner. It is safe for
// concurrent use.
type Runner struct {
	server   *Server
	options  RunnerOptions
	output   json.RawMessage // nil means the agent's
	previous string          // the run whose conversation this run continues; "" means none
	follows  int             // number of runs of the chain before this run: see FollowUp
	first    string          // ID of the first run of the chain; "" means this run
}

var _ pawl.OutputRunner = (*Runner)(nil)

// Runner returns a run. It serves code in the server's process, such as an MCP server or a
// scheduler. The run is in the journal, and clients can list, watch and answer it like their own
// runs. It belongs to the scope in Stream's context (store.WithScope); without one it has no owner.
func (s *Server) Runner(o RunnerOptions) *Runner { return &Runner{server: s, options: o} }

// WithOutput returns a copy of r whose answer fits schema, for pawl.Into, as server/client.Runner
// does.
func (r *Runner) WithOutput(schema json.RawMessage) pawl.Runner {
	c := *r
	c.output = schema
	return &c
}

// FollowUp returns the run that continues r with a new message, for pawl.Into: a run of the server
// has the schema of the answer and not the check. The run has the ID of the first run of the chain,
// with "-again-" and a number at its end.
func (r *Runner) FollowUp(ctx context.Context, _ *pawl.Result) (next pawl.Runner, stored bool, err error) {
	c := *r
	c.first = cmp.Or(r.first, r.options.ID)
	c.follows++
	c.options.ID = fmt.Sprintf("%s-again-%d", c.first, c.follows)
	c.previous = r.options.ID

	_, err = r.server.runs.Head(ctx, r.caller(ctx), c.options.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &c, false, nil
	case err != nil:
		return nil, false, toError(err)
	}
	return &c, true, nil
}

// Stream starts or resumes the run and yields its events, as server/client.Runner does. It ends
// when the run has stopped. If the caller breaks out of the range or cancels ctx, the run
// continues. If the cause is pawl.ErrCancelled, the run is cancelled and its events are yielded to
// the end. A run without a plain answer yields a *pawl.StopError after run_ended, and one whose
// answer does not fit its schema a *pawl.OutputError. Other errors are *api.Error.
func (r *Runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		inner, leave := context.WithCancelCause(context.WithoutCancel(ctx))
		defer leave(nil)
		l, err := r.begin(inner, msgs)
		if err != nil {
			yield(pawl.Event{}, toError(err))
			return
		}

		// The events end when ctx does, except with the events of a cancelled run.
		release := context.AfterFunc(ctx, func() {
			if err := r.stopWatching(inner, context.Cause(ctx)); err != nil {
				leave(err)
			}
		})
		defer release()

		var end *pawl.Result
		for ev, err := range l.Events(inner, runs.Reading{Hold: r.options.Hold}) {
			if err != nil {
				if err := r.errorOf(err, context.Cause(ctx), end); err != nil {
					yield(pawl.Event{}, err)
				}
				return
			}

			if !yield(ev, nil) {
				return
			}
			if ev.Kind == pawl.EventRunEnded && ev.Run == "run" {
				end = ev.Result
			}
		}
	}
}

// stopWatching returns the error with which the events end because the caller's context has ended
// for that cause. Nil means that the run is cancelled, and its events continue to its end.
func (r *Runner) stopWatching(ctx context.Context, cause error) error {
	if cause == pawl.ErrCancelled {
		return r.Cancel(ctx)
	}
	return cause
}

// errorOf returns the error of a run whose events ended with err. cause is why the caller's context
// has ended; nil means that it has not. end is the Result in the events; nil means none.
func (r *Runner) errorOf(err, cause error, end *pawl.Result) error {
	var unfit *pawl.OutputError
	switch {
	case err == runs.ErrElsewhere:
		return r.stopped(end)
	case err == cause:
		return err
	case end != nil && errors.As(end.Err(), &unfit):
		return unfit
	}
	return toError(err)
}

// begin starts or resumes the run, or finds it.
func (r *Runner) begin(ctx context.Context, msgs []llm.Message) (*runs.Live, error) {
	c := r.caller(ctx)
	l, _, err := r.server.runs.Start(ctx, c, runs.Request{
		ID:       r.options.ID,
		Agent:    r.options.Agent,
		Messages: msgs,
		Output:   r.output,
		Previous: r.previous,
	})
	if err == nil && l == nil {
		l, err = r.server.runs.Attach(ctx, c, r.options.ID)
	}
	return l, err
}

// stopped returns the error of a run whose events ended with that Result: nil means that they ended
// without one, because the server stops.
func (r *Runner) stopped(end *pawl.Result) error {
	if end == nil {
		return runs.Fault("busy", "the server is stopping", "the run "+r.options.ID+" is resumed by the next one")
	}
	return end.Err()
}

// toError returns err as an *api.Error.
func toError(err error) error {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e
	}
	return runs.ToError(err)
}

// State returns the end of the run or its pending calls, without secrets; while the run works it
// returns a Result without Stop. Of the messages the Result has the last one. The error is
// pawl.ErrNotFound if there is no such run in the scope of ctx.
func (r *Runner) State(ctx context.Context) (res *pawl.Result, created, updated time.Time, err error) {
	run, err := r.server.runs.State(ctx, r.caller(ctx), r.options.ID)
	if errors.Is(err, store.ErrNotFound) {
		err = pawl.ErrNotFound
	}
	hide := r.server.options.Secrets
	answer := llm.Text{Text: hide.String(run.Answer)}
	res = &pawl.Result{
		Cause:    run.Cause,
		Pending:  run.Pending,
		Output:   hide.JSON(run.Output),
		Messages: []llm.Message{llm.Assistant(answer)},
	}
	switch run.State {
	case store.JournalWaiting, store.JournalOver, store.JournalFailed:
		res.Stop = cmp.Or(run.Stop, pawl.StopFailed)
	}
	return res, run.Created, run.Updated, err
}

// Decide answers a pending call of the run and resumes the run. The decision is recorded with
// RunnerOptions.By. The error is an *api.Error, such as for a call that does not wait any more.
func (r *Runner) Decide(ctx context.Context, d llm.Decision) error {
	if err := r.server.runs.Decide(ctx, r.caller(ctx), r.options.ID, d); err != nil {
		return toError(err)
	}
	return nil
}

// Cancel cancels the run. It is idempotent.
func (r *Runner) Cancel(ctx context.Context) error {
	_, err := r.server.runs.Cancel(ctx, r.caller(ctx), r.options.ID)
	return err
}

// caller returns code of this process as the one who acts on runs.
func (r *Runner) caller(ctx context.Context) runs.Caller {
	scope, _ := store.ScopeFrom(ctx)
	return web.CallerOf(access.NewClient(api.Token{
		Name:   cmp.Or(r.options.By, clientOf(ctx).Name),
		Scopes: []api.Scope{api.ScopeAll},
		Tenant: scope.Tenant,
		User:   scope.User,
	}))
}
