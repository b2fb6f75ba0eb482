package server

// runs.go: the endpoints that start, list, show and follow runs.

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Start is the request that starts or resumes a run.
type Start struct {
	ID       string        `json:"id,omitzero"`
	Agent    string        `json:"agent,omitzero"`
	Input    string        `json:"input,omitzero"`
	Messages []llm.Message `json:"messages,omitzero"`
	Wait     bool          `json:"wait,omitzero"`
}

// Run is the state of a run.
type Run struct {
	ID      string             `json:"id"`
	Agent   string             `json:"agent,omitzero"`
	User    string             `json:"user,omitzero"`
	Task    string             `json:"task,omitzero"`
	State   string             `json:"state"`
	Stop    pawl.StopReason    `json:"stop,omitzero"`
	Code    string             `json:"code,omitzero"`
	Cause   string             `json:"cause,omitzero"`
	Answer  string             `json:"answer,omitzero"`
	Output  json.RawMessage    `json:"output,omitzero"`
	Spent   *pawl.Spent        `json:"spent,omitzero"`
	Thread  string             `json:"thread,omitzero"`
	Forked  *durable.Origin    `json:"forked_from,omitzero"`
	Waits   int                `json:"waits,omitzero"`
	Ahead   int                `json:"ahead,omitzero"`
	Pending []pawl.PendingCall `json:"pending,omitzero"`
	Created time.Time          `json:"created,omitzero"`
	Updated time.Time          `json:"updated,omitzero"`
}

// Runs is a page of a list.
type Runs struct {
	Runs  []Run  `json:"runs"`
	After string `json:"after,omitzero"`
}

// start handles POST /v1/runs.
func (c *call) start() error {
	var in Start
	if err := c.read(&in); err != nil {
		return err
	}
	msgs, err := in.messages()
	if err != nil {
		return err
	}
	in.ID = cmp.Or(in.ID, c.r.Header.Get("Idempotency-Key"))
	if in.ID == "" {
		if len(msgs) == 0 {
			return badRequest("there is nothing to do", "give input, or messages")
		}
		in.ID = "run_" + strings.ToLower(rand.Text()[:20])
	}
	if err := store.CheckID(in.ID); err != nil {
		return badRequest(err.Error(), "")
	}
	l, created, err := c.begin(in, false, msgs)
	if err != nil {
		return err
	}
	if c.wantsEvents() {
		c.w.Header().Set("Location", "/v1/runs/"+in.ID)
		return c.watch(l, in.ID)
	}
	if in.Wait && l != nil {
		select {
		case <-l.done:
		case <-c.r.Context().Done():
			return nil
		case <-c.s.hub.closing:
		}
	}
	status := http.StatusOK
	if created {
		c.w.Header().Set("Location", "/v1/runs/"+in.ID)
		status = http.StatusCreated
	}
	return c.tell(status, in.ID)
}

func (in *Start) messages() ([]llm.Message, error) {
	if in.Input == "" {
		return in.Messages, nil
	}
	if len(in.Messages) > 0 {
		return nil, badRequest("give either input or messages, not both", "give one")
	}
	return []llm.Message{llm.User(in.Input)}, nil
}

// begin starts the run, resumes it, or finds that an identical request has started it. It returns a
// nil live if nothing is to be done. A new run executes the open calls of msgs only with execute:
// msgs come from the client, and a client without the scope for tools may not call any.
func (c *call) begin(in Start, execute bool, msgs []llm.Message) (l *live, created bool, err error) {
	p := place{c.client.scope(), in.ID}
	head, err := c.s.o.Journal.JournalRun(c.ctx(), p.who, p.id)
	if errors.Is(err, store.ErrNotFound) && len(msgs) > 0 {
		a, err := c.s.agent(in.Agent)
		if err != nil {
			return nil, false, err
		}
		if answers(msgs) {
			return nil, false, fault("not_found", "there is no run "+in.ID+" that could be answered", "")
		}
		if slices.ContainsFunc(msgs, decides) {
			return nil, false, badRequest("a new run has no calls to decide about", "send decisions to the run of the call")
		}
		j := job{agent: a}
		given := msgs
		if execute {
			j.from = &pawl.Result{Messages: msgs}
			given = nil
		}
		l, mine, err := c.s.hub.run(c.ctx(), p, j, c.client, given...)
		switch {
		case err == nil && mine:
			return l, true, nil
		case err != nil && !errors.Is(err, store.ErrConflict):
			return nil, false, err
		}
		// another request was faster
		head, err = c.s.o.Journal.JournalRun(c.ctx(), p.who, p.id)
		if err != nil {
			return nil, false, err
		}
	} else if err != nil {
		return nil, false, err
	}
	if in.Agent != "" && in.Agent != head.Agent {
		return nil, false, fault("conflict", "run "+in.ID+" is one of agent "+head.Agent, "")
	}
	if l := c.s.hub.find(p); l.works() {
		if len(msgs) > 0 && !answers(msgs) {
			return l, false, c.same(in.ID, msgs)
		}
		if len(msgs) == 0 {
			return l, false, nil
		}
	}
	return c.goOn(p, head, msgs)
}

