package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/store"
)

// Begin starts the run, resumes it, or finds that an identical request has started it. It returns a
// nil live if nothing is to be done. A new run executes the open calls of msgs only with execute:
// msgs come from the client, and a client without the scope for tools may not call any.
func (c *Caller) Begin(in api.Start, execute bool, msgs []llm.Message) (l *Live, created bool, err error) {
	p := Place{c.Client.Scope(), in.ID}
	head, err := c.S.O.Journal.JournalRun(c.Ctx(), p.Who, p.Id)
	if errors.Is(err, store.ErrNotFound) && len(msgs) > 0 {
		a, err := c.S.Agent(in.Agent)
		if err != nil {
			return nil, false, err
		}
		if Answers(msgs) {
			return nil, false, Fault("not_found", "there is no run "+in.ID+" that could be answered", "")
		}
		if slices.ContainsFunc(msgs, decides) {
			return nil, false, BadRequest("a new run has no calls to decide about", "send decisions to the run of the call")
		}
		j := job{Agent: a}
		given := msgs
		if execute {
			j.from = &pawl.Result{Messages: msgs}
			given = nil
		}
		l, mine, err := c.S.Hub.run(c.Ctx(), p, j, c.Client, given...)
		switch {
		case err == nil && mine:
			return l, true, nil
		case err != nil && !errors.Is(err, store.ErrConflict):
			return nil, false, err
		}
		// another request was faster
		head, err = c.S.O.Journal.JournalRun(c.Ctx(), p.Who, p.Id)
		if err != nil {
			return nil, false, err
		}
	} else if err != nil {
		return nil, false, err
	}
	if in.Agent != "" && in.Agent != head.Agent {
		return nil, false, Fault("conflict", "run "+in.ID+" is one of agent "+head.Agent, "")
	}
	if l := c.S.Hub.Find(p); l.Works() {
		if len(msgs) > 0 && !Answers(msgs) {
			return l, false, c.same(in.ID, msgs)
		}
		if len(msgs) == 0 {
			return l, false, nil
		}
	}
	return c.goOn(p, head, msgs)
}

// goOn answers an existing run and executes it if there is work to do.
func (c *Caller) goOn(p Place, head store.JournalRun, msgs []llm.Message) (*Live, bool, error) {
	again := len(msgs) == 0
	switch {
	case again:
	case Answers(msgs):
		ds, err := c.decisions(p.Id, msgs)
		if err != nil {
			return nil, false, err
		}
		if err := c.S.Engine.Decide(c.Ctx(), p.Id, ds...); err != nil {
			return nil, false, err
		}
		again = true
	default:
		if err := c.same(p.Id, msgs); err != nil {
			return nil, false, err
		}
	}
	if !again || head.State == store.JournalOver {
		return c.S.Hub.Find(p), false, nil
	}
	l, err := c.TakeUp(p, head.Agent)
	return l, false, err
}

// TakeAnswers gives decisions, and messages of the user, to a run and executes it.
func (c *Caller) TakeAnswers(p Place, agent string, ds []llm.Decision, more []llm.Message) (*Live, error) {
	if len(more) > 0 {
		if err := c.S.Engine.Steer(c.Ctx(), p.Id, more...); err != nil {
			return nil, err
		}
	}
	if err := c.S.Engine.Decide(c.Ctx(), p.Id, ds...); err != nil {
		return nil, err
	}
	return c.TakeUp(p, agent)
}

// TakeUp executes an existing run.
func (c *Caller) TakeUp(p Place, agent string) (*Live, error) {
	j, err := c.S.jobOf(c.Ctx(), p, agent)
	if err != nil {
		return nil, err
	}
	l, _, err := c.S.Hub.run(c.Ctx(), p, j, c.Client)
	return l, err
}

// Look finds a run for a reader, which never starts a run. An interrupted run would be resumed
// anyway, so look resumes it at once.
func (c *Caller) Look(p Place) (*Live, error) {
	if l := c.S.Hub.Find(p); l != nil {
		return l, l.wait(c.Context)
	}
	head, err := c.S.O.Journal.JournalRun(c.Ctx(), p.Who, p.Id)
	if err != nil {
		return nil, err
	}
	j, err := c.S.jobOf(c.Ctx(), p, head.Agent)
	if err != nil {
		return nil, err
	}
	j.story = head.State != store.JournalOpen
	l, _, err := c.S.Hub.run(c.Ctx(), p, j, nil)
	return l, err
}

// same returns an error for a run that was started with other messages.
func (c *Caller) same(id string, msgs []llm.Message) error {
	x, err := c.S.Engine.Export(c.Ctx(), id)
	if err != nil {
		return err
	}
	was, errWas := json.Marshal(x.Messages)
	is, errIs := json.Marshal(msgs)
	if err := errors.Join(errWas, errIs); err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return Fault("conflict", "run "+id+" was begun with other messages", "take another id, or steer the run")
	}
	return nil
}

