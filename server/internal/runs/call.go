package runs

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Ctx returns the request's context with the scope of the client.
func (c *Caller) Ctx() context.Context {
	return store.WithScope(c.Context, c.Client.Scope())
}

// Marshal returns v as JSON without secrets.
func (s *Service) Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return s.O.Secrets.JSON(b), err
}

// Newest returns the agent called name, or the one of the agents NAME@VERSION with the largest
// number as its version. Nil means that there is none.
func (s *Service) Newest(name string) (best *pawl.Agent) {
	if a := s.Agents[name]; a != nil {
		return a
	}
	version := func(a *pawl.Agent) int {
		n, _ := strconv.Atoi(a.Name[len(name)+1:]) // another text is 0
		return n
	}
	for _, a := range s.O.Agents {
		if strings.HasPrefix(a.Name, name+"@") && (best == nil || version(a) > version(best)) {
			best = a
		}
	}
	return best
}

// Agent returns the agent with that name. An empty name means the only agent. NAME means the newest
// of the agents NAME@VERSION.
func (s *Service) Agent(name string) (*pawl.Agent, error) {
	if base, ok := strings.CutSuffix(name, CallSuffix); ok && s.Newest(base) != nil {
		return toolAgent(s.Newest(base)), nil
	}
	if base, ok := strings.CutSuffix(name, SideSuffix); ok {
		a, err := s.Agent(base)
		if err != nil {
			return nil, err
		}
		return s.sideAgent(a), nil
	}
	if a := s.Newest(name); a != nil {
		return a, nil
	}
	if name == "" && len(s.O.Agents) == 1 {
		return s.O.Agents[0], nil
	}
	var names []string
	for _, a := range s.O.Agents {
		names = append(names, a.Name)
	}
	if name == "" {
		return nil, BadRequest("there are several agents, and none is named", "agent is one of "+strings.Join(names, ", "))
	}
	return nil, Fault("not_found", "there is no agent "+strconv.Quote(name), "there is "+strings.Join(names, ", "))
}
