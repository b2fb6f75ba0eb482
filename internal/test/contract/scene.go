package contract

// scene.go: Scene, an agent with its tools, which count what they execute.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// Setting is what a behaviour sets of its agent.
type Setting struct {
	// Instructions of the agent. "" means none.
	Instructions string
	// Limits of a run.
	Limits pawl.Limits
	// Choice applies to the first request.
	Choice llm.ToolChoice
	// Output is the JSON Schema of the answer. "" means free text.
	Output string
	// Ask and Deny are the rules about calls; other calls run.
	Ask, Deny []string
	// Expires is the time in which a yes is valid. 0 means no limit.
	Expires time.Duration
	// Terminal are tools whose call ends the run.
	Terminal []string
}

// Scene is a behaviour at work: an agent, and what its tools and its model saw.
type Scene struct {
	// Name is the name of the agent.
	Name string
	// Model plays the script.
	Model *script.Model
	// Tools count what they execute.
	Tools []pawl.Toolset
	// Setting is the setting of the agent.
	Setting Setting

	says    []string
	answers [][]Verdict

	mu       sync.Mutex
	executed []string
}

// newScene returns the scene of a behaviour.
func (b *Behaviour) newScene() *Scene {
	s := &Scene{
		Name:    "clerk",
		Model:   script.New(b.Turns...),
		Setting: b.Setting,
		says:    b.Says,
		answers: b.Answers,
	}
	if len(s.says) == 0 {
		s.says = []string{"Go."}
	}
	s.Tools = s.toolbox()
	return s
}

// Executed returns the calls that were executed, as name and arguments.
func (s *Scene) Executed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.executed)
}

// Rules returns the rules about calls.
func (s *Scene) Rules() policy.Rules {
	return policy.Rules{
		Ask:      s.Setting.Ask,
		Deny:     s.Setting.Deny,
		Default:  pawl.VerdictAllow,
		ValidFor: s.Setting.Expires,
	}
}

// Agent returns the agent in Go.
func (s *Scene) Agent() *pawl.Agent {
	a := &pawl.Agent{
		Name:         s.Name,
		Instructions: s.Setting.Instructions,
		Model:        s.Model,
		Tools:        s.Tools,
		Choice:       s.Setting.Choice,
		Limits:       s.Setting.Limits,
		Middleware:   []pawl.Middleware{s.Rules().Middleware()},
	}
	if s.Setting.Output != "" {
		a.Output = json.RawMessage(s.Setting.Output)
	}
	if names := s.Setting.Terminal; len(names) > 0 {
		a.Middleware = append(a.Middleware, pawl.After(endAfter(names)))
	}
	return a
}

// endAfter ends a run after a call of one of the tools, as terminal_tools of a file does.
func endAfter(names []string) func(context.Context, llm.ToolCall, llm.ToolResult, error) (llm.ToolResult, error) {
	return func(_ context.Context, call llm.ToolCall, res llm.ToolResult, err error) (llm.ToolResult, error) {
		if err == nil && !res.IsError && slices.Contains(names, call.Name) {
			return res, pawl.FinishError(res)
		}
		return res, err
	}
}

// YAML returns the keys of an agent's file, without its model and its tools.
func (s *Scene) YAML() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("agent: %s", s.Name)
	line("flow: off")
	if s.Setting.Instructions != "" {
		line("instructions: %q", s.Setting.Instructions)
	}
	if s.Setting.Output != "" {
		line("output: %s", s.Setting.Output)
	}
	if names := s.Setting.Terminal; len(names) > 0 {
		line("terminal_tools: [%s]", strings.Join(names, ", "))
	}
	if limits := s.limits(); len(limits) > 0 {
		line("limits: {%s}", strings.Join(limits, ", "))
	}
	if choice := s.choice(); choice != "" {
		line("tool_choice: %s", choice)
	}

	rules := []string{"else: allow"}
	if len(s.Setting.Ask) > 0 {
		rules = append(rules, fmt.Sprintf("ask: [%s]", strings.Join(s.Setting.Ask, ", ")))
	}
	if len(s.Setting.Deny) > 0 {
		rules = append(rules, fmt.Sprintf("deny: [%s]", strings.Join(s.Setting.Deny, ", ")))
	}
	if s.Setting.Expires > 0 {
		rules = append(rules, fmt.Sprintf("within: %s", s.Setting.Expires))
	}
	line("approve: {%s}", strings.Join(rules, ", "))
	return b.String()
}

