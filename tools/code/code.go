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
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
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
	o := t.opts
	switch {
	case o.Time < 0 || o.Time > mostTime:
		return nil, fmt.Errorf("code tool: a time of %s: want at most %s", o.Time, mostTime)
	case o.Output < 1024 || o.Output > maxFrame/2:
		return nil, fmt.Errorf("code tool: an output of %d bytes: want 1024 to %d", o.Output, maxFrame/2)
	case o.Calls < 0:
		return nil, fmt.Errorf("code tool: %d calls", o.Calls)
	}
	return t.tool(), nil
}

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

const (
	toolName      = "execute_code"
	refusedInside = "execute_code cannot be called from a program: do it in this program, or in the next"
)

type executor struct {
	in   Interpreter
	opts Options
}

// insideKey marks the context of a program's calls.
type insideKey struct{}

func (t *executor) tool() *pawl.Tool {
	tool := toolrun.Define(definitions, "execute", &pawl.Tool{
		Name:      toolName,
		Effect:    pawl.EffectCompose,
		MaxResult: -1, // Options.Output bounds the result
		Run:       t.execute,
	}, "maxCode", strconv.Itoa(maxCode), "most", seconds(mostTime), "time", seconds(t.opts.Time))
	tool.Description = described(tool.Description, t.in.Name())
	return tool
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// described returns the part of text that applies to the interpreter with that name.
func described(text, name string) string {
	parts := strings.Split(text, "\n[")
	text = parts[0]
	for _, p := range parts[1:] {
		if rest, ok := strings.CutPrefix(p, name+"]\n"); ok {
			text += "\n" + rest
		}
	}
	return strings.TrimSpace(text)
}

func (t *executor) execute(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	var a struct {
		Code    string  `json:"code"`
		Timeout float64 `json:"timeout"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return llm.ErrorResult("invalid args: " + err.Error()), nil
	}
	v := pawl.InvocationFrom(ctx)
	switch {
	case v == nil:
		return llm.ErrorResult("execute_code calls tools, so it can only be called in a run."), nil
	// A program that runs programs would multiply all limits.
	case ctx.Value(insideKey{}) != nil: // called through a plan or an agent
		return llm.ErrorResult(refusedInside), nil
	case len(a.Code) > maxCode:
		return llm.ErrorResult(fmt.Sprintf("The program has %d bytes, at most %d are run.", len(a.Code), maxCode)), nil
	}
	p := program{code: a.Code, seed: seed(v), since: v.Since(), time: t.opts.Time, output: t.opts.Output}
	if a.Timeout > 0 {
		p.time = min(time.Duration(a.Timeout*float64(time.Second)), mostTime)
	}
	h := &host{inv: v, most: t.opts.Calls}
	e := t.in.run(context.WithValue(ctx, insideKey{}, true), p, h)
	// The host knows why it ended the program. The interpreter only sees that it was ended.
	if own, ok := h.ended(); ok {
		own.logs, own.result = e.logs, e.result
		e = own
	} else if h.fatal != nil {
		return llm.ToolResult{}, h.fatal // the call is pending, or has ended
	}
	if e.outcome == cancelled {
		return llm.ToolResult{}, context.Cause(ctx)
	}
	res := e.forModel(h, p)
	if e.cause != nil {
		return llm.ToolResult{}, &delivery.Error{Result: res, Err: e.cause}
	}
	return res, nil
}

// seed returns the same value each time the call is executed again.
func seed(v *pawl.Invocation) uint32 {
	sum := sha256.Sum256([]byte(v.IdempotencyKey()))
	return binary.BigEndian.Uint32(sum[:])
}
