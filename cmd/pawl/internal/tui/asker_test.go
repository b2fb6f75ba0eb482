package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
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
		always: map[string]bool{}, seen: map[string]bool{}, asked: map[string]bool{}}, &shown
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

// TestAskingAlwaysIsForAReason: a yes to all questions answers no question about a value of the
// call, which has another reason.
func TestAskingAlwaysIsForAReason(t *testing.T) {
	a, shown := typing(t, "a\nn\na\n")
	tool := &pawl.Tool{Name: "pay", Effect: pawl.EffectWrite}
	for _, test := range []struct {
		reason string
		want   pawl.Verdict
	}{
		{"it may change the world", pawl.VerdictAllow},
		{"it may change the world", pawl.VerdictAllow}, // by the first answer
		{`it may change the world; iban "DE44" stands only in text that read_file returned`, pawl.VerdictDeny},
		{`iban "DE45" stands only in text that read_file returned`, pawl.VerdictAllow},
		{`iban "DE45" stands only in text that read_file returned`, pawl.VerdictAllow},
	} {
		a.policy = func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: test.reason}, nil
		}
		if got, _ := a.approve(t.Context(), call("c", "pay", `{}`), tool); got.Verdict != test.want {
			t.Errorf("%s: got %+v, want verdict %d", test.reason, got, test.want)
		}
	}
	if n := strings.Count(shown.String(), "run?"); n != 3 {
		t.Errorf("asked %d times, want 3", n)
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
		always: map[string]bool{}, seen: map[string]bool{}, asked: map[string]bool{}}
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

// TestAskingAboutDoubts: the calls of a step that wait for the same value are one question, which
// shows each of them. A yes to it is for these calls: there is no "always".
func TestAskingAboutDoubts(t *testing.T) {
	pending := func(key, iban, amount string) pawl.PendingCall {
		d := pawl.Doubt{Class: "stranger", Arg: "iban", Value: iban}
		args := `{"iban":"` + iban + `","amount":` + amount + `}`
		return pawl.PendingCall{Key: llm.Key(key), Call: call(key, "pay", args), Outcome: pawl.OutcomePending,
			Why: "A STRANGER'S TEXT NAMES IT: " + iban, Doubts: []pawl.Doubt{d}}
	}
	one := pending("run/1/0", "DE44", "10")
	same := pending("run/1/1", "DE44", "99")
	other := pending("run/1/2", "DE45", "10")
	later := pending("run/2/0", "DE44", "10")

	for name, test := range map[string]struct {
		typed     string
		open      []pawl.PendingCall
		questions int
		approved  int
	}{
		"the same payee":             {"y\n", []pawl.PendingCall{one, same}, 1, 2},
		"the same payee, refused":    {"n\nn\n", []pawl.PendingCall{one, same}, 2, 0},
		"another payee":              {"y\nn\n", []pawl.PendingCall{one, other}, 2, 1},
		"the same payee, later":      {"y\nn\n", []pawl.PendingCall{one, later}, 2, 1},
		"always is not an answer":    {"a\na\ny\n", []pawl.PendingCall{one}, 1, 1},
		"always, three times, is no": {"a\na\na\n", []pawl.PendingCall{one}, 1, 0},
	} {
		a, shown := typing(t, test.typed)
		approved := 0
		for _, m := range a.DecideOn(t.Context(), test.open, "anna") {
			for _, p := range m.Parts {
				if d, ok := p.(llm.Decision); ok && d.Approve {
					approved++
				}
			}
		}
		text := shown.String()
		if n := strings.Count(text, "run?"); n != test.questions || approved != test.approved {
			t.Errorf("%s: %d questions, %d approved: %s", name, n, approved, text)
		}
		for _, q := range test.open {
			if !strings.Contains(text, string(q.Call.Args)) {
				t.Errorf("%s: the person has not seen %s", name, q.Call.Args)
			}
		}
		if strings.Contains(text, "a: yes") {
			t.Errorf("%s: always is offered: %s", name, text)
		}
	}

	// In a run, the second call has no question of its own.
	a, shown := typing(t, "y\n")
	a.policy = func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: one.Why, Doubts: one.Doubts}, nil
	}
	var ran atomic.Int32
	agent := &pawl.Agent{
		Tools: []pawl.Toolset{&pawl.Tool{Name: "pay", Effect: pawl.EffectWrite,
			Input: json.RawMessage(`{"type":"object"}`),
			Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				ran.Add(1)
				return llm.TextResult("paid"), nil
			}}},
		Middleware: []pawl.Middleware{pawl.Approve(a.approve)},
		Model: script.New(script.Together(script.Call("pay", string(one.Call.Args)), script.Call("pay", string(same.Call.Args))),
			script.Say("Done.")),
	}
	if _, err := agent.Run(t.Context(), llm.User("Pay.")); err != nil || ran.Load() != 2 {
		t.Errorf("%d calls ran, %v: %s", ran.Load(), err, shown)
	}
	if n := strings.Count(shown.String(), "run?"); n != 1 {
		t.Errorf("%d questions, want 1: %s", n, shown)
	}
}
