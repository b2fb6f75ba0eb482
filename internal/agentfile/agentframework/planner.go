package agentframework

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/outside"
)

// planners read the planners of an Agent, by their type; managers has the planners of a
// ManagerAgent.
func planners() map[string]func(*document) {
	return map[string]func(*document){
		"ReActPlanner":        (*document).react,
		"ChatPlanner":         (*document).chat,
		"LLMRouterPlanner":    (*document).llmRouter,
		"SingleActionPlanner": (*document).single,
		"StaticPlanner":       (*document).static,
	}
}

// planner reads the planner, which is most of what an agent is.
func (d *document) planner() {
	name := d.Spec.Planner.Type
	kind := "Agent"
	read, known := planners()[name]
	if _, team := managers[name]; team {
		read = (*document).manager
		kind = "ManagerAgent"
	} else if !known {
		all := slices.AppendSeq(slices.Sorted(maps.Keys(planners())), maps.Keys(managers))
		d.placed(codeUnknownType, "spec.planner.type", nearest.Hint(name, all), "there is no planner of type %q", cut(name))
		return
	}

	if kind != d.Kind {
		d.placed(codeConflict, "spec.planner.type", "kind: "+kind, "%s is a planner of kind %s", name, kind)
	}
	if kind == "Agent" && len(d.Spec.Workers) > 0 {
		d.placed(codeConflict, "spec.workers", "kind: ManagerAgent", "an Agent has no workers")
	}
	read(d)
}

type react struct {
	Gateway         string        `yaml:"inference_gateway" required:"true"`
	Descriptions    []description `yaml:"tool_descriptions"`
	MaxIterations   *int          `yaml:"max_iterations" min:"0"`
	SystemPrompt    string        `yaml:"system_prompt"`
	Terminal        []string      `yaml:"terminal_tools"`
	LLMTermination  *bool         `yaml:"use_llm_termination"`
	FunctionCalling bool          `yaml:"use_function_calling"`
	MaxParallel     *int          `yaml:"max_parallel_tool_calls" min:"1"`
	HistoryFilter   string        `yaml:"history_filter" enum:"default,worker,orchestrator"`
}

type description struct {
	Name        string   `yaml:"name" required:"true"`
	Description string   `yaml:"description"`
	Args        []string `yaml:"args"`
}

const plannerConfig = "spec.planner.config"

// config reads the planner's config.
func (d *document) config(into any) bool {
	return d.read(d.Spec.Planner.Config, into, plannerConfig)
}

// lead takes the model and the instructions from a planner's config.
func (d *document) lead(gateway, prompt string) {
	d.gateway(gateway, plannerConfig+".inference_gateway")
	d.said("instructions", plannerConfig+".system_prompt", prompt)
}

// said writes a text, unless it is empty.
func (d *document) said(path, from, text string) {
	if text != "" {
		d.set(path, from, text)
	}
}

func (d *document) react() {
	var c react
	ok := d.config(&c)
	if d.Spec.Planner.Config.node == nil {
		d.placed(codeMissingKey, "spec.planner", "config: {inference_gateway: NAME}", "the key config is missing")
		return
	}
	if !ok {
		return
	}

	d.lead(c.Gateway, c.SystemPrompt)
	driver := "react"
	if c.FunctionCalling || d.native.ModelName == "mock" { // the mock writes no decisions
		driver = "native"
	}
	d.set("driver", plannerConfig+".use_function_calling", driver)

	if !d.has("limits.rounds") {
		given(d, "limits.rounds", plannerConfig+".max_iterations", c.MaxIterations)
	}
	const from = plannerConfig + ".max_parallel_tool_calls"
	given(d, "limits.calls_per_step", from, c.MaxParallel)
	given(d, "limits.parallel", from, c.MaxParallel)
	if c.MaxParallel != nil && driver == "react" {
		d.set("react.parallel", from, *c.MaxParallel > 1)
	}

	d.reportedIf(c.LLMTermination != nil, plannerConfig+".use_llm_termination",
		"a model ends a run by answering, with any value")
	d.all("terminal_tools", plannerConfig+".terminal_tools", c.Terminal)
	if turns := historyTurns[c.HistoryFilter]; turns > 0 {
		d.set("history.turns", plannerConfig+".history_filter", turns)
	}
	d.tools(c.Descriptions)
}

// historyTurns are the turns that a history_filter sends. A filter that is not listed sends all.
var historyTurns = map[string]int{"worker": 1, "orchestrator": 8}

// tools makes the described tools or, without descriptions, the tools that the agent lists.
func (d *document) tools(described []description) {
	if described == nil {
		for i, name := range d.Spec.Tools {
			d.tool(description{Name: name}, index("spec.tools", i))
		}
		return
	}
	for i, name := range d.Spec.Tools {
		d.resource(d.Resources.Tools, name, index("spec.tools", i), "tool")
	}
	for i, one := range described {
		d.tool(one, index(plannerConfig+".tool_descriptions", i))
	}
}

