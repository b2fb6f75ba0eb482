package runs

// agents.go: the agent that a name means, and the agents of side requests and of single calls.

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentname"
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
	largest := 0
	for _, a := range s.options.Agents {
		base, version := agentname.Split(a.Name)
		number, _ := strconv.Atoi(version) // another text is 0
		if base == name && (best == nil || number > largest) {
			best = a
			largest = number
		}
	}
	return best
}

// families returns the names of the served agents without their versions: a run of NAME@1 is also
// resumed by NAME@2.
func (s *Service) families() (names []string) {
	for _, a := range s.options.Agents {
		family, _ := agentname.Split(a.Name)
		if !slices.Contains(names, family) {
			names = append(names, family)
		}
	}
	return names
}

// BaseName returns the name under which the agent of a run is served.
func BaseName(agent string) string {
	return strings.TrimSuffix(strings.TrimSuffix(agent, CallSuffix), SideSuffix)
}

// kindOf returns api.Run.Kind of a run of the agent.
func kindOf(agent string) string {
	switch {
	case strings.HasSuffix(agent, SideSuffix):
		return "side"
	case strings.HasSuffix(agent, CallSuffix):
		return "call"
	}
	return ""
}

// Side is server.Side.
type Side struct {
	Model llm.Model
	Allow string
}

// Values of Side.Allow.
const (
	sideNone  = "none"
	sideKnown = "known"
	sideAny   = "any"
)

// Check returns an error if Allow has another value.
func (s Side) Check() error {
	switch s.Allow {
	case "", sideNone, sideKnown, sideAny:
		return nil
	}
	return fmt.Errorf("Side.Allow is %s, %s or %s, and not %q", sideNone, sideKnown, sideAny, s.Allow)
}

// TakesSide reports whether the agent with that name answers each request that asks for a side
// answer.
func (s *Service) TakesSide(agent string) bool { return s.options.Sides[agent].Allow == sideAny }

// SideAgent returns the name of the agent for a side request to the named agent. A client has asked
// for it by the name NAME:side or by a header.
func (s *Service) SideAgent(name string) (string, error) {
	a, err := s.Agent(name)
	switch {
	case err != nil:
		return "", err
	case !s.TakesSide(a.Name):
		return "", Fault("no_side", "the agent "+a.Name+" answers no side requests by name",
			"side: {allow: any} in its file lets it")
	}
	return a.Name + SideSuffix, nil
}

// Limits of a side request.
const (
	sideTime = time.Minute

	// SideTokens is the length of an answer in tokens.
	SideTokens = 4000
)

// sideAgent returns the agent that answers side requests of a.
func (s *Service) sideAgent(a *pawl.Agent) *pawl.Agent {
	b := *a
	b.Name = a.Name + SideSuffix
	b.Tools = nil
	b.Instructions = ""
	b.Output = nil
	b.OutputCheck = nil
	b.Choice = llm.ToolChoice{}
	b.Limits.Time = sideTime
	b.Settings.MaxTokens = SideTokens
	b.Middleware = slices.Clone(a.Middleware)
	for i := range b.Middleware {
		b.Middleware[i].Check = nil // rules may name tools, and this agent has none
	}

	side := s.options.Sides[a.Name]
	switch {
	case side.Allow != sideKnown && side.Allow != sideAny:
		b.Model = silent{}
	case side.Model != nil:
		b.Model = side.Model
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
