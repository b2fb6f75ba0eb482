package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conversations draws the requests of a growing conversation. Each request has all messages so far.
func conversations(t *rapid.T) (reqs []*llm.Request, corrections int) {
	var msgs []llm.Message
	ids := 0
	text := func(name string) string { return strings.Repeat(name+" ", rapid.IntRange(1, 60).Draw(t, "length")) }
	for range rapid.IntRange(0, 2).Draw(t, "instructions") {
		msgs = append(msgs, llm.System(text("system")))
	}
	for turn := range rapid.IntRange(1, 14).Draw(t, "turns") {
		for range rapid.IntRange(1, 2).Draw(t, "said") {
			m := llm.User(text(fmt.Sprint("user", turn)))
			if rapid.IntRange(0, 5).Draw(t, "image") == 0 {
				m.Parts = append(m.Parts, llm.Media{MIME: "image/png", Data: []byte("png")})
			}
			msgs = append(msgs, m)
		}
		at := len(msgs) - 1
		ask := func() {
			reqs = append(reqs, &llm.Request{Key: "run/1/model", Messages: append([]llm.Message(nil), msgs...), Turn: at})
		}
		ask()
		rounds := rapid.IntRange(0, 4).Draw(t, "rounds")
		for range rounds {
			var parts, results []llm.Part
			if rapid.Bool().Draw(t, "thinks") {
				parts = append(parts, llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: "anthropic", Data: []byte(`{"type":"thinking"}`)}})
			}
			if rapid.Bool().Draw(t, "says") {
				parts = append(parts, llm.Text{Text: text("look")})
			}
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				ids++
				parts = append(parts, llm.ToolCall{ID: fmt.Sprint("c", ids), Name: "f", Args: []byte(`{}`)})
				results = append(results, llm.ToolResult{CallID: fmt.Sprint("c", ids),
					Parts: []llm.Part{llm.Text{Text: text("result")}}})
			}
			msgs = append(msgs, llm.Assistant(parts...), llm.Message{Role: llm.RoleTool, Parts: results})
			if rapid.IntRange(0, 5).Draw(t, "correction") == 0 {
				corrections++
				msgs = append(msgs, llm.Assistant(llm.Text{Text: "no"}), llm.User("The answer does not fit."))
			}
			ask()
		}
		if rounds == 0 || rapid.IntRange(0, 4).Draw(t, "answers") > 0 {
			msgs = append(msgs, llm.Assistant(llm.Text{Text: text("answer")}))
		}
	}
	return reqs, corrections
}

// sent returns the messages that reach the model for req, and the notices.
func sent(t interface {
	Helper()
	Fatal(...any)
}, w pawl.Middleware, req *llm.Request) (*llm.Request, []*llm.Notice) {
	t.Helper()
	m := script.New(script.Loop(script.Say("x")))
	var notices []*llm.Notice
	for d, err := range w.Model(m).Stream(context.Background(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Notice != nil {
			notices = append(notices, d.Notice)
		}
	}
	return m.Requests()[0], notices
}

// answered reports whether the previous request was answered. If it was not, a notice of a cut is
// emitted again.
func answered(since []llm.Message) bool {
	return slices.ContainsFunc(since, func(m llm.Message) bool { return m.Role == llm.RoleAssistant })
}

// For any conversation, the sent messages are a valid transcript for every API, contain nothing
// new, and contain the instructions and the current turn. They begin like the previous request
// unless the cut moved, which is rare.
func TestCompilers(t *testing.T) {
	soak.Sequential(t)
	for name, tt := range map[string]struct {
		w     pawl.Middleware
		moves func(turns, requests int) int // how often the beginning may change
	}{
		"all":           {history.LastTurns(1000), func(int, int) int { return 0 }},
		"current trace": {history.DropPastToolCalls(), func(turns, _ int) int { return turns }},
		"last 1":        {history.LastTurns(1), func(turns, _ int) int { return turns }},
		"last 6":        {history.LastTurns(6), func(turns, _ int) int { return turns / 3 }},
		// each of them may move the cut
		"both": {both(history.DropPastToolCalls(), history.LastTurns(8)), func(turns, _ int) int { return 2 * turns }},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var before *llm.Request
				moved, asked := 0, 0
				reqs, corrections := conversations(t)
				turns := map[int]bool{}
				for _, req := range reqs {
					turns[req.Turn] = true
					got, notices := sent(t, tt.w, req)
					for _, api := range []string{"", "openai-chat", "openai-responses", "anthropic-messages", "gemini"} {
						if faults := rulesOf(api).Check(got.Messages); faults != nil {
							t.Fatalf("%s: %v", api, faults)
						}
					}
					if why := within(got.Messages, req.Messages); why != "" {
						t.Fatal(why)
					}
					if !reflect.DeepEqual(got.Messages[got.Turn:], req.Messages[req.Turn:]) {
						t.Fatalf("the turn at hand is not whole: %s", cmp.Diff(got.Messages[got.Turn:], req.Messages[req.Turn:]))
					}
					for i, m := range req.Messages {
						if m.Role != llm.RoleSystem {
							break
						}
						if !reflect.DeepEqual(got.Messages[i], m) {
							t.Fatal(cmp.Diff(got.Messages[i], m))
						}
					}
					if before != nil && !begins(got.Messages, before.Messages) {
						if moved++; corrections == 0 && name != "current trace" && name != "both" && len(notices) != 1 {
							t.Fatalf("the beginning changed, and %d notices tell of it", len(notices))
						}
					} else if len(notices) > 0 && before != nil && corrections == 0 && answered(req.Messages[asked:]) {
						t.Fatalf("nothing changed, and it is told: %s", notices[0].Text)
					}
					before, asked = got, len(req.Messages)
				}
				if most := tt.moves(len(turns)+corrections, len(reqs)); moved > most {
					t.Fatalf("the beginning changed %d times in %d turns, want at most %d", moved, len(turns), most)
				}
			})
		})
	}
}

