package shell

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

type shell struct {
	dir    string
	opts   Options
	spec   sandbox.Spec // of every command, without its Args
	places *protect.Places
}

func (s *shell) tool() *pawl.Tool {
	return toolrun.Define(definitions, "exec", &pawl.Tool{
		Name:      "shell_exec",
		Effect:    pawl.EffectWrite,
		Timeout:   mostTime + 15*time.Second, // the sandbox ends the command earlier
		MaxResult: -1,                        // Limits.Output bounds each stream
		Serial:    func(json.RawMessage) string { return s.dir },
		Run:       toolrun.Func(s.exec),
	}, "network", s.network(), "most", seconds(mostTime), "time", seconds(s.spec.Limits.Time))
}

// network describes the network access of commands.
func (s *shell) network() string {
	if len(s.opts.Hosts) > 0 {
		return "reaches over HTTP and HTTPS, by the proxy that HTTP_PROXY and HTTPS_PROXY name, " +
			"nothing but " + strings.Join(s.opts.Hosts, ", ")
	}
	return "has no network"
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// execData is the Data of a result.
type execData struct {
	Exit        int         `json:"exit_code"`
	End         sandbox.End `json:"end"`
	Signal      string      `json:"signal,omitempty"`
	Stdout      string      `json:"stdout"`
	Stderr      string      `json:"stderr"`
	StdoutBytes int64       `json:"stdout_bytes"`
	StderrBytes int64       `json:"stderr_bytes"`
	Truncated   bool        `json:"truncated,omitempty"`
	Millis      int64       `json:"milliseconds"`
}

type execArgs struct {
	Command string  `json:"command"`
	Timeout float64 `json:"timeout"`
}

func (s *shell) exec(ctx context.Context, a execArgs) (llm.ToolResult, error) {
	if strings.ContainsRune(a.Command, 0) {
		return llm.ErrorResult("the command has a zero byte in it; leave it out"), nil
	}

	// The protected places are looked up for each command, because an earlier one may have made
	// them.
	spec := s.spec
	spec.Args = []string{"/bin/sh", "-c", a.Command}
	spec.Protect, spec.Hide = s.places.Paths()
	spec.Env = s.environment()
	if a.Timeout > 0 {
		spec.Limits.Time = min(time.Duration(a.Timeout*float64(time.Second)), mostTime)
	}

	running, err := sandbox.Start(ctx, spec)
	switch {
	case err != nil && ctx.Err() != nil:
		return llm.ToolResult{}, delivery.NewError(delivery.NotSent, "The command was not run", context.Cause(ctx))
	case errors.Is(err, sandbox.ErrUnenforced):
		text := fmt.Sprintf("The command was not run. %v. The level asked for is %s. Calling again will not help", err, s.opts.Level)
		return llm.ToolResult{}, delivery.NewError(delivery.NotSent, text, err)
	case err != nil:
		const text = "The command was not run: the workspace cannot be used in its current state. Calling again will not help"
		return llm.ToolResult{}, delivery.NewError(delivery.NotSent, text, errors.New("the command was not run"))
	}

	res, err := running.Wait()
	switch {
	case ctx.Err() != nil:
		return llm.ToolResult{}, context.Cause(ctx)
	case err != nil:
		return llm.ToolResult{}, delivery.NewError(delivery.Unknown, "The command ran, and how it ended is unknown", err)
	}
	return result(res, spec.Limits)
}

// environment returns the variables of a command. The empty file that the sandbox puts in the place
// of a missing go.work would be a workspace without modules.
func (s *shell) environment() []string {
	_, err := os.Lstat(filepath.Join(s.dir, "go.work"))
	sets := func(e string) bool { return strings.HasPrefix(e, "GOWORK=") }
	if err == nil || slices.ContainsFunc(s.spec.Env, sets) {
		return s.spec.Env
	}
	return append(slices.Clone(s.spec.Env), "GOWORK=off")
}

// result returns the text that a model gets for a command that ended: stdout, then stderr under its
// own line, and the exit status if the command failed.
func result(res *sandbox.Result, limits sandbox.Limits) (llm.ToolResult, error) {
	d := execData{
		Exit:        res.Exit,
		End:         res.End,
		Signal:      res.Signal,
		Stdout:      res.Stdout.String(),
		Stderr:      res.Stderr.String(),
		StdoutBytes: res.Stdout.Bytes,
		StderrBytes: res.Stderr.Bytes,
		Truncated:   res.Stdout.Truncated() || res.Stderr.Truncated(),
		Millis:      res.Time.Milliseconds(),
	}
	data, err := json.Marshal(d)
	if err != nil {
		return llm.ToolResult{}, err
	}

	text := strings.TrimSuffix(d.Stdout, "\n")
	if d.Stderr != "" {
		text = strings.TrimPrefix(text+"\n--- stderr ---\n"+strings.TrimSuffix(d.Stderr, "\n"), "\n")
	}
	text = cmp.Or(text, "(no output)")
	if len(res.Refused) > 0 {
		text += "\n[" + strings.Join(res.Refused, "; ") + "]"
	}

	out := llm.TextResult(text)
	if fault := faultOf(res, limits); fault != "" {
		out = llm.ErrorResult(fault + "\n" + text)
	}
	out.Data = data
	return out, nil
}

// faultOf says how a command ended that did not succeed. Empty means that it did.
func faultOf(res *sandbox.Result, limits sandbox.Limits) string {
	switch {
	case res.End == sandbox.TimedOut:
		return fmt.Sprintf("The command timed out after %s and was ended, with all it had started. "+
			"What it had done until then stays.", limits.Time)
	case res.End.Used() != "":
		return "The command used up its " + res.End.Used() + " and was ended, with all it had started."
	case res.End != sandbox.Exited:
		return "The command was ended by a signal: " + res.Signal
	case res.Exit != 0:
		return fmt.Sprintf("exit status %d", res.Exit)
	}
	return ""
}
