package runs

// extras.go: what a client adds to an agent for its run.

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentname"
	"github.com/pawl-go/pawl/internal/schema"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Extras are what a client adds to an agent for its run. They are stored with the run, for the
// process that resumes it: their JSON form may gain fields and does not change.
type Extras struct {
	System string       `json:"system,omitzero"` // follows the agent's system prompt
	Tools  []ClientTool `json:"tools,omitzero"`  // the client executes them
	// Types of tools of the request that its API's own servers execute. They are not offered.
	Skipped  []string        `json:"skipped,omitzero"`
	Choice   *llm.ToolChoice `json:"choice,omitzero"` // nil means the agent's
	Settings llm.Settings    `json:"settings,omitzero"`
	Output   json.RawMessage `json:"output,omitzero"` // of the answer; empty means the agent's
	Forget   bool            `json:"forget,omitzero"` // the run is deleted when it has ended
	Print    []byte          `json:"print,omitzero"`  // fingerprint of the request's body
	Thread   string          `json:"thread,omitzero"` // the client's conversation
	// The run that this run follows: in the conversation of a front end, or as Request.Previous of
	// Start. "" means none.
	Before string `json:"before,omitzero"`
	// The ID of the user's message, in the conversation of a front end. "" means none.
	Message string `json:"message,omitzero"`
}

// ClientTool is a tool that the client executes.
type ClientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters,omitzero"` // JSON Schema; empty means any object

	// The namespace of the tool at the client, which knows it there as Known. "" means none.
	Namespace string `json:"namespace,omitzero"`
	Known     string `json:"known,omitzero"`
	// The client takes text in place of arguments: their member input.
	Freeform bool `json:"freeform,omitzero"`
}

// AddSystem adds to the system prompt.
func (x *Extras) AddSystem(parts []llm.Part) {
	if x.System != "" {
		x.System += "\n\n"
	}
	x.System += llm.Message{Parts: parts}.Text()
}

// Executes reports whether the client executes a call. x may be nil.
func (x *Extras) Executes(c llm.ToolCall) bool { return x.Tool(c.Name) != nil }

// Tool returns the client's tool of that name. Nil means that there is none. x may be nil.
func (x *Extras) Tool(name string) *ClientTool {
	if x == nil {
		return nil
	}
	i := slices.IndexFunc(x.Tools, func(t ClientTool) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &x.Tools[i]
}

// apply returns a copy of a with the extras.
func (x *Extras) apply(ctx context.Context, a *pawl.Agent) (*pawl.Agent, error) {
	b := *a
	tools, err := x.toolsWith(ctx, a)
	if err != nil {
		return nil, err
	}
	b.Tools = tools

	if x.System != "" {
		b.Instructions = strings.TrimSpace(a.Instructions + "\n\n" + x.System)
	}
	if x.Choice != nil {
		b.Choice = *x.Choice
	}
	if len(x.Skipped) > 0 {
		b.Middleware = append(slices.Clip(a.Middleware), noticeSkipped(x.Skipped))
	}
	if len(x.Output) > 0 {
		if _, _, err := schema.CompileOutput(x.Output); err != nil {
			return nil, BadRequest("the schema of the answer: "+err.Error(), "")
		}
		b.Output = x.Output
		b.OutputCheck = nil // of the agent's own schema
	}

	s := &b.Settings
	s.MaxTokens = cmp.Or(x.Settings.MaxTokens, s.MaxTokens)
	s.Effort = cmp.Or(x.Settings.Effort, s.Effort)
	s.Temperature = cmp.Or(x.Settings.Temperature, s.Temperature)
	s.TopP = cmp.Or(x.Settings.TopP, s.TopP)
	s.Parallel = cmp.Or(x.Settings.Parallel, s.Parallel)
	if x.Settings.StopSequences != nil {
		s.StopSequences = x.Settings.StopSequences
	}
	return &b, nil
}

// toolsWith returns the tools of an agent and the client's. No name may occur twice.
func (x *Extras) toolsWith(ctx context.Context, a *pawl.Agent) ([]pawl.Toolset, error) {
	own, err := pawl.Toolsets(a.Tools).Tools(ctx)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, t := range own {
		taken[t.Name] = true
	}

	tools := slices.Clone(a.Tools)
	for _, added := range x.Tools {
		t := &pawl.Tool{Name: added.Name, Description: added.Description, Input: added.Parameters, Passive: true}

		// A function without parameters has no schema in OpenAI's form.
		if len(t.Input) == 0 || string(t.Input) == "null" {
			t.Input = json.RawMessage(`{"type":"object"}`)
		}
		if taken[t.Name] {
			return nil, BadRequest("the agent has a tool "+t.Name+" of its own, or the request contains it twice",
				"take another name")
		}
		taken[t.Name] = true
		if err := t.Check(); err != nil {
			return nil, BadRequest("tool "+t.Name+": "+err.Error(), "")
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// begin returns the Result and the messages that a run starts with. before is a conversation that
// the server stored, and msgs follow it. Only recorded calls may be executed: open calls of before
// stay open. Open calls of msgs stay open if all are calls of the client's tools, which the run
// returns to the client.
func (x *Extras) begin(before, msgs []llm.Message) (*pawl.Result, []llm.Message) {
	all := append(slices.Clip(before), msgs...)
	repaired, _ := llm.Repair(all) // calls get their final IDs
	open := (&pawl.Result{Messages: repaired}).Calls()
	ofServer := func(c llm.ToolCall) bool { return !x.Executes(c) }

	switch {
	case len(open) > 0 && !slices.ContainsFunc(open, ofServer):
		return &pawl.Result{Messages: repaired}, nil
	case len((&pawl.Result{Messages: before}).Calls()) > 0:
		return &pawl.Result{Messages: before}, msgs
	}
	return nil, all
}

// jobOf returns the job of an existing run: its agent with the extras of its client.
func (s *Service) jobOf(ctx context.Context, p place, name string) (job, error) {
	a, err := s.Agent(name)
	if base, version := agentname.Split(name); version != "" && err != nil {
		a, err = s.Agent(base) // the run continues with what it recorded, if that is possible
	}
	if err != nil {
		return job{}, err
	}
	x, err := s.extrasOf(ctx, p)
	if err != nil || x == nil {
		return job{agent: a}, err
	}
	a, err = x.apply(ctx, a)
	return job{agent: a, forget: x.Forget, thread: x.Thread}, err
}

// extrasOf returns the extras of a run. Nil means none.
func (s *Service) extrasOf(ctx context.Context, p place) (*Extras, error) {
	meta, err := s.engine.Meta(store.WithScope(ctx, p.scope), p.id)
	if err != nil || len(meta) == 0 || string(meta) == "null" {
		return nil, err
	}
	x := new(Extras)
	return x, json.Unmarshal(meta, x)
}

// Extras returns what the client of a run has added to its agent. Nil means nothing.
func (s *Service) Extras(ctx context.Context, c Caller, id string) (*Extras, error) {
	return s.extrasOf(ctx, place{c.Scope, id})
}
