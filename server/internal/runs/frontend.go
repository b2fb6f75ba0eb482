package runs

import (
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// About describes an agent to clients. The zero value says nothing.
type About struct {
	Title       string // for people; empty means the agent's name
	Description string // what the agent is for
	Window      int    // context window of its model in tokens; 0 means unknown
	// Side answers requests of chat programs for titles, tags and follow-up questions, without the
	// agent's tools and instructions. Nil means the agent's model.
	Side llm.Model
}

// SideSuffix marks the agents of side requests.
const SideSuffix = "/side"

// sideAgent returns the agent that answers side requests.
func (s *Service) sideAgent(a *pawl.Agent) *pawl.Agent {
	b := *a
	b.Name, b.Tools, b.Instructions, b.Output, b.Choice = a.Name+SideSuffix, nil, "", nil, llm.ToolChoice{}
	if m := s.O.About[a.Name].Side; m != nil {
		b.Model = m
	}
	return &b
}

// BaseName returns the name under which the agent of a run is served.
func BaseName(agent string) string {
	return strings.TrimSuffix(strings.TrimSuffix(agent, CallSuffix), SideSuffix)
}
