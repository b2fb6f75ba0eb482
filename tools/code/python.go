package code

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/sandbox"
)

//go:embed bridge.py
var bridge string

// PythonOptions are the options of Python. Nil and the zero value take the defaults.
type PythonOptions struct {
	// Path is the interpreter, version 3.8 or later. Empty means /usr/bin/python3. A shim that
	// starts another program costs time and may be missing in the sandbox.
	Path   string
	Level  sandbox.Level // how strictly the limits are enforced; empty means strict
	Memory int64         // bytes of address space; 0 means 512 MiB
	// Warm is the number of children that are started before programs need them. 0 means 1,
	// negative means none.
	Warm int
	Idle time.Duration // maximum waiting time of such a child; 0 means 1 min
}

// PythonInterpreter runs programs in python3 in the sandbox. It is safe for concurrent use. Close
// it after use.
type PythonInterpreter struct {
	opts PythonOptions
	pool *pool
}

// Python returns the interpreter. It starts nothing before the first program or Warm. Use Check to
// find out whether the machine can run it.
func Python(opts *PythonOptions) *PythonInterpreter {
	p := &PythonInterpreter{}
	p.opts = *cmp.Or(opts, new(PythonOptions))
	p.opts.Path = cmp.Or(p.opts.Path, "/usr/bin/python3")
	p.opts.Memory = cmp.Or(p.opts.Memory, 512<<20)
	p.opts.Warm = cmp.Or(p.opts.Warm, 1)
	p.opts.Idle = cmp.Or(p.opts.Idle, time.Minute)
	p.pool = newPool(p.opts.Warm, p.opts.Idle, p.startChild)
	return p
}

// Name returns python.
func (p *PythonInterpreter) Name() string { return "python" }

// Check starts the interpreter once and reports why it is not available. The error is
// sandbox.ErrUnenforced if the machine cannot enforce the level.
func (p *PythonInterpreter) Check() error {
	c, err := p.startChild()
	if err != nil {
		return err
	}
	defer c.stop()
	h := &host{}
	if e := c.serve(context.Background(), program{output: defaultOutput}, h); e.outcome != ok {
		return fmt.Errorf("python: %s", e.message)
	}
	return nil
}

// Warm starts the children that wait for programs, unless they exist. Without Warm, the first
// program starts them.
func (p *PythonInterpreter) Warm() { p.pool.fill() }

// Close ends the children that wait and the children that run programs. Later programs are refused.
func (p *PythonInterpreter) Close() error {
	p.pool.close()
	return nil
}

// child is a python3 process that serves one program.
type child struct {
	wire *wire
	proc *sandbox.Process
	gone chan struct{} // closed when the process has ended
	res  *sandbox.Result
}

// startChild starts a child. The child belongs to the pool, so it does not end with the context of
// a call.
func (p *PythonInterpreter) startChild() (*child, error) {
	w, theirs, err := newWire()
	if err != nil {
		return nil, err
	}
	c := &child{wire: w, gone: make(chan struct{})}
	c.proc, err = sandbox.Start(context.Background(),
		sandbox.Spec{Level: p.opts.Level, Args: []string{p.opts.Path, "-S", "-s", "-B", "-c", bridge},
			Env: []string{"PYTHONHASHSEED=0", "PYTHONUTF8=1"}, Files: theirs,
			Limits: sandbox.Limits{Time: 24 * time.Hour, CPU: mostTime + 30*time.Second, Memory: p.opts.Memory,
				Processes: 32, FileSize: 64 << 20, Output: defaultOutput}})
	// The child has its own copies. An open end here would hide that the child has ended.
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		w.close()
		return nil, err
	}
	go func() {
		defer close(c.gone)
		c.res, _ = c.proc.Wait()
	}()
	return c, nil
}

// kill ends the child without waiting.
func (c *child) kill() {
	c.proc.Kill()
	c.wire.in.SetDeadline(time.Now())
	c.wire.out.SetDeadline(time.Now())
}

// stop ends the child and waits until it has ended.
func (c *child) stop() {
	c.kill()
	<-c.gone
	c.wire.close()
}

func (p *PythonInterpreter) run(ctx context.Context, prog program, h *host) ended {
	c, err := p.pool.acquire()
	if err != nil {
		why := err.Error()
		if errors.Is(err, sandbox.ErrUnenforced) {
			why += ". The level asked for is " + p.opts.Level.String()
		}
		return ended{
			outcome: refused,
			cause:   err,
			message: "The program was not run, because Python is not available here: " + why +
				". Calling again will not help.",
		}
	}
	defer c.stop()
	defer context.AfterFunc(p.pool.open, c.kill)()

	var over atomic.Bool
	h.watch = newStopwatch(prog.time, func() {
		over.Store(true)
		c.kill()
	})
	defer h.watch.stop()
	defer context.AfterFunc(ctx, c.kill)()

	e := c.serve(ctx, prog, h)
	printed := c.res.Stdout
	e.logs = logs{printed.String(), printed.Bytes}
	switch {
	case e.outcome == ok || e.outcome == failed || e.outcome == syntax_: // the program ended first
	case ctx.Err() != nil:
		e.outcome = cancelled
	case over.Load():
		e.outcome = timeout
		e.message = timedOut(prog)
	}
	return e
}

