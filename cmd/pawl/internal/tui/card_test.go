package tui

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/llm"
	"pgregory.net/rapid"
)

// For any arguments of a call and any width, a question emits no control sequence of their text.
func TestCardHarmless(t *testing.T) {
	const evil = "a\x1b[2Jb\x07c\rd\u009b31me\u202ef\x7f\xff\u2028g\x00"
	ours := regexp.MustCompile("\x1b\\[[0-9;]*m")
	arguments := []string{`{"x":"` + "a\\u001bb" + `"}`, evil, `{"a":[1,{"b":"c"}],"d":""}`, ``}
	rapid.Check(t, func(t *rapid.T) {
		c := llm.ToolCall{ID: "a", Name: evil, Args: json.RawMessage(rapid.SampledFrom(arguments).Draw(t, "args"))}
		var of *change
		if rapid.Bool().Draw(t, "changes a file") {
			of = &change{evil, evil, evil + "\nmore", true}
		}
		lines, _ := newCard(question{call: c, why: evil}, of, true).show(rapid.IntRange(10, 80).Draw(t, "width"), 12)
		for _, l := range lines {
			text := ours.ReplaceAllString(l.Render(true), "")
			if strings.ContainsFunc(text, func(r rune) bool { return r == '\n' || term.Hidden(r) }) {
				t.Fatalf("%q reached the terminal", text)
			}
		}
	})
}

// A call is allowed only after every line of its question was shown, in this width, without a gap.
func TestReadBeforeAllowed(t *testing.T) {
	args, err := json.Marshal(map[string]string{"content": strings.Repeat("line\n", 60) + "evil"})
	if err != nil {
		t.Fatal(err)
	}
	question := func() *card {
		return newCard(question{call: llm.ToolCall{Name: "write", Args: args}, why: "it may change the world"}, nil, false)
	}
	allowed := func(q *card, key string) bool {
		return q.key(term.Key{Name: "text", Text: key}, nil) && (<-q.answer).verdict == pawl.VerdictAllow
	}
	shown := func(q *card, width int) string {
		lines, _ := q.show(width, 24)
		return fmt.Sprint(lines)
	}
	for _, key := range []string{"y", "a"} {
		if q := question(); allowed(q, key) {
			t.Errorf("%s before anything was shown allows the call", key)
		}
		q := question()
		for range 3 {
			if shown(q, 80); allowed(q, key) {
				t.Fatalf("%s on the first page allows the call", key)
			}
		}
		for i := 0; !strings.Contains(shown(q, 80), "evil"); i++ {
			if allowed(q, key) || i > 60 {
				t.Fatalf("%s on page %d allows the call, or there are more", key, i)
			}
			q.key(term.Key{Name: "pagedown"}, nil)
		}
		if shown(q, 40); allowed(q, key) {
			t.Errorf("%s allows a call that was shown in another width", key)
		}
		if shown(q, 80); allowed(q, key) {
			t.Errorf("%s allows a call of which the end alone was shown in this width", key)
		}
		for range 60 {
			q.key(term.Key{Name: "up"}, nil)
			shown(q, 80)
		}
		for range 60 {
			q.key(term.Key{Name: "down"}, nil)
			shown(q, 80)
		}
		if !allowed(q, key) {
			t.Errorf("%s does not allow a call that was shown whole", key)
		}
	}
	small := oneCall("write", `{"a":1}`)
	if shown(small, 80); !allowed(small, "y") {
		t.Error("a short question cannot be allowed at once")
	}
}

// No part of a question carries text that the person does not see.
func TestNothingUnseenIsAsked(t *testing.T) {
	const hides = "hi\U000e0168\u2060\u3164\u00ad"
	const seen = `hi\u{e0168}\u{2060}\u{3164}\u{ad}`
	for what, args := range map[string]string{"value": `{"to":"` + hides + `"}`, "name": `{"` + hides + `":1}`,
		"text of lines": `{"to":"a\n` + hides + `"}`, "no object": hides} {
		call := llm.ToolCall{Name: "write", Args: json.RawMessage(args)}
		lines, _ := newCard(question{call: call, why: hides}, nil, false).show(80, 24)
		a, inLine := typing(t, "n\n")
		a.askInLine(t.Context(), question{call: call, why: hides})
		for _, text := range []string{fmt.Sprint(lines), inLine.String()} {
			if strings.Count(text, seen) < 2 || strings.ContainsAny(text, hides[2:]) {
				t.Errorf("%s: got %q, want %s in the reason and in the arguments", what, text, seen)
			}
		}
	}
	lines, _ := newCard(question{call: llm.ToolCall{Name: "write"}}, &change{hides, hides + "x", hides, true}, false).show(80, 24)
	if text := fmt.Sprint(lines); strings.Count(text, seen) != 3 {
		t.Errorf("got %q, want %s in the path and in both lines", text, seen)
	}
}

// oneCall returns the card of a question about one call.
func oneCall(name, args string) *card {
	return newCard(question{call: llm.ToolCall{Name: name, Args: json.RawMessage(args)}, why: "why"}, nil, false)
}
