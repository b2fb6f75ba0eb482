package show

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/llm"
	"pgregory.net/rapid"
)

// viewed shows events in a view of 60 columns, one a second. It returns the printed lines and the
// live lines.
func viewed(events ...pawl.Event) (printed, live string) {
	v := NewView(60, true)
	now := time.Unix(0, 0)
	v.Begin(now)
	var out []term.Line
	for _, e := range events {
		now = now.Add(time.Second)
		if e.Run == "" {
			e.Run = "run"
		}
		v.Handle(e, now)
		out = append(out, v.Drain(now)...)
	}
	return plainLines(out), plainLines(v.Live(now, 20))
}

func plainLines(lines []term.Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}

func ready(index int, c llm.ToolCall) pawl.Event {
	return pawl.Event{Kind: pawl.EventCallReady, Step: 1, Index: index, Call: &c}
}

func startedAt(path llm.Key, c llm.ToolCall) pawl.Event {
	return pawl.Event{Kind: pawl.EventCallStarted, Step: 1, Path: path, Call: &c, Attempt: 1}
}

func replied(calls ...llm.ToolCall) pawl.Event {
	m := llm.Assistant()
	for _, c := range calls {
		m.Parts = append(m.Parts, c)
	}
	return pawl.Event{Kind: pawl.EventResponseReceived, Step: 1, Response: &llm.Response{Message: m}}
}

// Calls appear in the order of the reply: a completed call waits for the calls before it. A call
// that started before its reply was complete is marked, and so is a repaired call.
func TestViewOrder(t *testing.T) {
	a, b := call("a", "file_read", `{"path":"a.csv"}`), call("b", "fetch", `{"url":"x","depth":2}`)
	begin := []pawl.Event{{Kind: pawl.EventStepStarted, Step: 1}, {Kind: pawl.EventText, Step: 1, Text: "I **look**"},
		ready(1, a), startedAt("run/1/0", a), ready(2, b), replied(a, b), startedAt("run/1/1", b)}
	mended := completed("run/1/1", b, pawl.OutcomeOK, "one\ntwo")
	mended.Execution.Repairs = []string{"a comma"}
	printed, live := viewed(append(begin, mended)...)
	if diff := cmp.Diff("I look\n", printed); diff != "" {
		t.Errorf("printed, want -, got +\n%s", diff)
	}
	if diff := cmp.Diff("\n⠋ file_read a.csv  4.0 s  early\n✓ fetch url=x depth=2  repaired  1.5 ms  #2\n  └ one (+1 line)\n", live); diff != "" {
		t.Errorf("live, want -, got +\n%s", diff)
	}
	printed, live = viewed(append(begin, mended, completed("run/1/0", a, pawl.OutcomeError, "no such file"))...)
	want := "I look\n\n✗ file_read a.csv  error  1.5 ms  early  #1\n  └ no such file\n✓ fetch url=x depth=2  repaired  1.5 ms  #2\n  └ one (+1 line)\n"
	if diff := cmp.Diff(want, printed); diff != "" || live != "" {
		t.Errorf("want -, got +\n%s%q", diff, live)
	}
}

// Nested runs appear below their call, with their own calls.
func TestViewNested(t *testing.T) {
	clerk, inner := call("c", "clerk", `{"task":"add"}`), call("i", "sum", `{"of":"[1,2]"}`)
	events := []pawl.Event{{Kind: pawl.EventStepStarted, Step: 1}, ready(0, clerk), replied(clerk),
		startedAt("run/1/0", clerk),
		{Kind: pawl.EventStepStarted, Run: "run/1/0/clerk", Step: 1}, {Kind: pawl.EventText, Run: "run/1/0/clerk",
			Step: 1, Text: "not the answer"},
		{Kind: pawl.EventCallStarted, Run: "run/1/0/clerk", Step: 1, Path: "run/1/0/clerk/1/0", Call: &inner,
			Attempt: 1},
		{Kind: pawl.EventProgress, Run: "run/1/0/clerk", Step: 1, Path: "run/1/0/clerk/1/0", Text: "half\nway"}}
	_, live := viewed(events...)
	if diff := cmp.Diff("⠋ clerk add  4.0 s\n  ⠋ sum [1,2]  1.0 s\n    └ way\n", live); diff != "" {
		t.Errorf("live, want -, got +\n%s", diff)
	}
	done := completed("run/1/0/clerk/1/0", inner, pawl.OutcomeOK, "3")
	done.Run = "run/1/0/clerk"
	printed, _ := viewed(append(events, done, completed("run/1/0", clerk, pawl.OutcomeOK, "It is 3."))...)
	if diff := cmp.Diff("✓ clerk add  1.5 ms  #1\n  ✓ sum [1,2]  1.5 ms  #2\n    └ 3\n  └ It is 3.\n",
		printed); diff != "" {
		t.Errorf("printed, want -, got +\n%s", diff)
	}
}

// The unprinted part of a text that was not an answer is removed.
func TestViewRetracted(t *testing.T) {
	printed, live := viewed(pawl.Event{Kind: pawl.EventText, Text: `{"x":1}`},
		pawl.Event{Kind: pawl.EventTextRetracted, Text: `{"x":1}`}, pawl.Event{Kind: pawl.EventText, Text: "Yes."})
	if printed != "" || live != "Yes.\n" {
		t.Errorf("got %q and %q", printed, live)
	}
}