func timedOut(p program) string {
	return fmt.Sprintf("The program was ended after %s of its own time. If it is not an endless loop, let it do less, "+
		"or give it a longer timeout (at most %d).", p.time, int(mostTime.Seconds()))
}

// serve sends the program to the child and answers its calls until the child has ended. The child
// has ended when serve returns.
func (c *child) serve(ctx context.Context, p program, h *host) (e ended) {
	var result []byte
	defer func() {
		c.kill()
		<-c.gone
		e.result = result
	}()

	err := c.wire.send(map[string]any{
		"code":   p.code,
		"seed":   p.seed,
		"since":  p.since.UnixNano(),
		"output": p.output,
		"frame":  maxFrame - 64,
	})
	if err != nil {
		return c.vanished()
	}

	for {
		f, err := c.wire.receive()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return c.vanished()
		case errors.Is(err, errForged):
			return ended{
				outcome: forged,
				message: "The program wrote to the descriptors of the tool itself, and was ended. " +
					"It calls tools by call_tool, and gives its result by set_result.",
			}
		case errors.Is(err, errLarge):
			return ended{
				outcome: tooLarge,
				message: fmt.Sprintf("The program sent more than %d bytes at once, and was ended.", maxFrame),
			}
		case err != nil:
			// the code that ended it reports the reason
			return ended{outcome: killed, message: "The program was ended."}
		}

		switch {
		case f.Calls != nil:
			replies, ok := h.do(ctx, f.Calls)
			if !ok {
				return ended{outcome: killed}
			}
			if c.wire.send(map[string]any{"replies": replies, "took": h.took.Nanoseconds()}) != nil {
				return c.vanished()
			}
		// The program may set its result several times; the last one counts.
		case f.Result != nil:
			if len(f.Result) > p.output {
				return ended{outcome: tooLarge, message: resultTooLarge(len(f.Result), p.output)}
			}
			result = f.Result
			if string(result) == "null" {
				result = nil
			}
		default:
			return f.ended(p)
		}
	}
}

func resultTooLarge(n, most int) string {
	return fmt.Sprintf("The program's result has %d bytes as JSON, and at most %d are returned. "+
		"Set what matters of it: fewer items, fewer fields, or counts.", n, most)
}

// vanished explains how a child ended that did not report the end of its program.
func (c *child) vanished() ended {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-c.gone:
	case <-t.C: // it closed the descriptor and continues to run
		return ended{outcome: forged, message: "The program closed the descriptors of the tool, and was ended."}
	}
	r := c.res
	switch {
	case r.End == sandbox.UsedCPU:
		return ended{outcome: timeout, message: "The program used up its CPU time and was ended."}
	case r.End.Used() != "":
		return ended{
			outcome: killed,
			message: "The program used up its " + r.End.Used() + " and was ended, with all it had started.",
		}
	case r.End == sandbox.Exited:
		return ended{
			outcome: exited,
			message: fmt.Sprintf("The program ended its process with exit status %d before its end.", r.Exit),
		}
	default:
		return ended{
			outcome: killed,
			message: fmt.Sprintf("The program was ended by a signal: %s. A very deep recursion, or memory beyond its limit, "+
				"ends a process in this way.", r.Signal),
		}
	}
}

// systemPaths matches the paths in the message of a failed import.
var systemPaths = regexp.MustCompile(` ?\(?/usr/(lib|local|share)[^\s)']*\)?`)

// ended parses the child's report about the end of the program.
func (f *childFrame) ended(p program) ended {
	e := ended{outcome: failed}
	// Paths of this machine are no help to the model, and say where the interpreter is.
	what := systemPaths.ReplaceAllString(clip(f.Message, 2000), "")
	if f.Type != "" {
		what = ": " + what
		if what == ": " {
			what = ""
		}
		what = clip(f.Type, 100) + what
	}

	// The last line is where it failed; the lines before it are its callers.
	trace := ""
	for i := range f.Lines {
		line, _ := f.Lines[i][0].(float64)
		name, _ := f.Lines[i][1].(string)
		e.line = int(line)
		if i < len(f.Lines)-1 && i < 8 {
			trace += fmt.Sprintf("\n  called from line %d%s", e.line, inFunction(name))
		}
	}

	switch f.End {
	case "ok":
		return ended{outcome: ok}
	// sys.exit(0) is how many scripts end.
	case "exit":
		if f.Status == 0 {
			return ended{outcome: ok}
		}
		return ended{outcome: exited, message: fmt.Sprintf("The program ended itself with exit status %d.", f.Status)}
	case "syntax":
		e.outcome = syntax_
		e.message = inLine(p.code, e.line, "is not valid Python", what) +
			"\nNothing was run. Correct it and send the whole program again."
	case "memory":
		e.outcome = memory
		e.message = inLine(p.code, e.line, "ran out of memory", what) + trace + "\nLet it hold less at once."
	case "too_large":
		e.outcome = tooLarge
		e.message = inLine(p.code, e.line, "failed", what) + trace
	case "error":
		e.message = inLine(p.code, e.line, "failed", what) + trace
	default:
		return ended{outcome: forged, message: "The program wrote to the descriptors of the tool itself, " +
			"and was ended."}
	}
	return e
}

func inFunction(name string) string {
	if name == "" || name == "<module>" {
		return ""
	}
	return " in " + clip(name, 60)
}
