package pawl_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// TestMain fails when a goroutine is left over: whoever starts one waits for it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modelFunc is a model that is a function.
type modelFunc func(context.Context, *pawl.Request) iter.Seq2[pawl.Delta, error]

func (f modelFunc) Stream(ctx context.Context, req *pawl.Request) iter.Seq2[pawl.Delta, error] {
	return f(ctx, req)
}

// says returns a tool that answers every call with text.
func says(name, text string) *pawl.Tool {
	return does(name, func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) { return pawl.TextResult(text), nil })
}

// does returns a tool that takes any arguments.
func does(name string, run pawl.ToolFunc) *pawl.Tool {
	return &pawl.Tool{Name: name, Input: json.RawMessage(`{"type":"object"}`), Run: run}
}

// passive returns a tool that the caller of the run carries out.
func passive(name string) *pawl.Tool {
	return &pawl.Tool{Name: name, Input: json.RawMessage(`{"type":"object"}`), Passive: true}
}

// call returns a call with the id that stands in for its name in results.
func call(id, name, args string) pawl.ToolCall {
	return pawl.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

func answer(id, text string) pawl.ToolResult {
	return pawl.ToolResult{CallID: id, Parts: []pawl.Part{pawl.Text{Text: text}}}
}

// fataler is what helpers need of a test, and of a property.
type fataler interface {
	Helper()
	Fatal(...any)
}

// collect drains a run: its events, its Result and its error.
func collect(seq iter.Seq2[pawl.Event, error]) (events []pawl.Event, res *pawl.Result, err error) {
	for e, fault := range seq {
		if fault != nil {
			err = fault
			continue
		}
		events = append(events, e)
		if e.Kind == pawl.EventRunEnded && e.Run == "run" {
			res = e.Result
		}
	}
	return events, res, err
}

// say renders a transcript, a line a part.
func say(msgs []pawl.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		if len(m.Parts) == 0 {
			fmt.Fprintf(&b, "%s: (empty)\n", m.Role)
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case pawl.Text:
				fmt.Fprintf(&b, "%s: %s\n", m.Role, p.Text)
			case pawl.Reasoning:
				fmt.Fprintf(&b, "%s: (%s)\n", m.Role, p.Text)
			case pawl.ToolCall:
				fmt.Fprintf(&b, "%s: %s %s %s\n", m.Role, p.ID, p.Name, p.Args)
			case pawl.ToolResult:
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

// valid says what is wrong with a transcript: each call of each reply before the last has exactly one result, in call order,
// in the one message right after the reply; only the last reply may have calls without one. It shares no code with the core.
func valid(msgs []pawl.Message) error {
	last := -1
	for i, m := range msgs {
		if m.Role == pawl.RoleAssistant {
			last = i
		}
	}
	for i, m := range msgs {
		var calls, results []string
		for _, p := range m.Parts {
			switch p := p.(type) {
			case pawl.ToolCall:
				if m.Role != pawl.RoleAssistant {
					return fmt.Errorf("message %d: a call in a %s message", i, m.Role)
				}
				if p.ID == "" || slices.Contains(calls, p.ID) {
					return fmt.Errorf("message %d: call id %q is empty or repeated", i, p.ID)
				}
				calls = append(calls, p.ID)
			case pawl.ToolResult:
				results = append(results, p.CallID)
			case pawl.Text, pawl.Reasoning, pawl.Media:
			default:
				return fmt.Errorf("message %d: holds %T", i, p)
			}
		}
		if (m.Role == pawl.RoleTool) != (len(results) > 0) {
			return fmt.Errorf("message %d: role %s with %d results", i, m.Role, len(results))
		}
		if len(results) > 0 && (i == 0 || msgs[i-1].Role != pawl.RoleAssistant) {
			return fmt.Errorf("message %d: results do not follow a reply", i)
		}
		if len(calls) == 0 {
			if i+1 < len(msgs) && m.Role == pawl.RoleAssistant && msgs[i+1].Role == pawl.RoleTool {
				return fmt.Errorf("message %d: results follow a reply without calls", i+1)
			}
			continue
		}
		var got []string
		if i+1 < len(msgs) && msgs[i+1].Role == pawl.RoleTool {
			for _, p := range msgs[i+1].Parts {
				got = append(got, p.(pawl.ToolResult).CallID)
			}
		}
		if i != last && !slices.Equal(got, calls) {
			return fmt.Errorf("message %d: calls %v are answered by %v", i, calls, got)
		}
		if i == last { // some may be open; the others stand in call order, once
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

// mustBeValid checks the transcript of res, and that nothing of it is open where a run may not leave anything open.
func mustBeValid(t testing.TB, res *pawl.Result) {
	t.Helper()
	if err := valid(res.Messages); err != nil {
		t.Errorf("%v in\n%s", err, say(res.Messages))
	}
	open := len(res.Calls())
	switch res.Stop {
	case pawl.StopAnswer, pawl.StopStalled, pawl.StopCancelled:
		if open > 0 && res.Cause != "" && !strings.HasPrefix(res.Cause, "interrupted") {
			t.Errorf("stopped as %s (%s) with %d open calls:\n%s", res.Stop, res.Cause, open, say(res.Messages))
		}
	case "":
		t.Error("the run has no stated cause")
	}
}

func TestTheCheckerOfTranscriptsFindsFaults(t *testing.T) {
	ask, calls := pawl.User("go"), pawl.Assistant(call("a", "x", "{}"), call("b", "x", "{}"))
	for name, test := range map[string]struct {
		msgs []pawl.Message
		ok   bool
	}{
		"answered":              {[]pawl.Message{ask, calls, pawl.Results(answer("a", ""), answer("b", "")), pawl.Assistant()}, true},
		"open":                  {[]pawl.Message{ask, calls}, true},
		"one open":              {[]pawl.Message{ask, calls, pawl.Results(answer("b", ""))}, true},
		"open before the last":  {[]pawl.Message{ask, calls, pawl.Assistant()}, false},
		"out of order":          {[]pawl.Message{ask, calls, pawl.Results(answer("b", ""), answer("a", "")), pawl.Assistant()}, false},
		"out of order, at last": {[]pawl.Message{ask, calls, pawl.Results(answer("b", ""), answer("a", ""))}, false},
		"twice":                 {[]pawl.Message{ask, calls, pawl.Results(answer("a", ""), answer("a", ""))}, false},
		"elsewhere":             {[]pawl.Message{ask, calls, pawl.User("hm"), pawl.Results(answer("a", ""), answer("b", ""))}, false},
		"no call":               {[]pawl.Message{ask, pawl.Results(answer("a", ""))}, false},
		"split":                 {[]pawl.Message{ask, calls, pawl.Results(answer("a", "")), pawl.Results(answer("b", ""))}, false},
		"same id":               {[]pawl.Message{ask, pawl.Assistant(call("a", "x", "{}"), call("a", "x", "{}"))}, false},
		"decision":              {[]pawl.Message{pawl.Decide(pawl.Decision{})}, false},
	} {
		if err := valid(test.msgs); (err == nil) != test.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
