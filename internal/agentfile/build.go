package agentfile

// build.go: Build makes a pawl.Agent of an Agent.

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/internal/agentfile/agentframework"
	"github.com/pawl-go/pawl/internal/notify"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/outside"
)

// Options configure Build. Nil and the zero value are for a program that runs the agent.
type Options struct {
	// Getenv returns the value of a variable, or "". Nil means os.Getenv.
	Getenv func(string) string

	// Tools are offered after the tools of the agent.
	Tools []pawl.Toolset

	// Dry is for an agent that will not run. Nothing has to be set up on this machine, no program
	// is looked for, and no MCP server is asked: its tools are those in tools.lock.
	Dry bool

	// Connect asks MCP servers in a dry build, too. This starts the programs of some.
	Connect bool

	// Bare allows an agent without a model, for a program that needs its tools alone.
	// Built.Agent.Model is then nil.
	Bare bool

	// ForAll is for an agent that serves many users: its tools act for the scope of each call's
	// context (store.WithScope) instead of the scope of Agent.Store.
	ForAll bool

	// HTTP sends the requests to providers. Nil means the default transport.
	HTTP http.RoundTripper

	// Offline means that HTTP answers by itself: models need no keys, and no variables with keys.
	Offline bool

	// Commands runs the programs of command tools. outside.Exec runs them with this user's rights.
	// Nil means a sandbox of the level Agent.Sandbox.
	Commands outside.Runner

	// Own are files and folders that no tool reaches, such as the program's file of tokens, in
	// addition to Agent.Own. Empty names are ignored.
	Own []string

	// Notice receives remarks, such as the driver that was chosen or a tool that was left out. Nil
	// means that they are dropped.
	Notice func(text string)

	// Ask asks a person a question of an MCP server. Nil means that every question is declined.
	Ask func(context.Context, mcp.Question) (mcp.Answer, error)

	// Approve makes the middleware that approves calls. Nil means the middleware of the rules.
	Approve func(r policy.Rules) pawl.Middleware

	// Inner is Approve for the workers of a team, whose calls are nested in others. Nil means the
	// middleware of their rules.
	Inner func(r policy.Rules) pawl.Middleware

	// flow is the mode of policy.Flow of the team around the agent. Empty means no team.
	flow string

	// Catalog has the facts about models for agents that name no catalogue. Nil means the built-in
	// one.
	Catalog *catalog.Catalog

	// Now is the time that the announced ends of models are compared with. Nil means time.Now.
	Now func() time.Time

	// Warned has the ends of models that were reported. Builds that share it, one after another,
	// report each end once. Nil means a map for this build.
	Warned map[string]bool
}

// Built is an agent that is ready to run. Call Close after its last run.
type Built struct {
	Agent *pawl.Agent

	// Tools are the tools that the agent offers: a team's own, and workers as tools.
	Tools []*pawl.Tool

	// Within are the tools of a team's workers, at any depth.
	Within []*pawl.Tool

	// Hidden are values that no output may show: keys, and variables in headers.
	Hidden []string

	// Side answers the requests of chat programs that Agent.AllowsSide names. Nil means no model.
	Side llm.Model

	// ForCallers are the tools and, as mcp:NAME, the MCP servers that act in the name of the caller
	// of a run. Without a caller the calls of the tools are refused, and an agent with such
	// a server begins no run.
	ForCallers []string

	// Window is the context window of the agent's model in tokens. 0 means unknown.
	Window int

	// Channels are the ways to notify people of runs, and Apps answer questions with buttons.
	Channels []notify.Channel
	Apps     []*notify.SlackApp

	// Rules decide which calls need an approval. Their flow knows which part of the instructions
	// others wrote.
	Rules policy.Rules

	// Files are the file tools of the agent. Nil means that it has none.
	Files *file.Set

	// DB has the data between runs. It is opened at its first use.
	DB *Database

	// Close releases what the agent and its tools have open. It is not nil.
	Close func()

	script *script.Model // its model, if that plays written turns; nil means another model
}

// builder makes one agent.
type builder struct {
	agent   *Agent
	opts    Options
	env     func(string) string
	known   *catalog.Catalog
	foreign string                     // the part of the instructions that others wrote
	hidden  []string                   // values that no output may show
	secrets *redact.Redactor           // hides them in results of tools
	callers []string                   // Built.ForCallers
	kept    []pawl.Middleware          // of the built-in sets
	pinned  func([]llm.Message) string // returns what stays in sight; nil means nothing
	unseen  []string                   // name prefixes of unknown tools: their server was not asked
	script  *script.Model              // the first model that plays written turns; nil means none
}

// own returns the state of the runtime, which no tool of the agent reaches.
func (b *builder) own() protect.Own {
	return protect.NewOwn(slices.Concat(b.agent.Own(b.env), b.opts.Own)...)
}

// minSecret is the minimum length of a value that is hidden in results. Shorter ones, such as
// "none" for a server without keys, are ordinary words.
const minSecret = 8

