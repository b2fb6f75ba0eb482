package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/outside"
)

// plannerType is a type of planner.
type plannerType struct {
	name string
	team bool
	read func(*seedReading)
}

func planners() []plannerType {
	return []plannerType{
		{"ReActPlanner", false, (*seedReading).react},
		{"ChatPlanner", false, (*seedReading).chat},
		{"LLMRouterPlanner", false, (*seedReading).llmRouter},
		{"SingleActionPlanner", false, (*seedReading).single},
		{"StaticPlanner", false, (*seedReading).static},
		{"WorkerRouterPlanner", true, (*seedReading).manager},
		{"StrategicPlanner", true, (*seedReading).manager},
		{"StrategicDecomposerPlanner", true, (*seedReading).manager},
		{"ManagerScriptPlanner", true, (*seedReading).manager},
	}
}

// planner reads the planner, which is most of what an agent is.
func (s *seedReading) planner() {
	var all []string
	for _, p := range planners() {
		if all = append(all, p.name); p.name != s.doc.Spec.Planner.Type {
			continue
		}
		if p.team != (s.doc.Kind == "ManagerAgent") {
			kind := "Agent"
			if p.team {
				kind = "ManagerAgent"
			}
			s.placed(CodeConflict, "spec.planner.type", "kind: "+kind, "%s is a planner of kind %s", p.name, kind)
		}
		if !p.team && len(s.doc.Spec.Workers) > 0 {
			s.placed(CodeConflict, "spec.workers", "kind: ManagerAgent", "an Agent has no workers")
		}
		p.read(s)
		return
	}
	s.placed(CodeUnknownType, "spec.planner.type", among(s.doc.Spec.Planner.Type, all), "there is no planner of type %q", cut(s.doc.Spec.Planner.Type))
}

type seedReact struct {
	Gateway         string            `yaml:"inference_gateway" required:"true"`
	Descriptions    []seedDescription `yaml:"tool_descriptions"`
	MaxIterations   *int              `yaml:"max_iterations" min:"0"`
	SystemPrompt    string            `yaml:"system_prompt"`
	Terminal        []string          `yaml:"terminal_tools"`
	LLMTermination  *bool             `yaml:"use_llm_termination"`
	FunctionCalling bool              `yaml:"use_function_calling"`
	MaxParallel     *int              `yaml:"max_parallel_tool_calls" min:"1"`
	HistoryFilter   string            `yaml:"history_filter" enum:"default,worker,orchestrator"`
}

type seedDescription struct {
	Name        string   `yaml:"name" required:"true"`
	Description string   `yaml:"description"`
	Args        []string `yaml:"args"`
}

const plannerConfig = "spec.planner.config"

func (s *seedReading) react() {
	var c seedReact
	before := len(s.findings)
	s.doc.Spec.Planner.Config.as(s.reading, &c, plannerConfig)
	if s.doc.Spec.Planner.Config.node == nil {
		s.placed(CodeMissingKey, "spec.planner", "config: {inference_gateway: NAME}", "the key config is missing")
	}
	if len(s.findings) > before {
		return
	}
	a := s.a
	s.gateway(c.Gateway, plannerConfig+".inference_gateway")
	s.set("instructions", &a.Instructions, c.SystemPrompt, plannerConfig+".system_prompt")
	a.Driver = "react"
	if c.FunctionCalling {
		a.Driver = "native"
	}
	s.moved("driver", plannerConfig+".use_function_calling")
	if c.MaxIterations != nil && a.Limits.Rounds == nil {
		a.Limits.Rounds = c.MaxIterations
		s.moved("limits.rounds", plannerConfig+".max_iterations")
	}
	if c.MaxParallel != nil {
		a.Limits.CallsPerStep, a.Limits.Parallel = c.MaxParallel, c.MaxParallel
		s.moved("limits.calls_per_step", plannerConfig+".max_parallel_tool_calls")
		if a.Driver == "react" {
			a.React = &React{Parallel: *c.MaxParallel > 1}
		}
	}
	if c.LLMTermination != nil {
		s.reported(plannerConfig+".use_llm_termination", "a model ends a run by answering, whatever this says")
	}
	for i, name := range c.Terminal {
		s.moved(index("terminal_tools", len(a.Terminal)), index(plannerConfig+".terminal_tools", i))
		a.Terminal = append(a.Terminal, name)
	}
	switch turns := 1; c.HistoryFilter {
	case "orchestrator":
		turns = 8
		fallthrough
	case "worker":
		a.History = &History{Turns: &turns}
	}
	s.tools(c.Descriptions)
}