// Answers reports whether msgs answer open calls of an existing run and are not a conversation.
func Answers(msgs []llm.Message) bool {
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p.(type) {
			case llm.Decision:
				return true
			case llm.ToolResult:
				// otherwise they are part of a conversation
				return !slices.ContainsFunc(msgs, llm.Message.HasCalls)
			}
		}
	}
	return false
}

func decides(m llm.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p llm.Part) bool { _, ok := p.(llm.Decision); return ok })
}

// decisions converts msgs to decisions on the open calls of a run, in the name of the client. The
// client needs the permission to decide.
func (c *Caller) decisions(id string, msgs []llm.Message) ([]llm.Decision, error) {
	open, err := c.S.Engine.Pending(c.Ctx(), id)
	if err != nil {
		return nil, err
	}
	var out []llm.Decision
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Decision:
				out = append(out, p)
			case llm.ToolResult:
				i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Call.ID == p.CallID })
				if i < 0 {
					return nil, Fault("conflict", "no call "+p.CallID+" of the run waits for a result", "GET the run to see which do")
				}
				out = append(out, open[i].Answer("", p))
			default:
				return nil, BadRequest("the messages contain answers to open calls and other messages", "send the answers alone, and the rest with steer")
			}
		}
	}
	return out, c.May(open, out)
}

// May sets the client's name in decisions. A client without the permission to decide can only give
// passive calls their results.
func (c *Caller) May(open []pawl.PendingCall, ds []llm.Decision) error {
	for i := range ds {
		d := &ds[i]
		d.By, d.Identity = c.Client.Name, c.Client.Identity()
		j := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Key == d.Key })
		passive := j >= 0 && open[j].Passive && d.Result != nil
		if passive && !c.Client.May(access.ScopeRun) || !passive && !c.Client.May(access.ScopeDecide) {
			return Fault("wrong_scope", "the token of "+c.Client.Name+" may not decide about "+string(d.Key), "it needs the scope "+string(access.ScopeDecide))
		}
	}
	return nil
}

// Get returns the state of a run.
func (c *Caller) Get(id string) (run api.Run, err error) {
	head, open, err := c.Waiting(id)
	if err != nil {
		return run, err
	}
	run = c.S.ToRun(head)
	if run.State == Queued {
		run.Ahead = c.S.Hub.ahead(Place{head.Scope, id})
	}
	x, d, err := c.StoredRun(id)
	if err != nil {
		return run, err
	}
	if run.State == store.JournalOver || run.State == store.JournalFailed || run.State == store.JournalWaiting {
		run.Answer = AnswerOf(x)
		if x.End != nil {
			run.Output = x.End.Output
		}
	}
	run.Pending, err = c.Shown(id, open)
	if err != nil {
		return run, err
	}
	if d != nil {
		run.Thread = d.Thread
	}
	run.Forked = x.Forked
	run.Waits = len(run.Pending)
	return run, nil
}

// Queued is the state of a run that waits for room to execute.
const Queued = "queued"

// ToRun converts a journal entry to a Run.
func (s *Service) ToRun(head store.JournalRun) api.Run {
	run := api.Run{ID: head.ID, Agent: head.Agent, Task: head.Task, State: head.State, Created: head.Created,
		Updated: head.Updated}
	var sum durable.Summary
	if len(head.Summary) > 0 && json.Unmarshal(head.Summary, &sum) == nil {
		run.Stop, run.Code, run.Cause = sum.Stop, sum.Code, s.O.Secrets.String(sum.Cause)
		run.Spent, run.Waits = &sum.Spent, sum.Pending
	}
	l := s.Hub.Find(Place{head.Scope, head.ID})
	switch {
	case !l.Works() && head.Queued(), l.Works() && l.queued.Load() && head.State == store.JournalOpen:
		run.State = Queued
	case l.Works() && head.State != store.JournalOver:
		// the summary is of the end before
		run.State = "running"
		run.Stop = ""
		run.Code = ""
		run.Cause = ""
		if spent := l.spent.Load(); spent != nil {
			run.Spent = spent
		}
	}
	return run
}

// AnswerOf returns the final answer of a run.
func AnswerOf(x *journal.Export) string {
	if x.End != nil && x.End.Stop == pawl.StopFinished {
		for _, call := range slices.Backward(x.Calls) {
			if call.Execution.Ends == pawl.StopFinished && strings.Count(string(call.Key), "/") == 2 {
				return call.Execution.Result.Text()
			}
		}
	}
	for _, r := range slices.Backward(x.Replies) {
		if strings.Count(string(r.Key), "/") == 2 { // a reply of the run itself: run/3/model
			return r.Response.Message.Text()
		}
	}
	return ""
}
