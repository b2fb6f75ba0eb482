package tui

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/llm"
)

// rendered returns events as a terminal of 60 columns shows them.
func rendered(live bool, events ...pawl.Event) string {
	var b bytes.Buffer
	r := &Renderer{w: &b, width: 60, live: live}
	for _, e := range events {
		if e.Run == "" {
			e.Run = "run"
		}
		r.Event(e)
	}
	return b.String()
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
		{Kind: pawl.EventCallReady, Step: 1, Call: &b},
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
	const calls = `  → 1.1 file_read {"path":"a.csv"}
  → 1.2 file_write {"path":"b.md","content":"long long long…
      half way
  ! retry: attempt 1 failed
  → 1.1 file_read again, attempt 2
  ✗ 1.2 file_write  1.5 ms  invalid
      The arguments do not fit:
      - field x: a text that goes on for longer than the
      terminal is wide
  ✓ 1.1 file_read  1.5 ms  one (+2 lines)
`
	head := func(n string) string { return "\nstep " + n + " " + strings.Repeat("─", 53) + "\n" }
	if diff := cmp.Diff(rendered(true, events...), head("1")+"Hm.\nI look.\n"+calls+head("2")+"Done.\n"); diff != "" {
		t.Errorf("live, got -, want +\n%s", diff)
	}
	// If the answer is printed separately, only the text next to calls is shown, when it is
	// complete.
	if diff := cmp.Diff(rendered(false, events...), head("1")+"I look.\n"+calls); diff != "" {
		t.Errorf("not live, got -, want +\n%s", diff)
	}
}

func TestRenderOutcomes(t *testing.T) {
	c := call("a", "go", `{}`)
	for outcome, want := range map[pawl.Outcome]string{
		pawl.OutcomeOK:          "  ✓ 1.1 go  1.5 ms  because\n",
		pawl.OutcomeError:       "  ✗ 1.1 go  1.5 ms  error\n      because\n",
		pawl.OutcomeUnknownTool: "  ✗ 1.1 go  1.5 ms  unknown_tool\n      because\n",
		pawl.OutcomeDenied:      "  – 1.1 go  1.5 ms  denied\n      because\n",
		pawl.OutcomeSkipped:     "  – 1.1 go  1.5 ms  skipped\n      because\n",
		pawl.OutcomePending:     "  ? 1.1 go  1.5 ms  pending\n      because\n",
	} {
		// A call of an earlier run is announced when it completes.
		if _, got, _ := strings.Cut(rendered(true, completed("run/1/0", c, outcome, "because")),
			"→ 1.1 go {}\n"); got != want {
			t.Errorf("%s: got %q, want %q", outcome, got, want)
		}
	}
	got := rendered(true, completed("run/1/0/s1", call("s1", "inner", `{}`), pawl.OutcomeOK, "x"))
	if want := "  ✓ 1/0/s1 inner  1.5 ms  x\n"; got != want {
		t.Errorf("a call inside a call: got %q, want %q", got, want)
	}
}

func TestRenderRetracted(t *testing.T) {
	got := rendered(true, pawl.Event{Kind: pawl.EventStepStarted, Step: 1},
		pawl.Event{Kind: pawl.EventText, Step: 1, Text: `{"x":1}`},
		pawl.Event{Kind: pawl.EventTextRetracted, Step: 1, Text: `{"x":1}`})
	if !strings.HasSuffix(got, "{\"x\":1}\n(forget that: it was no answer but a call written as text)\n") {
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
			if live && got == "" && e.Kind != pawl.EventResponseReceived {
				t.Errorf("%s shows nothing", e.Kind)
			}
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
	r := &Renderer{w: &b, width: 60, live: true,
		style: (&cli.System{Env: func(string) string { return "" }}).Colours(true)}
	r.Event(completed("run/1/0", call("a", "go", `{}`), pawl.OutcomeOK, "x"))
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
		{shortArgs(json.RawMessage(`{"a": "` + strings.Repeat("\\n", 40) + `", "b": 1}`)), `{"a":"` + strings.Repeat("\\n", 11) + `…","b":1}`},
		{shortArgs(json.RawMessage(`{"a`)), `{"a`},
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
	head := "\nstep 1 " + strings.Repeat("─", 53) + "\n"
	text := pawl.Event{Kind: pawl.EventText, Step: 1, Text: "The sum is 4"}
	start := pawl.Event{Kind: pawl.EventStepStarted, Step: 1}
	for _, live := range []bool{false, true} {
		if got, want := rendered(live, start, text, broken), head+said+"  "+mark; got != want {
			t.Errorf("live %t: got %q, want %q", live, got, want)
		}
		none := broken
		none.Completed = &pawl.Step{Error: none.Error}
		if got := rendered(live, start, none); got != "" {
			t.Errorf("live %t, without a part: got %q", live, got)
		}
	}
	for _, answer := range []bool{false, true} {
		v := newView(60, answer)
		v.begin(time.Unix(0, 0))
		var out []term.Line
		for _, e := range []pawl.Event{start, text, broken, {Kind: pawl.EventRunEnded}} {
			e.Run = "run"
			v.event(e, time.Unix(1, 0))
			out = append(out, v.drain(time.Unix(1, 0))...)
		}
		if got, want := plainLines(out), said+"\n"+mark; got != want {
			t.Errorf("console, answer %t: got %q, want %q", answer, got, want)
		}
	}
}
