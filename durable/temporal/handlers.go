package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// handlers registers the updates, signals and queries of the run.
func (f *flow) handlers() error {
	ctx := f.root
	if err := f.queriesAndUpdates(); err != nil {
		return err
	}

	workflow.Go(ctx, f.receiveResults)
	workflow.Go(ctx, f.listen)
	if f.in.Place != nil {
		workflow.Go(ctx, f.reportQuestions)
		workflow.Go(ctx, f.receiveAnswers)
	}
	return nil
}

// queriesAndUpdates registers the handlers of queries and updates. A validator rejects an update
// before the history has it.
func (f *flow) queriesAndUpdates() error {
	ctx := f.root
	decide := func(g workflow.Context, ds []llm.Decision) error {
		f.decide(g, ds)
		return nil
	}
	decidable := func(_ workflow.Context, ds []llm.Decision) error { return f.decidable(ds) }
	steer := func(_ workflow.Context, msgs []llm.Message) error {
		return f.inbox.Steer(context.Background(), msgs...)
	}
	hasRoom := func(workflow.Context, backInput) error {
		if f.calls >= atOnce {
			return sdk.NewNonRetryableApplicationError("too many calls are in progress", callsFull, nil)
		}
		return nil
	}

	return errors.Join(
		workflow.SetQueryHandler(ctx, queryState, func() (State, error) { return f.state(), nil }),
		workflow.SetQueryHandler(ctx, queryExport, func() (*exported, error) { return f.exported(), nil }),
		workflow.SetQueryHandler(ctx, queryNews, func(s since) (*news, error) { return f.news(s), nil }),
		workflow.SetUpdateHandlerWithOptions(ctx, updateDecide, decide,
			workflow.UpdateHandlerOptions{Validator: decidable}),
		workflow.SetUpdateHandler(ctx, updateSteer, steer),
		workflow.SetUpdateHandlerWithOptions(ctx, updateCall, f.callBack,
			workflow.UpdateHandlerOptions{Validator: hasRoom}),
	)
}

// receiveResults receives the results of passive calls: see Engine.Answer.
func (f *flow) receiveResults(g workflow.Context) {
	ch := workflow.GetSignalChannel(f.root, signalResult)
	for {
		var d llm.Decision
		if !ch.Receive(g, &d) {
			return
		}
		if w, _ := f.question(d.Key); w != nil && w.Passive && d.Result != nil {
			d.Digest = w.Digest
			f.decide(g, []llm.Decision{d})
		}
	}
}

// question returns the open question of the call at key and its answer, or nil if there is none.
func (f *flow) question(key llm.Key) (*pawl.PendingCall, *llm.Decision) {
	for _, q := range f.open {
		if q.waiting.Key == key {
			return &q.waiting, q.answer
		}
	}
	for _, b := range f.branches {
		for i := range b.Pending {
			w := &b.Pending[i]
			if w.Key != key {
				continue
			}
			d := f.said[key]
			if f.answered(*w) {
				return w, &d
			}
			return w, nil
		}
	}
	return nil, nil
}

// decidable returns an error for answers that the run does not take.
func (f *flow) decidable(ds []llm.Decision) error {
	for _, d := range ds {
		w, before := f.question(d.Key)
		if last, ok := f.said[d.Key]; w == nil && ok && last.Digest == d.Digest {
			w = &pawl.PendingCall{Digest: d.Digest}
			before = &last // the call has not ended
		}
		_, err := journal.CheckAnswer(w, before, d)
		if bad := (*journal.AnswerError)(nil); errors.As(err, &bad) {
			return sdk.NewNonRetryableApplicationError(bad.Error(), answerRefused, nil, bad)
		}
	}
	return nil
}

// decide accepts answers, and forwards the answers for nested runs. Repeated answers have no
// effect.
func (f *flow) decide(g workflow.Context, ds []llm.Decision) {
	for _, d := range ds {
		w, answer := f.question(d.Key)

		// The run around a nested one has checked its answers, but the question may be another by
		// now.
		if w == nil || answer != nil || w.Digest != d.Digest {
			continue
		}

		d.At = workflow.Now(g).UTC()
		f.said[d.Key] = d
		f.asked++
		for _, q := range f.open {
			if q.waiting.Key == d.Key {
				q.answer = &d
			}
		}
		for _, b := range f.branches {
			for i := range b.Pending {
				if b.Pending[i].Key == d.Key {
					workflow.SignalExternalWorkflow(g, b.ID, "", signalDecide, []llm.Decision{d})
				}
			}
		}
	}
}

// ask waits for the answer to w. It returns nil if the run ends first.
func (f *flow) ask(ctx context.Context, w pawl.PendingCall) *llm.Decision {
	q := &question{waiting: w}
	f.open = append(f.open, q)
	f.asked++
	_ = workflow.Await(within(ctx), func() bool { return q.answer != nil || ctx.Err() != nil })
	f.open = slices.DeleteFunc(f.open, func(o *question) bool { return o == q })
	f.asked++
	if ctx.Err() != nil {
		return nil
	}
	return q.answer
}

// callBack executes a call that a composing tool makes from its activity.
func (f *flow) callBack(g workflow.Context, in backInput) (pawl.Execution, error) {
	outer, ok := f.live[in.Outer]
	if !ok {
		return pawl.Execution{}, fmt.Errorf("the call %s is not under way", in.Outer)
	}
	g, stop := workflow.WithCancel(g)
	workflow.Go(g, func(h workflow.Context) {
		sel := workflow.NewSelector(h)
		sel.AddReceive(f.root.Done(), func(workflow.ReceiveChannel, bool) { stop() })
		sel.AddReceive(g.Done(), func(workflow.ReceiveChannel, bool) {})
		sel.Select(h)
	})
	t := outer.task.Child(in.Task)
	counts := 1
	if def := outer.executor.remote[t.Tool()]; def != nil && def.Effect == pawl.EffectCompose {
		counts = 0 // its calls must find room
	}
	f.calls += counts
	f.inner[in.Outer]++
	if f.inner[in.Outer] == 1 {
		f.held++
	}
	x := outer.executor.one(context.WithValue(f.std, contextKey{}, g), t, nil)
	f.calls -= counts
	f.inner[in.Outer]--
	if f.inner[in.Outer] == 0 && f.live[in.Outer].executor != nil {
		f.held--
	}
	stop()
	return x, nil
}
