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

// pulse sends heartbeats of an activity. From the time when its call may have changed the world,
// each heartbeat says so, and a tool does not start before the server has received that. If the
// worker is lost, or the task never reached one, the last heartbeat shows whether a side effect was
// possible.
//
// Heartbeats are sent one after another, and not through the SDK, which merges them and hides their
// outcome: a late heartbeat must not revoke a later statement.
type pulse struct {
	ctx    context.Context // the activity's
	client client.Client   // nil in the test environment of the SDK
	every  time.Duration
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	started bool
	// err is the error of earlier heartbeats, which may still arrive and revoke the statement, or
	// of that one.
	err error

	stop, ended chan struct{}
}

// alive starts the heartbeats. The context ends with the activity's context, and when the server
// reports that the activity is no longer needed. end must be called.
func alive(ctx context.Context, c client.Client) (context.Context, *pulse) {
	inner, cancel := context.WithCancelCause(ctx)
	p := &pulse{ctx: ctx, client: c, cancel: cancel,
		every: max(activity.GetInfo(ctx).HeartbeatTimeout/4, 10*time.Millisecond), stop: make(chan struct{}),
		ended: make(chan struct{})}
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
			if err := p.say(p.every); !p.started {
				p.err = errors.Join(p.err, err)
			}
			p.mu.Unlock()
		}
	}
}

// end stops the heartbeats. It waits for an active one.
func (p *pulse) end() {
	close(p.stop)
	<-p.ended
	p.cancel(nil)
}

// begin reports to the server that a side effect may happen now. After an error, none may happen.
func (p *pulse) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started && p.err == nil {
		p.started = true
		p.err = p.say(2 * p.every)
	}
	return p.err
}

// say sends one heartbeat, within a time limit.
func (p *pulse) say(within time.Duration) error {
	var details []any
	if p.started {
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
		return nil // about further tries
	}
	return err
}
