package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-go/pawl/cmd/pawl/internal/doctor"
	"github.com/pawl-go/pawl/cmd/pawl/internal/runs"
	"github.com/pawl-go/pawl/cmd/pawl/internal/serve"
	"github.com/pawl-go/pawl/cmd/pawl/internal/tui"
)

// grammar is the command line. Each field is a command, in the file of its name.
type grammar struct {
	Demo       demo.Cmd          `cmd:"" help:"@grammar_demo"`
	Run        runCmd            `cmd:"" help:"Carry out one task."`
	Chat       tui.ChatCmd       `cmd:"" help:"Talk with an agent, line by line."`
	Runs       runs.Cmd          `cmd:"" help:"Durable runs: list, show, resume, replay, fork."`
	Inbox      runs.InboxCmd     `cmd:"" help:"What waits for a person, over all runs."`
	Effects    runs.EffectsCmd   `cmd:"" help:"@grammar_effects"`
	Check      checkCmd          `cmd:"" help:"@grammar_check"`
	Serve      serve.Cmd         `cmd:"" help:"Serve agents over HTTP."`
	Worker     serve.WorkerCmd   `cmd:"" help:"Do the work of runs on a Temporal cluster."`
	Init       initCmd           `cmd:"" help:"Write an agent's file to begin with."`
	Tools      toolsCmd          `cmd:"" help:"List, show and call the built-in tools."`
	Knowledge  knowledgeCmd      `cmd:"" help:"Take documents in, and search them."`
	Memory     memoryCmd         `cmd:"" help:"What is remembered of users: list, forget."`
	Skills     skillsCmd         `cmd:"" help:"@grammar_skills"`
	Threads    threadsCmd        `cmd:"" help:"@grammar_threads"`
	Schedules  runs.SchedulesCmd `cmd:"" help:"@grammar_schedules"`
	MCP        mcpCmd            `cmd:"" name:"mcp" help:"@grammar_mcp"`
	Models     modelsCmd         `cmd:"" help:"List what is known of models."`
	Wire       wireCmd           `cmd:"" help:"@grammar_wire"`
	Hostile    serve.HostileCmd  `cmd:"" help:"@grammar_hostile"`
	Doctor     doctor.Cmd        `cmd:"" help:"@grammar_doctor"`
	Completion completionCmd     `cmd:"" help:"@grammar_completion"`
	Man        manCmd            `cmd:"" help:"@grammar_man"`
	Version    versionCmd        `cmd:"" help:"Print the version."`
}

const about = `Runs agents that call tools.

Begin with: pawl demo

Exit status: 0 answered; 1 failed, or turned in circles; 2 the command line, a file or the configuration is wrong; ` +
	`3 calls wait for a person or the caller; 4 a limit was reached; 130 interrupted.`

// execute parses the command line, carries the command out, tells what went wrong, and returns the
// exit status.
func execute(args []string, sys *cli.System) (status int) {
	defer func() {
		v := recover()
		if e, ok := v.(exited); ok {
			status = int(e)
		} else if v != nil { // a stack trace is no message for a person
			status = cli.Report(sys.Err, cli.Fail(cli.StatusFailed, fmt.Errorf("internal error: %v", v),
				"this is a mistake in pawl; PAWL_TRACE=1 shows where"))
			if sys.Env("PAWL_TRACE") != "" {
				panic(v)
			}
		}
	}()
	if len(args) > 0 && args[0] == completeWord {
		return cli.Report(sys.Err, complete(args[1:], sys))
	}
	k, err := parser(sys)
	if err != nil {
		return cli.Report(sys.Err, err)
	}
	ctx, err := k.Parse(args)
	if err != nil {
		return cli.Report(sys.Err, misused(err))
	}
	return cli.Report(sys.Err, ctx.Run(sys))
}

// exited is how kong ends the program after it has shown help.
type exited int

// parser makes the grammar into what parses command lines, and knows the help.
func parser(sys *cli.System) (*kong.Kong, error) {
	k, err := kong.New(&grammar{}, kong.Name("pawl"), kong.Description(about), kong.Writers(sys.Out, sys.Err),
		flagGroups, cli.HelpTexts(),
		kong.Exit(func(status int) { panic(exited(status)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}))
	if err == nil {
		addExamples(k.Model.Node, "")
	}
	return k, err
}

// commandNames are the names of all commands.
func commandNames() string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[grammar]()) {
		names = append(names, strings.ToLower(f.Name))
	}
	return strings.Join(names, ", ")
}

// misused words a mistake on the command line, and points to the help of the command that was
// meant.
func misused(err error) error {
	path := "pawl"
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context != nil {
		if node := p.Context.Selected(); node != nil {
			path = node.FullPath()
		} else if path = strings.TrimSpace("pawl " + p.Context.Command()); p.Context.Command() == "" {
			path = "pawl"
		}
	}
	text := strings.TrimSuffix(err.Error(), ".")
	switch {
	case path == "pawl" && strings.HasPrefix(text, "expected one of"):
		return cli.Usage("begin with: pawl demo; or see: pawl --help", "there is no command; there are %s",
			commandNames())
	case path == "pawl" && strings.HasPrefix(text, "unexpected argument"):
		return cli.Usage("there are "+commandNames()+"; see: pawl --help", "%s", text)
	case strings.HasPrefix(text, `expected "<`):
		text = "an argument is missing: " + strings.ToUpper(strings.Trim(strings.TrimPrefix(text, "expected "), `"<>. `))
	}
	return cli.Usage(path+" --help", "%s", text)
}
