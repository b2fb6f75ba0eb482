package server

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Runner is a run of the server, for code in the same process: see Server.Runner. It is safe for
// concurrent use.
type Runner struct {
	ID    string
	Agent string

	s  *Server
	by string
}

var _ pawl.Runner = (*Runner)(nil)

// Runner returns the run with that ID of an agent; an empty agent means the only one. It serves
// code in the server's process, such as an MCP server or a scheduler. The run is in the journal,
// and clients can list, watch and answer it like their own runs. by is the name recorded with
// decisions that arrive through the Runner; empty means the client of the request to Options.MCP
// whose context it is. The run belongs to the scope in Stream's context (store.WithScope); without
// one it has no owner.
func (s *Server) Runner(id, agent, by string) *Runner {
	return &Runner{ID: id, Agent: agent, s: s, by: by}
}

// Stream starts or resumes the run and yields its events, as server/client.Runner does. It ends
// when the run has stopped. If the caller breaks out of the range or cancels ctx, the run
// continues. If the cause is pawl.ErrCancelled, the run is cancelled and its events are yielded to
// the end. A run without a plain answer yields a *pawl.StopError after run_ended. Other errors are
// *Error.
func (r *Runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		c := r.call(context.WithoutCancel(ctx))
		fail := func(err error) {
			if _, is := errors.AsType[*api.Error](err); !is {
				err = runs.ToError(err)
			}
			yield(pawl.Event{}, err)
		}
		l, _, err := c.Begin(api.Start{ID: r.ID, Agent: r.Agent}, false, msgs)
		if err == nil && l == nil {
			l, err = c.Look(runs.Place{Who: c.Client.Scope(), Id: r.ID})
		}
		if err != nil {
			fail(err)
			return
		}
		inner, leave := context.WithCancelCause(c.Context)
		defer leave(nil)
		defer context.AfterFunc(ctx, func() {
			err := context.Cause(ctx)
			if err == pawl.ErrCancelled {
				err = r.Cancel(c.Context)
			}
			if err != nil {
				leave(err)
			}
		})()
		var end *pawl.Result
		for ev, err := range l.Events(inner, true, nil, nil) {
			switch {
			case err == runs.ErrElsewhere && end == nil:
				fail(runs.Fault("busy", "the server is stopping", "the run "+r.ID+" is resumed by the next one"))
			case err == runs.ErrElsewhere:
				if err := end.Err(); err != nil {
					yield(pawl.Event{}, err)
				}
			case err != nil && err == context.Cause(ctx):
				yield(pawl.Event{}, err)
			case err != nil:
				fail(err)
			case yield(ev, nil):
				if ev.Kind == pawl.EventRunEnded && ev.Run == "run" {
					end = ev.Result
				}
				continue
			}
			return
		}
	}
}

// State returns the end of the run or its pending calls, without secrets; while the run works it
// returns a Result without Stop. Of the messages the Result has the last one. The error is
// pawl.ErrNotFound if there is no such run in the scope of ctx.
func (r *Runner) State(ctx context.Context) (res *pawl.Result, created, updated time.Time, err error) {
	run, err := r.call(ctx).Get(r.ID)
	if errors.Is(err, store.ErrNotFound) {
		err = pawl.ErrNotFound
	}
	res = &pawl.Result{Cause: run.Cause, Pending: run.Pending, Output: r.s.O.Secrets.JSON(run.Output),
		Messages: []llm.Message{llm.Assistant(llm.Text{Text: r.s.O.Secrets.String(run.Answer)})}}
	if slices.Contains([]string{store.JournalWaiting, store.JournalOver, store.JournalFailed}, run.State) {
		res.Stop = cmp.Or(run.Stop, pawl.StopFailed)
	}
	return res, run.Created, run.Updated, err
}

// Cancel cancels the run. It is idempotent.
func (r *Runner) Cancel(ctx context.Context) error {
	c := r.call(ctx)
	_, err := c.GiveUp(r.ID)
	return err
}

// call returns a request of this process.
func (r *Runner) call(ctx context.Context) *runs.Caller {
	scope, _ := store.ScopeFrom(ctx)
	me := &access.Client{Token: access.Token{Name: cmp.Or(r.by, asks(ctx).Name), Scopes: []access.Scope{access.ScopeAll}, Tenant: scope.Tenant,
		User: scope.User}}
	return &runs.Caller{S: r.s.Service, Context: ctx, Client: me}
}
