package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// commandLine matches a command in a hint, up to the end, a comma or a semicolon.
var commandLine = regexp.MustCompile(`\bpawl( [^ ;,]+)+`)

// nextCommands returns the command lines of a hint. An unknown command line fails the test.
func nextCommands(t *testing.T, what, hint string) (lines []string) {
	t.Helper()
	for _, l := range commandLine.FindAllString(hint, -1) {
		if err := parsed(strings.Fields(l)[1:]); err != nil {
			t.Errorf("%s: the hint %q names %q, which is no command: %v", what, hint, l, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// parsed returns the fault of a command line.
func parsed(args []string) (err error) {
	k, err := parser(&cli.System{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }}, args...)
	if err != nil {
		return err
	}
	defer func() {
		if v := recover(); v != nil && v != exited(0) { // --help has printed the help
			panic(v)
		}
	}()
	_, err = k.Parse(args)
	return err
}

// An unknown command is detected.
func TestNextCommandsMustBeThere(t *testing.T) {
	soak.Sequential(t)
	for _, args := range []string{"fly", "run --no-such-flag x", "models lst"} {
		if parsed(strings.Fields(args)) == nil {
			t.Errorf("pawl %s is taken for a command", args)
		}
	}
}

// The hint of every kind of failure names the next command, and that command exists.
func TestFailuresNameTheNextCommand(t *testing.T) {
	soak.Sequential(t)
	kinds := map[string]error{
		"transcript": cli.Failed(&pawl.TranscriptError{Text: "no"}),
		"output":     cli.Failed(&pawl.OutputError{Text: "no"}),
		"tool": cli.Failed(&pawl.ToolError{Execution: pawl.Execution{Call: llm.ToolCall{Name: "x"}},
			Err: errors.New("no")}),
		"other":      cli.Failed(errors.New("no")),
		"time":       cli.Failed(context.DeadlineExceeded),
		"no command": misused(errors.New(`expected one of "demo"`)),
		"unknown":    cli.Unknown("conversation", "x", nil, "pawl threads list"),
		"storage":    cli.Failed(fmt.Errorf("x: %w", store.ErrUnavailable)),
		"not begun":  cli.NotBegun(errors.New("no")),
	}
	codes := []llm.Code{llm.CodeAuthentication, llm.CodePermission, llm.CodeNotFound, llm.CodeInvalidRequest,
		llm.CodeContextLength, llm.CodeContentFilter, llm.CodeRateLimit, llm.CodeQuota,
		llm.CodeOverloaded, llm.CodeServer, llm.CodeTimeout, llm.CodeNetwork, llm.CodeStream, llm.CodeUnsupported,
		llm.CodeStreamInconsistent, llm.CodeMalformedReply, llm.CodeBoundThinking, "of tomorrow"}
	for _, c := range codes {
		for _, status := range []int{0, 400} {
			kinds[string(c)+" "+map[int]string{0: "before",
				400: "after"}[status]] = cli.Failed(&llm.ProviderError{Provider: "openai", Code: c, Status: status})
		}
	}
	open := []pawl.PendingCall{{Key: "run/1/0", Outcome: pawl.OutcomePending, Call: llm.ToolCall{ID: "c", Name: "x"}}}
	asks := []llm.Message{llm.User("go"), llm.Assistant(llm.ToolCall{ID: "c", Name: "x"})}
	for _, saved := range []string{"", "run.json"} {
		for stop, res := range map[pawl.StopReason]*pawl.Result{
			pawl.StopPending: {Stop: pawl.StopPending, Pending: open,
				Messages: asks}, pawl.StopCancelled: {Stop: pawl.StopCancelled, Cause: "no"},
			pawl.StopStalled: {Stop: pawl.StopStalled, Cause: "no"},
			pawl.StopFailed:  {Stop: pawl.StopFailed, Cause: "no"}, pawl.StopLimit: {Stop: pawl.StopLimit, Limit: "rounds",
				Cause: "20 rounds"}, "limit, calls": {Stop: pawl.StopLimit, Limit: "calls", Cause: "the limit of 3 calls was reached"},
			"limit, cost": {Stop: pawl.StopLimit, Limit: "cost", Cause: "$1 of"}, "limit, tokens": {Stop: pawl.StopLimit, Limit: "tokens",
				Cause: "3 tokens of 3"}, "limit, time": {Stop: pawl.StopLimit, Limit: "time", Cause: "the time of 3 s"},
			"limit, handed back": {Stop: pawl.StopLimit, Cause: "0 rounds", Messages: asks},
		} {
			kinds["stop "+string(stop)+" "+saved] = assemble.Ended(res, nil, "agent.yaml", saved)
		}
	}
	for what, err := range kinds {
		var f *cli.Failure
		if !errors.As(err, &f) {
			t.Errorf("%s: %v is no failure", what, err)
			continue
		}
		if len(nextCommands(t, what, f.Hint)) == 0 {
			t.Errorf("%s: %q names no command", what, f.Hint)
		}
	}
}

// If several models failed, the error shows each of them; the error of one model has no key of a
// step.
func TestFailureOfSeveralModels(t *testing.T) {
	one := &llm.ProviderError{Provider: "openai", Code: llm.CodeOverloaded, Message: "busy"}
	two := &llm.ProviderError{Provider: "gemini", Code: llm.CodeQuota, Message: "none left"}
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("run/0/model: %w", one), "openai: overloaded: busy"},
		{fmt.Errorf("run/0/model: 2 models failed: %w", errors.Join(one, two)),
			"run/0/model: 2 models failed: openai: overloaded: busy\ngemini: quota: none left"},
	} {
		for _, err := range []error{test.err, hiding(test.err)} {
			if got := cli.Failed(err).Error(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		}
	}
}

// hiding returns err as a Redactor returns it.
func hiding(err error) error {
	r := new(redact.Redactor)
	_ = r.Add("a secret of another text") // it is long enough
	return r.Error(err)
}