// goOn answers an existing run and executes it if there is work to do.
func (c *call) goOn(p place, head store.JournalRun, msgs []llm.Message) (*live, bool, error) {
	again := len(msgs) == 0
	switch {
	case again:
	case answers(msgs):
		ds, err := c.decisions(p.id, msgs)
		if err != nil {
			return nil, false, err
		}
		if err := c.s.engine.Decide(c.ctx(), p.id, ds...); err != nil {
			return nil, false, err
		}
		again = true
	default:
		if err := c.same(p.id, msgs); err != nil {
			return nil, false, err
		}
	}
	if !again || head.State == store.JournalOver {
		return c.s.hub.find(p), false, nil
	}
	l, err := c.takeUp(p, head.Agent)
	return l, false, err
}

// takeAnswers gives decisions, and messages of the user, to a run and executes it.
func (c *call) takeAnswers(p place, agent string, ds []llm.Decision, more []llm.Message) (*live, error) {
	if len(more) > 0 {
		if err := c.s.engine.Steer(c.ctx(), p.id, more...); err != nil {
			return nil, err
		}
	}
	if err := c.s.engine.Decide(c.ctx(), p.id, ds...); err != nil {
		return nil, err
	}
	return c.takeUp(p, agent)
}

// takeUp executes an existing run.
func (c *call) takeUp(p place, agent string) (*live, error) {
	j, err := c.s.jobOf(c.ctx(), p, agent)
	if err != nil {
		return nil, err
	}
	l, _, err := c.s.hub.run(c.ctx(), p, j, c.client)
	return l, err
}

// look finds a run for a reader, which never starts a run. An interrupted run would be resumed
// anyway, so look resumes it at once.
func (c *call) look(p place) (*live, error) {
	if l := c.s.hub.find(p); l != nil {
		return l, l.wait(c.r.Context())
	}
	head, err := c.s.o.Journal.JournalRun(c.ctx(), p.who, p.id)
	if err != nil {
		return nil, err
	}
	j, err := c.s.jobOf(c.ctx(), p, head.Agent)
	if err != nil {
		return nil, err
	}
	j.story = head.State != store.JournalOpen
	l, _, err := c.s.hub.run(c.ctx(), p, j, nil)
	return l, err
}

// same returns an error for a run that was started with other messages.
func (c *call) same(id string, msgs []llm.Message) error {
	x, err := c.s.engine.Export(c.ctx(), id)
	if err != nil {
		return err
	}
	was, errWas := json.Marshal(x.Messages)
	is, errIs := json.Marshal(msgs)
	if err := errors.Join(errWas, errIs); err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return fault("conflict", "run "+id+" was begun with other messages", "take another id, or steer the run")
	}
	return nil
}

// answers reports whether msgs answer open calls of an existing run and are not a conversation.
func answers(msgs []llm.Message) bool {
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
func (c *call) decisions(id string, msgs []llm.Message) ([]llm.Decision, error) {
	open, err := c.s.engine.Pending(c.ctx(), id)
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
					return nil, fault("conflict", "no call "+p.CallID+" of the run waits for a result", "GET the run to see which do")
				}
				out = append(out, open[i].Answer("", p))
			default:
				return nil, badRequest("the messages contain answers to open calls and other messages", "send the answers alone, and the rest with steer")
			}
		}
	}
	return out, c.may(open, out)
}