// limits returns the limits as keys of a file.
func (s *Scene) limits() (keys []string) {
	l := &s.Setting.Limits
	rounds := fmt.Sprint(l.Rounds)
	if l.Rounds == pawl.NoRounds {
		rounds = "0"
	}
	corrections := fmt.Sprint(max(l.Corrections, 0))
	for _, row := range []struct {
		set        bool
		key, value string
	}{
		{l.Rounds != 0, "rounds", rounds},
		{l.Calls != 0, "calls", fmt.Sprint(l.Calls)},
		{l.CallsPerStep != 0, "calls_per_step", fmt.Sprint(l.CallsPerStep)},
		{l.Tokens != 0, "tokens", fmt.Sprint(l.Tokens)},
		{l.Corrections != 0, "corrections", corrections},
		{l.LoopThreshold != 0, "repeats", fmt.Sprint(l.LoopThreshold)},
		{l.AtLimit == pawl.AtLimitReturn, "at_limit", "return"},
	} {
		if row.set {
			keys = append(keys, row.key+": "+row.value)
		}
	}
	return keys
}

// choice returns the tool choice as the value of a key of a file; "" means that it is not set.
func (s *Scene) choice() string {
	c := s.Setting.Choice
	switch c.Mode {
	case llm.ToolNone:
		return "none"
	case llm.ToolRequired:
		return "required"
	case llm.ToolNamed:
		return c.Names[0]
	}
	return ""
}

// record notes an executed call.
func (s *Scene) record(call llm.ToolCall) {
	var args any
	_ = json.Unmarshal(call.Args, &args)
	b, _ := json.Marshal(args)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executed = append(s.executed, call.Name+" "+string(b))
}

// runner executes a call of a tool.
type runner = func(context.Context, arguments) (llm.ToolResult, error)

// tool returns a tool that counts its calls.
func (s *Scene) tool(name, input string, effect pawl.Effect, run runner) *pawl.Tool {
	return &pawl.Tool{
		Name:        name,
		Description: "The tool " + name + " of a test.",
		Input:       json.RawMessage(input),
		Effect:      effect,
		Run: func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			s.record(call)
			var in arguments
			if err := json.Unmarshal(call.Args, &in); err != nil {
				return llm.ToolResult{}, err
			}
			return run(ctx, in)
		},
	}
}

// arguments are the arguments of all tools.
type arguments struct {
	Amount int    `json:"amount"`
	To     string `json:"to"`
	At     string `json:"at"`
}

// The schemas of the tools.
const (
	takesNothing = `{"type":"object"}`
	takesAmount  = `{"type":"object","properties":{"amount":{"type":"integer"},"to":{"type":"string"}},"required":["amount"],"additionalProperties":false}`
	takesPlace   = `{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false}`
)

// The texts of results.
const (
	broken  = "the disk is full"
	ended   = "the report is written"
	long    = 100_000 // bytes of the result of big
	elapses = 20 * time.Millisecond
)

// reply returns a function of a tool with a result that depends on its arguments alone.
func reply(text func(arguments) string) runner {
	return func(_ context.Context, in arguments) (llm.ToolResult, error) {
		return llm.TextResult(text(in)), nil
	}
}

