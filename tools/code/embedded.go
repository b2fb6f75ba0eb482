package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync/atomic"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
)

// EmbeddedOptions are the options of Embedded. Nil and the zero value take the defaults.
//
// A program uses at most Memory plus about 50 bytes for each of Steps: about 250 MiB with the
// defaults.
type EmbeddedOptions struct {
	Steps int64 // steps of the interpreter; 0 means 4 million, about half a second
	// Memory limits the bytes of all text, lists and numbers that operators, methods and functions
	// allocate, including released ones. 0 means 64 MiB.
	Memory int64
}

// EmbeddedInterpreter runs programs in Starlark, inside this process. It is safe for concurrent
// use.
type EmbeddedInterpreter struct {
	opts  EmbeddedOptions
	known starlark.StringDict
}

// Embedded returns the interpreter. Nil options take the defaults.
func Embedded(opts *EmbeddedOptions) *EmbeddedInterpreter {
	e := &EmbeddedInterpreter{}
	e.opts = *cmp.Or(opts, new(EmbeddedOptions))
	e.opts.Steps = cmp.Or(e.opts.Steps, 4_000_000)
	e.opts.Memory = cmp.Or(e.opts.Memory, 64<<20)
	e.known = known()
	e.known.Freeze()
	return e
}

// Name returns embedded.
func (e *EmbeddedInterpreter) Name() string { return "embedded" }

// Check returns nil: the interpreter is always available.
func (e *EmbeddedInterpreter) Check() error { return nil }

const programFile = "<program>"

var dialect = syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// embeddedRun is a running program. Its builtins find it in their thread.
type embeddedRun struct {
	ctx  context.Context
	host *host
	prog program
	// reason why the program was ended; empty if the program itself failed or is running
	why outcome
	// reason of the first who ended the program from outside; nil means that none did
	stopped atomic.Pointer[outcome]
	left    int64 // bytes that it may still allocate
	result  []byte
	print   text.Ends
}

const runKey = "run"

func runOf(t *starlark.Thread) *embeddedRun { return t.Local(runKey).(*embeddedRun) }

func (e *EmbeddedInterpreter) run(ctx context.Context, p program, h *host) (out ended) {
	r := &embeddedRun{ctx: ctx, host: h, prog: p, left: e.opts.Memory, print: text.Ends{Half: max(1, p.output/2)}}
	defer func() {
		// A fault of the interpreter must not end the host.
		if v := recover(); v != nil {
			out = ended{outcome: failed, message: "The interpreter failed on this program. Write it another way."}
		}
		out.result, out.logs = r.result, logsOf(&r.print)
	}()
	prog, err := e.compile(p.code)
	if err != nil {
		return notAProgram(p, err)
	}
	thread := &starlark.Thread{Name: "program", Print: func(_ *starlark.Thread, msg string) { fmt.Fprintln(&r.print, msg) }}
	thread.SetLocal(runKey, r)
	thread.SetMaxExecutionSteps(uint64(e.opts.Steps))
	stopped := func(why outcome) {
		if r.stopped.CompareAndSwap(nil, &why) {
			thread.Cancel(string(why))
		}
	}
	thread.OnMaxSteps = func(*starlark.Thread) { stopped(steps) }
	// The interpreter does not look at the context. It checks between two steps whether its thread
	// was cancelled.
	defer context.AfterFunc(ctx, func() { stopped(cancelled) })()
	h.watch = newStopwatch(p.time, func() { stopped(timeout) })
	defer h.watch.stop()
	_, err = prog.Init(thread, e.known)
	return r.concluded(err, e.opts)
}

// compile compiles program text and inserts counting for every operation that can allocate much.
func (e *EmbeddedInterpreter) compile(code string) (*starlark.Program, error) {
	f, err := dialect.Parse(programFile, code, 0)
	if err != nil {
		return nil, err
	}
	counted(f)
	return starlark.FileProgram(f, e.known.Has)
}

// concluded returns how the program ended.
func (r *embeddedRun) concluded(err error, opts EmbeddedOptions) ended {
	if err == nil {
		return ended{outcome: ok}
	}
	line, trace := where(err)
	what := err.Error()
	if ev, ok := errors.AsType[*starlark.EvalError](err); ok {
		what = ev.Msg
	}
	why := r.why
	if from := r.stopped.Load(); from != nil && why == "" {
		why = *from
	}

	e := ended{outcome: why, line: line}
	switch why {
	case cancelled:
		return e
	case timeout:
		e.message = timedOut(r.prog)
	case steps:
		e.message = inLine(r.prog.code, line, "was ended", fmt.Sprintf("its %d steps are used up", opts.Steps)) +
			"\nIf it is not an endless loop, let it do less, or split it."
	case memory:
		used := fmt.Sprintf("it makes more than %d MiB of data", max(1, opts.Memory>>20))
		e.message = inLine(r.prog.code, line, "was ended", used) + "\nLet it hold less at once."
	case tooLarge:
		e.message = inLine(r.prog.code, line, "failed", what) + trace
	case killed: // the host reports the reason
	default:
		e.outcome = failed
		e.message = inLine(r.prog.code, line, "failed", hinted(what)) + trace
	}
	return e
}