// set sets a text of the agent, and its place.
func (s *seedReading) set(path string, field *string, said, from string) {
	if said != "" {
		*field = said
		s.moved(path, from)
	}
}

// tools makes the tools: those that are described, or, without descriptions, those that the agent lists.
func (s *seedReading) tools(described []seedDescription) {
	if described == nil {
		for i, name := range s.doc.Spec.Tools {
			s.tool(seedDescription{Name: name}, index("spec.tools", i))
		}
		return
	}
	for i, name := range s.doc.Spec.Tools {
		s.resource(s.doc.Resources.Tools, name, index("spec.tools", i), "tool")
	}
	for i, d := range described {
		s.tool(d, index(plannerConfig+".tool_descriptions", i))
	}
}

// tool makes one tool of a resource. Arguments that are listed are texts, and required; without a list the tool's own schema is taken.
func (s *seedReading) tool(d seedDescription, path string) {
	i, ok := s.resource(s.doc.Resources.Tools, d.Name, path, "tool")
	if !ok {
		return
	}
	res, at := s.doc.Resources.Tools[i], index("resources.tools", i)
	var t Tool
	var input *outside.JSON
	switch res.Type {
	case "command":
		t.Command = new(outside.Command)
		res.Config.as(s.reading, t.Command, at+".config")
		input = &t.Command.Input
		s.named(&t.Command.Name, &t.Command.Description, d, at)
	case "http":
		t.HTTP = new(outside.HTTP)
		s.headers(res.Config.node)
		res.Config.as(s.reading, t.HTTP, at+".config")
		input = &t.HTTP.Input
		s.named(&t.HTTP.Name, &t.HTTP.Description, d, at)
	default:
		s.placed(CodeUnknownType, at+".type", among(res.Type, []string{"command", "http"})+"; their config is that of docs/outside.md", "there is no tool of type %q", cut(res.Type))
		return
	}
	switch {
	case d.Args != nil:
		*input = outside.JSON(stringsOnly(d.Args))
	case len(*input) == 0 && t.HTTP == nil:
		s.reported(path, "%s has neither args nor a schema: it is offered without arguments", d.Name)
	}
	s.moved(index("tools", len(s.a.Tools)), path)
	s.a.Tools = append(s.a.Tools, t)
}

// named gives a tool the name of its resource, and the description that the model is told.
func (s *seedReading) named(name, description *string, d seedDescription, at string) {
	if *name != "" {
		s.placed(CodeConflict, at+".config.name", "take it out", "the name of a tool is that of the resource")
	}
	*name, *description = d.Name, cmp.Or(d.Description, *description)
}

type seedChat struct {
	Gateway      string `yaml:"inference_gateway" required:"true"`
	SystemPrompt string `yaml:"system_prompt"`
	MaxMessages  *int   `yaml:"max_history_messages" min:"1"`
}

// chat is a model without tools.
func (s *seedReading) chat() {
	c := seedChat{}
	s.doc.Spec.Planner.Config.as(s.reading, &c, plannerConfig)
	s.gateway(c.Gateway, plannerConfig+".inference_gateway")
	s.set("instructions", &s.a.Instructions, c.SystemPrompt, plannerConfig+".system_prompt")
	turns := 10 // 20 messages
	if c.MaxMessages != nil {
		turns = (*c.MaxMessages + 1) / 2
	}
	s.a.History = &History{Turns: &turns}
}

type seedLLMRouter struct {
	Gateway      string        `yaml:"inference_gateway" required:"true"`
	Specs        []seedToolArg `yaml:"tool_specs"`
	ModelDir     string        `yaml:"default_model_dir"`
	SystemPrompt string        `yaml:"system_prompt"`
	LogDetails   *bool         `yaml:"log_details"`
}

type seedToolArg struct {
	Tool string   `yaml:"tool" required:"true"`
	Args []string `yaml:"args"`
}

