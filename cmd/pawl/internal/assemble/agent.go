package assemble

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/tools/outside"
)

// AgentFlags are the flags that make an agent. run, chat and schedules run share them.
type AgentFlags struct {
	FileFlags   `group:"agent"`
	Model       string `group:"agent" placeholder:"PROVIDER:NAME" help:"@agent_model"`
	BaseURL     string `group:"agent" name:"base-url" placeholder:"URL" help:"@agent_baseurl"`
	KeyEnv      string `group:"agent" name:"key-env" placeholder:"NAME" help:"@agent_keyenv"`
	driverFlags `group:"agent"`
	System      string   `group:"agent" placeholder:"TEXT" help:"@agent_system"`
	Tools       []string `group:"tools" placeholder:"SET" help:"@agent_tools"`
	ToolFlags   `group:"tools"`
	OutsideFlags
	mcpFlags
	Passive    string `group:"tools" placeholder:"FILE" help:"@agent_passive"`
	Rehearse   string `group:"tools" placeholder:"FILE" help:"@agent_rehearse"`
	ToolChoice string `group:"agent" name:"tool-choice" placeholder:"CHOICE" help:"@agent_toolchoice"`
	limitFlags `group:"limits"`
	Catalog    string `group:"agent" placeholder:"FILE" help:"@agent_catalog"`
	Output     string `group:"agent" placeholder:"SCHEMA.json" help:"@agent_output"`
	ruleFlags  `group:"rules"`

	carry   http.RoundTripper // carries the requests to providers; nil: the default
	offline bool              // carry answers by itself, and no key is needed
}

// TranscriptFlags save a transcript to a file and resume from one.
type TranscriptFlags struct {
	Save     string `group:"transcript" placeholder:"FILE" help:"@transcript_save"`
	Messages string `group:"transcript" placeholder:"FILE" help:"@transcript_messages"`
}

// Setup is an agent built from flags and a file, with the resources to close after its last run.
type Setup struct {
	Agent   *pawl.Agent   // its Model is nil where none was named and none had to be
	File    *config.Agent // what it was made of
	Model   string        // its name
	Rules   policy.Rules
	Tools   []*pawl.Tool
	Secrets *redact.Redactor              // hides them in all that is printed and saved
	DB      *config.Database              // what is kept between runs
	Around  func(pawl.Runner) pawl.Runner // tells of its runs; nil: nobody is told
	Close   func()
	Asks    questionBox // what MCP servers want to know

	// ask asks the person at the terminal about calls that a policy wants asked about. nil means
	// that there is no person.
	Ask func(ctx context.Context, policy pawl.Approver, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error)
}

// Setup builds the agent for the person at the command line: the agent of a file ("" means no file)
// with the flags over it. Errors in flags and files are found here, before anything is sent.
func (f *AgentFlags) Setup(ctx context.Context, sys *cli.System, file string) (*Setup, error) {
	return f.Build(ctx, sys, file, false, false)
}

// Build builds the agent as Setup does. bare says that no model needs to be named. forAll says that
// the agent is for all users: its tools act for the scope in the context of each call.
func (f *AgentFlags) Build(ctx context.Context, sys *cli.System, file string, bare, forAll bool) (*Setup, error) {
	a, err := f.Read(file, sys)
	if err != nil {
		return nil, err
	}
	if err := f.over(a); err != nil {
		return nil, err
	}
	o, err := f.options(sys)
	if err != nil {
		return nil, err
	}
	o.Bare, o.ForAll = bare, forAll
	s := new(Setup)
	o.Inner = func(r policy.Rules) pawl.Middleware { return s.workerRules(r, &f.ruleFlags) }
	if sys.InTerm && sys.ErrTerm && !bare {
		o.Ask = s.Asks.question
	}
	built, err := a.Build(ctx, o)
	if err != nil {
		return nil, Misconfigured(err)
	}
	name := ""
	if len(a.Model) > 0 {
		name = a.Model[0].Name
	}
	s.Rules = a.Rules()
	if a.Team != nil {
		if err := f.ruleFlags.addToTeam(&s.Rules, built); err != nil {
			built.Close()
			return nil, err
		}
	}
	s.Agent, s.File, s.Model, s.Tools, s.DB = built.Agent, a, name, built.Tools, built.DB
	s.Secrets = Secrets(sys.Env, append(slices.Clip(built.Tools), built.Within...), built.Hidden...)
	s.Close = built.Close
	return s, nil
}

// options are what the flags say that is no part of an agent.
func (f *AgentFlags) options(sys *cli.System) (*config.Options, error) {
	o := &config.Options{Getenv: sys.Env, Tell: sys.Notice, HTTP: f.carry, Offline: f.offline}
	// added when it is known whom to ask
	o.Approve = func(policy.Rules) pawl.Middleware { return pawl.Middleware{} }
	if f.AllowCommands {
		o.Commands = outside.Exec
	}
	if f.Rehearse != "" {
		tools, err := rehearsal(f.Rehearse)
		if err != nil {
			return nil, err
		}
		o.Tools = append(o.Tools, tools)
	}
	if f.Passive != "" {
		tools, err := passiveTools(f.Passive)
		if err != nil {
			return nil, err
		}
		o.Tools = append(o.Tools, tools)
	}
	return o, nil
}

// over writes the flags over the agent.
func (f *AgentFlags) over(a *config.Agent) error {
	if f.Model != "" {
		a.Model = make(config.Models, 1)
		a.Override("model")
	}
	if f.Driver != "" {
		a.React = nil
		a.Override("react")
	}
	Apply(f, a)
	if f.Tools != nil {
		a.Tools = nil
		for _, name := range f.Tools {
			a.Tools = append(a.Tools, config.Tool{Set: name})
		}
		a.Override("tools")
	}
	if f.ToolChoice != "" {
		a.Choice = config.Choice{f.ToolChoice}
		a.Override("tool_choice")
	}
	if f.Output != "" {
		a.Output = &config.Output{File: f.Output}
		a.Override("output")
	}
	f.ruleFlags.over(a)
	return f.ServerFlags.Over(a)
}

// Misconfigured returns the failure of an agent that could not be built: each finding with its
// place in a file, or with its flag.
func Misconfigured(err error) error {
	all := config.FindingsOf(err)
	if all == nil {
		return cli.Fail(cli.StatusUsage, err, "")
	}
	var lines []string
	hint := ""
	for i, one := range all {
		f := *one
		if i == 0 {
			hint, f.Hint = f.Hint, ""
		}
		if f.File == "" {
			if f.Code == config.CodeMissingKey && f.Path == "model" {
				hint = "--model openai:gpt-5-mini, --model anthropic:claude-sonnet-4-5, --model ollama:qwen3:4b, or --model openai-chat:NAME --base-url URL for a server of your own"
			}
			if f.Code == config.CodeDuplicateTool {
				hint, f.Path = "rename the one in --passive, --tool-file or --rehearse", ""
			}
			f.Path = flagAt(f.Path)
		}
		lines = append(lines, f.Error())
	}
	return cli.Fail(cli.StatusUsage, errors.New(strings.Join(lines, "\n")), hint)
}

// CarryBy sends the requests to providers through rt. With offline rt answers them itself, and no
// key is needed.
func (f *AgentFlags) CarryBy(rt http.RoundTripper, offline bool) { f.carry, f.offline = rt, offline }
