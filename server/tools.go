package server

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
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
	for _, a := range c.S.O.Agents {
		tools, err := pawl.Toolsets(a.Tools).Tools(c.Ctx())
		if err != nil {
			return err
		}
		info := AgentInfo{a.Name, []string{}}
		for _, t := range tools {
			info.Tools = append(info.Tools, t.Name)
		}
		out.Agents = append(out.Agents, info)
	}
	return c.Write(http.StatusOK, out)
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
	q, err := c.Params("agent")
	if err != nil {
		return err
	}
	of := c.S.O.Agents
	if name := q.Get("agent"); name != "" {
		a, err := c.S.Agent(name)
		if err != nil {
			return err
		}
		of = []*pawl.Agent{a}
	}
	out := Tools{Tools: []ToolInfo{}}
	for _, a := range of {
		tools, err := pawl.Toolsets(a.Tools).Tools(c.Ctx())
		if err != nil {
			return err
		}
		for _, t := range tools {
			out.Tools = append(out.Tools, ToolInfo{a.Name, t.Name, t.Description, t.Input, t.Output, t.Effect,
				t.Passive})
		}
	}
	return c.Write(http.StatusOK, out)
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

// callTool handles POST /v1/tools/{name}/call.
func (c *call) callTool() error {
	var in ToolStart
	if err := c.Read(&in); err != nil {
		return err
	}
	a, err := c.S.Agent(in.Agent)
	if err != nil {
		return err
	}
	name := c.R.PathValue("name")
	tools, err := pawl.Toolsets(a.Tools).Tools(c.Ctx())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(tools, func(t *pawl.Tool) bool { return t.Name == name && !t.Passive }) {
		return runs.Fault("not_found", "agent "+a.Name+" has no tool "+strconv.Quote(name)+" that could be run", "GET /v1/tools has them")
	}
	args := in.Args
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	id := cmp.Or(in.ID, c.R.Header.Get("Idempotency-Key"), "call_"+strings.ToLower(rand.Text()[:20]))
	if err := store.CheckID(id); err != nil {
		return runs.BadRequest(err.Error(), "")
	}
	msgs := []llm.Message{llm.User(c.Client.Name + " calls " + name + "."),
		llm.Assistant(llm.ToolCall{ID: "call", Name: name, Args: args})}
	l, _, err := c.Begin(api.Start{ID: id, Agent: a.Name + runs.CallSuffix}, true, msgs)
	if err != nil {
		return err
	}
	if l != nil {
		select {
		case <-l.Done:
		case <-c.R.Context().Done():
			return nil
		case <-c.S.Hub.Closing:
		}
	}
	return c.called(id)
}

// called answers with the outcome of a call.
func (c *call) called(id string) error {
	x, err := c.S.Engine.Export(c.Ctx(), id)
	if err != nil {
		return err
	}
	out := ToolCalled{Run: id, Outcome: pawl.OutcomePending}
	for _, done := range x.Calls {
		if done.Call.ID == "call" && strings.Count(string(done.Key), "/") == 2 {
			out.Outcome, out.Result = done.Execution.Outcome, &done.Execution.Result
			return c.Write(http.StatusOK, out)
		}
	}
	out.Pending, err = c.S.Engine.Pending(c.Ctx(), id)
	if err != nil {
		return err
	}
	if len(out.Pending) == 0 && x.End != nil {
		return errors.New("the call has no result: " + cmp.Or(x.End.Cause, x.End.Error, string(x.End.Stop)))
	}
	c.W.Header().Set("Location", "/v1/runs/"+id)
	return c.Write(http.StatusAccepted, out)
}
