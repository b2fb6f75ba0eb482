package runs

// agents.go: the agent that a name means, and the agents of side requests and of single calls.

import (
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

const (
	// SideSuffix marks the agents of side requests: of chat programs that ask for titles, tags and
	// follow-up questions.
	SideSuffix = "/side"

	// CallSuffix marks the agents of runs that consist of a single call.
	CallSuffix = "/call"
)

// Agents returns the served agents, in the order of Options.
func (s *Service) Agents() []*pawl.Agent { return s.options.Agents }

// Serves reports whether an agent with that name, in any version, is served.
func (s *Service) Serves(name string) bool { return s.newest(name) != nil }

// Agent returns the agent with that name. An empty name means the only agent. NAME means the newest
// of the agents NAME@VERSION.
func (s *Service) Agent(name string) (*pawl.Agent, error) {
	if base, ok := strings.CutSuffix(name, CallSuffix); ok && s.Serves(base) {
		return callAgent(s.newest(base)), nil
	}
	if base, ok := strings.CutSuffix(name, SideSuffix); ok {
		a, err := s.Agent(base)
		if err != nil {
			return nil, err
		}
		return s.sideAgent(a), nil
	}

	if a := s.newest(name); a != nil {
		return a, nil
	}
	if name == "" && len(s.options.Agents) == 1 {
		return s.options.Agents[0], nil
	}

	var names []string
	for _, a := range s.options.Agents {
		names = append(names, a.Name)
	}
	all := strings.Join(names, ", ")
	if name == "" {
		return nil, BadRequest("there are several agents, and none is named", "agent is one of "+all)
	}
	return nil, Fault("not_found", "there is no agent "+strconv.Quote(name), "there is "+all)
}

// newest returns the agent called name, or the one of the agents NAME@VERSION with the largest
// number as its version. Nil means that there is none.
func (s *Service) newest(name string) (best *pawl.Agent) {
	if a := s.agents[name]; a != nil {
		return a
	}
	version := func(a *pawl.Agent) int {
		n, _ := strconv.Atoi(a.Name[len(name)+1:]) // another text is 0
		return n
	}
	for _, a := range s.options.Agents {
		if !strings.HasPrefix(a.Name, name+"@") {
			continue
		}
		if best == nil || version(a) > version(best) {
			best = a
		}
	}
	return best
}

// BaseName returns the name under which the agent of a run is served.
func BaseName(agent string) string {
	return strings.TrimSuffix(strings.TrimSuffix(agent, CallSuffix), SideSuffix)
}

// sideAgent returns the agent that answers side requests, without tools and instructions.
func (s *Service) sideAgent(a *pawl.Agent) *pawl.Agent {
	b := *a
	b.Name = a.Name + SideSuffix
	b.Tools = nil
	b.Instructions = ""
	b.Output = nil
	b.Choice = llm.ToolChoice{}
	if m := s.options.Sides[a.Name]; m != nil {
		b.Model = m
	}
	return &b
}

// callAgent returns an agent that executes the open calls of a Result and requests nothing from a
// model.
func callAgent(a *pawl.Agent) *pawl.Agent {
	b := *a
	b.Name = a.Name + CallSuffix
	b.Model = silent{}
	b.Instructions = ""
	b.Output = nil
	b.Choice = llm.ToolChoice{}
	return &b
}

// silent is a model that says nothing, and sends no request.
type silent struct{}

func (silent) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		yield(llm.Delta{Requests: -1, Finish: llm.FinishReasonStop}, nil)
	}
}
