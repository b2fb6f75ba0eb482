package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/diff"
	"github.com/pawl-go/pawl/llm"
)

// Matcher checks a request and returns the difference from its expectation, in words. Empty means
// that the request is as expected. It must not change or store the request.
type Matcher func(req *llm.Request) string

// UnexpectedError says that a request was not what its turn expects.
type UnexpectedError struct {
	Turn   int      // from 1
	Faults []string // the differences from the expectations
}

// Error names the turn and the differences.
func (e *UnexpectedError) Error() string {
	return fmt.Sprintf("script: turn %d: %s", e.Turn, strings.Join(e.Faults, "; "))
}

// Expect returns t with expectations of its request. A request that does not meet them fails with
// *UnexpectedError.
func Expect(t Turn, want ...Matcher) Turn {
	t.want = slices.Concat(t.want, want)
	return t
}

// First plays the first of turns whose expectations are met. If there is none, the request fails
// with *UnexpectedError, which has the differences of each.
func First(turns ...Turn) Turn {
	var t Turn
	t.next = func(req *llm.Request) Turn {
		var want []Matcher
		for i, t := range turns {
			faults := t.unmet(req)
			if faults == nil {
				return t
			}
			want = append(want, func(*llm.Request) string { return fmt.Sprintf("not reply %d: %s", i+1, strings.Join(faults, "; ")) })
		}
		return Turn{want: append(want, func(*llm.Request) string { return "none of the replies fits" })}
	}
	return t
}

// unmet returns the expectations of t that req does not meet. Nil means that it meets all.
func (t Turn) unmet(req *llm.Request) (faults []string) {
	for _, m := range t.want {
		if f := m(req); f != "" {
			faults = append(faults, f)
		}
	}
	return faults
}

// Asked expects text in the last message of the user.
func Asked(text string) Matcher {
	return func(req *llm.Request) string {
		for i := len(req.Messages) - 1; i >= 0; i-- {
			if m := req.Messages[i]; m.Role == llm.RoleUser {
				if strings.Contains(m.Text(), text) {
					return ""
				}
				return fmt.Sprintf("the user was to say %q, and said %q", text, m.Text())
			}
		}
		return fmt.Sprintf("the user was to say %q, and said nothing", text)
	}
}

// Returned expects text in the latest result of the tool name.
func Returned(name, text string) Matcher {
	return func(req *llm.Request) string {
		r := ResultOf(req, name)
		switch {
		case r == nil:
			return fmt.Sprintf("%s was to give %q, and there is no result of it", name, text)
		case !strings.Contains(r.Text(), text):
			return fmt.Sprintf("%s was to give %q, and gave %q", name, text, r.Text())
		}
		return ""
	}
}

// Offered expects these tools, in this order, and no others.
func Offered(names ...string) Matcher {
	return func(req *llm.Request) string {
		got := make([]string, len(req.Tools))
		for i, t := range req.Tools {
			got[i] = t.Name
		}
		if slices.Equal(got, names) {
			return ""
		}
		return fmt.Sprintf("the tools were to be %q, and are %q", names, got)
	}
}

// Conversation expects exactly these messages, instructions included. Differences are shown line by
// line:
// - is missing, + is too much.
func Conversation(want ...llm.Message) Matcher {
	return func(req *llm.Request) string {
		got := lines(req.Messages)
		expected := lines(want)
		if slices.Equal(got, expected) {
			return ""
		}
		return "the conversation is not as expected (- missing, + too much):\n" + differing(expected, got)
	}
}

// lines renders messages, a line a part or more.
func lines(msgs []llm.Message) []string {
	var out []string
	for _, m := range msgs {
		if len(m.Parts) == 0 {
			out = append(out, string(m.Role)+": (empty)")
		}
		for _, p := range m.Parts {
			for i, l := range strings.Split(rendered(p), "\n") {
				start := "  "
				if i == 0 {
					start = string(m.Role) + ": "
				}
				out = append(out, start+l)
			}
		}
	}
	return out
}

// rendered returns a part as text, with its kind unless it is text.
func rendered(part llm.Part) string {
	switch p := part.(type) {
	case llm.Text:
		return p.Text
	case llm.Reasoning:
		return "(thinks) " + p.Text
	case llm.Media:
		return fmt.Sprintf("(medium %s %s, %d bytes)", p.MIME, p.URL, len(p.Data))
	case llm.ToolCall:
		return fmt.Sprintf("(call %s) %s %s", p.ID, p.Name, p.Args)
	case llm.ToolResult:
		kind := "result"
		if p.IsError {
			kind = "failed"
		}
		return fmt.Sprintf("(%s %s) %s", kind, p.CallID, p.Text())
	}
	return ""
}

// differing shows how b differs from a, with three equal lines before and after at most.
func differing(a, b []string) string {
	var out strings.Builder
	for _, l := range diff.Lines(a, b, 3) {
		if l.Op != diff.Gap {
			fmt.Fprintf(&out, "%c %s\n", l.Op, l.Text)
		}
	}
	return out.String()
}
