package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/provider"
)

// agentFlags is what run and chat share: the flags that make an agent, and those that keep its transcript.
type agentFlags struct {
	Model   string `placeholder:"PROVIDER:NAME" help:"The model: openai:gpt-5-mini (Responses), anthropic:claude-sonnet-4-5, gemini:NAME, openai-chat:NAME (Chat Completions, which most servers speak), or the name of a server: ollama:NAME, groq:NAME and so on; pawl models list has some."`
	BaseURL string `name:"base-url" placeholder:"URL" help:"Where the provider's API is; usually ends in /v1. Default: the provider's variable (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GEMINI_BASE_URL), then its own address. The provider's key goes there only if it is the provider's own host, that of the variable, or this machine; for others there is --key-env."`
	KeyEnv  string `name:"key-env" placeholder:"NAME" help:"The environment variable that holds the API key; it is sent wherever the request goes. Default: the provider's own variable, such as OPENAI_API_KEY."`
	Driver  string `enum:"native,react,auto" default:"native" placeholder:"DRIVER" help:"How the model calls tools: native (its own function calling), react (decisions written as text, for models without it), or auto: by what the catalogue says of the model. Default: native."`
	Format  string `name:"react-format" enum:"json,text,xml,plain," default:"" placeholder:"FORMAT" help:"How decisions of --driver react (or auto) are written: json, text, xml or plain. Default: json."`
	driverFlags
	System string   `placeholder:"TEXT" help:"Instructions that stand in front of the conversation."`
	Tools  []string `placeholder:"SET" help:"Sets of built-in tools: file, data, http, search (which needs BRAVE_API_KEY, TAVILY_API_KEY or SEARXNG_URL), knowledge (what pawl knowledge add took in), remember (what was said about the user), skill, schedule (what pawl schedules run does later), shell (commands, in a sandbox); docs/tools.md has them all."`
	toolFlags
	outsideFlags
	Passive    string `placeholder:"FILE" help:"Tools that the caller carries out, so their calls are pending: a JSON list of {\"name\",\"description\",\"parameters\"}."`
	Rehearse   string `placeholder:"FILE" help:"A rehearsal: a JSON list of {\"name\",\"description\",\"parameters\",\"results\":[…]}. The n-th call that reaches a tool gets its n-th result."`
	ToolChoice string `name:"tool-choice" placeholder:"CHOICE" help:"auto, none, required or a tool's name, for the first request. Default: OPENAI_TOOL_CHOICE, then auto."`
	limitFlags
	Catalog string `placeholder:"FILE" help:"A catalogue of models of your own in place of the one inside, with prices and what models can do. The form is that of pawl models list --json."`
	Output  string `placeholder:"SCHEMA.json" help:"A JSON Schema that the answer must fit. An answer that does not is sent back to the model, twice at most."`
	ruleFlags
	Save     string `placeholder:"FILE" help:"Where to keep the result, transcript included, however the run ends. JSON."`
	Messages string `placeholder:"FILE" help:"Go on from this: what --save wrote, or a JSON list of messages."`
}

// setup is an agent made from the flags, and what is to be let go of after its last run.
type setup struct {
	agent   *pawl.Agent
	tools   []*pawl.Tool
	secrets *pawl.Redactor // hides them in all that is printed and saved
	db      *database      // what is kept between runs
	close   func()
}