// both combines two middlewares.
func both(outer, inner pawl.Middleware) pawl.Middleware {
	return pawl.Middleware{Model: func(m llm.Model) llm.Model { return outer.Model(inner.Model(m)) }}
}

// begins reports whether msgs begin with all of head.
func begins(msgs, head []llm.Message) bool {
	return len(msgs) >= len(head) && reflect.DeepEqual(msgs[:len(head)], head)
}

// within returns the first message of part that is missing in whole, in this order. Empty means
// that none is missing.
func within(part, whole []llm.Message) string {
	at := 0
next:
	for _, m := range part {
		for ; at < len(whole); at++ {
			if m.Role == whole[at].Role && subset(m.Parts, whole[at].Parts) {
				at++
				continue next
			}
		}
		return fmt.Sprintf("it was not said, or not there: %v", m)
	}
	return ""
}

func subset(part, whole []llm.Part) bool {
	at := 0
	for _, p := range part {
		for at < len(whole) && !reflect.DeepEqual(p, whole[at]) {
			at++
		}
		if at++; at > len(whole) {
			return false
		}
	}
	return true
}

// The checks above detect a compiler that cuts between a call and its result.
func TestChecksFindBadCuts(t *testing.T) {
	msgs := []llm.Message{llm.User("a"), llm.Assistant(llm.ToolCall{ID: "1", Name: "f"}),
		llm.Results(llm.ToolResult{CallID: "1"}), llm.User("b")}
	if rulesOf("gemini").Check(msgs[2:]) == nil || rulesOf("anthropic").Check(msgs[1:]) == nil {
		t.Error("a result without its call, or a call without a question, is no fault")
	}
	if within([]llm.Message{msgs[3], msgs[0]}, msgs) == "" || begins(msgs, msgs[1:]) {
		t.Error("messages out of order are no fault")
	}
}

// long is a conversation of n turns of about 100 tokens each, followed by a question.
func long(n int) []llm.Message {
	var msgs []llm.Message
	for i := range n {
		id := fmt.Sprint("c", i)
		msgs = append(msgs, llm.User(fmt.Sprint("question ", i)), llm.Assistant(llm.ToolCall{ID: id, Name: "look", Args: []byte(`{}`)}),
			llm.Results(llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: strings.Repeat("fact", 80)}}}),
			llm.Assistant(llm.Text{Text: fmt.Sprint("answer ", i)}))
	}
	return append(msgs, llm.User("and now?"))
}

// lines formats a conversation with one message a line.
func lines(msgs []llm.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "%s: %.40s\n", m.Role, m.Text())
	}
	return b.String()
}

func TestCurrentTrace(t *testing.T) {
	m := script.New(script.Call("look", nil), script.Say("wrong"), script.Say(`{"n":1}`))
	m.Skip = 2 // the replies of the earlier turn
	look := &pawl.Tool{Name: "look", Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.TextResult("fresh"), nil
	}}
	a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{look}, Instructions: "Be brief.", Output: json.RawMessage(`{"type":"object","required":["n"]}`),
		Middleware: []pawl.Middleware{history.DropPastToolCalls()}}
	res, err := a.Run(t.Context(), long(1)...)
	if err != nil || len(res.Messages) != 10 {
		t.Fatalf("got %d messages, %v: the transcript itself stays whole", len(res.Messages), err)
	}
	reqs := m.Requests()
	want := "system: Be brief.\nuser: question 0\nassistant: answer 0\nuser: and now?\nassistant: \ntool: \nassistant: wrong\nuser: That is text and no answer yet: call fin\n"
	if diff := cmp.Diff(lines(reqs[len(reqs)-1].Messages), want); diff != "" {
		t.Error(diff)
	}
}

func TestLastTurns(t *testing.T) {
	for _, tt := range []struct{ n, turns, kept int }{{1, 5, 1}, {0, 5, 1}, {2, 5, 2}, {4, 4, 4}, {4, 5, 5},
		{4, 6, 4}, {4, 7, 5}, {10, 14, 14}, {10, 15, 10}, {10, 100, 10}} {
		got, _ := sent(t, history.LastTurns(tt.n), &llm.Request{Messages: long(tt.turns - 1)})
		if n := strings.Count(lines(got.Messages), "user:"); n != tt.kept {
			t.Errorf("of %d turns the last %d: got %d, want %d", tt.turns, tt.n, n, tt.kept)
		}
	}
}

func rulesOf(api string) llm.HistoryRules {
	a, _ := provider.FindAPI(api)
	return a.Rules
}
