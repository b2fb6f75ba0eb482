package runs

// start.go: starts, resumes and finds runs.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Request is a run to start.
type Request struct {
	ID    string
	Agent string // empty means the only agent
	// Messages begin the run. Of an existing run they are answers to its pending calls, or the
	// messages that began it; none means to resume it.
	Messages []llm.Message

	// Execute makes a new run execute the open calls of Messages. Start alone reads it: Messages
	// come from the client, and a client without the scope for tools may not call any.
	Execute bool

	// Output is the schema of the answer. Start alone reads it, and stores it as Extras. Of an
	// existing run it is the same, or empty.
	Output json.RawMessage

	// Previous is the run whose conversation precedes Messages; "" means none. With Start, the run
	// continues its values and its usage too.
	Previous string

	// Extras are what the client adds to the agent; they are stored with the run. Create alone
	// reads them.
	Extras Extras
}

// Append adds parts to the last message if it has that role: to the results or the items of the
// same reply. Otherwise they are a message.
func (r *Request) Append(role llm.Role, parts ...llm.Part) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Parts = append(r.Messages[n-1].Parts, parts...)
		return
	}
	r.Messages = append(r.Messages, llm.Message{Role: role, Parts: parts})
}

// KeepFirstResults drops the repeated results of calls, in linear time. Clients repeat results; the
// first result of a call after a reply counts.
func (r *Request) KeepFirstResults() {
	known := map[string]bool{} // calls that have a result, since the last reply
	repeats := func(p llm.Part) bool {
		result, ok := p.(llm.ToolResult)
		if !ok {
			return false
		}
		before := known[result.CallID]
		known[result.CallID] = true
		return before
	}

	kept := make([]llm.Message, 0, len(r.Messages))
	for _, m := range r.Messages {
		switch m.Role {
		case llm.RoleAssistant:
			clear(known)
		case llm.RoleTool:
			m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), repeats)
			if len(m.Parts) == 0 {
				continue
			}
		}
		kept = append(kept, m)
	}
	r.Messages = kept
}

// Start starts a run, resumes or answers it, or finds that an identical request has started it. It
// returns a nil Live if nothing is to be done.
func (s *Service) Start(ctx context.Context, c Caller, r Request) (l *Live, created bool, err error) {
	head, err := s.Head(ctx, c, r.ID)
	switch {
	case errors.Is(err, store.ErrNotFound) && len(r.Messages) > 0:
		l, err := s.startNew(ctx, c, r)
		if l != nil || err != nil {
			return l, l != nil, err
		}
		// Another request, here or in another process, was faster.
		head, err = s.Head(ctx, c, r.ID)
		if err != nil {
			return nil, false, err
		}
	case err != nil:
		return nil, false, err
	}

	if r.Agent != "" && r.Agent != head.Agent {
		return nil, false, Fault("conflict", "run "+r.ID+" is one of agent "+head.Agent, "")
	}
	if err := s.checkSameExtras(ctx, c, r); err != nil {
		return nil, false, err
	}

	// Answers go to a run that works, too: it may be about to stop with the questions.
	if l := s.hub.find(place{c.Scope, r.ID}); l.works() && !s.hub.lacksOwner(c.in(ctx), l) {
		switch {
		case len(r.Messages) == 0:
			if l.isSuspended() {
				s.hub.retry(l, retryAsked) // a person does not wait for its time
			}
			return l, false, nil
		case !IsAnswer(r.Messages):
			return l, false, s.checkSame(ctx, c, r)
		}
	}
	l, err = s.resumeWith(ctx, c, head, r)
	return l, false, err
}

