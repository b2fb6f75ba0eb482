// Command codingagent is a coding agent at the terminal. It shows file tools with a preview of each
// change, approval at the terminal, a shell in the sandbox with the Go toolchain, a list of things
// to do, a summary of long conversations, and a line with the cost of each turn.
//
//	OPENAI_API_KEY=… go run ./examples/codingagent -dir ../project
//
// Each line of input is a task. A change or a command waits for y; any other answer denies it and
// is its reason. Ctrl-C interrupts a turn, and Ctrl-D ends the program.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/shell"
)

func main() {
	dir := flag.String("dir", ".", "the project")
	name := flag.String("model", "openai:gpt-6.1-terra", "the model")
	flag.Parse()
	model, err := provider.Open(*name, nil)
	if err == nil {
		err = chat(model, *dir, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "codingagent:", err)
		os.Exit(1)
	}
}

// chat executes one turn for each line of in.
func chat(model llm.Model, dir string, in io.Reader, out io.Writer) error {
	files, err := file.New(dir, nil)
	if err != nil {
		return err
	}
	defer files.Close()
	run, err := shell.New(dir, toolchain())
	if err != nil {
		return err
	}
	t := &terminal{in: bufio.NewScanner(in), out: out, files: files}
	t.in.Buffer(nil, 1<<20) // a pasted line may be long
	todo := pawl.Func("todo", "Replaces the list of things to do.", todo)
	todo.Effect = pawl.EffectPure
	agent := &pawl.Agent{
		Name:  "coder",
		Model: model,
		Instructions: "You change the project in the current folder. Plan longer work with todo. " +
			"Read before you edit, and run the tests afterwards.",
		Tools:      []pawl.Toolset{files, run, todo},
		Limits:     pawl.Limits{Rounds: 50},
		Middleware: []pawl.Middleware{history.Window(nil), pawl.Approve(t.approve)},
	}
	var msgs []llm.Message
	for t.line("> ") {
		// Ctrl-C cancels the turn, and not the program.
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		res, err := pawl.Collect(agent.Stream(ctx, append(msgs, llm.User(t.in.Text()))...), t.show)
		stop()
		if res == nil {
			return err
		}
		msgs = res.Messages
		if err != nil {
			fmt.Fprintf(out, "\n%v", err)
		}
		cost := "unknown"
		if u := res.Spent.Usage; u.CostKnown() {
			cost = fmt.Sprintf("$%.4f", u.Cost)
		}
		fmt.Fprintf(out, "\n[%d requests, %d tokens, cost %s]\n", res.Spent.Requests, res.Spent.Usage.Total(), cost)
	}
	return t.in.Err()
}

// toolchain returns the options of a shell in which the Go command works, if there is one.
func toolchain() *shell.Options {
	o := &shell.Options{Limits: sandbox.Limits{Processes: 256, Memory: 8 << 30, Temp: 1 << 30}}
	if path, err := exec.LookPath("go"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			bin := filepath.Dir(path)
			o.Read = []string{filepath.Dir(bin)}
			o.Env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local"}
		}
	}
	return o
}

// terminal shows runs to a person and asks for approval.
type terminal struct {
	in    *bufio.Scanner
	out   io.Writer
	files *file.Set
	mu    sync.Mutex // of the output: a question is not interrupted
}

// line prints a prompt and reads a line.
func (t *terminal) line(prompt string) bool {
	fmt.Fprint(t.out, prompt)
	return t.in.Scan()
}

// approve shows what a call would change, and asks.
func (t *terminal) approve(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	if tool.Effect.Assumed() != pawl.EffectWrite {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}
	// Calls of one reply may run together, and there is one terminal.
	t.mu.Lock()
	defer t.mu.Unlock()
	p, err := t.files.Preview(ctx, call)
	switch {
	case err != nil:
		return pawl.Approval{}, err // the call would fail
	case p != nil:
		fmt.Fprintf(t.out, "\n%s %s\n%s", call.Name, p.Path, diff(p.Before, p.After))
	default:
		fmt.Fprintf(t.out, "\n%s %s\n", call.Name, call.Args)
	}
	if !t.line("y or a reason to deny: ") {
		return pawl.Approval{}, errors.New("there is no answer at the terminal")
	}
	if t.in.Text() == "y" {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}
	return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: t.in.Text()}, nil
}

// diff returns the changed lines between the common beginning and the common end.
func diff(before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out strings.Builder
	for i, line := range append(a, b...) {
		if line != "" {
			fmt.Fprintf(&out, "%c %s\n", "-+"[min(1, i/max(1, len(a)))], strings.TrimSuffix(line, "\n"))
		}
	}
	return out.String()
}

type todoIn struct {
	Items []struct {
		Text string `json:"text"`
		Done bool   `json:"done"`
	} `json:"items"`
}

// todo shows the list to the person; the model finds it in the conversation.
func todo(ctx context.Context, in todoIn) (string, error) {
	list := "\n"
	for _, item := range in.Items {
		mark := " "
		if item.Done {
			mark = "x"
		}
		list += fmt.Sprintf("[%s] %s\n", mark, item.Text)
	}
	pawl.InvocationFrom(ctx).Emit(list, nil)
	return "shown", nil
}

// show prints the text, the progress and the calls of a run.
func (t *terminal) show(e pawl.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case pawl.EventText, pawl.EventProgress:
		fmt.Fprint(t.out, e.Text)
	case pawl.EventCallCompleted:
		first, _, _ := strings.Cut(e.Execution.Result.Text(), "\n")
		fmt.Fprintf(t.out, "\n%s %s: %s\n", e.Execution.Call.Name, e.Execution.Outcome, first)
	}
}
