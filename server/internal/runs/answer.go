package runs

// answer.go: answers to the pending calls of a run.

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// IsAnswer reports whether msgs answer open calls of an existing run and are not a conversation.
func IsAnswer(msgs []llm.Message) bool {
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p.(type) {
			case llm.Decision:
				return true
			case llm.ToolResult: // with their calls, results are part of a conversation
				return !slices.ContainsFunc(msgs, llm.Message.HasCalls)
			}
		}
	}
	return false
}

// openCall returns the open call with a key. Nil means that there is none.
func openCall(open []pawl.PendingCall, key llm.Key) *pawl.PendingCall {
	i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Key == key })
	if i < 0 {
		return nil
	}
	return &open[i]
}

// Sign sets the caller's name in decisions about open calls. A caller without the permission to
// decide can only give passive calls their results.
func (c Caller) Sign(open []pawl.PendingCall, ds []llm.Decision) error {
	for i := range ds {
		d := &ds[i]
		d.By = c.Name
		d.Identity = c.Identity

		needed := api.ScopeDecide
		if call := openCall(open, d.Key); call != nil && call.Passive && d.Result != nil {
			needed = api.ScopeRun
		}
		if !c.Rights.May(needed) {
			return Fault("wrong_scope", "the token of "+c.Name+" may not decide about "+string(d.Key),
				"it needs the scope "+string(api.ScopeDecide))
		}
	}
	return nil
}

// decisions converts the messages of a request to decisions on the open calls of its run, in the
// name of the caller.
func (s *Service) decisions(ctx context.Context, c Caller, r Request) ([]llm.Decision, error) {
	open, err := s.engine.Pending(c.in(ctx), r.ID)
	if err != nil {
		return nil, err
	}
	var ds []llm.Decision
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			d, err := decisionOf(p, open)
			if err != nil {
				return nil, err
			}
			ds = append(ds, d)
		}
	}
	return ds, c.Sign(open, ds)
}

// decisionOf returns the decision that a part of a message is: itself, or the result of an open
// call.
func decisionOf(p llm.Part, open []pawl.PendingCall) (llm.Decision, error) {
	switch p := p.(type) {
	case llm.Decision:
		return p, nil
	case llm.ToolResult:
		i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Call.ID == p.CallID })
		if i < 0 {
			return llm.Decision{}, Fault("conflict", "no call "+p.CallID+" of the run waits for a result",
				"GET the run to see which do")
		}
		return open[i].Answer("", p), nil
	}
	return llm.Decision{}, BadRequest("the messages contain answers to open calls and other messages",
		"send the answers alone, and the rest with steer")
}

// Answer gives signed decisions, and messages of the user, to a run and executes it.
func (s *Service) Answer(ctx context.Context, c Caller, id string, ds []llm.Decision,
	more ...llm.Message) (*Live, error) {
	if len(more) > 0 {
		if err := s.engine.Steer(c.in(ctx), id, more...); err != nil {
			return nil, err
		}
	}
	if err := s.engine.Decide(c.in(ctx), id, ds...); err != nil {
		return nil, err
	}
	return s.Resume(ctx, c, id)
}

// Decide stores a decision of the caller about a call of a run, and resumes the run if no process
// executes it. A repeated decision is no error.
func (s *Service) Decide(ctx context.Context, c Caller, id string, d llm.Decision) error {
	head, open, err := s.Pending(ctx, c, id)
	if err != nil {
		return err
	}

	// The decision names the call by its key, and the transcript by the model's ID.
	if d.Result != nil {
		call := openCall(open, d.Key)
		if call != nil {
			d.Result.CallID = call.Call.ID
		} else {
			d.Result.CallID = s.answeredCall(ctx, c, id, d.Key)
		}
	}
	ds := []llm.Decision{d}
	if err := c.Sign(open, ds); err != nil {
		return err
	}
	if err := s.engine.Decide(c.in(ctx), id, ds...); err != nil {
		return err
	}

	if s.hub.find(place{c.Scope, id}).works() || isOver(head) {
		return nil
	}
	if _, err := s.resume(ctx, c, head); err != nil {
		s.hub.wake() // the decision is stored, and some process will resume the run
	}
	return nil
}

// answeredCall returns the ID of a call that was pending, for a caller that repeats its answer.
// Empty means that there was none.
func (s *Service) answeredCall(ctx context.Context, c Caller, id string, key llm.Key) string {
	x, err := s.engine.Export(c.in(ctx), id)
	if err != nil {
		return ""
	}
	for _, call := range x.Calls {
		if call.Key == key {
			return call.Call.ID
		}
	}
	for _, pending := range x.Pending {
		if pending.Key == key {
			return pending.Call.ID
		}
	}
	return ""
}

// Pending returns the head of a run and its pending calls, with secrets. Show is for clients.
func (s *Service) Pending(ctx context.Context, c Caller, id string) (head store.JournalRun,
	open []pawl.PendingCall, err error) {
	head, err = s.Head(ctx, c, id)
	if err == nil {
		open, err = s.engine.Pending(c.in(ctx), id)
	}
	return head, open, err
}

// Show returns pending calls of a run for a client: complete for a client that executes them,
// without secrets for a client that only decides.
func (s *Service) Show(ctx context.Context, c Caller, id string, open []pawl.PendingCall) ([]pawl.PendingCall, error) {
	hide, err := s.redactor(c.in(ctx), id)
	if err != nil || len(open) == 0 {
		return open, err
	}
	hidden := hide.Result(&pawl.Result{Pending: open}).Pending
	for i := range open {
		if !open[i].Passive {
			open[i] = hidden[i]
		}
	}
	return open, nil
}