// startNew starts a run of Start. Nil means that it exists.
func (s *Service) startNew(ctx context.Context, c Caller, r Request) (*Live, error) {
	a, err := s.Agent(r.Agent)
	if err != nil {
		return nil, err
	}
	if IsAnswer(r.Messages) {
		return nil, Fault("not_found", "there is no run "+r.ID+" that could be answered", "")
	}
	if slices.ContainsFunc(r.Messages, llm.Message.HasDecision) {
		return nil, BadRequest("a new run has no calls to decide about", "send decisions to the run of the call")
	}

	j, err := s.newJob(ctx, c, r, a)
	if err != nil {
		return nil, err
	}
	msgs := r.Messages
	if r.Execute {
		j.from = &pawl.Result{Messages: msgs}
		msgs = nil
	}
	l, started, err := s.hub.run(c.in(ctx), place{c.Scope, r.ID}, j, c.Slot, msgs...)
	switch {
	case err == nil && started:
		return l, nil
	case errors.Is(err, store.ErrConflict):
		return nil, nil
	}
	return nil, err
}

// newJob returns the job of a run of Start: the agent with the output that the client wants, and
// the run that it continues.
func (s *Service) newJob(ctx context.Context, c Caller, r Request, a *pawl.Agent) (j job, err error) {
	j = job{agent: a}
	if isAbsent(r.Output) && r.Previous == "" {
		return j, nil
	}

	x := Extras{Before: r.Previous}
	if !isAbsent(r.Output) {
		x.Output = r.Output
	}
	j.agent, err = x.apply(c.in(ctx), a)
	if err != nil {
		return j, err
	}
	j.meta, err = json.Marshal(x)
	if err != nil {
		return j, err
	}
	if r.Previous != "" {
		j.from, err = s.endOf(ctx, c, r.Previous)
	}
	return j, err
}

// isAbsent reports whether a JSON value is not stated.
func isAbsent(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }

// resumeWith answers an existing run and executes it if there is work to do.
func (s *Service) resumeWith(ctx context.Context, c Caller, head store.JournalRun, r Request) (*Live, error) {
	resume := len(r.Messages) == 0
	switch {
	case resume:
	case IsAnswer(r.Messages):
		ds, err := s.decisions(ctx, c, r)
		if err != nil {
			return nil, err
		}
		if err := s.engine.Decide(c.in(ctx), r.ID, ds...); err != nil {
			return nil, err
		}
		resume = true
	default:
		if err := s.checkSame(ctx, c, r); err != nil {
			return nil, err
		}
	}

	live := s.hub.find(place{c.Scope, r.ID})
	switch {
	case isOver(head), !resume && (live != nil || head.State != store.JournalOpen):
		return live, nil
	case !resume:
		return s.Attach(ctx, c, r.ID)
	}
	return s.resumeOrFollow(ctx, c, head)
}

// checkSameExtras returns an error for a run that was started with another output or after another
// run.
func (s *Service) checkSameExtras(ctx context.Context, c Caller, r Request) error {
	if isAbsent(r.Output) && r.Previous == "" {
		return nil
	}
	x, err := s.Extras(ctx, c, r.ID)
	if err != nil {
		return err
	}
	if x == nil {
		x = new(Extras)
	}

	if r.Previous != "" && r.Previous != x.Before {
		return Fault("conflict", "run "+r.ID+" does not continue run "+r.Previous, "take another id")
	}
	if isAbsent(r.Output) {
		return nil
	}
	is, err := json.Marshal(r.Output) // the form in which it would be stored
	if err != nil {
		return BadRequest("the schema of the answer: "+err.Error(), "")
	}
	if !bytes.Equal(is, x.Output) {
		return Fault("conflict", "run "+r.ID+" was begun with another output", "take another id")
	}
	return nil
}

// checkSame returns an error for a run that was started with other messages.
func (s *Service) checkSame(ctx context.Context, c Caller, r Request) error {
	x, err := s.engine.Export(c.in(ctx), r.ID)
	if err != nil {
		return err
	}
	began := x.Messages
	if r.Previous != "" { // they follow the messages of that run
		began = began[max(0, len(began)-len(r.Messages)):]
	}
	was, errWas := json.Marshal(llm.WithoutLabels(began))
	is, errIs := json.Marshal(llm.WithoutLabels(r.Messages))
	if err := errors.Join(errWas, errIs); err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return Fault("conflict", "run "+r.ID+" was begun with other messages", "take another id, or steer the run")
	}
	return nil
}

