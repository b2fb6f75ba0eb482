// transcript.go: checks and formats transcripts.
package runtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Valid describes the first fault of a transcript. Each call of each reply before the last has
// exactly one result, in call order, in the one message directly after the reply. Only the last
// reply may have calls without a result. The function shares no code with the core.
func Valid(msgs []llm.Message) error {
	last := -1
	for i, m := range msgs {
		if m.Role == llm.RoleAssistant {
			last = i
		}
	}
	for i, m := range msgs {
		var calls, results []string
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				if m.Role != llm.RoleAssistant {
					return fmt.Errorf("message %d: a call in a %s message", i, m.Role)
				}
				if p.ID == "" || slices.Contains(calls, p.ID) {
					return fmt.Errorf("message %d: call id %q is empty or repeated", i, p.ID)
				}
				calls = append(calls, p.ID)
			case llm.ToolResult:
				results = append(results, p.CallID)
			case llm.Text, llm.Reasoning, llm.Media:
			default:
				return fmt.Errorf("message %d: holds %T", i, p)
			}
		}
		if (m.Role == llm.RoleTool) != (len(results) > 0) {
			return fmt.Errorf("message %d: role %s with %d results", i, m.Role, len(results))
		}
		if len(results) > 0 && (i == 0 || msgs[i-1].Role != llm.RoleAssistant) {
			return fmt.Errorf("message %d: results do not follow a reply", i)
		}
		if len(calls) == 0 {
			if i+1 < len(msgs) && m.Role == llm.RoleAssistant && msgs[i+1].Role == llm.RoleTool {
				return fmt.Errorf("message %d: results follow a reply without calls", i+1)
			}
			continue
		}
		var got []string
		if i+1 < len(msgs) && msgs[i+1].Role == llm.RoleTool {
			for _, p := range msgs[i+1].Parts {
				got = append(got, p.(llm.ToolResult).CallID)
			}
		}
		if i != last && !slices.Equal(got, calls) {
			return fmt.Errorf("message %d: calls %v are answered by %v", i, calls, got)
		}
		if i == last { // some may be open; the others have one result each, in call order
			at := 0
			for _, id := range got {
				n := slices.Index(calls[at:], id)
				if n < 0 {
					return fmt.Errorf("message %d: calls %v are answered by %v", i, calls, got)
				}
				at += n + 1
			}
		}
	}
	return nil
}

// MustBeValid checks the transcript of res, and that no call is open unless the run's cause allows
// it.
func MustBeValid(t testing.TB, res *pawl.Result) {
	t.Helper()
	if err := Valid(res.Messages); err != nil {
		t.Errorf("%v in\n%s", err, Transcript(res.Messages))
	}
	open := len(res.Calls())
	switch res.Stop {
	case pawl.StopAnswer, pawl.StopStalled, pawl.StopCancelled:
		if open > 0 && res.Cause != "" && res.Interrupted == "" {
			t.Errorf("stopped as %s (%s) with %d open calls:\n%s", res.Stop, res.Cause, open, Transcript(res.Messages))
		}
	case "":
		t.Error("the run has no stated cause")
	}
}

// Transcript formats a transcript with one line for each part.
func Transcript(msgs []llm.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		if len(m.Parts) == 0 {
			fmt.Fprintf(&b, "%s: (empty)\n", m.Role)
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				fmt.Fprintf(&b, "%s: %s\n", m.Role, p.Text)
			case llm.Reasoning:
				fmt.Fprintf(&b, "%s: (%s)\n", m.Role, p.Text)
			case llm.ToolCall:
				fmt.Fprintf(&b, "%s: %s %s %s\n", m.Role, p.ID, p.Name, p.Args)
			case llm.ToolResult:
				mark := ""
				if p.IsError {
					mark = "error: "
				}
				fmt.Fprintf(&b, "%s: %s = %s%s\n", m.Role, p.CallID, mark, p.Text())
			default:
				fmt.Fprintf(&b, "%s: %T\n", m.Role, p)
			}
		}
	}
	return b.String()
}

// NoInternals fails if a text for the model contains internals of the host.
func NoInternals(t testing.TB, text string) {
	t.Helper()
	for _, word := range []string{"goroutine", ".go:", "pawl.", "runtime", "/work", "/home", "/usr", "0x", "main.", "struct", "out of range"} {
		if strings.Contains(text, word) {
			t.Errorf("the model is told %q, which says %q", text, word)
		}
	}
}