// A reader who has seen a part of a reply that broke off is informed that it does not count. What
// was not printed yet is removed.
func TestViewRetractedAfterPrinting(t *testing.T) {
	const note = "(forget that: it is not part of the answer)"
	text := func(s string) pawl.Event { return pawl.Event{Kind: pawl.EventText, Text: s} }
	retracted := pawl.Event{Kind: pawl.EventTextRetracted, Text: "Half of it.\n\nAnd"}
	for name, test := range map[string]struct {
		events        []pawl.Event
		printed, live string
	}{
		"asked for again": {
			[]pawl.Event{text("Half of it.\n\nAnd "), retracted, text("The whole.")},
			"Half of it.\n\n" + note + "\n", "\nThe whole.\n",
		},
		"nothing follows": {
			[]pawl.Event{text("Half of it.\n\n"), text("And "), retracted},
			"Half of it.\n\n" + note + "\n", "",
		},
		"a call follows": {
			[]pawl.Event{text("Half of it.\n\nAnd "), retracted, ready(0, call("a", "go", `{}`))},
			"Half of it.\n\n" + note + "\n", "\n· go  waits\n",
		},
		"twice": {
			[]pawl.Event{text("Half of it.\n\nAnd "), retracted, text("Half again.\n\nAnd "), retracted, text("The whole.")},
			"Half of it.\n\n" + note + "\n\nHalf again.\n\n" + note + "\n", "\nThe whole.\n",
		},
	} {
		printed, live := viewed(test.events...)
		if printed != test.printed || live != test.live {
			t.Errorf("%s: got %q and %q, want %q and %q", name, printed, live, test.printed, test.live)
		}
	}
}

// ours are the control sequences of the view itself.
var ours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// For any text of a model, a tool or a person, at any time, the view does not fail, emits no
// control sequence of that text, and prints everything at the end.
func TestViewHarmless(t *testing.T) {
	const evil = "a\x1b[2Jb\x07c\rd\u009b31me\u202ef\x7f\xff\u2028g\x00"
	names := []string{"run/1/0", "run/1/1", "run/1/0/s1", "run/1/0/clerk/1/0", "run/2/0", ""}
	kinds := []pawl.EventKind{pawl.EventStepStarted, pawl.EventRequestStarted, pawl.EventText,
		pawl.EventTextRetracted, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventCallReady,
		pawl.EventResponseReceived, pawl.EventCallStarted, pawl.EventProgress, pawl.EventCallCompleted,
		pawl.EventNotice, pawl.EventSteered, pawl.EventRunEnded}
	outcomes := []pawl.Outcome{pawl.OutcomeOK, pawl.OutcomeError, pawl.OutcomeDenied, pawl.OutcomePending,
		pawl.OutcomeUnknownTool}
	rapid.Check(t, func(t *rapid.T) {
		v := NewView(rapid.IntRange(10, 80).Draw(t, "width"), rapid.Bool().Draw(t, "answer"))
		now := time.Unix(0, 0)
		v.Begin(now)
		check := func(lines []term.Line) {
			for _, l := range lines {
				text := ours.ReplaceAllString(l.Render(true), "")
				if strings.ContainsFunc(text, func(r rune) bool { return r == '\n' || term.Hidden(r) }) {
					t.Fatalf("%q reached the terminal", text)
				}
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			c := call(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id"), evil,
				rapid.SampledFrom([]string{`{"x":"` + "a\\u001bb" + `"}`, evil, `{"a":[1,{"b":"c"}],"d":""}`, ``}).Draw(t, "args"))
			path := llm.Key(rapid.SampledFrom(names).Draw(t, "path"))
			e := pawl.Event{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Run: "run", Step: 1, Path: path, Call: &c,
				Text: evil, Code: evil, Index: len(c.ID),
				Response: &llm.Response{Message: llm.Assistant(llm.Text{Text: evil}, c)}, Result: new(pawl.Result)}
			user := llm.User(evil)
			e.Message = &user
			x := completed(path, c, rapid.SampledFrom(outcomes).Draw(t, "outcome"), evil+"\n"+evil)
			e.Execution = x.Execution
			now = now.Add(time.Second)
			v.Handle(e, now)
			check(v.Drain(now))
			check(v.Live(now, 5))
			check([]term.Line{v.Status(now, "hint")})
			if len(v.all) > 0 {
				v.AddDetails(1)
				check(v.Drain(now))
			}
		}
		v.finish()
		check(v.Drain(now))
		if len(v.items) > 0 {
			t.Fatalf("%d things are left when the run is over", len(v.items))
		}
	})
}

// The list of the tool todo stands below its call, an item a line.
func TestViewTodo(t *testing.T) {
	c := llm.ToolCall{ID: "c", Name: "todo", Args: []byte(`{"items":[]}`)}
	printed, _ := viewed(ready(0, c), replied(c), startedAt("run/1/0", c), pawl.Event{Kind: pawl.EventCallCompleted, Step: 1,
		Path: "run/1/0", Execution: &pawl.Execution{Key: "run/1/0", Call: c, Outcome: pawl.OutcomeOK, Result: llm.TextResult("1 of 2 done"),
			Values: pawl.Values{"pawl.todo": []byte(`{"items":[{"text":"read\u001b[31m","state":"done"},{"text":"write","state":"doing"}]}`)}}},
		pawl.Event{Kind: pawl.EventRunEnded, Result: &pawl.Result{}})
	if want := "  └ [x] read"; !strings.Contains(printed, want) || !strings.Contains(printed, "\n    [>] write\n") || strings.Contains(printed, "\u001b") {
		t.Errorf("no list with %q in\n%s", want, printed)
	}
}
