package assemble

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/outside"
)

// AgentFlags are the flags that describe an agent. The commands run, chat and schedules run share
// them.
type AgentFlags struct {
	FileFlags   `group:"agent"`
	Model       string      `group:"agent" placeholder:"PROVIDER:NAME" help:"@agent_model"`
	BaseURL     cli.Address `group:"agent" name:"base-url" placeholder:"URL" help:"@agent_baseurl"`
	KeyEnv      string      `group:"agent" name:"key-env" placeholder:"NAME" help:"@agent_keyenv"`
	driverFlags `group:"agent"`
	System      string   `group:"agent" placeholder:"TEXT" help:"@agent_system"`
	Tools       []string `group:"tools" placeholder:"SET" help:"@agent_tools"`
	ToolFlags   `group:"tools"`
	OutsideFlags
	mcpFlags
	Passive    string `group:"tools" placeholder:"FILE" help:"@agent_passive" rare:""`
	Rehearse   string `group:"tools" placeholder:"FILE" help:"@agent_rehearse" rare:""`
	ToolChoice string `group:"agent" placeholder:"CHOICE" help:"@agent_toolchoice" rare:""`
	limitFlags `group:"limits"`
	Catalog    string `group:"agent" placeholder:"FILE" help:"@agent_catalog" rare:""`
	Output     string `group:"agent" placeholder:"SCHEMA.json" help:"@agent_output"`
	ruleFlags  `group:"rules"`

	more    []string          // tool sets after the sets of the file and of Tools
	carry   http.RoundTripper // sends the requests to providers; nil means the default
	offline bool              // carry answers by itself, so no key is needed
}

// TranscriptFlags save a transcript to a file and resume a run from a transcript.
type TranscriptFlags struct {
	Save     string `group:"transcript" placeholder:"FILE" help:"@transcript_save"`
	Messages string `group:"transcript" placeholder:"FILE" help:"@transcript_messages"`
}

// Setup is an agent built from flags and a file, with the resources to close after its last run.
type Setup struct {
	Agent   *pawl.Agent      // its Model is nil if none is named and Prepare does not require one
	File    *agentfile.Agent // the description of the agent
	Built   *agentfile.Built // what it describes, such as its file tools
	Model   string           // the name of the model; "" means none
	Window  int              // the context window of the model in tokens; 0 means unknown
	Taken   int              // tokens of the instructions and tools, approximately
	Rules   policy.Rules
	Tools   []*pawl.Tool
	Secrets *redact.Redactor              // hides secrets in all output and in saved files
	DB      *agentfile.Database           // data that outlives a run
	Own     []string                      // the state of the runtime, which no tool reaches
	Around  func(pawl.Runner) pawl.Runner // traces and logs the runs; nil means no telemetry
	Close   func()
	Asks    questionBox // answers the questions of MCP servers

	// Ask asks the person at the terminal about calls that policy wants approved. nil means that
	// there is no person.
	Ask func(ctx context.Context, policy pawl.Approver, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error)
}

// FileHere returns agent.yaml if it is in the current folder: the file that pawl init writes, which
// commands take if they are given neither a file nor a model. Empty means that it is not there.
func FileHere() string {
	const name = "agent.yaml"
	if _, err := os.Stat(name); err != nil {
		return ""
	}
	return name
}

// Setup builds the agent for the person at the command line: the agent of a file with the flags
// over it. An empty file name means no file. It returns errors in flags and files before anything
// is sent.
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
	o.Bare = bare
	o.ForAll = forAll
	if !forAll { // runs and threads belong to the user whom the tools act for
		f.StoreFlags = StoreFlags{a.Store.DB, a.Store.Tenant, a.Store.User}
	}

	// The person who answers is known only after the build, so both ask s at each call.
	s := new(Setup)
	o.Inner = func(r policy.Rules) pawl.Middleware { return s.workerRules(r, &f.ruleFlags) }
	if sys.InTerm && sys.ErrTerm && !bare {
		o.Ask = s.Asks.question
	}
	built, err := a.Build(ctx, o)
	if err != nil {
		return nil, Misconfigured(err)
	}
	if err := WithoutCaller(sys, built.Agent.Name, built.ForCallers); err != nil {
		built.Close()
		return nil, err
	}

	s.Rules = built.Rules
	if a.Handoffs != nil { // each agent has its own rules
		s.Rules = policy.Rules{Default: pawl.VerdictAllow}
	}
	// The calls of a team's workers have rules of their own, over which the flags are set too.
	if a.Team != nil || a.Handoffs != nil {
		if err := f.ruleFlags.addToTeam(&s.Rules, built); err != nil {
			built.Close()
			return nil, err
		}
	}
	s.File = a
	s.Agent = built.Agent
	s.Tools = built.Tools
	s.Built = built
	s.DB = built.DB
	s.Own = a.Own(sys.Env)
	s.Close = built.Close
	s.Window = built.Window
	_, s.Taken = built.Room()
	if len(a.Model) > 0 {
		s.Model = a.Model[0].Name
	}
	s.Secrets = Secrets(sys.Env, append(slices.Clip(built.Tools), built.Within...), built.Hidden...)
	return s, nil
}