// where returns the line that failed and the call stack.
func where(err error) (line int, trace string) {
	var ev *starlark.EvalError
	if !errors.As(err, &ev) {
		return 0, ""
	}
	var lines []starlark.CallFrame
	for _, f := range ev.CallStack {
		// Frames of our own functions mean nothing to the author of the program.
		if f.Pos.Filename() == programFile {
			lines = append(lines, f)
		}
	}

	for i, f := range lines {
		line = int(f.Pos.Line)
		if i < len(lines)-1 && i < 8 {
			name := f.Name
			if name == "<toplevel>" {
				name = ""
			}
			trace += fmt.Sprintf("\n  called from line %d%s", line, inFunction(name))
		}
	}
	return line, trace
}

// foreign lists features of Python that this dialect lacks, recognized by the beginning or the
// content of a line.
var foreign = []struct {
	form *regexp.Regexp
	hint string
}{
	{regexp.MustCompile(`^\s*(import|from)\s`), "There is no import here; json and math are there without it."},
	{regexp.MustCompile(`^\s*(try|except|finally)\b`), "There is no try here; try_call(name, " +
		"args) calls a tool that may fail."},
	{regexp.MustCompile(`^\s*raise\b`), "There is no raise here; fail(text) ends the program."},
	{
		regexp.MustCompile(`^\s*(class|with|async|global|nonlocal|del|assert|yield)\b`),
		"This statement is not of this part of Python.",
	},
	{regexp.MustCompile(`\b[fF][rR]?["']`), `There are no f-strings here; write "%s" % x or "{}".format(x).`},
	{regexp.MustCompile(`\*\*`), "There is no ** operator here; write pow(a, b)."},
	{regexp.MustCompile(`\bis\s+(not\s+)?\w`), "There is no is here; write == or !=."},
	{regexp.MustCompile(`:=`), "There is no := here."},
	{regexp.MustCompile(`[<>=!]=?\s*[\w.]+\s*[<>]=?`), "Comparisons cannot be chained here; write a < b and b < c."},
}

// notAProgram explains why text was not run.
func notAProgram(p program, err error) ended {
	line := 0
	what := err.Error()
	var se syntax.Error
	var re resolve.ErrorList
	switch {
	case errors.As(err, &se):
		line = int(se.Pos.Line)
		what = se.Msg
	case errors.As(err, &re) && len(re) > 0:
		line = int(re[0].Pos.Line)
		what = re[0].Msg
		if name, ok := strings.CutPrefix(what, "undefined: "); ok {
			name, _, _ = strings.Cut(name, " ")
			what = name + " is not defined"
			if n := nearest.Word(name, allNames()); n != "" && !strings.Contains(what, n) {
				what += fmt.Sprintf(" (did you mean %s?)", n)
			}
		}
	}

	text := inLine(p.code, line, "cannot be run: there is a fault", what)
	if lines := strings.Split(p.code, "\n"); line > 0 && line <= len(lines) {
		// Models write Python. A hint names what this dialect has in place of the construct.
		for _, f := range foreign {
			if f.form.MatchString(lines[line-1]) {
				text += "\n" + f.hint
				break
			}
		}
	}
	text += "\nNothing was run. Correct it and send the whole program again."
	return ended{outcome: syntax_, line: line, message: text}
}

func allNames() []string {
	var names []string
	for _, d := range []starlark.StringDict{known(), starlark.Universe} {
		for n := range maps.Keys(d) {
			if n[0] >= 'A' {
				names = append(names, n)
			}
		}
	}
	return names
}

// hinted adds the correct form to some of the interpreter's messages.
func hinted(what string) string {
	for _, h := range [][2]string{
		{"unhandled", ""},
		{"has no .", " Not all methods of Python are there."},
		{"format spec", " Use round(x, 2) and str(x)."},
		{"unknown conversion", " Use round(x, 2) and %s."},
	} {
		if strings.Contains(what, h[0]) {
			return what + "." + h[1]
		}
	}
	return what
}
