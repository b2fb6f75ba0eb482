package server

// tools.go: the endpoints that list agents and tools, and call a tool.

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// agents handles GET /v1/agents.
func (c *call) agents() error {
	out := api.Agents{}
	for _, a := range c.Runs.Agents() {
		tools, err := pawl.Toolsets(a.Tools).Tools(c.Context())
		if err != nil {
			return err
		}
		info := api.AgentInfo{Name: a.Name, Tools: []string{}}
		for _, t := range tools {
			info.Tools = append(info.Tools, t.Name)
		}
		out.Agents = append(out.Agents, info)
	}
	return c.Write(http.StatusOK, out)
}

// tools handles GET /v1/tools.
func (c *call) tools() error {
	q, err := c.Params("agent")
	if err != nil {
		return err
	}
	of := c.Runs.Agents()
	if name := q.Get("agent"); name != "" {
		a, err := c.Runs.Agent(name)
		if err != nil {
			return err
		}
		of = []*pawl.Agent{a}
	}

	out := api.Tools{Tools: []api.ToolInfo{}}
	for _, a := range of {
		tools, err := pawl.Toolsets(a.Tools).Tools(c.Context())
		if err != nil {
			return err
		}
		for _, t := range tools {
			out.Tools = append(out.Tools, api.ToolInfo{
				Agent:       a.Name,
				Name:        t.Name,
				Description: t.Description,
				Input:       t.Input,
				Output:      t.Output,
				Effect:      t.Effect,
				Passive:     t.Passive,
			})
		}
	}
	return c.Write(http.StatusOK, out)
}

// callTool handles POST /v1/tools/{name}/call.
func (c *call) callTool() error {
	var in api.ToolStart
	if err := c.Read(&in); err != nil {
		return err
	}
	a, err := c.Runs.Agent(in.Agent)
	if err != nil {
		return err
	}

	name := c.Request.PathValue("name")
	tools, err := pawl.Toolsets(a.Tools).Tools(c.Context())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(tools, func(t *pawl.Tool) bool { return t.Name == name && !t.Passive }) {
		return runs.Fault("not_found", "agent "+a.Name+" has no tool "+strconv.Quote(name)+" that could be run",
			"GET /v1/tools has them")
	}

	args := in.Args
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	id := cmp.Or(in.ID, c.Request.Header.Get("Idempotency-Key"), newID("call_"))
	if err := store.CheckID(id); err != nil {
		return runs.BadRequest(err.Error(), "")
	}

	// The call is a run whose first reply is written here, so that it takes the path of a model's
	// call.
	l, _, err := c.Runs.Start(c.Context(), c.Caller(), runs.Request{
		ID:    id,
		Agent: a.Name + runs.CallSuffix,
		Messages: []llm.Message{
			llm.User(c.Client.Name + " calls " + name + "."),
			llm.Assistant(llm.ToolCall{ID: "call", Name: name, Args: args}),
		},
		Execute: true,
	})
	if err != nil {
		return err
	}
	if err := c.await(l); err != nil {
		return err
	}
	return c.writeCalled(id)
}

// writeCalled answers with the outcome of a call.
func (c *call) writeCalled(id string) error {
	x, _, err := c.Runs.Stored(c.Context(), c.Caller(), id)
	if err != nil {
		return err
	}

	out := api.ToolCalled{Run: id, Outcome: pawl.OutcomePending}
	for _, done := range x.Calls {
		if done.Call.ID == "call" && runs.IsOwn(done.Key) {
			out.Outcome = done.Execution.Outcome
			out.Result = &done.Execution.Result
			return c.Write(http.StatusOK, out)
		}
	}
	_, out.Pending, err = c.Runs.Pending(c.Context(), c.Caller(), id)
	if err != nil {
		return err
	}
	if len(out.Pending) == 0 && x.End != nil {
		return errors.New("the call has no result: " + cmp.Or(x.End.Cause, x.End.Error, string(x.End.Stop)))
	}
	c.setLocation(id)
	return c.Write(http.StatusAccepted, out)
}
