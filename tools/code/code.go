// Package code provides execute_code, a tool that runs a program written by the model. The program
// calls tools with conditions, loops and data flow, which would otherwise need many requests to the
// model.
//
//	run := code.New(code.Embedded(nil), nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{search, fetch, run}}
//
// The program has call_tool, try_call, call_tools_parallel, set_result and print, and no other
// access to the world. Its calls are its only effects. Each of them goes through the pipeline like
// a call of the model: checks, approval, budget, slots, and events with keys. The tool's effect is
// therefore EffectCompose.
//
// There are two interpreters. The program chooses one when it creates the tool, and the model
// learns which one it is. Neither is a fallback for the other:
//
//	Python    python3 in the sandbox: the whole language and its standard library.
//	          Without python3, or if the sandbox cannot be enforced, each program is
//	          refused with the reason.
//	Embedded  Starlark, a dialect of Python, inside this process. It needs nothing, starts
//	          in microseconds, is deterministic, and has limits for steps and memory. It has
//	          no import, try or class.
//
// If the run's engine sets Replays, a call of the program can wait for a person. The program then
// ends. Once there is an answer, it runs again from its beginning and gets the stored results of
// its earlier calls. Hashes, random numbers and the clock are the same in both executions. A
// program that nevertheless makes different calls ends with the outcome diverged.
package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
)

// Options are the options of New. Nil and the zero value take the defaults.
type Options struct {
	// Time limits a program that names no timeout, without the time of its calls. 0 means 30 s; the
	// maximum is 300 s.
	Time time.Duration
	// Output limits, in bytes, the result as JSON, and all text that the model gets of a program. 0
	// means 64 KiB.
	Output int
	Calls  int // limit for the number of calls of a program; 0 means 200
}

const (
	defaultTime   = 30 * time.Second
	mostTime      = 300 * time.Second
	defaultOutput = 64 << 10
	defaultCalls  = 200
	maxCode       = 64 << 10 // text of this size cannot nest too deeply for the parser
)

// Interpreter runs programs. The implementations are *PythonInterpreter and *EmbeddedInterpreter.
type Interpreter interface {
	// Name returns python or embedded.
	Name() string
	// Check reports why no program can run here. Nil means that programs can run.
	Check() error

	run(ctx context.Context, p program, h *host) ended
}

var (
	_ Interpreter = (*PythonInterpreter)(nil)
	_ Interpreter = (*EmbeddedInterpreter)(nil)
)

// program is a program and its limits.
type program struct {
	code   string
	seed   uint32
	since  time.Time // start of the program's clock
	time   time.Duration
	output int
}

// New returns the tool execute_code, which runs programs with in. Its error says which option is
// out of range. A nil interpreter is an error.
func New(in Interpreter, opts *Options) (*pawl.Tool, error) {
	t := &executor{in: in}
	t.opts = *cmp.Or(opts, new(Options))
	if in == nil {
		return nil, errors.New("code tool: no interpreter")
	}
	t.opts.Time = cmp.Or(t.opts.Time, defaultTime)
	t.opts.Output = cmp.Or(t.opts.Output, defaultOutput)
	t.opts.Calls = cmp.Or(t.opts.Calls, defaultCalls)
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
