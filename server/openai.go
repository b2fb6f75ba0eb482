package server

// openai.go: what OpenAI's two APIs share: the agent of a request, its run, its reply and its
// errors.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/schema"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// unrepeated maps statuses after which clients of OpenAI's API repeat a request to statuses after
// which they do not.
var unrepeated = map[int]int{
	http.StatusConflict:   http.StatusUnprocessableEntity,
	http.StatusBadGateway: http.StatusFailedDependency,
}

// openAIError answers in the form of OpenAI's API.
func (c *call) openAIError(e *Error) {
	kind := "invalid_request_error"
	if to, ok := unrepeated[e.Status]; ok {
		e = &Error{Status: to, Code: e.Code, Message: e.Message, Hint: e.Hint}
		c.w.Header().Set("X-Should-Retry", "false")
	}
	if e.Code == "needs_decision" {
		e.Status = http.StatusLocked
	}
	if c.langChain() && e.Status >= http.StatusUnprocessableEntity && e.Status <= http.StatusFailedDependency {
		e.Status = http.StatusConflict // the status for states that it does not repeat
	}
	switch {
	case e.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case e.Status == http.StatusForbidden:
		kind = "permission_error"
	case e.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case e.Status >= 500:
		kind = "server_error"
	}
	if e.after > 0 {
		c.w.Header().Set("Retry-After", fmt.Sprint(e.after))
	}
	writeBytes(c.w, e.Status, openAIFault(e, kind, c.s.o.Secrets))
}

// langChain reports whether the client is LangChain's in JavaScript. It repeats requests by itself,
// after all but a few statuses of its own, and always states that it does not.
func (c *call) langChain() bool { return strings.HasPrefix(c.r.UserAgent(), "langchainjs") }

func openAIFault(e *Error, kind string, secrets *redact.Redactor) []byte {
	message := e.Message
	if e.Hint != "" {
		message += " (" + e.Hint + ")"
	}
	// text always marshals
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": secrets.String(message), "type": kind, "param": nil, "code": e.Code}})
	return b
}

// models handles GET /v1/models: the agents.
func (c *call) models() error {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		OwnedBy     string `json:"owned_by"`
		Name        string `json:"name"`
		Description string `json:"description,omitzero"`
		Window      int    `json:"context_length,omitzero"`
	}
	list := []model{}
	for _, a := range c.s.o.Agents {
		about := c.s.o.About[a.Name]
		list = append(list, model{a.Name, "model", c.s.started.Unix(), "pawl", cmp.Or(about.Title, a.Name),
			about.Description, about.Window})
	}
	if id := c.r.PathValue("model"); id != "" {
		i := slices.IndexFunc(list, func(m model) bool { return m.ID == id })
		if i < 0 {
			_, err := c.s.agent(id)
			return err
		}
		return c.write(http.StatusOK, list[i])
	}
	return c.write(http.StatusOK, map[string]any{"object": "list", "data": list})
}

// dress is what a client of OpenAI's API adds to an agent for its run. It is stored with the run
// for the process that resumes it.
type dress struct {
	System   string          `json:"system,omitzero"` // follows the agent's system prompt
	Tools    []clientTool    `json:"tools,omitzero"`
	Choice   *llm.ToolChoice `json:"choice,omitzero"`
	Settings llm.Settings    `json:"settings,omitzero"`
	Output   json.RawMessage `json:"output,omitzero"`
	Forget   bool            `json:"forget,omitzero"` // store: false
	Print    []byte          `json:"print,omitzero"`  // SHA-256 of the request's body
	Thread   string          `json:"thread,omitzero"` // the client's conversation
	// Of a run of a front end: the run that it follows, and the ID of the user's message. "" means
	// none.
	Before  string `json:"before,omitzero"`
	Message string `json:"message,omitzero"`
}

// clientTool is a tool that the client executes.
type clientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters,omitzero"`
}

