package server

// tools.go: the endpoints for agents and tools, and a tool call without a model.

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Agents lists the served agents.
type Agents struct {
	Agents []AgentInfo `json:"agents"`
}

// AgentInfo describes a served agent.
type AgentInfo struct {
	Name  string   `json:"name"`
	Tools []string `json:"tools"`
}

// agents handles GET /v1/agents.
func (c *call) agents() error {
	out := Agents{}
	for _, a := range c.s.o.Agents {
		tools, err := pawl.Toolsets(a.Tools).Tools(c.ctx())
		if err != nil {
			return err
		}
		info := AgentInfo{a.Name, []string{}}
		for _, t := range tools {
			info.Tools = append(info.Tools, t.Name)
		}
		out.Agents = append(out.Agents, info)
	}
	return c.write(http.StatusOK, out)
}

// Tools lists the tools that agents may call.
type Tools struct {
	Tools []ToolInfo `json:"tools"`
}

// ToolInfo describes a tool.
type ToolInfo struct {
	Agent       string          `json:"agent"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output,omitzero"`
	Effect      pawl.Effect     `json:"effect"`
	Passive     bool            `json:"passive,omitzero"`
}

// tools handles GET /v1/tools.
func (c *call) tools() error {
	q, err := c.params("agent")
	if err != nil {
		return err
	}
	of := c.s.o.Agents
	if name := q.Get("agent"); name != "" {
		a, err := c.s.agent(name)
		if err != nil {
			return err
		}
		of = []*pawl.Agent{a}
	}
	out := Tools{Tools: []ToolInfo{}}
	for _, a := range of {
		tools, err := pawl.Toolsets(a.Tools).Tools(c.ctx())
		if err != nil {
			return err
		}
		for _, t := range tools {
			out.Tools = append(out.Tools, ToolInfo{a.Name, t.Name, t.Description, t.Input, t.Output, t.Effect,
				t.Passive})
		}
	}
	return c.write(http.StatusOK, out)
}

// ToolStart is a client's request to call a tool.
type ToolStart struct {
	ID    string          `json:"id,omitzero"`
	Agent string          `json:"agent,omitzero"`
	Args  json.RawMessage `json:"args,omitzero"`
}

// ToolCalled is the outcome of the call. The call is its own run, and durable like any other.
type ToolCalled struct {
	Run     string             `json:"run"`
	Outcome pawl.Outcome       `json:"outcome"`
	Result  *llm.ToolResult    `json:"result,omitzero"`
	Pending []pawl.PendingCall `json:"pending,omitzero"`
}

// callSuffix marks the agents of runs that consist of a single call.
const callSuffix = "/call"

// toolAgent returns an agent that executes the open calls of a Result and requests nothing from a
// model.
func toolAgent(a *pawl.Agent) *pawl.Agent {
	b := *a
	b.Name, b.Model, b.Instructions, b.Output, b.Choice = a.Name+callSuffix, silent{}, "", nil, llm.ToolChoice{}
	return &b
}

type silent struct{}

func (silent) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Finish: llm.FinishReasonStop}, nil) }
}

// callTool handles POST /v1/tools/{name}/call.
func (c *call) callTool() error {
	var in ToolStart
	if err := c.read(&in); err != nil {
		return err
	}
	a, err := c.s.agent(in.Agent)
	if err != nil {
		return err
	}
	name := c.r.PathValue("name")
	tools, err := pawl.Toolsets(a.Tools).Tools(c.ctx())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(tools, func(t *pawl.Tool) bool { return t.Name == name && !t.Passive }) {
		return fault("not_found", "agent "+a.Name+" has no tool "+strconv.Quote(name)+" that could be run", "GET /v1/tools has them")
	}
	args := in.Args
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	id := cmp.Or(in.ID, c.r.Header.Get("Idempotency-Key"), "call_"+strings.ToLower(rand.Text()[:20]))
	if err := store.CheckID(id); err != nil {
		return badRequest(err.Error(), "")
	}
	msgs := []llm.Message{llm.User(c.client.Name + " calls " + name + "."),
		llm.Assistant(llm.ToolCall{ID: "call", Name: name, Args: args})}
	l, _, err := c.begin(Start{ID: id, Agent: a.Name + callSuffix}, true, msgs)
	if err != nil {
		return err
	}
	if l != nil {
		select {
		case <-l.done:
		case <-c.r.Context().Done():
			return nil
		case <-c.s.hub.closing:
		}
	}
	return c.called(id)
}

// called answers with the outcome of a call.
func (c *call) called(id string) error {
	x, err := c.s.engine.Export(c.ctx(), id)
	if err != nil {
		return err
	}
	out := ToolCalled{Run: id, Outcome: pawl.OutcomePending}
	for _, done := range x.Calls {
		if done.Call.ID == "call" && strings.Count(string(done.Key), "/") == 2 {
			out.Outcome, out.Result = done.Execution.Outcome, &done.Execution.Result
			return c.write(http.StatusOK, out)
		}
	}
	out.Pending, err = c.s.engine.Pending(c.ctx(), id)
	if err != nil {
		return err
	}
	if len(out.Pending) == 0 && x.End != nil {
		return errors.New("the call has no result: " + cmp.Or(x.End.Cause, x.End.Error, string(x.End.Stop)))
	}
	c.w.Header().Set("Location", "/v1/runs/"+id)
	return c.write(http.StatusAccepted, out)
}