// learnSecrets collects the values that no result of a tool may show.
func (b *builder) learnSecrets() {
	b.secrets = new(redact.Redactor)
	for _, value := range slices.Concat(b.hidden, b.agent.hidden()) {
		if len(value) >= minSecret {
			_ = b.secrets.Add(value) // the length is checked
		}
	}
}

// notice passes a remark to the program.
func (b *builder) notice(text string) {
	if b.opts.Notice != nil {
		b.opts.Notice(text)
	}
}

// Build makes a pawl.Agent and checks all of a before anything is sent. The error is a *Finding or
// Findings.
func (a *Agent) Build(ctx context.Context, o *Options) (*Built, error) {
	b := &builder{agent: a}
	b.opts = *cmp.Or(o, new(Options))
	b.env = b.opts.Getenv
	if b.env == nil {
		b.env = os.Getenv
	}
	if b.opts.Warned == nil {
		b.opts.Warned = map[string]bool{}
	}

	built, err := b.build(caller.OutsideRuns(ctx))
	if err != nil {
		all := FindingsOf(err)
		for _, f := range all {
			a.found(f)
		}
		slices.SortStableFunc(all, func(a, b *Finding) int { return a.Line - b.Line })
		return nil, err
	}
	return built, nil
}

// build makes the agent in the order in which its faults are reported: the model, the tools, what
// is sent with a request, and the policies.
func (b *builder) build(ctx context.Context) (built *Built, err error) {
	b.known, err = b.agent.catalog(&b.opts)
	if err != nil {
		return nil, err
	}
	model, err := b.openModel()
	if err != nil {
		return nil, err
	}
	b.warnEndings()

	named, db, closeSets, err := b.sets(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeSets()
		}
	}()
	if b.opts.Dry {
		b.needsSearch()
		b.needsSandbox()
	}
	sets := b.flat(named)
	if err = b.offered(ctx, sets); err != nil {
		return nil, err
	}

	out, err := b.configured(model)
	if err != nil {
		return nil, err
	}
	b.learnSecrets()
	tools, err := b.equip(ctx, out, b.around(sets), db)
	if err != nil {
		return nil, err
	}
	out.Middleware, err = b.middleware(model)
	if err != nil {
		return nil, err
	}

	built = &Built{
		Agent:  out,
		Tools:  tools,
		Rules:  b.rules(),
		Files:  filesOf(named),
		DB:     db,
		Close:  closeSets,
		script: b.script,
	}
	return built, b.complete(ctx, built)
}

// configured returns an agent with the model and what is sent with each request, without tools.
func (b *builder) configured(model agentModel) (out *pawl.Agent, err error) {
	a := b.agent
	out = &pawl.Agent{Name: cmp.Or(a.Name, "pawl"), Model: model.driven}
	out.Instructions, out.Label, err = b.instructions()
	if err != nil {
		return nil, err
	}
	out.Output, err = a.output()
	if err != nil {
		return nil, err
	}
	out.Limits, err = b.limits(model.opened)
	if err != nil {
		return nil, err
	}
	if n := a.Limits.Parallel; n != nil {
		out.Parallel.Limit = *n
	}
	out.Settings = a.settings()
	return out, nil
}

// equip gives out the tools of sets and its tool choice, and checks what names them. It returns the
// tools of sets.
func (b *builder) equip(ctx context.Context, out *pawl.Agent, sets []pawl.Toolset, db *Database) ([]*pawl.Tool, error) {
	tools, err := pawl.Toolsets(sets).Tools(ctx)
	if err != nil {
		return nil, err
	}

	// The reader of what left the window, or was too large for it, is not one of the agent's own
	// tools: no rule names it.
	out.Tools = sets
	if b.agent.windowed() && out.Model != nil && len(tools) > 0 {
		out.Tools = append(slices.Clip(sets), artifact.Reader{})
		out.Artifacts = &artifacts{db: db}
	}

	if err = b.scheduled(tools); err != nil {
		return nil, err
	}
	out.Choice, err = b.choice(append(slices.Clip(tools), b.agent.workers()...))
	return tools, err
}

// middleware returns the layers of the agent, outermost first.
func (b *builder) middleware(model agentModel) ([]pawl.Middleware, error) {
	bounds, err := b.policies()
	if err != nil {
		return nil, err
	}
	guards, err := b.guards()
	if err != nil {
		return nil, err
	}
	window := b.agent.history(model.driven, b.pinned)
	// Innermost: all others see what it leaves.
	results := []pawl.Middleware{redact.Results(b.secrets)}
	return slices.Concat(guards, b.kept, model.layers, window, bounds, b.approval(), results), nil
}

