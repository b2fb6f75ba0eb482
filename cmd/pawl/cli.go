package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// grammar is the command line. Each field is a command, in the file of its name.
type grammar struct {
	Demo       demoCmd       `cmd:"" help:"Watch an agent do a real task: no key, no network."`
	Run        runCmd        `cmd:"" help:"Carry out one task."`
	Chat       chatCmd       `cmd:"" help:"Talk with an agent, line by line."`
	Runs       runsCmd       `cmd:"" help:"Durable runs: list, show, resume, replay, fork."`
	Inbox      inboxCmd      `cmd:"" help:"What waits for a person, over all runs."`
	Effects    effectsCmd    `cmd:"" help:"What runs did to the world, and what is known of it."`
	Record     recordCmd     `cmd:"" help:"Recordings of what providers said: import."`
	Check      checkCmd      `cmd:"" help:"Say what is wrong with an agent's file, and what it comes to."`
	Serve      serveCmd      `cmd:"" help:"Serve agents over HTTP."`
	Worker     workerCmd     `cmd:"" help:"Do the work of runs on a Temporal cluster."`
	Init       initCmd       `cmd:"" help:"Write an agent's file to begin with."`
	Tools      toolsCmd      `cmd:"" help:"List, show and call the built-in tools."`
	Knowledge  knowledgeCmd  `cmd:"" help:"Take documents in, and search them."`
	Memory     memoryCmd     `cmd:"" help:"What is remembered of users: list, forget."`
	Skills     skillsCmd     `cmd:"" help:"Skills that models have made: list, show, delete."`
	Threads    threadsCmd    `cmd:"" help:"Conversations that chat keeps: list, show, delete."`
	Schedules  schedulesCmd  `cmd:"" help:"What is to be done later: list, show, run, delete."`
	MCP        mcpCmd        `cmd:"" name:"mcp" help:"Servers of the Model Context Protocol: serve, list, lock."`
	Models     modelsCmd     `cmd:"" help:"List what is known of models."`
	Wire       wireCmd       `cmd:"" help:"Translate requests and replies to and from a provider's form."`
	Hostile    hostileCmd    `cmd:"" help:"Play models that behave badly, to pawl or to any runtime."`
	Doctor     doctorCmd     `cmd:"" help:"Look at this machine: sandbox, keys, models, database, agents."`
	Completion completionCmd `cmd:"" help:"Print what makes a shell complete command lines of pawl."`
	Man        manCmd        `cmd:"" help:"Show the manual of a command, or write all of it as man pages."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

const about = `Runs agents that call tools.

Begin with: pawl demo

Exit status: 0 answered; 1 failed, or turned in circles; 2 the command line, a file or the configuration is wrong; ` +
	`3 calls wait for a person or the caller; 4 a limit was reached; 130 interrupted.`

// system is what a command has of the world around it, so that tests can give it another one.
type system struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	inTerm   bool                 // in is a terminal
	outTerm  bool                 // out is one
	errTerm  bool                 // err is one
	width    int                  // columns
	inFile   *os.File             // in, where it is a file
	errFile  *os.File             // err, where it is one
	console  interface{ Close() } // the terminal that err and out are written to; nil means plain streams
	under    *system              // what it was without the console
	name     string               // what the person types to start the program; "": pawl
}

// self is how the program is started, for advice.
func (s *system) self() string {
	if s.name == "" {
		return "pawl"
	}
	return s.name
}

// here is the system the program was started in.
func here() *system {
	s := &system{in: os.Stdin, out: os.Stdout, err: os.Stderr, inFile: os.Stdin, errFile: os.Stderr, env: os.Getenv, width: 80,
		inTerm: term.IsTerminal(int(os.Stdin.Fd())), outTerm: term.IsTerminal(int(os.Stdout.Fd())), errTerm: term.IsTerminal(int(os.Stderr.Fd()))}
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			s.width = max(24, min(w, 120))
			break
		}
	}
	if strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") { // by go run
		s.name = "go run ./cmd/pawl"
	}
	return s
}

// colours returns the style for a stream: colours on a terminal, unless NO_COLOR or a dumb terminal forbids them.
func (s *system) colours(terminal bool) style {
	return style{terminal && s.console == nil && s.env("NO_COLOR") == "" && s.env("TERM") != "dumb"}
}

// execute parses the command line, carries the command out, tells what went wrong, and returns the exit status.
func execute(args []string, sys *system) (status int) {
	defer func() {
		v := recover()
		if e, ok := v.(exited); ok {
			status = int(e)
		} else if v != nil { // a stack trace is no message for a person
			status = tell(sys.err, fail(statusFailed, fmt.Errorf("internal error: %v", v), "this is a mistake in pawl; PAWL_TRACE=1 shows where"))
			if sys.env("PAWL_TRACE") != "" {
				panic(v)
			}
		}
	}()
	if len(args) > 0 && args[0] == completeWord {
		return tell(sys.err, complete(args[1:], sys))
	}
	k, err := parser(sys)
	if err != nil {
		return tell(sys.err, err)
	}
	ctx, err := k.Parse(args)
	if err != nil {
		return tell(sys.err, misused(err))
	}
	return tell(sys.err, ctx.Run(sys))
}

// exited is how kong ends the program after it has shown help.
type exited int

// parser makes the grammar into what parses command lines, and knows the help.
func parser(sys *system) (*kong.Kong, error) {
	k, err := kong.New(&grammar{}, kong.Name("pawl"), kong.Description(about), kong.Writers(sys.out, sys.err), flagGroups,
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

// misused words a mistake on the command line, and points to the help of the command that was meant.
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
		return usage("begin with: pawl demo; or see: pawl --help", "there is no command; there are %s", commandNames())
	case path == "pawl" && strings.HasPrefix(text, "unexpected argument"):
		return usage("there are "+commandNames()+"; see: pawl --help", "%s", text)
	case strings.HasPrefix(text, `expected "<`):
		text = "an argument is missing: " + strings.ToUpper(strings.Trim(strings.TrimPrefix(text, "expected "), `"<>. `))
	}
	return usage(path+" --help", "%s", text)
}

// whole is a whole number on the command line. One below 0 is read like any other, so that whoever takes it can say what is wrong with it.
type whole int

// Decode reads the number.
func (n *whole) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().IsEOL() {
		return errors.New("a whole number is missing")
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	v, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("want a whole number, got %q", text)
	}
	*n = whole(v)
	return nil
}
