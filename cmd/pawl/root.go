package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-go/pawl/cmd/pawl/internal/doctor"
	"github.com/pawl-go/pawl/cmd/pawl/internal/eval"
	"github.com/pawl-go/pawl/cmd/pawl/internal/runs"
	"github.com/pawl-go/pawl/cmd/pawl/internal/serve"
	"github.com/pawl-go/pawl/cmd/pawl/internal/tui"
	"github.com/pawl-go/pawl/internal/nearest"
)

// grammar is the command line. Each field is a command. Help shows the commands of the group more
// below the others.
type grammar struct {
	Demo       demo.Cmd          `cmd:"" help:"@grammar_demo"`
	Init       initCmd           `cmd:"" help:"Write a first agent's file."`
	Run        runCmd            `cmd:"" help:"Execute one task."`
	Chat       tui.ChatCmd       `cmd:"" help:"Talk with an agent, line by line."`
	Serve      serve.Cmd         `cmd:"" help:"Serve agents over HTTP."`
	Check      checkCmd          `cmd:"" help:"@grammar_check"`
	Doctor     doctorCmd         `cmd:"" help:"@grammar_doctor"`
	Runs       runs.Cmd          `cmd:"" group:"more" help:"@grammar_runs"`
	WhatIf     runs.WhatIfCmd    `cmd:"" group:"more" name:"what-if" help:"@grammar_whatif"`
	Approve    runs.ApproveCmd   `cmd:"" group:"more" help:"@grammar_approve"`
	Inbox      runs.InboxCmd     `cmd:"" group:"more" help:"@grammar_inbox"`
	Effects    runs.EffectsCmd   `cmd:"" group:"more" help:"@grammar_effects"`
	Eval       eval.Cmd          `cmd:"" group:"more" help:"@grammar_eval"`
	Worker     serve.WorkerCmd   `cmd:"" group:"more" help:"@grammar_worker"`
	Tools      toolsCmd          `cmd:"" group:"more" help:"@grammar_tools"`
	Knowledge  knowledgeCmd      `cmd:"" group:"more" help:"Add documents, and search them."`
	Memory     memoryCmd         `cmd:"" group:"more" help:"Memories: list, show, confirm, forget."`
	Skills     skillsCmd         `cmd:"" group:"more" help:"@grammar_skills"`
	Threads    threadsCmd        `cmd:"" group:"more" help:"@grammar_threads"`
	Schedules  runs.SchedulesCmd `cmd:"" group:"more" help:"@grammar_schedules"`
	Undo       undoCmd           `cmd:"" group:"more" help:"@grammar_undo"`
	DB         dbCmd             `cmd:"" group:"more" name:"db" help:"@grammar_db"`
	MCP        mcpCmd            `cmd:"" group:"more" name:"mcp" help:"@grammar_mcp"`
	Models     modelsCmd         `cmd:"" group:"more" help:"@grammar_models"`
	Completion completionCmd     `cmd:"" group:"more" help:"@grammar_completion"`
	Man        manCmd            `cmd:"" group:"more" help:"@grammar_man"`
	Version    versionCmd        `cmd:"" group:"more" help:"Print the version."`
}

// doctorCmd has the checks of this machine, and of the stored runs.
type doctorCmd struct {
	Machine doctor.Cmd       `cmd:"" default:"withargs" help:"@doctor_machine"`
	Runs    runs.LivenessCmd `cmd:"" help:"@doctor_runs"`
}

// execute parses the command line, executes the command, reports its error, and returns the exit
// status.
func execute(args []string, sys *cli.System) (status int) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case exited:
			status = int(v)
		default:
			// A person needs a message, and no stack trace.
			status = cli.Report(sys.Err, cli.Fail(cli.StatusFailed, fmt.Errorf("internal error: %v", v),
				"this is a bug in pawl; PAWL_TRACE=1 shows the stack"))
			if sys.Env("PAWL_TRACE") != "" {
				panic(v)
			}
		}
	}()

	switch {
	case len(args) == 0:
	case args[0] == completeWord:
		return cli.Report(sys.Err, complete(args[1:], sys))
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version" || args[0] == "-v":
		args = []string{"version"}
	}

	// The parser is made before --help-all becomes --help, which hides the rare flags.
	k, err := parser(sys, args...)
	if err != nil {
		return cli.Report(sys.Err, err)
	}
	if i := slices.Index(args, "--help-all"); i >= 0 {
		args = slices.Replace(slices.Clone(args), i, i+1, "--help")
	}

	ctx, err := k.Parse(args)
	if err != nil {
		return cli.Report(sys.Err, misused(err))
	}
	return cli.Report(sys.Err, ctx.Run(sys))
}

// exited is the panic value by which kong ends the program after it has shown help.
type exited int

// parser returns the parser of command lines that start as args do.
func parser(sys *cli.System, args ...string) (*kong.Kong, error) {
	usual := slices.Contains(args, "--help") || slices.Contains(args, "-h")
	k, err := kong.New(
		reflect.New(grammarOf(args)).Interface(),
		kong.Name("pawl"),
		kong.Description("Runs agents that call tools."),
		kong.Writers(sys.Out, sys.Err),
		kong.Exit(func(status int) { panic(exited(status)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		cli.HelpTexts(usual),
		flagGroups,
		enums,
	)
	if err != nil {
		return nil, err
	}
	addHelp(k.Model.Node)
	k.Model.HelpFlag.Help = "Show help; --help-all also shows the rare flags."
	return k, nil
}

// grammarOf returns the grammar for a command line. If args start with the name of a command, the
// grammar has that command alone: the whole grammar would take a quarter of the time of a short
// command.
func grammarOf(args []string) reflect.Type {
	whole := reflect.TypeFor[grammar]()
	if len(args) == 0 {
		return whole
	}
	for _, f := range reflect.VisibleFields(whole) {
		if args[0] != commandName(f) {
			continue
		}
		// Its own commands would inherit the group, and stand under "More commands" in its help.
		f.Tag = reflect.StructTag(strings.Replace(string(f.Tag), ` group:"more"`, "", 1))
		return reflect.StructOf([]reflect.StructField{f})
	}
	return whole
}

// commandName returns the name of the command of a field of the grammar.
func commandName(f reflect.StructField) string {
	return cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))
}

// commandNames returns the names of all commands.
func commandNames() string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[grammar]()) {
		names = append(names, commandName(f))
	}
	return strings.Join(names, ", ")
}

