package temporal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/llm"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
)

// pulse sends heartbeats of an activity. From the time when its call may have changed the world,
// each heartbeat says so, and a tool does not start before the server has received that. If the
// worker is lost, or the task never reached one, the last heartbeat shows whether a side effect was
// possible. While a provider computes a reply in the background, each heartbeat names the reply.
//
// Heartbeats are sent one after another, and not through the SDK, which merges them and hides their
// outcome: a late heartbeat must not revoke a later statement.
type pulse struct {
	ctx    context.Context // the activity's
	inner  context.Context // of the work in it
	client client.Client   // nil in the test environment of the SDK
	every  time.Duration
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	started bool
	reply   *llm.Opaque // that the provider computes in the background; nil means none
	// err is the error of earlier heartbeats, which may still arrive and revoke the statement, or
	// of that one.
	err error

	stop, ended chan struct{}
}

// alive starts the heartbeats. The context ends with the activity's context, and when the server
// reports that the activity is no longer needed. close must be called.
func alive(ctx context.Context, c client.Client) (context.Context, *pulse) {
	inner, cancel := context.WithCancelCause(ctx)
	p := &pulse{
		ctx:    ctx,
		inner:  inner,
		client: c,
		every:  max(activity.GetInfo(ctx).HeartbeatTimeout/4, 10*time.Millisecond),
		cancel: cancel,
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
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
			err := p.say(p.every)
			if !p.started {
				p.err = errors.Join(p.err, err)
			}
			p.mu.Unlock()
		}
	}
}

// close stops the heartbeats. It waits for an active one.
func (p *pulse) close() {
	close(p.stop)
	<-p.ended
	p.cancel(nil)
}

// replaced reports whether another worker executes the activity after this one: this worker stops,
// or the server counts it as lost.
func (p *pulse) replaced() bool {
	var gone *serviceerror.NotFound
	return stopping(p.ctx) || errors.As(context.Cause(p.inner), &gone)
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

// computes reports to the server which reply the provider computes. If this worker is lost, another
// fetches that reply. After an error, the next heartbeat reports it.
func (p *pulse) computes(reply *llm.Opaque) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply = reply
	p.err = errors.Join(p.err, p.say(2*p.every))
}

// say sends one heartbeat, within a time limit.
func (p *pulse) say(within time.Duration) error {
	var details []any
	switch {
	case p.started:
		details = []any{"begun"}
	case p.reply != nil:
		details = []any{p.reply}
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