// setup makes the agent. Everything that can be wrong with flags and files is found here, before anything is sent.
func (f *agentFlags) setup(ctx context.Context, sys *system) (s *setup, err error) {
	if f.Model == "" {
		return nil, usage("--model openai:gpt-5-mini, --model anthropic:claude-sonnet-4-5, --model ollama:qwen3:4b, or --model openai-chat:NAME --base-url URL for a server of your own", "no model is named")
	}
	key, err := keyFrom(f.KeyEnv, sys.env)
	if err != nil {
		return nil, err
	}
	known, err := catalogue("--catalog", f.Catalog)
	if err != nil {
		return nil, err
	}
	model, err := provider.Open(f.Model, &provider.Options{BaseURL: f.BaseURL, Key: key, Catalog: known})
	if err != nil {
		return nil, &failure{statusUsage, err, "--model openai:gpt-5-mini, --model anthropic:claude-sonnet-4-5, --model ollama:qwen3:4b, and so on; pawl models list has more"}
	}
	var layers []pawl.Middleware
	if model, layers, err = f.driven(model, known, sys); err != nil {
		return nil, err
	}
	b, err := builtin(f.Tools, f.toolFlags, sys.env, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	others, hidden, err := f.outsideFlags.sets(sys, f.HTTPAllow, false)
	if err != nil {
		return nil, err
	}
	sets := append(b.sets, others...)
	if f.Rehearse != "" {
		tools, err := rehearsal(f.Rehearse)
		if err != nil {
			return nil, err
		}
		sets = append(sets, toolset{"rehearsal", tools})
	}
	all := make([]pawl.Toolset, 0, len(sets)+1)
	for _, set := range sets {
		all = append(all, set.tools)
	}
	if f.Passive != "" {
		tools, err := passiveTools(f.Passive)
		if err != nil {
			return nil, err
		}
		all = append(all, tools)
	}
	a := &pawl.Agent{Name: "pawl", Instructions: f.System, Model: model, Tools: all, Middleware: layers}
	if f.Output != "" {
		if a.Output, err = schemaFile(f.Output); err != nil {
			return nil, err
		}
	}
	if a.Limits, err = f.limits(model, f.Model); err != nil {
		return nil, err
	}
	tools, err := pawl.Toolsets(all).Tools(ctx)
	if err != nil { // two of one name: those of a file can be renamed
		text, _, _ := strings.Cut(err.Error(), ";")
		return nil, usage("rename the one in --passive, --tool-file or --rehearse", "%s", text)
	}
	if err := b.mayCall(ctx, sets); err != nil {
		return nil, err
	}
	for _, t := range tools {
		if err := t.Check(); err != nil {
			return nil, &failure{status: statusUsage, err: err}
		}
	}
	if a.Choice, err = toolChoice(f.ToolChoice, "", sys.env("OPENAI_TOOL_CHOICE"), tools); err != nil {
		return nil, err
	}
	if err := f.rules().Check(tools); err != nil {
		return nil, &failure{status: statusUsage, err: err, hint: "--allow-tool, --ask-tool and --deny-tool take names, patterns (file_*) and effects (effect:write)"}
	}
	return &setup{a, tools, secrets(sys.env, tools, append(hidden, key)...), b.db, b.close}, nil
}

// toolChoice finds the choice: the flag, then a file's, then the environment, then auto; "" stands for not given. A name that no tool has is
// an error, but the environment may name one where no tools are offered at all: then no choice is sent.
func toolChoice(flag, file, env string, tools []*pawl.Tool) (pawl.ToolChoice, error) {
	text, from := flag, "--tool-choice"
	if text == "" {
		text, from = file, "the file's tool choice"
	}
	if text == "" {
		text, from = strings.TrimSpace(env), "OPENAI_TOOL_CHOICE"
		if len(tools) == 0 {
			text = ""
		}
	}
	var c pawl.ToolChoice
	switch text {
	case "", "auto":
	case "none":
		c.Mode = pawl.ToolNone
	case "required":
		c.Mode = pawl.ToolRequired
	default:
		c = pawl.Named(text)
	}
	if err := c.Check(tools); err != nil {
		return c, usage("auto, none, required, or the name of an offered tool", "%s: %s", from, strings.TrimPrefix(err.Error(), "tool choice: "))
	}
	return c, nil
}

// readFile reads a file that the person named.
func readFile(flag, path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("", "%s: %s", flag, plain(err))
	}
	return b, nil
}

// plain words an error about a file without the name of the system call.
func plain(err error) string {
	if p, ok := err.(*os.PathError); ok {
		return p.Path + ": " + p.Err.Error()
	}
	return err.Error()
}

// schemaFile reads a JSON Schema.
func schemaFile(path string) (json.RawMessage, error) {
	b, err := readFile("--output", path)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	err = decode(b, &object)
	if err == nil && object == nil {
		err = errors.New("got null where an object belongs")
	}
	if err != nil {
		return nil, usage("a JSON Schema is an object", "--output %s: %s", path, jsonFault(b, err))
	}
	kinds := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	switch kind, _ := object["type"].(string); {
	case kind == "object" || object["type"] == nil:
		err = (&pawl.Tool{Name: "output", Input: b, Passive: true}).Check() // compiles it
	case kind != "" && !slices.Contains(kinds, kind):
		err = fmt.Errorf("there is no type %q; there are %s", kind, strings.Join(kinds, ", "))
	}
	if err != nil {
		return nil, usage("", "--output %s: %s", path, strings.TrimPrefix(err.Error(), "tool output: input schema: "))
	}
	return b, nil
}