// llmRouter lets the model choose one tool, once.
func (s *seedReading) llmRouter() {
	var c seedLLMRouter
	s.doc.Spec.Planner.Config.as(s.reading, &c, plannerConfig)
	s.gateway(c.Gateway, plannerConfig+".inference_gateway")
	s.set("instructions", &s.a.Instructions, c.SystemPrompt, plannerConfig+".system_prompt")
	if c.ModelDir != "" {
		s.placed(CodeRefused, plannerConfig+".default_model_dir", "say it in system_prompt", "no tool gets an argument that the model did not write")
	}
	if c.LogDetails != nil {
		s.reported(plannerConfig+".log_details", "logging has no switch here: pawl run tells each step")
	}
	one := 1
	s.a.Driver, s.a.Choice, s.a.Limits.Rounds, s.a.Limits.CallsPerStep = "native", Choice{"required"}, &one, &one
	var described []seedDescription
	for _, t := range c.Specs {
		described = append(described, seedDescription{Name: t.Tool, Args: t.Args})
	}
	s.tools(described)
}

type seedSingle struct {
	ToolName string `yaml:"tool_name" required:"true"`
	ToolArgs raw    `yaml:"tool_args"`
	Terminal *bool  `yaml:"terminal"`
}

// single makes one fixed call, and tells what it gave.
func (s *seedReading) single() {
	var c seedSingle
	s.doc.Spec.Planner.Config.as(s.reading, &c, plannerConfig)
	args := outside.JSON(`{}`)
	if c.ToolArgs.node != nil {
		if err := args.UnmarshalYAML(c.ToolArgs.node); err != nil {
			s.placed(CodeWrongType, plannerConfig+".tool_args", "", "%v", err)
		}
	}
	s.fixed(func(string) (string, json.RawMessage) { return c.ToolName, json.RawMessage(args) })
	s.tools(nil)
	if !s.offers(c.ToolName) {
		s.placed(CodeUnknownTool, plannerConfig+".tool_name", among(c.ToolName, s.doc.Spec.Tools), "no tool is named %q", cut(c.ToolName))
	}
	if c.Terminal == nil || *c.Terminal {
		s.a.Terminal = append(s.a.Terminal, c.ToolName)
	}
}

type seedStatic struct {
	Keywords []string `yaml:"keywords"`
}

// searchTool is what a StaticPlanner calls.
const searchTool = "mock_search"

// static calls the search when the task has one of the words, and answers otherwise.
func (s *seedReading) static() {
	c := seedStatic{Keywords: []string{"search", "find"}}
	s.doc.Spec.Planner.Config.as(s.reading, &c, plannerConfig)
	s.fixed(func(task string) (string, json.RawMessage) {
		for _, word := range c.Keywords {
			if strings.Contains(strings.ToLower(task), strings.ToLower(word)) {
				args, _ := json.Marshal(map[string]string{"query": task})
				return searchTool, args
			}
		}
		return "", nil
	})
	s.tools(nil)
	if !s.offers(searchTool) {
		s.placed(CodeUnknownTool, "spec.tools", "a resource of that name", "StaticPlanner calls the tool %s, which is not among the tools", searchTool)
	}
}

func (s *seedReading) offers(name string) bool {
	for _, t := range s.a.Tools {
		if t.Command != nil && t.Command.Name == name || t.HTTP != nil && t.HTTP.Name == name {
			return true
		}
	}
	return false
}

// fixed gives the agent a model that is no language model: it makes the call that decide finds for the task ("": none), and tells its result.
func (s *seedReading) fixed(decide func(task string) (name string, args json.RawMessage)) {
	m := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if results := script.Results(req); results != nil {
			var all []string
			for _, r := range results {
				all = append(all, r.Text())
			}
			return script.Say(strings.Join(all, "\n"))
		}
		task := ""
		for _, m := range req.Messages {
			if m.Role == llm.RoleUser {
				task = m.Text()
			}
		}
		name, args := decide(task)
		if name == "" {
			return script.Say("No tool is meant for this task: " + task)
		}
		return script.Call(name, json.RawMessage(bytes.Clone(args)))
	})))
	s.a.Model = Models{{Name: "script:" + s.doc.Spec.Planner.Type, made: m}}
}