// toolbox returns the tools of every scene.
func (s *Scene) toolbox() []pawl.Toolset {
	paid := reply(func(in arguments) string { return fmt.Sprint("paid ", in.Amount) })
	found := reply(func(in arguments) string { return "found " + in.At })
	tools := []*pawl.Tool{
		s.tool("pay", takesAmount, pawl.EffectWrite, paid),
		s.tool("refund", takesAmount, pawl.EffectWrite, paid),
		s.tool("look", takesPlace, pawl.EffectRead, found),
		s.tool("fail", takesNothing, pawl.EffectRead, func(context.Context, arguments) (llm.ToolResult, error) {
			return llm.ToolResult{}, errors.New(broken)
		}),
		s.tool("big", takesNothing, pawl.EffectRead, reply(func(arguments) string {
			return "head " + strings.Repeat("x", long) + " tail"
		})),
		s.tool("table", takesNothing, pawl.EffectRead, func(context.Context, arguments) (llm.ToolResult, error) {
			res := llm.TextResult(`{"rows":2}`)
			res.Data = json.RawMessage(`{"rows":2}`)
			return res, nil
		}),
		s.tool("meet", takesPlace, pawl.EffectRead, s.meeting()),
	}
	tools = append(tools, s.goTools()...)
	sets := make([]pawl.Toolset, len(tools))
	for i, t := range tools {
		sets[i] = t
	}
	return sets
}

// meeting returns the function of a tool whose calls wait for each other, in pairs.
func (s *Scene) meeting() runner {
	meet := make(chan struct{})
	return func(ctx context.Context, _ arguments) (llm.ToolResult, error) {
		alone := time.After(20 * time.Second)
		select {
		case meet <- struct{}{}:
		case <-meet:
		case <-alone:
			return llm.TextResult("alone"), nil
		case <-ctx.Done():
			return llm.ToolResult{}, ctx.Err()
		}
		return llm.TextResult("met"), nil
	}
}

// goTools returns the tools that only a Go program can give.
func (s *Scene) goTools() []*pawl.Tool {
	slow := s.tool("slow", takesNothing, pawl.EffectWrite, func(ctx context.Context, _ arguments) (llm.ToolResult, error) {
		<-ctx.Done()
		return llm.ToolResult{}, ctx.Err()
	})
	slow.Timeout = elapses

	expert := &pawl.Agent{Name: "expert", Tools: []pawl.Toolset{
		s.tool("study", takesPlace, pawl.EffectRead, reply(func(in arguments) string { return "studied " + in.At })),
	}, Model: script.New(script.Call("study", `{"at":"Rome"}`), script.Say("The expert says yes."))}

	var tries atomic.Int32
	return []*pawl.Tool{
		slow,
		expert.Tool("Asks an expert."),
		{Name: "choose", Description: "Asks the person.", Input: json.RawMessage(takesNothing), Passive: true},
		s.tool("crash", takesNothing, pawl.EffectRead, func(context.Context, arguments) (llm.ToolResult, error) {
			panic("at the wall")
		}),
		s.tool("submit", takesNothing, pawl.EffectRead, func(context.Context, arguments) (llm.ToolResult, error) {
			return llm.ToolResult{}, pawl.FinishError(llm.TextResult(ended))
		}),
		s.tool("abort", takesNothing, pawl.EffectRead, func(context.Context, arguments) (llm.ToolResult, error) {
			return llm.ToolResult{}, pawl.AbortError(errors.New("the vault is open"))
		}),
		s.tool("flaky", takesNothing, pawl.EffectRead, func(context.Context, arguments) (llm.ToolResult, error) {
			if tries.Add(1) == 1 {
				return llm.ToolResult{}, pawl.RetryableError(errors.New("busy"))
			}
			return llm.TextResult("worked"), nil
		}),
	}
}

// Plain returns the tools that a program in another process can give, too.
func (s *Scene) Plain() []pawl.Toolset { return s.Tools[:7] }

// Says returns the messages of the client.
func (s *Scene) Says() []string { return s.says }