// misused returns the failure for a wrong command line. Its hint names the help of the command.
func misused(err error) error {
	node, path := commandOf(err)
	text := strings.TrimSuffix(err.Error(), ".")
	for _, w := range wrongValues {
		text = w.kong.ReplaceAllString(text, w.plain)
	}

	// kong's own suggestion follows a comma, and knows similar names only.
	if flag, ok := strings.CutPrefix(text, "unknown flag --"); ok && node != nil {
		flag, _, _ = strings.Cut(flag, ",")
		if near := nearFlag(node, flag); near != "" {
			return cli.Usage("did you mean --"+near+"? see: "+path+" --help", "unknown flag --%s", flag)
		}
	}

	// kong names five commands at most, and a beginner has to find the others.
	switch {
	case path == "pawl" && strings.HasPrefix(text, "expected one of"):
		return cli.Usage("begin with: pawl demo; or see: pawl --help", "there is no command; there are %s",
			commandNames())
	case path == "pawl" && strings.HasPrefix(text, "unexpected argument"):
		return cli.Usage("there are "+commandNames()+"; see: pawl --help", "%s", text)
	case strings.HasPrefix(text, `expected "<`):
		name := strings.Trim(strings.TrimPrefix(text, "expected "), `"<>. `)
		text = "an argument is missing: " + strings.ToUpper(name)
	}
	return cli.Usage(path+" --help", "%s", text)
}

// commandOf returns the command whose line is wrong, and its words. A nil node means that no
// command was recognized.
func commandOf(err error) (node *kong.Node, path string) {
	var p *kong.ParseError
	if !errors.As(err, &p) || p.Context == nil {
		return nil, "pawl"
	}
	if node = p.Context.Selected(); node != nil {
		return node, node.FullPath()
	}
	return nil, strings.TrimSpace("pawl " + p.Context.Command())
}

// wrongValues are the texts for values of the wrong kind. They replace the texts of kong.
var wrongValues = []struct {
	kong  *regexp.Regexp
	plain string
}{
	{
		regexp.MustCompile(`expected duration but got ("[^"]*").*`),
		`want a time with a unit, such as 90s or 10m, got $1`,
	},
	{
		regexp.MustCompile(`expected a float but got ("[^"]*").*`),
		`want a number, such as 0.50, got $1`,
	},
	{
		regexp.MustCompile(`expected (a|an|a valid 64 bit) int(eger)? but got ("[^"]*").*`),
		`want a whole number, got $3`,
	},
}

// nearFlag returns the flag of a command that is probably meant: a flag with the word in its name,
// or with a similar name. "" means none.
func nearFlag(node *kong.Node, word string) string {
	var names []string
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			names = append(names, f.Name)
		}
	}

	for _, name := range names {
		if strings.HasSuffix(name, "-"+word) || strings.HasPrefix(name, word+"-") {
			return name
		}
	}
	// The usual names of other servers are not similar to ours.
	if slices.Contains([]string{"addr", "address", "listen", "port"}, word) && slices.Contains(names, "http") {
		return "http"
	}
	return nearest.Word(word, names)
}

// flagGroups are the flags that several commands share. The help, the man pages and docs/cli.md
// show them under these titles.
var flagGroups = kong.ExplicitGroups([]kong.Group{
	{Key: "more", Title: "More commands:"},
	{Key: "agent", Title: "The agent:"},
	{Key: "tools", Title: "Its tools:"},
	{Key: "limits", Title: "Limits:"},
	{Key: "rules", Title: "What may run:"},
	{Key: "settle", Title: "Decisions on pending calls:"},
	{Key: "transcript", Title: "The transcript:"},
	{Key: "store", Title: "The database and its user:"},
	{Key: "durable", Title: "Durable runs:"},
	{Key: "record", Title: "Recordings:"},
	{Key: "telemetry", Title: "Telemetry:"},
})

// enums are lists of values that are too long for a struct tag.
var enums = kong.Vars{
	"effects":  "intended,started,completed,failed,unknown,",
	"failures": ",failed,changed,crashed",
	"states":   "open,waiting,failed,over,",
	"kinds":    "minimal,coding,research,support,extraction",
}

// helpTexts has the help of each command with its examples, under a heading of the command's words.
//
//go:embed help.txt
var helpTexts string

// examplesTitle stands above the examples of a command.
const examplesTitle = "Examples:\n\n"

// addHelp adds the texts of help.txt to a command and the commands below it.
func addHelp(n *kong.Node) {
	_, text, _ := strings.Cut(helpTexts, "\n\n["+strings.TrimPrefix(n.FullPath(), "pawl ")+"]\n")
	text, _, _ = strings.Cut(text, "\n\n[")
	n.Detail = strings.TrimSpace(n.Detail + "\n\n" + strings.TrimSpace(text))
	for _, child := range n.Children {
		addHelp(child)
	}
}

type versionCmd struct{}

// Run prints the version, the commit if it is known, and the Go version.
func (versionCmd) Run(sys *cli.System) error {
	_, err := fmt.Fprintln(sys.Out, cli.Version(debug.ReadBuildInfo()))
	return err
}
