package thread

// runner.go: Runner, which executes one message of a conversation.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Runner executes messages of a conversation. It is safe for concurrent use; of two runs at the
// same time, one ends with store.ErrConflict.
type Runner struct {
	// Runner executes a message, such as an agent or a team. Set Runner or Run.
	Runner pawl.Runner
	// Run returns what executes a message, for runs with an ID, such as durable runs:
	//
	//	Run: func(id string) pawl.Runner { return engine.Runner(id, agent) },
	//
	// id is the ID of the conversation and the number of its messages before the run. It is the
	// same if the message is sent again.
	Run   func(id string) pawl.Runner
	DB    store.Threads // has the conversation
	Scope store.Scope   // the tenant and the user of the conversation, and of its runs
	ID    string        // of the conversation
}

var _ pawl.OutputRunner = (*Runner)(nil)

// WithOutput returns a copy of r whose answer fits schema, for pawl.Into, if the Runner that
// executes the messages is a pawl.OutputRunner. The conversation is the same.
func (r *Runner) WithOutput(schema json.RawMessage) pawl.Runner {
	return r.changed(func(run pawl.Runner) (pawl.Runner, bool) {
		o, ok := run.(pawl.OutputRunner)
		if !ok {
			return run, false
		}
		return o.WithOutput(schema), true
	})
}

// WithCheck returns a copy of r whose answers check must accept too, for pawl.Into. It returns
// false if the Runner that executes the messages cannot check.
func (r *Runner) WithCheck(check func(answer json.RawMessage) error) (pawl.Runner, bool) {
	checked := func(run pawl.Runner) (pawl.Runner, bool) {
		c, ok := run.(pawl.CheckedRunner)
		if !ok {
			return run, false
		}
		return c.WithCheck(check)
	}
	if r == nil {
		return r, false
	}
	one := r.Runner
	if r.Run != nil {
		one = r.Run(r.ID)
	}
	_, ok := checked(one)
	return r.changed(checked), ok
}

// FollowUp returns r, for pawl.Into: a correction is the next message of the conversation.
func (r *Runner) FollowUp(context.Context, *pawl.Result) (next pawl.Runner, stored bool, err error) {
	return r, false, nil
}

// changed returns a copy of r with the Runners that change returns.
func (r *Runner) changed(change func(pawl.Runner) (pawl.Runner, bool)) *Runner {
	if r == nil {
		return nil // Stream reports it
	}
	c := *r
	if r.Runner != nil {
		c.Runner, _ = change(r.Runner)
	}
	if r.Run != nil {
		c.Run = func(id string) pawl.Runner {
			run, _ := change(r.Run(id))
			return run
		}
	}
	return &c
}

// Stream resumes the conversation with msgs and yields the events of the run. The result is stored
// before the event EventRunEnded is yielded; an error of the store comes in its place. A break
// cancels the run and stores what it has done. The usage of earlier messages does not count towards
// the limits of the run.
//
// With an Agent, open calls of the conversation are claimed before they are executed: of two
// streams with the same decision, one executes the call, and the other yields store.ErrConflict.
//
// Any other Runner holds its open calls itself, as a durable run does: it receives nothing but the
// messages that answer them. If its run was interrupted, nothing is stored. A Stream without
// messages, or with the same ones, resumes a durable run; other messages are refused until it has
// ended.
func (r *Runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		if r == nil || (r.Runner == nil) == (r.Run == nil) {
			yield(pawl.Event{}, errors.New("a thread.Runner needs one of Runner and Run; set Runner to an agent"))
			return
		}
		t, from, err := Load(ctx, r.DB, r.Scope, r.ID)
		if err != nil {
			yield(pawl.Event{}, err)
			return
		}

		_, scoped := store.ScopeFrom(ctx)
		if !scoped {
			ctx = store.WithScope(ctx, r.Scope)
		}
		ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Thread: r.ID})
		run := r.message(t, from)
		if a, ok := run.(*pawl.Agent); ok {
			t.run = ""
			resume(ctx, t, a, from, msgs, yield)
			return
		}

		waits := len(from.Calls()) > 0
		if !waits && slices.ContainsFunc(msgs, llm.Message.HasDecision) {
			err := fmt.Errorf("conversation %s: no call waits for the decision: %w", t.ID, store.ErrConflict)
			yield(pawl.Event{}, err)
			return
		}

		// A run that does not wait begins with the whole conversation.
		if !waits && len(msgs) > 0 {
			msgs = append(from.Messages[:len(from.Messages):len(from.Messages)], msgs...)
		}
		forward(ctx, t, run.Stream(ctx, msgs...), yield)
	}
}

// message returns the Runner of the next message. A conversation with open calls has the run that
// left them.
func (r *Runner) message(t *Thread, from *pawl.Result) pawl.Runner {
	if r.Run == nil {
		t.run = ""
		return r.Runner
	}
	if len(from.Calls()) == 0 || t.run == "" {
		t.run = fmt.Sprintf("%s-%d", t.ID, t.Messages)
	}
	return r.Run(t.run)
}

// resume executes a message by an agent, which claims the open calls of from.
func resume(
	ctx context.Context, t *Thread, a *pawl.Agent, from *pawl.Result, msgs []llm.Message,
	yield func(pawl.Event, error) bool,
) {
	if len(from.Calls()) == 0 && len(msgs) > 0 {
		from.Spent = pawl.Spent{} // each message has its own limits
	}
	if err := t.Claim(ctx, from); err != nil {
		yield(pawl.Event{}, err)
		return
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gone := false
	started := false
	for e, err := range a.ResumeStream(ctx, from, msgs...) {
		started = started || err == nil
		e, err = t.saved(ctx, e, err)
		if !gone && !yield(e, err) {
			gone = true
			cancel(pawl.ErrCancelled)
		}
		if gone && e.Kind == "" {
			return
		}
	}

	// The messages were no answers, so that nothing was executed: the questions are as before.
	if !started && len(from.Calls()) > 0 {
		_ = t.Save(context.WithoutCancel(ctx), from) // else they ask whether they took effect
	}
}

// forward yields the events of a run that holds its open calls itself.
func forward(ctx context.Context, t *Thread, events iter.Seq2[pawl.Event, error], yield func(pawl.Event, error) bool) {
	for e, err := range events {
		interrupted := ctx.Err() != nil && context.Cause(ctx) != pawl.ErrCancelled
		if !interrupted {
			e, err = t.saved(ctx, e, err)
		}
		if !yield(e, err) {
			return
		}
	}
}

// saved stores the result if e is the end of the run. An error of the store takes the place of e.
func (t *Thread) saved(ctx context.Context, e pawl.Event, err error) (pawl.Event, error) {
	ends := e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/")
	if !ends || e.Result == nil {
		return e, err
	}
	if fault := t.Save(context.WithoutCancel(ctx), e.Result); fault != nil {
		return pawl.Event{}, fault
	}
	return e, err
}
