package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/schema"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Dress is what a client of OpenAI's API adds to an agent for its run. It is stored with the run
// for the process that resumes it.
type Dress struct {
	System   string          `json:"system,omitzero"` // follows the agent's system prompt
	Tools    []ClientTool    `json:"tools,omitzero"`
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

// ClientTool is a tool that the client executes.
type ClientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters,omitzero"`
}

// put returns a copy of a with the additions of d.
func (d *Dress) put(ctx context.Context, a *pawl.Agent) (*pawl.Agent, error) {
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
			return nil, BadRequest("the agent has a tool "+t.Name+" of its own, or the request contains it twice", "take another name")
		}
		taken[t.Name] = true
		if err := t.Check(); err != nil {
			return nil, BadRequest("tool "+t.Name+": "+err.Error(), "")
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
			return nil, BadRequest("the schema of the answer: "+err.Error(), "")
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
func (s *Service) jobOf(ctx context.Context, p Place, name string) (job, error) {
	a, err := s.Agent(name)
	if base, _, versioned := strings.Cut(name, "@"); versioned && err != nil {
		a, err = s.Agent(base) // the run continues with what it recorded, if that is possible
	}
	if err != nil {
		return job{}, err
	}
	d, err := s.DressOf(ctx, p)
	if err != nil || d == nil {
		return job{Agent: a}, err
	}
	a, err = d.put(ctx, a)
	return job{Agent: a, forget: d.Forget, thread: d.Thread}, err
}

// DressOf returns the additions of a run's client. Nil means none.
func (s *Service) DressOf(ctx context.Context, p Place) (*Dress, error) {
	meta, err := s.Engine.Meta(store.WithScope(ctx, p.Who), p.Id)
	if err != nil || len(meta) == 0 || string(meta) == "null" {
		return nil, err
	}
	d := new(Dress)
	return d, json.Unmarshal(meta, d)
}

// Asked is the parsed request of either API form.
type Asked struct {
	Model    string
	Dress    Dress
	Messages []llm.Message
	Previous string // run whose conversation precedes messages
	Stream   bool
}

// Launch starts a run. A nil turn means that the run existed before.
func (c *Caller) Launch(id string, in Asked) (*Live, error) {
	if n := len(in.Messages); n == 0 {
		return nil, BadRequest("there is no message", "")
	} else if last := in.Messages[n-1]; last.Role == llm.RoleAssistant && !last.HasCalls() {
		return nil, BadRequest("the conversation ends with the assistant's answer", "add a message of the user")
	}
	a, err := c.S.Agent(in.Model)
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(in.Dress)
	if err != nil {
		return nil, err
	}
	a, err = in.Dress.put(c.Ctx(), a)
	if err != nil {
		return nil, err
	}
	var before []llm.Message
	if in.Previous != "" {
		before, err = c.Transcript(in.Previous)
		if err != nil {
			return nil, err
		}
	}
	j := job{Agent: a, meta: meta, forget: in.Dress.Forget, thread: in.Dress.Thread}
	var msgs []llm.Message
	j.from, msgs = in.Dress.start(before, in.Messages)
	l, created, err := c.S.Hub.run(c.Ctx(), Place{c.Client.Scope(), id}, j, c.Client, msgs...)
	if err != nil || !created {
		return nil, err
	}
	return l, nil
}

// Transcript returns the conversation of a run that has ended.
func (c *Caller) Transcript(id string) ([]llm.Message, error) {
	p := Place{c.Client.Scope(), id}
	head, err := c.S.O.Journal.JournalRun(c.Ctx(), p.Who, id)
	if err != nil {
		return nil, err
	}
	if head.State != store.JournalOver {
		return nil, Fault("conflict", "the response "+id+" is not over", "give its calls their results")
	}
	j, err := c.S.jobOf(c.Ctx(), p, head.Agent)
	if err != nil {
		return nil, err
	}
	for e, err := range c.S.Engine.ReplayEvents(id, j.Agent).Stream(c.Ctx()) {
		switch {
		case err != nil:
			return nil, err
		case e.Kind == pawl.EventRunEnded && e.Run == "run" && e.Result != nil:
			return e.Result.Messages, nil
		}
	}
	return nil, Fault("conflict", "the response "+id+" has no end", "")
}