// put returns a copy of a with the additions of d.
func (d *dress) put(ctx context.Context, a *pawl.Agent) (*pawl.Agent, error) {
	b := *a
	b.Tools = slices.Clone(a.Tools)
	own, err := pawl.Toolsets(a.Tools).Tools(ctx)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, t := range own {
		taken[t.Name] = true
	}
	for _, ct := range d.Tools {
		t := &pawl.Tool{Name: ct.Name, Description: ct.Description, Input: ct.Parameters, Passive: true}
		if len(t.Input) == 0 || string(t.Input) == "null" {
			t.Input = json.RawMessage(`{"type":"object"}`)
		}
		if taken[t.Name] {
			return nil, badRequest("the agent has a tool "+t.Name+" of its own, or the request contains it twice", "take another name")
		}
		taken[t.Name] = true
		if err := t.Check(); err != nil {
			return nil, badRequest("tool "+t.Name+": "+err.Error(), "")
		}
		b.Tools = append(b.Tools, t)
	}
	if d.System != "" {
		b.Instructions = strings.TrimSpace(a.Instructions + "\n\n" + d.System)
	}
	if d.Choice != nil {
		b.Choice = *d.Choice
	}
	if len(d.Output) > 0 {
		if _, _, err := schema.CompileOutput(d.Output); err != nil {
			return nil, badRequest("the schema of the answer: "+err.Error(), "")
		}
		b.Output = d.Output
	}
	s := &b.Settings
	s.MaxTokens = cmp.Or(d.Settings.MaxTokens, s.MaxTokens)
	s.Effort = cmp.Or(d.Settings.Effort, s.Effort)
	s.Temperature = cmp.Or(d.Settings.Temperature, s.Temperature)
	s.TopP = cmp.Or(d.Settings.TopP, s.TopP)
	s.Parallel = cmp.Or(d.Settings.Parallel, s.Parallel)
	if d.Settings.StopSequences != nil {
		s.StopSequences = d.Settings.StopSequences
	}
	return &b, nil
}

// jobOf returns the job of an existing run: its agent with the additions of its client.
func (s *Server) jobOf(ctx context.Context, p place, name string) (job, error) {
	a, err := s.agent(name)
	if base, _, versioned := strings.Cut(name, "@"); versioned && err != nil {
		a, err = s.agent(base) // the run continues with what it recorded, if that is possible
	}
	if err != nil {
		return job{}, err
	}
	d, err := s.dressOf(ctx, p)
	if err != nil || d == nil {
		return job{agent: a}, err
	}
	a, err = d.put(ctx, a)
	return job{agent: a, forget: d.Forget, thread: d.Thread}, err
}

// dressOf returns the additions of a run's client. Nil means none.
func (s *Server) dressOf(ctx context.Context, p place) (*dress, error) {
	meta, err := s.engine.Meta(store.WithScope(ctx, p.who), p.id)
	if err != nil || len(meta) == 0 || string(meta) == "null" {
		return nil, err
	}
	d := new(dress)
	return d, json.Unmarshal(meta, d)
}

// asked is the parsed request of either API form.
type asked struct {
	model    string
	dress    dress
	messages []llm.Message
	previous string // run whose conversation precedes messages
	stream   bool
}

// turn is the part of a run that answers one request.
type turn struct {
	id     string // ID of the run
	agent  string
	live   *live
	skip   int        // replies that were sent before
	spent  pawl.Spent // usage before
	forget bool       // the run is deleted when it has ended
	failed bool       // the stream ended with an error
	sent   *sent
}

// callID returns the ID of a run's open call for clients. It contains the ID of the run.
func callID(run string, key llm.Key) string {
	return "call_" + run + "_" + strings.ReplaceAll(strings.TrimPrefix(string(key), "run/"), "/", "-")
}

// runOf returns the run in a call's ID. Empty means that the ID was not created by callID.
func runOf(id string) string {
	rest, ok := strings.CutPrefix(id, "call_")
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 0 || !strings.HasPrefix(rest, "chat_") && !strings.HasPrefix(rest, "resp_") {
		return ""
	}
	return rest[:i]
}

// launch starts a run. A nil turn means that the run existed before.
func (c *call) launch(id string, in asked) (*turn, error) {
	if n := len(in.messages); n == 0 {
		return nil, badRequest("there is no message", "")
	} else if last := in.messages[n-1]; last.Role == llm.RoleAssistant && !last.HasCalls() {
		return nil, badRequest("the conversation ends with the assistant's answer", "add a message of the user")
	}
	a, err := c.s.agent(in.model)
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(in.dress)
	if err != nil {
		return nil, err
	}
	a, err = in.dress.put(c.ctx(), a)
	if err != nil {
		return nil, err
	}
	var before []llm.Message
	if in.previous != "" {
		before, err = c.transcript(in.previous)
		if err != nil {
			return nil, err
		}
	}
	j := job{agent: a, meta: meta, forget: in.dress.Forget, thread: in.dress.Thread}
	var msgs []llm.Message
	j.from, msgs = in.dress.start(before, in.messages)
	l, created, err := c.s.hub.run(c.ctx(), place{c.client.scope(), id}, j, c.client, msgs...)
	if err != nil || !created {
		return nil, err
	}
	return &turn{id: id, agent: in.model, live: l, forget: j.forget}, nil
}