// may sets the client's name in decisions. A client without the permission to decide can only give
// passive calls their results.
func (c *call) may(open []pawl.PendingCall, ds []llm.Decision) error {
	for i := range ds {
		d := &ds[i]
		d.By, d.Identity = c.client.Name, c.client.identity()
		j := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Key == d.Key })
		passive := j >= 0 && open[j].Passive && d.Result != nil
		if passive && !c.client.may(ScopeRun) || !passive && !c.client.may(ScopeDecide) {
			return fault("wrong_scope", "the token of "+c.client.Name+" may not decide about "+string(d.Key), "it needs the scope "+string(ScopeDecide))
		}
	}
	return nil
}

// tell answers with the state of a run.
func (c *call) tell(status int, id string) error {
	run, err := c.get(id)
	if err != nil {
		return err
	}
	return c.write(status, run)
}

// get returns the state of a run.
func (c *call) get(id string) (run Run, err error) {
	head, open, err := c.waiting(id)
	if err != nil {
		return run, err
	}
	run = c.s.toRun(head)
	if run.State == queued {
		run.Ahead = c.s.hub.ahead(place{head.Scope, id})
	}
	x, d, err := c.storedRun(id)
	if err != nil {
		return run, err
	}
	if run.State == store.JournalOver || run.State == store.JournalFailed || run.State == store.JournalWaiting {
		run.Answer = answerOf(x)
		if x.End != nil {
			run.Output = x.End.Output
		}
	}
	run.Pending, err = c.shown(id, open)
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

// queued is the state of a run that waits for room to execute.
const queued = "queued"

// toRun converts a journal entry to a Run.
func (s *Server) toRun(head store.JournalRun) Run {
	run := Run{ID: head.ID, Agent: head.Agent, Task: head.Task, State: head.State, Created: head.Created,
		Updated: head.Updated}
	var sum durable.Summary
	if len(head.Summary) > 0 && json.Unmarshal(head.Summary, &sum) == nil {
		run.Stop, run.Code, run.Cause = sum.Stop, sum.Code, s.o.Secrets.String(sum.Cause)
		run.Spent, run.Waits = &sum.Spent, sum.Pending
	}
	l := s.hub.find(place{head.Scope, head.ID})
	switch {
	case !l.works() && head.Queued(), l.works() && l.queued.Load() && head.State == store.JournalOpen:
		run.State = queued
	case l.works() && head.State != store.JournalOver:
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

// answerOf returns the final answer of a run.
func answerOf(x *durable.Export) string {
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

// list handles GET /v1/runs.
func (c *call) list() error {
	q, p, err := c.page("state")
	if err != nil {
		return err
	}
	state := q.Get("state")
	if state != "" && !slices.Contains([]string{queued, store.JournalOpen, store.JournalWaiting, store.JournalFailed,
		store.JournalOver}, state) {
		return badRequest("there is no state "+state, "queued, open, waiting, failed or over")
	}
	if c.wantsEvents() {
		return c.watchRuns(state, p)
	}
	in := state
	if state == queued {
		in = store.JournalOpen
	}
	heads, err := c.s.o.Journal.JournalRuns(c.ctx(), c.client.scope(), in, p)
	if err != nil {
		return err
	}
	out := Runs{Runs: make([]Run, 0, len(heads))}
	for _, head := range heads {
		if run := c.s.toRun(head); state != queued || run.State == queued {
			out.Runs = append(out.Runs, run)
		}
	}
	if len(heads) == p.Size() {
		out.After = heads[len(heads)-1].ID
	}
	return c.write(http.StatusOK, out)
}

// show handles GET /v1/runs/{id}.
func (c *call) show() error {
	return c.tell(http.StatusOK, c.run)
}

// eventsOf handles GET /v1/runs/{id}/events: from the client's position or from the beginning,
// until no event can follow. For a run that no process executes, the stored events are replayed.
func (c *call) eventsOf() error {
	l, err := c.look(place{c.client.scope(), c.run})
	if err != nil {
		return err
	}
	after := l.feed.place(c.r.Header.Get("Last-Event-ID"))
	if _, ended, _ := l.feed.read(after, 0); ended && after > 0 && !l.waits.Load() {
		c.w.WriteHeader(http.StatusNoContent) // prevents a browser from reconnecting
		return nil
	}
	return c.stream(l, after, true)
}

// watch streams the events of a run until it stops.
func (c *call) watch(l *live, id string) error {
	if l == nil {
		head, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), id)
		if err != nil {
			return err
		}
		l, err = c.takeUp(place{c.client.scope(), id}, head.Agent)
		if err != nil {
			return err
		}
	}
	return c.stream(l, l.feed.place(c.r.Header.Get("Last-Event-ID")), false)
}
