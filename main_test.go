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
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// TestMain fails if a goroutine remains: the code that starts a goroutine waits for it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modelFunc is a model that is a function.
type modelFunc func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error]

func (f modelFunc) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return f(ctx, req)
}

// says returns a tool that answers every call with text.
func says(name, text string) *pawl.Tool {
	return does(name, func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult(text), nil })
}

// does returns a tool that accepts any arguments.
func does(name string, run pawl.ToolFunc) *pawl.Tool {
	return &pawl.Tool{Name: name, Input: json.RawMessage(`{"type":"object"}`), Run: run}
}

// passive returns a tool that the caller of the run executes.
func passive(name string) *pawl.Tool {
	return &pawl.Tool{Name: name, Input: json.RawMessage(`{"type":"object"}`), Passive: true}
}

// call returns a call whose ID also serves as its name in results.
func call(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

func answer(id, text string) llm.ToolResult {
	return llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: text}}}
}

// fataler is the part of *testing.T that helpers use. A property test implements it too.
type fataler interface {
	Helper()
	Fatal(...any)
}

// collect consumes a run and returns its events, its Result and its error, without a StopError.
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
	res, err = runtest.Ended(res, err)
	return events, res, err
}

// say formats a transcript with one line for each part.
func say(msgs []llm.Message) string {
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

// valid describes the first fault of a transcript. Each call of each reply before the last has
// exactly one result, in call order, in the one message directly after the reply. Only the last
// reply may have calls without a result. The function shares no code with the core.
func valid(msgs []llm.Message) error {
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

// mustBeValid checks the transcript of res, and that no call is open unless the run's cause allows
// it.
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
	ask, calls := llm.User("go"), llm.Assistant(call("a", "x", "{}"), call("b", "x", "{}"))
	for name, test := range map[string]struct {
		msgs []llm.Message
		ok   bool
	}{
		"answered":              {[]llm.Message{ask, calls, llm.Results(answer("a", ""), answer("b", "")), llm.Assistant()}, true},
		"open":                  {[]llm.Message{ask, calls}, true},
		"one open":              {[]llm.Message{ask, calls, llm.Results(answer("b", ""))}, true},
		"open before the last":  {[]llm.Message{ask, calls, llm.Assistant()}, false},
		"out of order":          {[]llm.Message{ask, calls, llm.Results(answer("b", ""), answer("a", "")), llm.Assistant()}, false},
		"out of order, at last": {[]llm.Message{ask, calls, llm.Results(answer("b", ""), answer("a", ""))}, false},
		"twice":                 {[]llm.Message{ask, calls, llm.Results(answer("a", ""), answer("a", ""))}, false},
		"elsewhere":             {[]llm.Message{ask, calls, llm.User("hm"), llm.Results(answer("a", ""), answer("b", ""))}, false},
		"no call":               {[]llm.Message{ask, llm.Results(answer("a", ""))}, false},
		"split":                 {[]llm.Message{ask, calls, llm.Results(answer("a", "")), llm.Results(answer("b", ""))}, false},
		"same id":               {[]llm.Message{ask, llm.Assistant(call("a", "x", "{}"), call("a", "x", "{}"))}, false},
		"decision":              {[]llm.Message{llm.DecisionMessage(llm.Decision{})}, false},
	} {
		if err := valid(test.msgs); (err == nil) != test.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
