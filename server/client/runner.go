package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/sse"
	"github.com/pawl-go/pawl/llm"
)

// Runner is a run on a server: see Client.Runner. It is safe for concurrent use.
type Runner struct {
	// ID is the ID of the run. It is not empty.
	ID string
	// Agent is the name of its agent. Empty means the only agent of the server.
	Agent string

	client   *Client
	output   json.RawMessage // nil means the agent's
	previous string          // the run whose conversation this run continues; "" means none
	follows  int             // number of runs of the chain before this run: see FollowUp
	first    string          // ID of the first run of the chain; "" means this run
}

var _ pawl.OutputRunner = (*Runner)(nil)

// Runner returns the run with that ID of an agent; an empty agent means the only one of the server.
// The first Stream with messages starts the run. Each further Stream resumes it: without messages,
// or with decisions on its open calls and results of passive ones. id must not be empty.
func (c *Client) Runner(id, agent string) *Runner { return &Runner{ID: id, Agent: agent, client: c} }

// WithOutput returns a copy of r whose answer fits schema, for pawl.Into. The server stores the
// schema with the run, and refuses it for a run that was started with another one.
func (r *Runner) WithOutput(schema json.RawMessage) pawl.Runner {
	c := *r
	c.output = schema
	return &c
}

// FollowUp returns the run that continues r with a new message, for pawl.Into: the program has the
// check of the answer, and the server has not. The run has the ID of the first run of the chain,
// with "-again-" and a number at its end.
func (r *Runner) FollowUp(ctx context.Context, _ *pawl.Result) (next pawl.Runner, stored bool, err error) {
	c := *r
	c.first = cmp.Or(r.first, r.ID)
	c.follows++
	c.ID = fmt.Sprintf("%s-again-%d", c.first, c.follows)
	c.previous = r.ID

	res, err := r.client.send(ctx, http.MethodGet, c.path(), nil, "application/json", "")
	if said, ok := errors.AsType[*Error](err); ok && said.Status == http.StatusNotFound {
		return &c, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return &c, true, res.Body.Close()
}

// Stream starts or resumes the run and yields its events, including those from before the call. If
// the server cannot continue at the last position (it was restarted, or the run was resumed), all
// events are repeated after a notice with the code "attempt". A gap event counts fragments that
// arrived too fast. While the provider of the run's model is away, Stream waits, after a notice
// with the code "outage". If the caller breaks out of the range or cancels ctx, the run continues.
// If the cause is pawl.ErrCancelled, the run is cancelled and its events are yielded to the end. A
// run without a plain answer yields a *pawl.StopError after run_ended, and a run whose answer does
// not fit its schema a *pawl.OutputError. Errors of the server are *Error.
func (r *Runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		w := watch{runner: r, yield: yield}
		if err := w.start(msgs); err != nil {
			yield(pawl.Event{}, err)
			return
		}

		// The connection outlives ctx: a run that is cancelled is read to its end.
		inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
		left := make(chan struct{})
		unwatch := context.AfterFunc(ctx, func() { defer close(left); r.stopWatching(ctx, inner, stop) })
		defer func() {
			stop(nil)
			if !unwatch() {
				<-left
			}
		}()
		w.all(inner)
	}
}

// stopWatching stops watching the run when ctx has ended, or cancels the run.
func (r *Runner) stopWatching(ctx, inner context.Context, stop context.CancelCauseFunc) {
	cause := context.Cause(ctx)
	if cause != pawl.ErrCancelled {
		stop(cause)
		return
	}
	late, cancel := context.WithTimeout(inner, 30*time.Second)
	defer cancel()
	if err := r.Cancel(late); err != nil {
		stop(errors.Join(cause, err))
	}
}

// Cancel cancels the run. It is idempotent.
func (r *Runner) Cancel(ctx context.Context) error {
	return r.client.post(ctx, r.path()+"/cancel", nil)
}

// Steer sends user messages to the run, which adds them to its next request.
func (r *Runner) Steer(ctx context.Context, msgs ...llm.Message) error {
	body, err := json.Marshal(map[string]any{"messages": msgs})
	if err != nil {
		return err
	}
	return r.client.post(ctx, r.path()+"/steer", body)
}

func (r *Runner) path() string { return "/v1/runs/" + url.PathEscape(r.ID) }

