package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// agentDef is an agent as plain data. A run records it when it starts.
type agentDef struct {
	Name         string          `json:"name"`
	Instructions string          `json:"instructions,omitzero"`
	Label        *llm.Label      `json:"label,omitzero"`
	Choice       llm.ToolChoice  `json:"choice"`
	Output       json.RawMessage `json:"output,omitzero"`
	Limits       pawl.Limits     `json:"limits"`
	Settings     llm.Settings    `json:"settings"`
	Tools        []toolDef       `json:"tools"`
	Parallel     int             `json:"parallel"` // concurrent calls; 0 means 10
	StopOnBlock  bool            `json:"stop_on_block,omitzero"`
}

type toolDef struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input,omitzero"`
	Output      json.RawMessage `json:"output,omitzero"`
	Deferred    bool            `json:"deferred,omitzero"`
	Passive     bool            `json:"passive,omitzero"`
	Effect      pawl.Effect     `json:"effect"`
	Timeout     time.Duration   `json:"timeout,omitzero"`
	NoRepair    bool            `json:"no_repair,omitzero"`
	MaxResult   int             `json:"max_result,omitzero"`
	Pin         bool            `json:"pin,omitzero"`
	Serial      bool            `json:"serial,omitzero"`
	Concurrent  bool            `json:"concurrent,omitzero"`
	Inline      bool            `json:"inline,omitzero"`
	Address     string          `json:"address,omitzero"`
	Server      string          `json:"server,omitzero"`
	Label       *llm.Label      `json:"label,omitzero"`
}

// node is an agent that a worker can run: an added agent, or a tool of one.
type node struct {
	root   string // the name under which the outermost agent was added
	path   string // the names of the tools to this agent, joined by "/"; "" means the outermost
	agent  *pawl.Agent
	model  llm.Model // in its middleware
	pricer llm.Pricer
	inline map[string]*pawl.Tool // tools that run in the workflow
}

// tree is an agent with its tools that are agents, and their tools.
type tree struct {
	byPath  map[string]*node
	byAgent map[*pawl.Agent]*node
	paths   []string // in the order of the search
}

// plant searches an agent for agents.
func plant(ctx context.Context, root string, a *pawl.Agent) (*tree, error) {
	t := &tree{byPath: map[string]*node{}, byAgent: map[*pawl.Agent]*node{}}
	return t, t.add(ctx, root, "", a)
}

func (t *tree) add(ctx context.Context, root, path string, a *pawl.Agent) error {
	where := root
	if path != "" {
		where += "/" + path
	}
	if a == nil || a.Model == nil {
		return fmt.Errorf("agent %s has no model", where)
	}
	if err := supported(a); err != nil {
		return fmt.Errorf("agent %s: %w", where, err)
	}
	if t.byAgent[a] != nil {
		return nil // the tool occurs in several places
	}
	tools, err := new(pawl.Engine).AllTools(ctx, a)
	if err != nil {
		return fmt.Errorf("agent %s: tools: %w", where, err)
	}

	n := &node{root: root, path: path, agent: a, inline: map[string]*pawl.Tool{}}
	n.model, n.pricer = new(pawl.Engine).InnerModel(a)
	t.byPath[path] = n
	t.byAgent[a] = n
	t.paths = append(t.paths, path)
	for _, tool := range tools {
		if tool.Inline && tool.Effect == pawl.EffectCompose {
			n.inline[tool.Name] = tool
		}
		if in := tool.Agent(); in != nil {
			inner := tool.Name
			if path != "" {
				inner = path + "/" + inner
			}
			if err := t.add(ctx, root, inner, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// supported returns an error if a executes its calls in a way that this package does not support.
func supported(a *pawl.Agent) error {
	switch {
	case a.Executor != nil:
		return fmt.Errorf("its executor %T is not there on Temporal: leave it nil", a.Executor)
	case a.Parallel.FailFast:
		return errors.New("Parallel.FailFast is not there on Temporal")
	}
	return nil
}

// describe returns the current definitions of the agents of a tree.
func (t *tree) describe(ctx context.Context) (map[string]agentDef, error) {
	out := map[string]agentDef{}
	for _, path := range t.paths {
		a := t.byPath[path].agent
		tools, err := new(pawl.Engine).AllTools(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("tools: %w", err)
		}
		if err := supported(a); err != nil {
			return nil, err
		}

		d := agentDef{
			Name:         a.Name,
			Instructions: a.Instructions,
			Label:        a.Label,
			Choice:       a.Choice,
			Output:       a.Output,
			Limits:       a.Limits,
			Settings:     a.Settings,
			Tools:        []toolDef{},
			Parallel:     a.Parallel.Limit,
			StopOnBlock:  a.Parallel.StopOnBlock,
		}
		for _, tool := range tools {
			d.Tools = append(d.Tools, define(tool))
		}
		out[path] = d
	}
	return out, nil
}

func define(t *pawl.Tool) toolDef {
	return toolDef{
		Name:        t.Name,
		Description: t.Description,
		Input:       t.Input,
		Output:      t.Output,
		Deferred:    t.Deferred,
		Passive:     t.Passive,
		Effect:      t.Effect,
		Timeout:     t.Timeout,
		NoRepair:    t.NoRepair,
		MaxResult:   t.MaxResult,
		Pin:         t.Pin,
		Serial:      t.Serial != nil,
		Concurrent:  t.Concurrent,
		Inline:      t.Inline && t.Effect == pawl.EffectCompose,
		Address:     t.Address,
		Server:      t.Server,
		Label:       t.Label,
	}
}

// defineSpec describes a tool as a request offers it. A spec that a middleware made is complete.
func defineSpec(s *llm.ToolSpec) toolDef {
	if t, ok := s.Source.(*pawl.Tool); ok {
		return define(t)
	}
	return toolDef{
		Name:        s.Name,
		Description: s.Description,
		Input:       s.Input,
		Output:      s.Output,
		Deferred:    s.Deferred,
		NoRepair:    s.NoRepair,
		Passive:     true,
	}
}

// tool returns the tool that represents d in processes that do not execute it. The key that Serial
// returns for a call is unknown there, so all calls of such tools have one key.
func (d *toolDef) tool() *pawl.Tool {
	var serial func(json.RawMessage) string
	if d.Serial {
		serial = func(json.RawMessage) string { return "serial" }
	}
	return &pawl.Tool{
		Name:        d.Name,
		Description: d.Description,
		Input:       d.Input,
		Output:      d.Output,
		Deferred:    d.Deferred,
		Passive:     d.Passive,
		Effect:      d.Effect,
		Timeout:     d.Timeout,
		NoRepair:    d.NoRepair,
		MaxResult:   d.MaxResult,
		Pin:         d.Pin,
		Run:         nowhere,
		Concurrent:  d.Concurrent,
		Serial:      serial,
		Address:     d.Address,
		Server:      d.Server,
		Label:       d.Label,
	}
}

var errNowhere = errors.New("this tool is executed by an activity")

func nowhere(context.Context, llm.ToolCall) (llm.ToolResult, error) {
	return llm.ToolResult{}, errNowhere
}
