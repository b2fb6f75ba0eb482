// Package code gives a model execute_code: it writes a program that calls tools, with conditions, loops and data flow, where it would need many requests otherwise.
//
//	run := code.New(code.Embedded(nil), nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{search, fetch, run}}
//
// The program has call_tool, try_call, call_tools_parallel, set_result and print, and nothing else of the world: what it does, it does by calls, and each goes
// through the pipeline like a call of the model's: checks, approval, budget, slots, events with keys. So the tool composes (pawl.Compose).
//
// There are two interpreters. Which one is decided when the tool is made, and told to the model; none takes the place of the other:
//
//	Python    python3 in the sandbox: the whole language and its standard library. Where there is no python3, or the sandbox cannot be enforced, each program
//	          is refused with the reason
//	Embedded  Starlark, a dialect of Python, inside this process: needs nothing, starts in microseconds, same every time, bounded in steps and memory; without import, try, class
//
// Where the run's executor is a pawl.Replayer, a call of the program can wait for a person: the program ends, and is run again from its beginning once there is an answer,
// with what its calls gave before. Hashes, random numbers and the clock are the same then; a program that asks for something else all the same ends as diverged.
package code

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
)

// Options are what New can be told. Nil and the zero value take the defaults.
type Options struct {
	Time   time.Duration // of a program that names no timeout, without the time of its calls; 30 s, at most 300 s
	Output int           // bytes of the result as JSON, and of all that is told of a program; 64 KiB
	Calls  int           // that a program may make; 200
}

const (
	defaultTime   = 30 * time.Second
	mostTime      = 300 * time.Second
	defaultOutput = 64 << 10
	defaultCalls  = 200
	maxCode       = 64 << 10 // what parses that cannot nest too deep
)

// Interpreter runs programs: *PythonInterpreter, *EmbeddedInterpreter.
type Interpreter interface {
	// Name returns python or embedded.
	Name() string
	// Check says why no program can be run here; nil: they can.
	Check() error

	run(ctx context.Context, p program, h *host) ended
}

var (
	_ Interpreter = (*PythonInterpreter)(nil)
	_ Interpreter = (*EmbeddedInterpreter)(nil)
)

// program is a program and what it may use.
type program struct {
	code   string
	seed   uint32
	since  time.Time // its clock begins there
	time   time.Duration
	output int
}

// New returns the tool execute_code, whose programs in runs. The error says which option is out of its range. An interpreter that is nil is an error too.
func New(in Interpreter, opts *Options) (*pawl.Tool, error) {
	t := &executor{in: in}
	if opts != nil {
		t.opts = *opts
	}
	if in == nil {
		return nil, errors.New("code tool: no interpreter")
	}
	if t.opts.Time == 0 {
		t.opts.Time = defaultTime
	}
	if t.opts.Output == 0 {
		t.opts.Output = defaultOutput
	}
	if t.opts.Calls == 0 {
		t.opts.Calls = defaultCalls
	}
	switch o := t.opts; {
	case o.Time < 0 || o.Time > mostTime:
		return nil, fmt.Errorf("code tool: a time of %s: want at most %s", o.Time, mostTime)
	case o.Output < 1024 || o.Output > maxFrame/2:
		return nil, fmt.Errorf("code tool: an output of %d bytes: want 1024 to %d", o.Output, maxFrame/2)
	case o.Calls < 0:
		return nil, fmt.Errorf("code tool: %d calls", o.Calls)
	}
	return t.tool(), nil
}