// watch reads the streams of one run, one after the other.
type watch struct {
	runner *Runner
	yield  func(pawl.Event, error) bool
	body   []byte // body of the request that starts it
	last   string // ID of the last event
	begun  bool   // the server has the run
	ended  bool   // its end was yielded
	res    *pawl.Result
}

func (w *watch) start(msgs []llm.Message) (err error) {
	if w.runner.ID == "" {
		return errors.New("pawl server: the run has no id")
	}
	w.body, err = json.Marshal(struct {
		ID       string          `json:"id"`
		Agent    string          `json:"agent"`
		Messages []llm.Message   `json:"messages,omitzero"`
		Output   json.RawMessage `json:"output,omitzero"`
		Previous string          `json:"previous,omitzero"`
	}{
		ID:       w.runner.ID,
		Agent:    w.runner.Agent,
		Messages: msgs,
		Output:   w.runner.output,
		Previous: w.runner.previous,
	})
	return err
}

// all yields the events of the run to its end, over as many connections as needed.
func (w *watch) all(ctx context.Context) {
	c := w.runner.client
	for tries := 0; ; tries++ {
		res, err := w.open(ctx)
		if err == nil {
			before := w.last
			if w.read(res) {
				return
			}

			// Only connections that brought nothing count as failed tries.
			if w.last != before {
				tries = 0
			}
		}
		if isFinal(err) || tries >= c.options.Retries || ctx.Err() != nil {
			w.fail(ctx, err)
			return
		}

		t := time.NewTimer(c.options.Pause << min(tries, 6))
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// isFinal reports whether err is an answer of the server that a further request would get again.
func isFinal(err error) bool {
	said, ok := errors.AsType[*Error](err)
	return ok && said.Code != "busy"
}

// isOutage reports whether a server has ended a stream because the provider of the run's model is
// away. The run goes on, and its events follow in another stream.
func isOutage(err error) bool {
	said, ok := errors.AsType[*Error](err)
	return ok && said.Code == "outage"
}

// open requests the events: with the request that starts the run, which may be repeated, or from
// the position at which the last stream broke.
func (w *watch) open(ctx context.Context) (*http.Response, error) {
	const events = "text/event-stream"
	if !w.begun {
		return w.runner.client.send(ctx, http.MethodPost, "/v1/runs", w.body, events, "")
	}
	return w.runner.client.send(ctx, http.MethodGet, w.runner.path()+"/events", nil, events, w.last)
}

// read yields the events of a response and reports whether there are no more.
func (w *watch) read(res *http.Response) (done bool) {
	defer res.Body.Close()
	w.begun = true
	in := sse.NewReader(res.Body)
	in.Max = 256 << 20 // a result may contain a long conversation
	for {
		ev, err := in.Next()
		if err != nil || ev.Unended { // the stream broke or ended
			return w.ended && w.stop()
		}
		if string(ev.Type) == "error" {
			err := w.errorIn(ev.Data)
			if isOutage(err) {
				return false
			}
			w.yield(pawl.Event{}, err)
			return true
		}

		var e pawl.Event
		if err := json.Unmarshal(ev.Data, &e); err != nil {
			w.yield(pawl.Event{}, fmt.Errorf("pawl server: an event: %w", err))
			return true
		}
		w.last = string(ev.ID)
		if e.Kind == pawl.EventRunEnded && e.Run == "run" {
			w.ended = true
			w.res = e.Result
		}
		if !w.yield(e, nil) {
			return true
		}

		// The server keeps the stream open for watchers of the pending run.
		if w.ended && w.res != nil && w.res.Stop == pawl.StopPending {
			return w.stop()
		}
	}
}

// errorIn returns the error in an event, or the error of an answer that does not fit, which the end
// of the run has.
func (w *watch) errorIn(data []byte) error {
	var unfit *pawl.OutputError
	if w.res != nil && errors.As(w.res.Err(), &unfit) {
		return unfit
	}
	var said struct{ Error Error }
	if err := json.Unmarshal(data, &said); err != nil {
		return fmt.Errorf("pawl server: an error: %w", err)
	}
	return &said.Error
}

// stop yields the error of a run that ended without a plain answer. It returns true.
func (w *watch) stop() bool {
	if w.res != nil && w.res.Err() != nil {
		w.yield(pawl.Event{}, w.res.Err())
	}
	return true
}

// fail yields the reason why the run could not continue.
func (w *watch) fail(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil:
		err = errors.New("pawl server: the stream broke repeatedly")
	}
	w.yield(pawl.Event{}, err)
}
