package outside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/internal/mediatype"
	"github.com/pawl-go/pawl/internal/procgroup"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
)

const (
	commandTimeout = 60 * time.Second
	commandOutput  = 256 << 10
	stderrTail     = 2 << 10
)

// Runner prepares a program, and starts nothing. It checks what can be known before the start, such
// as that the file of the program is there and may be executed: after an error the program has
// certainly not run, also if this process dies before the error is recorded. Exec and Sandboxed are
// implementations.
type Runner func(ctx context.Context, p Process) (Program, error)

// Program runs a prepared program, once, until it or ctx ends, and leaves no process running. It
// returns an error only if the program was not started: a non-zero exit status is not an error, nor
// is the end of ctx while the program runs. An error after the end of ctx counts as unknown,
// because the program may have run, unless it has a delivery.Error in its tree.
type Program func(ctx context.Context) (Exit, error)

// Process is a program to run.
type Process struct {
	Args  []string // the program and its arguments
	Env   []string // its whole environment, as NAME=value
	Dir   string   // working directory; empty means the current directory
	Stdin []byte   // nil means empty input
	Limit int      // bytes of standard output to return

	// Read and Write are the absolute paths that a sandbox makes accessible. A Runner without a
	// sandbox ignores them.
	Read, Write []string
	Network     bool // the program may use the network
}

// Exit describes how a program ended.
type Exit struct {
	Code    int    // exit status; -1 means that a signal ended it
	Stdout  []byte // the beginning
	Stderr  []byte // the end
	Dropped int64  // bytes of standard output that were dropped
	Used    string // the limit that ended it, if any: "memory"

	Refused []string // network access that was refused, in words
}

var (
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	errNoRunner = errors.New("programs are not run here: set Options.Run")
)

// command creates the tool for a program.
func (m *maker) command(d *Command) (*pawl.Tool, error) {
	if err := described(d.Name, d.Description); err != nil {
		return nil, err
	}
	if len(d.Run) == 0 || d.Run[0] == "" {
		return nil, errors.New("run is empty: want the program and its arguments, as in [./count.py, --words]")
	}
	if m.opts.Run == nil {
		return nil, errNoRunner
	}
	env, err := m.environment(d.Env)
	if err != nil {
		return nil, err
	}

	p := Process{
		Args:    slices.Clone(d.Run),
		Env:     env,
		Limit:   d.MaxOutput,
		Network: d.Network,
	}
	// Resolved now: the folder of this process may change, and the sandbox takes only absolute
	// paths.
	p.Dir, err = filepath.Abs(m.path(d.Dir))
	if err != nil {
		return nil, err
	}
	p.Read, err = m.paths(d.Read)
	if err != nil {
		return nil, err
	}
	p.Write, err = m.paths(d.Write)
	if err != nil {
		return nil, err
	}
	if p.Limit <= 0 {
		p.Limit = commandOutput
	}
	// The name of a program alone is looked up in PATH.
	if strings.ContainsRune(p.Args[0], filepath.Separator) {
		p.Args[0], err = filepath.Abs(m.path(p.Args[0]))
		if err != nil {
			return nil, err
		}
	}

	t := &pawl.Tool{
		Name:          d.Name,
		Description:   d.Description,
		Input:         json.RawMessage(d.Input),
		Concurrent:    d.Concurrent,
		Timeout:       cmp.Or(time.Duration(d.Timeout), commandTimeout),
		StatesSending: true,
	}
	if d.Effect != nil {
		t.Effect = *d.Effect
	}
	run := m.opts.Run
	t.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		p := p
		p.Stdin = call.Args
		if len(p.Stdin) == 0 {
			p.Stdin = []byte("{}")
		}

		x, err := execute(ctx, run, p)
		if err != nil {
			return llm.ToolResult{}, failed(ctx, err)
		}
		// The program was killed, and what it had written is no result.
		if ctx.Err() != nil {
			return llm.ToolResult{}, context.Cause(ctx)
		}
		return result(x), nil
	}
	return t, checked(t)
}

