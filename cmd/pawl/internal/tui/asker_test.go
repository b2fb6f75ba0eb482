package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// typing returns an asker for a person who types a text, and its output.
func typing(t *testing.T, typed string) (*asker, *bytes.Buffer) {
	var shown bytes.Buffer
	in := cli.NewLines(strings.NewReader(typed))
	t.Cleanup(in.Stop)
	return &asker{policy: policy.AskBeforeWrites, in: in, out: &Screen{terminal: &shown}, width: 60,
		always: map[string]bool{}}, &shown
}

func TestAsking(t *testing.T) {
	write := &pawl.Tool{Name: "write", Effect: pawl.EffectWrite}
	for typed, want := range map[string]pawl.Verdict{
		"y\n": pawl.VerdictAllow, "Yes\n": pawl.VerdictAllow, " y \n": pawl.VerdictAllow, "a\n": pawl.VerdictAllow,
		"n\n": pawl.VerdictDeny, "no\n": pawl.VerdictDeny,
		"hm\ny\n":      pawl.VerdictAllow, // asked again
		"x\nx\nx\ny\n": pawl.VerdictAsk,   // three times, and no more
		"":             pawl.VerdictAsk,   // no input
		"y":            pawl.VerdictAllow, // the last line may lack its end
	} {
		a, shown := typing(t, typed)
		if got, _ := a.approve(t.Context(), call("c", "write", `{"text":"hello"}`), write); got.Verdict != want {
			t.Errorf("typed %q: got verdict %d (%s), want %d", typed, got.Verdict, got.Reason, want)
		}
		if !strings.Contains(shown.String(), `{"text":"hello"}`) || !strings.Contains(shown.String(), "may write run?") {
			t.Errorf("the person saw %q, want tool and arguments", shown)
		}
	}
}

func TestAskingOnce(t *testing.T) {
	a, shown := typing(t, "a\nn\n")
	one, two := &pawl.Tool{Name: "one"}, &pawl.Tool{Name: "two"}
	for _, test := range []struct {
		tool *pawl.Tool
		want pawl.Verdict
	}{
		{&pawl.Tool{Name: "look", Effect: pawl.EffectRead}, pawl.VerdictAllow}, // takes no answer
		{one, pawl.VerdictAllow}, {one, pawl.VerdictAllow},
		{two, pawl.VerdictDeny}, // "always" applies to one tool
	} {
		if got, _ := a.approve(t.Context(), call("c", test.tool.Name, `{}`), test.tool); got.Verdict != test.want {
			t.Errorf("%s: got %v, want verdict %d", test.tool.Name, got, test.want)
		}
	}
	if n := strings.Count(shown.String(), "run?"); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

// Text of a model cannot deceive the person who decides: control characters have no effect, and
// long arguments are shown whole.
func TestAskingHarmless(t *testing.T) {
	a, shown := typing(t, "n\n")
	_, _ = a.approve(t.Context(), call("c", "wri\x1b[2Jte", `{"text":"`+"\x1b[1A\u202e"+strings.Repeat("long", 5000)+`"}`), &pawl.Tool{Name: "x"})
	if strings.ContainsAny(shown.String(), "\x1b\u202e") {
		t.Errorf("got %q", shown)
	}
	all := strings.NewReplacer("\n", "", " ", "").Replace(shown.String())
	if n := strings.Count(all, "long"); n != 5000 || strings.Count(shown.String(), "run?") != 2 {
		t.Errorf("%d of 5000 words are shown, and the question %d times; want all of them, and the question again below", n,
			strings.Count(shown.String(), "run?"))
	}
}

func TestAskingInterrupted(t *testing.T) {
	in, typing := io.Pipe()
	defer typing.Close()
	a := &asker{policy: policy.AskBeforeWrites, in: cli.NewLines(in), out: &Screen{terminal: io.Discard}, width: 60,
		always: map[string]bool{}}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan pawl.Approval)
	go func() {
		got, _ := a.approve(ctx, call("c", "write", `{}`), &pawl.Tool{Name: "write"})
		done <- got
	}()
	cancel(pawl.ErrCancelled)
	if got := <-done; got.Verdict == pawl.VerdictAllow {
		t.Errorf("got %v for a question that was interrupted", got)
	}
	// The next question reads later input.
	go io.WriteString(typing, "later\n")
	if got, err := a.in.Next(t.Context()); got != "later" || err != nil {
		t.Errorf("got %q, %v, want the line that was typed later", got, err)
	}
}

// Two calls of one step are asked about one after the other. Output of the run does not appear
// between a question and its answer.
func TestAskingInARun(t *testing.T) {
	a, shown := typing(t, "y\nn\n")
	ran := 0
	tool := &pawl.Tool{Name: "write", Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		ran++
		return llm.TextResult("written"), nil
	}}
	agent := &pawl.Agent{Model: script.New(script.Together(script.Call("write", nil), script.Call("write", nil)),
		script.Say("ok")),
		Tools: []pawl.Toolset{tool}, Middleware: []pawl.Middleware{pawl.Approve(a.approve)}}
	print := show.Printing(&cli.System{Width: 60}, a.out, cli.Style{})
	res, err := pawl.Collect(agent.Stream(t.Context(), llm.User("go")), print)
	if err != nil || res.Stop != pawl.StopAnswer || ran != 1 {
		t.Fatalf("got %v, %v, and %d calls ran, want an answer and 1", res, err, ran)
	}
	for _, q := range strings.Split(shown.String(), "may write run?")[1:] {
		if _, after, _ := strings.Cut(q, "> "); !strings.Contains(q, "> ") || strings.Contains(q[:len(q)-len(after)],
			"✓") {
			t.Errorf("something came between question and answer: %q", q)
		}
	}
}

func call(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}