// toolTypes are the types of tools; each has the key of the same name in the native form.
var toolTypes = []string{"command", "http"}

// tool makes a tool of a resource. Listed arguments select properties of the tool's own schema. For
// a tool without a schema they are required texts.
func (d *document) tool(from description, path string) {
	i, ok := d.resource(d.Resources.Tools, from.Name, path, "tool")
	if !ok {
		return
	}
	res := d.Resources.Tools[i]
	at := index("resources.tools", i)
	if !slices.Contains(toolTypes, res.Type) {
		hint := nearest.Hint(res.Type, toolTypes) + "; docs/outside.md has their config"
		d.placed(codeUnknownType, at+".type", hint, "there is no tool of type %q", cut(res.Type))
		return
	}

	def := d.definition(res, from, path, at)
	d.reportedIf(res.Type == "command" && get(def, "input") == nil, path,
		from.Name+" has neither args nor a schema: it is offered without arguments")
	tool := d.mapping(path)
	put(tool, d.text(at+".type", res.Type), def)
	d.add("tools", path, tool)
}

// definition returns the native definition of the tool of a resource at the path at, as the
// description from at path has it.
func (d *document) definition(res resource, from description, path, at string) *yaml.Node {
	def := d.mapping(at + ".config")
	def.Content = []*yaml.Node{d.text("", "name"), d.text(at+".name", from.Name)}
	if from.Description != "" {
		def.Content = append(def.Content, d.text(path, "description"), d.text(path+".description", from.Description))
	}
	own := get(get(res.Config.node, "input"), "properties")
	if from.Args != nil && own == nil {
		def.Content = append(def.Content, d.text(path, "input"), d.stringsOnly(from.Args, path+".args"))
	}

	// A key that the description replaces is read all the same, so that its faults are reported.
	for key, value := range pairs(res.Config.node) {
		keyPath := at + ".config." + key.Value
		switch {
		case key.Value == "name":
			d.Read(value, new(string), keyPath)
			d.placed(codeConflict, keyPath, "take it out", "a tool has the name of its resource")
		case key.Value == "description" && from.Description != "":
			d.Read(value, new(string), keyPath)
		case key.Value == "input" && from.Args != nil && own == nil:
			d.Read(value, new(outside.JSON), keyPath)
		case key.Value == "input" && from.Args != nil:
			def.Content = append(def.Content, key, d.selected(value, from, path+".args"))
		default:
			def.Content = append(def.Content, key, value)
		}
	}
	return def
}

// selected returns the tool's own schema with the listed arguments and the required ones. They keep
// their types.
func (d *document) selected(own *yaml.Node, from description, path string) *yaml.Node {
	var known []string
	properties := get(own, "properties")
	for name := range pairs(properties) {
		known = append(known, name.Value)
	}
	for i, a := range from.Args {
		if !slices.Contains(known, a) {
			d.placed(codeUnknownKey, index(path, i), nearest.Hint(a, known),
				"the schema of %s has no argument %s", from.Name, cut(a))
		}
	}

	chosen := slices.Clone(from.Args)
	if required := get(own, "required"); required != nil {
		for _, name := range required.Content {
			chosen = append(chosen, name.Value)
		}
	}
	kept := d.mapping(path)
	for name, property := range pairs(properties) {
		if slices.Contains(chosen, name.Value) {
			put(kept, name, property)
		}
	}

	schema := d.mapping(path)
	for key, value := range pairs(own) {
		if key.Value == "properties" {
			value = kept
		}
		put(schema, key, value)
	}
	d.reported(path, "the schema of "+from.Name+" stands: args selects "+strings.Join(from.Args, ", ")+
		" of its arguments, with their own types")
	return schema
}

// stringsOnly is the schema of arguments that are known by name alone: required texts.
func (d *document) stringsOnly(args []string, from string) *yaml.Node {
	properties := d.mapping(from)
	for _, a := range args {
		one := d.mapping(from)
		put(one, d.text(from, "type"), d.text(from, "string"))
		put(properties, d.text(from, a), one)
	}
	schema := d.mapping(from)
	put(schema, d.text(from, "properties"), properties)
	put(schema, d.text(from, "required"), d.value(from, args))
	put(schema, d.text(from, "type"), d.text(from, "object"))
	return schema
}

type chat struct {
	Gateway      string `yaml:"inference_gateway" required:"true"`
	SystemPrompt string `yaml:"system_prompt"`
	MaxMessages  *int   `yaml:"max_history_messages" min:"1"`
}

