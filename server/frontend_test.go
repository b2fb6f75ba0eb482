package server_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
)

// chatBody returns a request with one message of the user.
func chatBody(t *testing.T, text string, more map[string]any) string {
	t.Helper()
	m := map[string]any{"model": "clerk", "messages": []any{map[string]any{"role": "user", "content": text}}}
	for k, v := range more {
		m[k] = v
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// always returns a model that plays turn at each request.
func always(turn func(*llm.Request) script.Turn) llm.Model {
	return script.New(script.Loop(script.Func(turn)))
}

type completion struct {
	Model   string
	Choices []struct {
		Message struct {
			Content   string
			Reasoning string `json:"reasoning_content"`
		}
	}
}

// A request for a title, tags or follow-up questions has no tools, and its run is not stored.
func TestSideRequestsHaveNoTools(t *testing.T) {
	history := "\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
	title := map[string]any{"role": "system", "content": "You are a professional conversation summarizer. Generate a concise title that captures it.\n\nRules:\n- Output ONLY the title text"}
	user := map[string]any{"role": "user", "content": "user: pay 7"}
	for name, test := range map[string]struct {
		body string
		side bool
	}{
		"Open WebUI title":     {chatBody(t, "### Task:\nGenerate a concise, 3-5 word title with an emoji."+history, nil), true},
		"Open WebUI tags":      {chatBody(t, "### Task:\nGenerate 1-3 broad tags."+history, nil), true},
		"Open WebUI metadata":  {chatBody(t, "Suggest questions.", map[string]any{"metadata": map[string]any{"task": "follow_up_generation"}}), true},
		"LibreChat completion": {chatBody(t, "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.\n\nConversation:\nUser: hi", nil), true},
		"LibreChat structured": {chatBody(t, "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in the detected language", nil), true},
		"LobeChat":             {chatBody(t, "", map[string]any{"messages": []any{title, user}}), true},
		// a user's own words, and Open WebUI's prompt for a question about documents
		"documents":   {chatBody(t, "### Task:\nRespond to the user query using the provided context.\n<context>\nx\n</context>", nil), false},
		"a question":  {chatBody(t, "Which title has the conversation?", nil), false},
		"no task":     {chatBody(t, "hi", map[string]any{"metadata": map[string]any{"task": ""}}), false},
		"other data":  {chatBody(t, "hi", map[string]any{"metadata": "task"}), false},
		"a long chat": {chatBody(t, "", map[string]any{"messages": []any{user, map[string]any{"role": "assistant", "content": "no"}, title, user}}), false},
	} {
		t.Run(name, func(t *testing.T) {
			var got *llm.Request
			var light int
			main := always(func(req *llm.Request) script.Turn { got = req; return script.Say("answer") })
			small := always(func(req *llm.Request) script.Turn {
				light++
				got = req
				return script.Say("A Title")
			})
			v := serve(t, func(o *options) {
				o.Agents[0].Model, o.Agents[0].Instructions = main, "Pay."
				o.Front.About = map[string]server.About{"clerk": {Side: small}}
			})
			var out completion
			v.do("POST", "/v1/chat/completions", test.body, 200, &out)
			var list api.Runs
			v.do("GET", "/v1/runs", "", 200, &list)
			want, runs := "answer", 1
			if test.side {
				want, runs = "A Title", 0
			}
			if out.Choices[0].Message.Content != want || out.Model != "clerk" || (light == 1) != test.side {
				t.Errorf("got %+v, and the side model was asked %d times", out, light)
			}
			if side := len(got.Tools) == 0 && !strings.Contains(got.Messages[0].Text(), "Pay."); side != test.side {
				t.Errorf("tools %d, instructions %q", len(got.Tools), got.Messages[0].Text())
			}
			if len(list.Runs) != runs {
				t.Errorf("stored runs: %+v", list.Runs)
			}
		})
	}
}

// Without a side model the agent's own answers, without tools.
func TestSideRequestsUseTheAgentsModel(t *testing.T) {
	v := serve(t, nil)
	var out completion
	v.do("POST", "/v1/chat/completions", chatBody(t, "### Task:\n<chat_history>", nil), 200, &out)
	if got := out.Choices[0].Message.Content; !strings.HasPrefix(got, "You said: ###") {
		t.Errorf("got %q", got)
	}
}

func TestModelsHaveTheFieldsOfChatPrograms(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	v := serve(t, func(o *options) {
		o.Now = func() time.Time { return now }
		o.Front.About = map[string]server.About{"clerk": {Title: "The clerk", Description: "Pays.", Window: 128_000}}
	})
	var list struct{ Data []map[string]any }
	v.do("GET", "/v1/models", "", 200, &list)
	want := map[string]any{"id": "clerk", "object": "model", "created": 1.7e9, "owned_by": "pawl", "name": "The clerk", "description": "Pays.", "context_length": 128000.0}
	if len(list.Data) != 1 || len(list.Data[0]) != len(want) {
		t.Fatalf("got %v", list.Data)
	}
	for k, w := range want {
		if list.Data[0][k] != w {
			t.Errorf("%s: got %v, want %v", k, list.Data[0][k], w)
		}
	}
}

// Reasoning is in reasoning_content, streamed and whole, with a line for each call on request.
func TestReasoningContent(t *testing.T) {
	for _, test := range []struct {
		name        string
		hide, calls bool
		want        string
	}{
		{name: "default", want: "I look.\nI found it."},
		{name: "off", hide: true, want: ""},
		{name: "calls", calls: true, want: "I look.\n→ look {\"at\":\"x\"}\nI found it."},
		{name: "calls alone", hide: true, calls: true, want: "→ look {\"at\":\"x\"}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := serve(t, func(o *options) {
				o.Agents[0].Model = always(func(req *llm.Request) script.Turn {
					if script.Results(req) != nil {
						return script.Turn{Parts: []llm.Part{llm.Reasoning{Text: "I found it."}, llm.Text{Text: "Here."}}}
					}
					return script.Turn{Parts: []llm.Part{llm.Reasoning{Text: "I look."},
						llm.ToolCall{ID: "1", Name: "look", Args: json.RawMessage(`{"at":"x"}`)}}}
				})
				o.Front.HideReasoning, o.Front.ShowCalls = test.hide, test.calls
			})
			var out completion
			v.do("POST", "/v1/chat/completions", chatBody(t, "go", nil), 200, &out)
			if got := out.Choices[0].Message; got.Reasoning != test.want || got.Content != "Here." {
				t.Errorf("whole: got %+v", got)
			}
			r := v.request("POST", "/v1/chat/completions", chatBody(t, "go on", map[string]any{"stream": true}))
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			var text, thought strings.Builder
			for line := range strings.Lines(string(b)) {
				data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
				var c struct {
					Choices []struct {
						Delta struct {
							Content   string
							Reasoning string `json:"reasoning_content"`
						}
					}
				}
				if ok && data != "[DONE]" && json.Unmarshal([]byte(data), &c) == nil && len(c.Choices) > 0 {
					text.WriteString(c.Choices[0].Delta.Content)
					thought.WriteString(c.Choices[0].Delta.Reasoning)
				}
			}
			if thought.String() != test.want || text.String() != "Here." {
				t.Errorf("streamed: got %q and %q", thought.String(), text.String())
			}
		})
	}
}

func TestOpenWebUIsChatIsTheThread(t *testing.T) {
	v := serve(t, nil)
	for _, test := range []struct {
		chat   string
		status int
	}{{"9f1c-chat", 200}, {"", 200}, {strings.Repeat("x", 300), 400}} {
		var out struct{ ID string }
		v.do("POST", "/v1/chat/completions", chatBody(t, "hello "+test.chat, nil), test.status, &out, "X-OpenWebUI-Chat-Id", test.chat)
		if test.status != 200 {
			continue
		}
		var run api.Run
		v.do("GET", "/v1/runs/chat_"+strings.TrimPrefix(out.ID, "chatcmpl-"), "", 200, &run)
		if run.Thread != test.chat {
			t.Errorf("got %q, want %q", run.Thread, test.chat)
		}
	}
}
