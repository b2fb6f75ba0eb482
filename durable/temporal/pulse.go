package temporal

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
)

// pulse tells the server that an activity is alive. From when its call may have begun to change the world, each word of it says so, and a tool does not begin before the server
// has that: so where the worker is lost, or the task never reached one, the workflow knows by the last word whether something can have happened.
//
// The words go one after another, and past the SDK, which puts them together and keeps to itself what came of them: a late one must not take back what was said after it.
type pulse struct {
	ctx    context.Context // the activity's
	client client.Client   // nil: in the SDK's environment for tests
	every  time.Duration
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	begun bool
	err   error // of words before that, which may still arrive and would take it back, or of that one

	stop, ended chan struct{}
}

// alive begins to tell the server. The context ends with the activity's, and when the server says that the activity is not wanted any more. end must be called.
func alive(ctx context.Context, c client.Client) (context.Context, *pulse) {
	inner, cancel := context.WithCancelCause(ctx)
	p := &pulse{ctx: ctx, client: c, cancel: cancel, every: max(activity.GetInfo(ctx).HeartbeatTimeout/4, 10*time.Millisecond), stop: make(chan struct{}), ended: make(chan struct{})}
	go p.beat()
	return inner, p
}

func (p *pulse) beat() {
	defer close(p.ended)
	t := time.NewTicker(p.every)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.mu.Lock()
			if err := p.say(p.every); !p.begun {
				p.err = errors.Join(p.err, err)
			}
			p.mu.Unlock()
		}
	}
}

// end stops telling. A word under way is waited for.
func (p *pulse) end() {
	close(p.stop)
	<-p.ended
	p.cancel(nil)
}

// begin has the server know that something may happen now. With an error it must not.
func (p *pulse) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun && p.err == nil {
		p.begun = true
		p.err = p.say(2 * p.every)
	}
	return p.err
}

// say says one word, within a time.
func (p *pulse) say(within time.Duration) error {
	var details []any
	if p.begun {
		details = []any{"begun"}
	}
	if p.client == nil {
		activity.RecordHeartbeat(p.ctx, details...)
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	err := p.client.RecordActivityHeartbeat(ctx, activity.GetInfo(p.ctx).TaskToken, details...)
	var gone *serviceerror.NotFound
	switch {
	case sdk.IsCanceledError(err), errors.As(err, &gone):
		p.cancel(err)
	case errors.Is(err, activity.ErrActivityPaused), errors.Is(err, activity.ErrActivityReset):
		return nil // they are about further tries
	}
	return err
}