// execute prepares and runs a program. Between the two it states that the call may take effect.
func execute(ctx context.Context, prepare Runner, p Process) (Exit, error) {
	run, err := prepare(ctx, p)
	if err != nil {
		return Exit{}, notStarted(err)
	}
	if err := pawl.InvocationFrom(ctx).Sending(ctx); err != nil {
		return Exit{}, notStarted(err)
	}
	return run(ctx)
}

// notStarted is the error of a Runner whose program was certainly not started.
func notStarted(err error) error {
	return delivery.NewError(delivery.NotSent, "the program of this tool was not run", err)
}

// failed returns the error of a call whose Runner returned err.
func failed(ctx context.Context, err error) error {
	stated := new(delivery.Error)
	isStated := errors.As(err, &stated)
	switch {
	case ctx.Err() != nil && isStated:
		return delivery.NewError(stated.Certainty, "the program of this tool was not run", context.Cause(ctx))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isStated && stated.Certainty == delivery.Unknown:
		return err
	}
	text := err.Error()
	if !errors.Is(err, sandbox.ErrUnenforced) { // which names no path of this machine
		text, err = procgroup.Reason(err)
	}
	text = "the program of this tool could not be run: " + text + ". Calling it again will not help"
	return delivery.NewError(delivery.NotSent, text, err)
}

// path resolves a path of a definition relative to the folder of the definitions.
func (m *maker) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(m.opts.Dir, p)
}

// paths returns the absolute paths of a list.
func (m *maker) paths(list []string) (all []string, err error) {
	for _, p := range list {
		if p == "" {
			return nil, errors.New("read and write: a path is empty")
		}
		p, err = filepath.Abs(m.path(p))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// environment returns PATH and the variables that the definition lists.
func (m *maker) environment(list []string) ([]string, error) {
	env := []string{"PATH=" + m.opts.Getenv("PATH")}
	for _, entry := range list {
		name, value, said := strings.Cut(entry, "=")
		if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("env %q: want NAME, or NAME=value", entry)
		}
		if !said {
			value = m.opts.Getenv(name)
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// result returns the result for a program that ended.
func result(x Exit) llm.ToolResult {
	text, isText := mediatype.Readable(x.Stdout) // also in UTF-16
	if !isText {
		text = strings.ToValidUTF8(string(x.Stdout), "\uFFFD")
	}
	plain := []byte(text)
	if x.Dropped > 0 {
		text += fmt.Sprintf("\n[%d more bytes were left out]", x.Dropped)
	}
	if x.Code != 0 {
		return failure(x, text)
	}

	if m, ok := foreign.Medium(x.Stdout, ""); ok && x.Dropped == 0 {
		return llm.ToolResult{Parts: []llm.Part{m}}
	}
	out := llm.TextResult(strings.TrimSuffix(text, "\n"))
	if text == "" {
		out = llm.TextResult("(no output)")
	}
	// The rest of truncated JSON may be valid by chance, and would be other data.
	if x.Dropped == 0 && json.Valid(plain) {
		out.Data = plain
	}
	return out
}

// failure returns the result for a program that failed. Programs say why at the end of stderr; some
// say it in their output, which is text.
func failure(x Exit, text string) llm.ToolResult {
	said := cmp.Or(strings.TrimSpace(strings.ToValidUTF8(string(x.Stderr), "")), strings.TrimSpace(text))
	if len(said) > stderrTail {
		said = "…" + strings.ToValidUTF8(said[len(said)-stderrTail:], "")
	}
	if len(x.Refused) > 0 {
		said += "\n" + strings.Join(x.Refused, "\n")
	}

	head := fmt.Sprintf("the program failed with status %d", x.Code)
	switch {
	case x.Used != "":
		head = "the program used up its " + x.Used + " and was ended"
	case x.Code < 0:
		head = "the program was ended by a signal"
	}
	return llm.ErrorResult(strings.TrimSpace(head + "\n" + said))
}
