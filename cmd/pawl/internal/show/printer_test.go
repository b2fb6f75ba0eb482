package show

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/llm"
)

var took = regexp.MustCompile(`[0-9.]+ m?s\b`)

// rendered returns events as plain lines of 60 columns show them, with T for times.
func rendered(answer bool, events ...pawl.Event) string {
	var b bytes.Buffer
	p := &Printer{Out: &b, Starts: true, View: NewView(60, answer)}
	for _, e := range events {
		if e.Run == "" {
			e.Run = "run"
		}
		p.Handle(e)
	}
	return took.ReplaceAllString(b.String(), "T")
}

func call(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

func completed(path llm.Key, c llm.ToolCall, o pawl.Outcome, text string) pawl.Event {
	start := time.Unix(0, 0)
	return pawl.Event{Kind: pawl.EventCallCompleted, Step: 1, Path: path, Execution: &pawl.Execution{Key: path,
		Call: c, Outcome: o,
		Result: llm.ToolResult{Parts: []llm.Part{llm.Text{Text: text}},
			IsError: o != pawl.OutcomeOK}, Started: start, Ended: start.Add(1500 * time.Microsecond)}}
}

func TestRender(t *testing.T) {
	a, b := call("a", "file_read", `{"path": "a.csv"}`), call("b", "file_write", `{"path":"b.md","content":"`+strings.Repeat("long ", 20)+`"}`)
	reply := &llm.Response{Message: llm.Assistant(llm.Text{Text: "I look."}, a, b)}
	answer := &llm.Response{Message: llm.Assistant(llm.Text{Text: "Done."})}
	events := []pawl.Event{
		{Kind: pawl.EventRunStarted},
		{Kind: pawl.EventStepStarted, Step: 1},
		{Kind: pawl.EventRequestStarted, Step: 1},
		{Kind: pawl.EventReasoning, Step: 1, Text: "Hm."},
		{Kind: pawl.EventText, Step: 1, Text: "I lo"},
		{Kind: pawl.EventText, Step: 1, Text: "ok."},
		{Kind: pawl.EventCallDelta, Step: 1, Call: &a, Text: `{"pa`},
		{Kind: pawl.EventCallReady, Step: 1, Call: &a},
		{Kind: pawl.EventCallReady, Step: 1, Index: 1, Call: &b},
		{Kind: pawl.EventResponseReceived, Step: 1, Response: reply},
		{Kind: pawl.EventCallStarted, Step: 1, Path: "run/1/0", Call: &a, Attempt: 1},
		{Kind: pawl.EventProgress, Step: 1, Path: "run/1/0", Text: "half way"},
		{Kind: pawl.EventNotice, Step: 1, Path: "run/1/0", Code: "retry", Text: "attempt 1 failed"},
		{Kind: pawl.EventCallStarted, Step: 1, Path: "run/1/0", Call: &a, Attempt: 2},
		completed("run/1/1", b, pawl.OutcomeInvalid,
			"The arguments do not fit:\n- field x: a text that goes on for longer than the terminal is wide"),
		completed("run/1/0", a, pawl.OutcomeOK, "one\ntwo\nthree"),
		{Kind: pawl.EventStep, Step: 1},
		{Kind: pawl.EventStepStarted, Step: 2},
		{Kind: pawl.EventText, Step: 2, Text: "Done."},
		{Kind: pawl.EventResponseReceived, Step: 2, Response: answer},
		{Kind: pawl.EventStep, Step: 2},
		{Kind: pawl.EventRunEnded, Step: 2},
	}
	const calls = `
→ file_read a.csv
  └ half way
→ file_read a.csv
✓ file_read a.csv  T  #1
  ! retry: attempt 1 failed
  ! attempt 2
  └ one (+2 lines)
✗ file_write path=b.md content=long long long …  invalid  #2
  └ The arguments do not fit:
    - field x: a text that goes on for longer than the
    terminal is wide
`
	if diff := cmp.Diff(rendered(true, events...), "∴ Hm.\n\nI look.\n"+calls+"\nDone.\n"); diff != "" {
		t.Errorf("with the answer, got -, want +\n%s", diff)
	}
	// If the answer is printed separately, only the text next to calls is shown, when it is
	// complete.
	if diff := cmp.Diff(rendered(false, events...), "I look.\n"+calls); diff != "" {
		t.Errorf("without the answer, got -, want +\n%s", diff)
	}
}

func TestRenderOutcomes(t *testing.T) {
	c := call("a", "go", `{}`)
	for outcome, want := range map[pawl.Outcome]string{
		pawl.OutcomeOK:          "✓ go  #1\n  └ because\n",
		pawl.OutcomeError:       "✗ go  error  #1\n  └ because\n",
		pawl.OutcomeUnknownTool: "✗ go  unknown tool  #1\n  └ because\n",
		pawl.OutcomeDenied:      "– go  denied  #1\n  └ because\n",
		pawl.OutcomeSkipped:     "– go  skipped  #1\n  └ because\n",
		pawl.OutcomePending:     "? go  pending  #1\n  └ because\n",
	} {
		// the call of an earlier run was not announced
		if got := rendered(true, completed("run/1/0", c, outcome, "because")); got != want {
			t.Errorf("%s: got %q, want %q", outcome, got, want)
		}
	}
}

// A call that waited in one run is shown again when a later run executes it.
func TestRenderResumed(t *testing.T) {
	c := call("a", "go", `{}`)
	got := rendered(true, completed("run/1/0", c, pawl.OutcomePending, "may it?"), pawl.Event{Kind: pawl.EventRunEnded},
		pawl.Event{Kind: pawl.EventRunStarted}, startedAt("run/1/0", c), completed("run/1/0", c, pawl.OutcomeOK, "x"))
	if want := "? go  pending  #1\n  └ may it?\n→ go\n✓ go  T  #2\n  └ x\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// On a cluster, only the end of the run says that a call waits.
	end := pawl.Event{Kind: pawl.EventRunEnded, Result: &pawl.Result{Pending: []pawl.PendingCall{{Key: "run/1/0", Call: c}}}}
	if got, want := rendered(true, ready(0, c), replied(c), end), "? go  pending\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRenderRetracted(t *testing.T) {
	got := rendered(true, pawl.Event{Kind: pawl.EventStepStarted, Step: 1},
		pawl.Event{Kind: pawl.EventText, Step: 1, Text: `{"x":1}`},
		pawl.Event{Kind: pawl.EventTextRetracted, Step: 1, Text: `{"x":1}`})
	if got != "" { // it was not printed yet, so nothing is left of it
		t.Errorf("got %q", got)
	}
}

// Text of a model or a tool cannot control a terminal: answers, names, arguments, results, notices
// and errors.
func TestRenderHarmless(t *testing.T) {
	const evil = "a\x1b[2Jb\x07c\rd\u009b31me\u202ef\x7f\xff\u2028g\x00"
	c := call(evil, evil, `{"x":"`+evil+`"}`)
	var events []pawl.Event
	for _, o := range []pawl.Outcome{pawl.OutcomeOK, pawl.OutcomeError, pawl.OutcomePending} {
		events = append(events, completed("run/1/0", c, o, evil+"\n"+evil), completed("run/1/0/s1", c, o, evil))
	}
	for _, kind := range []pawl.EventKind{pawl.EventText, pawl.EventReasoning, pawl.EventTextRetracted,
		pawl.EventProgress, pawl.EventNotice} {
		events = append(events, pawl.Event{Kind: kind, Step: 1, Text: evil, Code: evil})
	}
	events = append(events, pawl.Event{Kind: pawl.EventCallReady, Step: 1, Call: &c},
		pawl.Event{Kind: pawl.EventCallStarted, Step: 1, Call: &c, Attempt: 2},
		pawl.Event{Kind: pawl.EventResponseReceived, Step: 1,
			Response: &llm.Response{Message: llm.Assistant(llm.Text{Text: evil}, c)}})
	for _, live := range []bool{true, false} {
		for _, e := range events {
			got := rendered(live, pawl.Event{Kind: pawl.EventStepStarted, Step: 1}, e)
			if i := strings.IndexFunc(got, func(r rune) bool {
				return r != '\n' && (term.Hidden(r) || r == '\uFFFD')
			}); i >= 0 {
				t.Errorf("%s: %q reached the terminal", e.Kind, got[i:min(len(got), i+8)])
			}
		}
	}
	var b bytes.Buffer
	cli.Report(&b, cli.Fail(1, errorText(evil), evil))
	if strings.ContainsAny(b.String(), "\x1b\x07\r\x7f\x00") {
		t.Errorf("an error: %q", b.String())
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }

func TestRenderColours(t *testing.T) {
	var b bytes.Buffer
	sys := &cli.System{Width: 60, Env: func(string) string { return "" }}
	Printing(sys, &b, sys.Colours(true))(completed("run/1/0", call("a", "go", `{}`), pawl.OutcomeOK, "x"))
	if !strings.Contains(b.String(), "\x1b[32m✓\x1b[0m") {
		t.Errorf("got %q, want a green mark", b.String())
	}
	for _, test := range []struct {
		env  map[string]string
		term bool
		want bool
	}{
		{nil, true, true}, {nil, false, false}, {map[string]string{"NO_COLOR": "1"}, true,
			false}, {map[string]string{"TERM": "dumb"}, true, false},
	} {
		sys := &cli.System{Env: func(k string) string { return test.env[k] }}
		if got := sys.Colours(test.term).On; got != test.want {
			t.Errorf("env %v, terminal %t: colours %t, want %t", test.env, test.term, got, test.want)
		}
	}
}

func TestSmallWords(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{cli.Line("a\nb\tc", 10), "a↵b c"},
		{cli.Line("abcdef", 4), "abc…"},
		{cli.Line(strings.Repeat("ä", 100), 4), "äää…"},
		{cli.Grouped(0) + cli.Grouped(-1234) + " " + cli.Grouped(1234567), "0-1,234 1,234,567"},
		{cli.Count(1, "call") + " " + cli.Count(2000, "call"), "1 call 2,000 calls"},
		{cli.Short(0) + " " + cli.Short(1500*time.Microsecond) + " " + cli.Short(150*time.Millisecond) + " " +
			cli.Short(2500*time.Millisecond) + " " + cli.Short(90*time.Second), "0 ms 1.5 ms 150 ms 2.5 s 1m30s"},
		{strings.Join(cli.Folded("one two three four", 9, 3), "|"), "one two|three|four"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// A request that failed within its reply shows the part that arrived, once, and its error. A
// request that failed before shows nothing: the error of the run follows.
func TestRenderBrokenReply(t *testing.T) {
	part := &llm.Response{Message: llm.Assistant(llm.Text{Text: "The sum is 4"})}
	broken := pawl.Event{Kind: pawl.EventStep, Step: 1, Error: "openai: the stream broke off",
		Completed: &pawl.Step{Response: part, Error: "openai: the stream broke off"}}
	const said, mark = "The sum is 4\n", "✗ the reply is incomplete: openai: the stream broke off\n"
	text := pawl.Event{Kind: pawl.EventText, Step: 1, Text: "The sum is 4"}
	start := pawl.Event{Kind: pawl.EventStepStarted, Step: 1}
	none := broken
	none.Completed = &pawl.Step{Error: none.Error}
	if got := rendered(true, start, none); got != "" {
		t.Errorf("without a part: got %q", got)
	}
	for _, answer := range []bool{false, true} {
		got := rendered(answer, start, text, broken, pawl.Event{Kind: pawl.EventRunEnded})
		if want := said + "\n" + mark; got != want {
			t.Errorf("answer %t: got %q, want %q", answer, got, want)
		}
	}
}