// options returns the options that the flags set in addition to the agent.
func (f *AgentFlags) options(sys *cli.System) (*agentfile.Options, error) {
	o, err := BuildOptions(sys)
	if err != nil {
		return nil, err
	}
	o.HTTP = f.carry
	o.Offline = f.offline
	// AskPerson adds the approvals, because it knows whom to ask
	o.Approve = func(policy.Rules) pawl.Middleware { return pawl.Middleware{} }
	if f.AllowCommands {
		o.Commands = outside.Exec
	}

	rehearsals, err := definedTools("--rehearse", f.Rehearse, true, rehearsed)
	if err != nil {
		return nil, err
	}
	passives, err := definedTools("--passive", f.Passive, false, passive)
	o.Tools = append(rehearsals, passives...)
	return o, err
}

// over writes the flags over the agent.
func (f *AgentFlags) over(a *agentfile.Agent) error {
	// These two begin anew: other flags, such as --base-url, then fill what is empty. The settings
	// of the file belong to the file's own model and driver.
	if f.Model != "" {
		a.Model = make(agentfile.Models, 1)
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
			a.Tools = append(a.Tools, agentfile.Tool{Set: name})
		}
		a.Override("tools")
	}
	for _, name := range f.more {
		a.Override(fmt.Sprintf("tools[%d]", len(a.Tools)))
		a.Tools = append(slices.Clip(a.Tools), agentfile.Tool{Set: name})
	}
	if f.ToolChoice != "" {
		a.Choice = agentfile.Choice{f.ToolChoice}
		a.Override("tool_choice")
	}
	if f.Output != "" {
		a.Output = &agentfile.Output{File: f.Output}
		a.Override("output")
	}
	f.ruleFlags.over(a)
	return f.ServerFlags.Over(a)
}

// Misconfigured returns the failure of an agent that could not be built. It lists each finding with
// its place in a file, or with its flag.
func Misconfigured(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return cli.Failed(err)
	}
	all := agentfile.FindingsOf(err)
	if all == nil {
		return cli.Fail(cli.StatusUsage, err, "")
	}

	var lines []string
	hint := ""
	for i, one := range all {
		f := *one
		if i == 0 { // its hint has a line of its own
			hint = f.Hint
			f.Hint = ""
		}
		if f.File == "" {
			// A finding uses the words of a file, and the person has typed flags.
			if f.Code == agentfile.CodeMissingKey && f.Path == "model" {
				hint = modelHint
			}
			if f.Code == agentfile.CodeDuplicateTool {
				hint = "rename the tool of --passive, --tool-file or --rehearse"
				f.Path = ""
			}
			f.Path = flagAt(f.Path)
		}
		lines = append(lines, f.Error())
	}
	return cli.Fail(cli.StatusUsage, &misconfigured{strings.Join(lines, "\n"), err}, hint)
}

// misconfigured is findings in the words of flags.
type misconfigured struct {
	text  string
	cause error // the findings
}

// Error returns the findings in the words of flags.
func (m *misconfigured) Error() string { return m.text }

// Unwrap returns the findings, for errors.Is.
func (m *misconfigured) Unwrap() error { return m.cause }

// modelHint shows how a model is named.
const modelHint = "--model openai:gpt-6.1-terra, --model anthropic:claude-sonnet-5-5, --model ollama:qwen3:4b, " +
	"or --model openai-chat:NAME --base-url URL for a server of your own"

// AddTools adds tool sets to the tools of the agent.
func (f *AgentFlags) AddTools(sets ...string) { f.more = append(f.more, sets...) }

// CarryBy sends the requests to providers through rt. offline says that rt answers them itself, so
// that no key is needed.
func (f *AgentFlags) CarryBy(rt http.RoundTripper, offline bool) {
	f.carry = rt
	f.offline = offline
}