// complete adds the side model, the hidden values, the window and the team, and checks the agent as
// a whole.
func (b *builder) complete(ctx context.Context, built *Built) (err error) {
	built.Side, err = b.side(built.Agent.Model)
	if err != nil {
		return err
	}
	built.Hidden = append(b.hidden, b.agent.hidden()...) // the keys of all models are known
	built.Window = b.window()
	built.ForCallers = b.callers
	if err := b.notified(built); err != nil {
		return err
	}

	if len(b.agent.group().Workers) > 0 && built.Agent.Model != nil {
		if err := b.team(ctx, built); err != nil {
			return err
		}
	}
	if built.Agent.Model == nil {
		return nil
	}
	return faults(built.Agent.Check(ctx))
}

// window returns the context window of the agent's model in tokens: the number of the key
// history.window, else the catalogue's. 0 means that it is unknown.
func (b *builder) window() int {
	if len(b.agent.Model) == 0 {
		return 0
	}
	known, _ := b.known.Lookup(b.agent.Model[0].Name)
	if h := b.agent.History; h != nil && h.Window != nil {
		return cmp.Or(h.Window.Tokens, known.Window)
	}
	return known.Window
}

// joined is an error of errors.Join.
type joined interface {
	Unwrap() []error
}

// faults returns the findings for the error of pawl.Agent.Check. A missing key is left to the run,
// because another machine may have it.
func faults(err error) error {
	many, ok := err.(joined)
	if !ok {
		return err
	}

	var all Findings
	for _, one := range many.Unwrap() {
		path, inner := fieldsAtFault(one)
		if inner == "model" {
			continue
		}
		code := CodeBadValue
		switch path {
		case "tools":
			code = CodeBadTool
		case "choice":
			path = "tool_choice"
		case "middleware", "artifacts": // no key of a file
			path = ""
		}
		all = append(all, finding(code, path, "", "%v", errors.Unwrap(one)))
	}
	return all.err()
}

// fieldsAtFault returns the field of the agent that an error of pawl.Agent.Check is about and, if
// that has the error from an agent among its tools, the innermost field.
func fieldsAtFault(err error) (outer, inner string) {
	for ; err != nil; err = errors.Unwrap(err) {
		if f, ok := err.(*pawl.FieldError); ok {
			inner, _, _ = strings.Cut(strings.ToLower(f.Field), "[")
			outer = cmp.Or(outer, inner)
		}
	}
	return outer, inner
}

// rules returns the rules of the agent. The instructions are known.
func (b *builder) rules() policy.Rules {
	r := b.agent.Rules()
	r.Flow.Foreign = b.foreign
	r.Flow.Mode = stricter(r.Flow.Mode, b.opts.flow)
	return r
}

// approval returns the middleware of the agent's rules, or the middleware that the options make of
// them.
func (b *builder) approval() []pawl.Middleware {
	approve := b.opts.Approve
	if approve != nil && b.agent.Handoffs != nil { // the rules of each agent are for its own calls
		approve = b.opts.Inner
	}
	r := b.rules()
	if approve == nil {
		return []pawl.Middleware{r.Middleware()}
	}
	return []pawl.Middleware{approve(r), {Tool: r.Middleware().Tool}}
}

// choiceVariable is the environment variable with the tool choice of an agent that states none.
const choiceVariable = "OPENAI_TOOL_CHOICE"

// offered checks the tools of sets, and reports names in the agent's rules that none of them has.
func (b *builder) offered(ctx context.Context, sets []pawl.Toolset) error {
	all, err := pawl.Toolsets(sets).Tools(ctx)
	if err != nil {
		return finding(CodeBadTool, "tools", "", "%v", err)
	}
	for _, t := range all {
		if err := t.Check(); err != nil {
			return finding(CodeBadTool, "tools", "", "%v", err)
		}
	}
	return b.ruled(all)
}

// choice returns the tool choice of the agent, then of the environment, then auto. A name that no
// tool has is an error. If no tools are offered at all, a choice of the environment is not sent.
func (b *builder) choice(tools []*pawl.Tool) (c llm.ToolChoice, err error) {
	names := b.agent.Choice
	source := "" // of a choice that is not the agent's
	if len(names) == 0 && len(tools) > 0 {
		if text := strings.TrimSpace(b.env(choiceVariable)); text != "" {
			names = choiceOf(text)
			source = choiceVariable + ": "
		}
	}

	specs := make([]*llm.ToolSpec, len(tools))
	for i, t := range tools {
		specs[i] = t.Spec()
	}
	c = names.choice()
	err = c.Check(specs)
	switch {
	case err == nil:
		return c, nil

	// A server that was not asked may have the tool.
	case slices.ContainsFunc(c.Names, b.mayBe):
		return llm.ToolChoice{}, nil
	}

	f := finding(CodeUnknownTool, "tool_choice", "auto, none, required, or the name of an offered tool",
		"%s%s", source, strings.TrimPrefix(err.Error(), "tool choice: "))
	if source != "" {
		f.Path = ""
	}
	return c, f
}

// choiceOf reads a tool choice of the environment: a word, the name of a tool, or OpenAI's object
// that names a function.
func choiceOf(text string) Choice {
	if name, err := agentframework.ForcedTool([]byte(text)); err == nil {
		return Choice{name}
	}
	return Choice{text}
}