// chat is a model without tools.
func (d *document) chat() {
	var c chat
	d.config(&c)
	d.lead(c.Gateway, c.SystemPrompt)
	turns := 10 // 20 messages
	if c.MaxMessages != nil {
		turns = (*c.MaxMessages + 1) / 2
	}
	d.set("history.turns", plannerConfig+".max_history_messages", turns)
}

type llmRouter struct {
	Gateway      string    `yaml:"inference_gateway" required:"true"`
	Specs        []toolArg `yaml:"tool_specs"`
	ModelDir     string    `yaml:"default_model_dir"`
	SystemPrompt string    `yaml:"system_prompt"`
	LogDetails   *bool     `yaml:"log_details"`
}

type toolArg struct {
	Tool string   `yaml:"tool" required:"true"`
	Args []string `yaml:"args"`
}

// llmRouter lets the model choose one tool, once.
func (d *document) llmRouter() {
	var c llmRouter
	d.config(&c)
	d.lead(c.Gateway, c.SystemPrompt)
	if c.ModelDir != "" {
		d.placed(codeRefused, plannerConfig+".default_model_dir", "say it in system_prompt",
			"no tool gets an argument that the model did not write")
	}
	d.logDetails(c.LogDetails)

	const from = "spec.planner.type"
	d.set("driver", from, "native")
	d.set("tool_choice", from, "required")
	d.set("limits.rounds", from, 1)
	d.set("limits.calls_per_step", from, 1)

	var described []description
	for _, t := range c.Specs {
		described = append(described, description{Name: t.Tool, Args: t.Args})
	}
	d.tools(described)
}

func (d *document) logDetails(said *bool) {
	d.reportedIf(said != nil, plannerConfig+".log_details", "logging has no switch here: pawl run prints each step")
}

type single struct {
	ToolName string `yaml:"tool_name" required:"true"`
	ToolArgs Node   `yaml:"tool_args"`
	Terminal *bool  `yaml:"terminal"`
}

// single makes one fixed call, and answers with its result.
func (d *document) single() {
	var c single
	d.config(&c)
	args := outside.JSON(`{}`)
	if c.ToolArgs.node != nil {
		if err := args.UnmarshalYAML(c.ToolArgs.node); err != nil {
			d.placed(codeWrongType, plannerConfig+".tool_args", "", "%v", err)
		}
	}
	d.fixed(func(string) (string, json.RawMessage) { return c.ToolName, json.RawMessage(args) })

	d.tools(nil)
	if !d.offers(c.ToolName) {
		d.placed(codeUnknownTool, plannerConfig+".tool_name", nearest.Hint(c.ToolName, d.Spec.Tools),
			"no tool is named %q", cut(c.ToolName))
	}
	if c.Terminal == nil || *c.Terminal {
		d.add("terminal_tools", plannerConfig+".tool_name", c.ToolName)
	}
}

type static struct {
	Keywords []string `yaml:"keywords"`
}

// searchTool is the tool that a StaticPlanner calls.
const searchTool = "mock_search"

// static calls the search if the task has one of the words, and answers otherwise.
func (d *document) static() {
	c := static{Keywords: []string{"search", "find"}}
	d.config(&c)
	d.fixed(func(task string) (string, json.RawMessage) {
		for _, word := range c.Keywords {
			if strings.Contains(strings.ToLower(task), strings.ToLower(word)) {
				args, _ := json.Marshal(map[string]string{"query": task})
				return searchTool, args
			}
		}
		return "", nil
	})

	d.tools(nil)
	if !d.offers(searchTool) {
		d.placed(codeUnknownTool, "spec.tools", "a resource of that name",
			"StaticPlanner calls the tool %s, which is not among the tools", searchTool)
	}
}

// offers reports whether a tool of this name was made.
func (d *document) offers(name string) bool {
	tools := get(d.native.Agent, "tools")
	return tools != nil && slices.ContainsFunc(tools.Content,
		func(t *yaml.Node) bool { return get(t.Content[1], "name").Value == name })
}

// fixed gives the agent a model that is no language model: it makes the call that decide returns
// for the task, and answers with its result. An empty name means no call.
func (d *document) fixed(decide func(task string) (name string, args json.RawMessage)) {
	d.native.ModelName = "script:" + d.Spec.Planner.Type
	d.native.Model = script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if results := script.Results(req); results != nil {
			var all []string
			for _, r := range results {
				all = append(all, r.Text())
			}
			return script.Say(strings.Join(all, "\n"))
		}

		task := lastTask(req)
		name, args := decide(task)
		if name == "" {
			return script.Say("No tool is meant for this task: " + task)
		}
		return script.Call(name, json.RawMessage(bytes.Clone(args)))
	})))
}

// lastTask returns the text of the user's last message.
func lastTask(req *llm.Request) string {
	task := ""
	for _, m := range req.Messages {
		if m.Role == llm.RoleUser {
			task = m.Text()
		}
	}
	return task
}