// trailing returns the run of the results at the end of a conversation, and the messages after
// them. An empty ID means that they belong to no run of this server.
func trailing(msgs []llm.Message) (id string, results []llm.ToolResult, more []llm.Message) {
	for i := len(msgs) - 1; i >= 0; i-- {
		m := msgs[i]
		if m.Role == llm.RoleUser && results == nil {
			more = append([]llm.Message{m}, more...)
			continue
		}
		if m.Role != llm.RoleTool {
			break
		}
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				if run := runOf(r.CallID); run != "" {
					id = run
				}
				results = append(results, r)
			}
		}
	}
	return id, results, more
}

// resume resumes a run whose passive calls got their results. Nil means that they had them before,
// and a new run begins with the conversation: its user writes again, or the run is over. A run that
// failed continues. old reports whether an earlier process may have answered the request, for the
// time of the run's last change.
func (c *call) resume(id string, results []llm.ToolResult, more []llm.Message,
	old func(time.Time) bool) (*turn, error) {
	p := place{c.client.scope(), id}
	head, open, err := c.waiting(id)
	if err != nil {
		return nil, err
	}
	x, err := c.s.engine.Export(c.ctx(), id)
	if err != nil {
		return nil, err
	}
	t := &turn{id: id, agent: head.Agent, skip: replies(x)}
	var sum durable.Summary
	if len(head.Summary) > 0 && json.Unmarshal(head.Summary, &sum) == nil {
		t.spent = sum.Spent
	}
	ds := []llm.Decision(nil)
	answered := ""
	for _, r := range results {
		i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return callID(id, w.Key) == r.CallID })
		if i < 0 {
			answered = r.CallID
			continue
		}
		r.CallID = open[i].Call.ID
		ds = append(ds, open[i].Answer("", r))
	}
	again := answered != "" && len(ds) == 0 && !old(head.Updated)
	switch {
	case again && (len(more) > 0 || head.State == store.JournalOver):
		return nil, nil
	case again && head.State == store.JournalFailed:
		t.live, err = c.takeUp(p, head.Agent)
		return t, err
	case answered != "":
		return nil, fault("conflict", "the call "+answered+" does not wait for a result", "it was answered before: wait for the end of its run, or send another message of the user")
	}
	if err := c.may(open, ds); err != nil {
		return nil, err
	}
	t.live, err = c.takeAnswers(p, head.Agent, ds, more)
	return t, err
}

// transcript returns the conversation of a run that has ended.
func (c *call) transcript(id string) ([]llm.Message, error) {
	p := place{c.client.scope(), id}
	head, err := c.s.o.Journal.JournalRun(c.ctx(), p.who, id)
	if err != nil {
		return nil, err
	}
	if head.State != store.JournalOver {
		return nil, fault("conflict", "the response "+id+" is not over", "give its calls their results")
	}
	j, err := c.s.jobOf(c.ctx(), p, head.Agent)
	if err != nil {
		return nil, err
	}
	for e, err := range c.s.engine.ReplayEvents(id, j.agent).Stream(c.ctx()) {
		switch {
		case err != nil:
			return nil, err
		case e.Kind == pawl.EventRunEnded && e.Run == "run" && e.Result != nil:
			return e.Result.Messages, nil
		}
	}
	return nil, fault("conflict", "the response "+id+" has no end", "")
}

func finishOf(f llm.FinishReason) string {
	switch f {
	case llm.FinishReasonLength, llm.FinishReasonContentFilter:
		return string(f)
	}
	return "stop"
}

// stopped converts the end of a run for the client. An unsuccessful end is an error.
func (c *call) stopped(t *turn, e pawl.Event, out *reply) error {
	res := e.Result
	out.usage = res.Spent.Usage
	out.usage.Input -= t.spent.Usage.Input
	out.usage.Output -= t.spent.Usage.Output
	out.usage.Reasoning -= t.spent.Usage.Reasoning
	out.usage.CacheRead -= t.spent.Usage.CacheRead
	switch res.Stop {
	case pawl.StopAnswer, pawl.StopFinished:
		out.finish = cmp.Or(out.finish, "stop")
		return nil
	case pawl.StopLimit:
		out.finish = "length"
		return nil
	case pawl.StopPending:
		for _, w := range res.Pending {
			if !w.Passive {
				return fault("needs_decision", "the call of "+w.Call.Name+" waits for a decision", "POST /v1/runs/"+t.id+"/approve, and watch the run there")
			}
			call := w.Call
			call.ID = callID(t.id, w.Key)
			out.calls = append(out.calls, call)
		}
		out.finish = "tool_calls"
		return nil
	case pawl.StopFailed:
		return fault("model_failed", "the run failed: "+cmp.Or(e.Error, res.Cause), "")
	}
	return fault("model_failed", "the run stopped without an answer: "+cmp.Or(res.Cause, string(res.Stop)), "")
}

func (t *turn) created() int64 { return time.Now().Unix() }
