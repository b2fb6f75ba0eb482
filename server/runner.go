package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Runner is a run of the server, for what lives in its process: see Server.Runner. It may be used concurrently.
type Runner struct {
	ID    string
	Agent string

	s  *Server
	by string
}

var _ pawl.Runner = (*Runner)(nil)

// Runner returns the run with that id of an agent ("": the only one), for programs in the server's own process, such as an MCP server and what does schedules: it is in the journal, listed,
// watched and answered like those of the API's clients. by is whose name stands under decisions that come this way. The run is that of the scope in Stream's context
// (store.WithScope), or of nobody's.
func (s *Server) Runner(id, agent, by string) *Runner {
	return &Runner{ID: id, Agent: agent, s: s, by: by}
}

// Stream begins the run, or goes on with it, and tells what happens, as server/client.Runner does. It ends when the run has stopped. Whoever stops ranging, or cancels ctx, leaves the
// run at work; when the cause is pawl.ErrCancelled, the run is given up and told to its end. Errors are *Error.
func (r *Runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		c := r.call(context.WithoutCancel(ctx))
		fail := func(err error) {
			if _, is := errors.AsType[*Error](err); !is {
				err = toError(err)
			}
			yield(pawl.Event{}, err)
		}
		l, _, err := c.begin(Start{ID: r.ID, Agent: r.Agent}, msgs)
		if err == nil && l == nil {
			l, err = c.look(place{c.client.scope(), r.ID})
		}
		if err != nil {
			fail(err)
			return
		}
		gone, stopped := ctx.Done(), false
		for after := int64(0); ; {
			batch, ended, more := l.feed.read(after, batchBytes)
			for _, e := range batch {
				after = e.n
				ev, err := e.event()
				if err != nil {
					fail(err)
					return
				}
				stopped = stopped || ev.Kind == pawl.EventRunEnded && ev.Run == "run"
				if !yield(ev, nil) {
					return
				}
			}
			if ended {
				if !stopped {
					fail(fault("busy", "the server is about to end", "the run "+r.ID+" goes on with the next one"))
				}
				return
			}
			if len(batch) > 0 {
				continue
			}
			select {
			case <-more:
			case <-gone:
				if context.Cause(ctx) != pawl.ErrCancelled {
					yield(pawl.Event{}, context.Cause(ctx))
					return
				}
				gone = nil
				if err := r.Cancel(c.r.Context()); err != nil {
					fail(err)
					return
				}
			}
		}
	}
}

// Cancel has the run given up. Twice is once.
func (r *Runner) Cancel(ctx context.Context) error {
	c := r.call(ctx)
	_, err := c.giveUp(r.ID)
	return err
}

// call is a request of the process's own.
func (r *Runner) call(ctx context.Context) *call {
	scope, _ := store.ScopeFrom(ctx)
	me := &client{Token: Token{Name: cmp.Or(r.by, "server"), Scopes: []Scope{ScopeAll}, Tenant: scope.Tenant, User: scope.User}}
	return &call{s: r.s, r: new(http.Request).WithContext(ctx), client: me}
}

// event reads an entry; one that says why the run could not go on is an error.
func (e entry) event() (ev pawl.Event, err error) {
	if e.kind == kindError {
		var f struct{ Error Error }
		if err := json.Unmarshal(e.data, &f); err != nil {
			return ev, err
		}
		return ev, fault(f.Error.Code, f.Error.Message, f.Error.Hint)
	}
	return ev, json.Unmarshal(e.data, &ev)
}