// Create starts a new run with the extras of its client. A nil Live means that the run exists.
func (s *Service) Create(ctx context.Context, c Caller, r Request) (*Live, error) {
	if len(r.Messages) == 0 {
		return nil, BadRequest("there is no message", "")
	}
	last := r.Messages[len(r.Messages)-1]
	if last.Role == llm.RoleAssistant && !last.HasCalls() {
		return nil, BadRequest("the conversation ends with the assistant's answer", "add a message of the user")
	}

	a, err := s.Agent(r.Agent)
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(r.Extras)
	if err != nil {
		return nil, err
	}
	a, err = r.Extras.apply(c.in(ctx), a)
	if err != nil {
		return nil, err
	}
	var before []llm.Message
	if r.Previous != "" {
		before, err = s.Transcript(ctx, c, r.Previous)
		if err != nil {
			return nil, err
		}
	}

	from, msgs := r.Extras.begin(before, r.Messages)
	j := job{agent: a, from: from, meta: meta, forget: r.Extras.Forget, thread: r.Extras.Thread}
	l, started, err := s.hub.run(c.in(ctx), place{c.Scope, r.ID}, j, c.Slot, msgs...)
	if err != nil || !started {
		return nil, err
	}
	return l, nil
}

// Resume executes an existing run.
func (s *Service) Resume(ctx context.Context, c Caller, id string) (*Live, error) {
	head, err := s.Head(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.resume(ctx, c, head)
}

func (s *Service) resume(ctx context.Context, c Caller, head store.JournalRun) (*Live, error) {
	p := place{c.Scope, head.ID}
	j, err := s.jobOf(c.in(ctx), p, head.Agent)
	if err != nil {
		return nil, err
	}
	l, _, err := s.hub.run(c.in(ctx), p, j, c.Slot)
	return l, err
}

// resumeOrFollow executes an existing run, or follows it if another process executes it.
func (s *Service) resumeOrFollow(ctx context.Context, c Caller, head store.JournalRun) (*Live, error) {
	l, err := s.resume(ctx, c, head)
	if errors.Is(err, durable.ErrLost) {
		return s.replay(ctx, c, head, true)
	}
	return l, err
}

// replay replays the stored events of a run. follow means that another process executes it, so that
// more events follow.
func (s *Service) replay(ctx context.Context, c Caller, head store.JournalRun, follow bool) (*Live, error) {
	p := place{c.Scope, head.ID}
	j, err := s.jobOf(c.in(ctx), p, head.Agent)
	if err != nil {
		return nil, err
	}
	j.replay = true
	j.follow = follow
	l, _, err := s.hub.run(c.in(ctx), p, j, nil)
	return l, err
}

// Attach finds a run for a reader, and never starts one: a run that has stopped is replayed from
// the journal. An interrupted run would be resumed anyway, so Attach resumes it at once, unless it
// waits for its time. Such a run, and a run that another process executes, is followed by the steps
// in the journal.
func (s *Service) Attach(ctx context.Context, c Caller, id string) (*Live, error) {
	if l := s.hub.find(place{c.Scope, id}); l != nil {
		err := l.waitBegun(ctx)
		if !errors.Is(err, durable.ErrLost) {
			return l, err
		}
	}

	head, err := s.Head(ctx, c, id)
	if err != nil {
		return nil, err
	}
	now := s.options.Now()
	switch {
	case head.State != store.JournalOpen:
		return s.replay(ctx, c, head, false)
	case isLeased(head, now), head.Next.After(now): // no room to execute it is needed here
		return s.replay(ctx, c, head, true)
	}
	c.Slot = nil // a reader needs none
	return s.resumeOrFollow(ctx, c, head)
}
