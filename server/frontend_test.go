package server_test

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
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

// sideBody returns a request with the messages, given as pairs of a role and a text.
func sideBody(t *testing.T, pairs ...string) string {
	t.Helper()
	var msgs []any
	for i := 0; i < len(pairs); i += 2 {
		msgs = append(msgs, map[string]any{"role": pairs[i], "content": pairs[i+1]})
	}
	return chatBody(t, "", map[string]any{"messages": msgs})
}

// A known request for a title, tags or the like runs without tools, instructions and output, and is
// stored as a run of its kind. Any other text is a run of the agent, also if it quotes a prompt.
func TestSideRequests(t *testing.T) {
	const history = "\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
	title := "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history." + history
	lobe := "You are a professional conversation summarizer. Generate a concise title that captures it.\n\nRules:\n- Output ONLY the title text"
	task := func(task, text string) string {
		return chatBody(t, text, map[string]any{"metadata": map[string]any{"task": task}})
	}
	user := func(text string) string { return chatBody(t, text, nil) }
	for name, test := range map[string]struct {
		body string
		side bool
	}{
		"Open WebUI title":      {user(title), true},
		"Open WebUI tags":       {user("### Task:\nGenerate 1-3 broad tags categorizing the main themes." + history), true},
		"Open WebUI follow-ups": {user("### Task:\nSuggest 3-5 relevant follow-up questions." + history), true},
		"Open WebUI image":      {user("### Task:\nGenerate a detailed prompt for am image generation task." + history), true},
		"Open WebUI search":     {user("### Task:\nAnalyze the chat history to determine the necessity of generating search queries." + history), true},
		"Open WebUI completion": {user("### Task:\nYou are an autocompletion system. Continue the text in `<text>` based on it." + history + "\n<text>The door</text>\n#### Output:\n"), true},
		"Open WebUI emoji":      {user("Your task is to reflect the speaker's likely facial expression through a fitting emoji. Interpret it.\n\nMessage: ```my door```"), true},
		"Open WebUI functions": {sideBody(t, "system", "Available Tools: [{}]\n\nYour task is to choose and return the correct tool(s) from the list of available tools based on the query. Follow these guidelines:",
			"user", "Query: History:\nUSER: \"\"\"my door\"\"\"\nQuery: my door"), true},
		"Open WebUI, a prompt of its administrator": {task("title_generation", "### Task:\nName this chat in Danish."+history), true},
		"LibreChat completion":                      {user("Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.\n\nConversation:\nUser: hi"), true},
		"LibreChat structured":                      {user("Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in the detected language"), true},
		"LobeChat title":                            {sideBody(t, "system", lobe, "user", "user: pay 7"), true},
		"LobeChat summary": {sideBody(t, "system", "You're an assistant who's good at extracting key takeaways from conversations and summarizing them. Please summarize.",
			"user", "<chat_history>\nUSER: hi\n</chat_history>\n\nPlease summarize the above conversation."), true},
		"LobeChat emoji": {sideBody(t, "system", "You are an emoji expert who selects the most appropriate emoji to represent concepts.", "user", "Pick an emoji for: door"), true},
		"opencode": {sideBody(t, "system", "You are a title generator. You output ONLY a thread title. Nothing else.\n\n<task>",
			"user", "Generate a title for this conversation:\n", "user", "pay 7"), true},

		"documents":                       {user("### Task:\nRespond to the user query using the provided context.\n<context>\nx\n</context>"), false},
		"a document about chat histories": {user("### Task:\nRespond to the user query using the provided context.\n<context>\n<chat_history>\nx\n</chat_history>"), false},
		"a document that is a prompt":     {user("### Task:\nRespond to the user query using the provided context.\n<context>\n" + title + "\n</context>\n\nPay 7."), false},
		"a prompt, quoted":                {user("What does this do?\n" + title), false},
		"a prompt, and a task":            {user(title + "\n\nPay invoice 7."), false},
		"a question":                      {user("Which title has the conversation?"), false},
		"a task of the client":            {task("pay-invoices", "Pay invoice 7."), false},
		"a known task alone":              {task("title_generation", "Pay invoice 7."), false},
		"metadata of another form":        {chatBody(t, "hi", map[string]any{"metadata": "task"}), false},
		"a chat that goes on":             {sideBody(t, "system", lobe, "user", "pay 7", "assistant", "no", "user", "pay 7"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var got *llm.Request
			light := 0
			main := always(func(req *llm.Request) script.Turn { got = req; return script.Say("answer") })
			small := always(func(req *llm.Request) script.Turn {
				light++
				got = req
				return script.Say("A Title")
			})
			v := serve(t, func(o *options) {
				clerk := o.Agents[0]
				clerk.Model, clerk.Instructions = main, "Pay."
				// rules that name tools, which the agent has and its side agent has not
				rules := policy.Rules{Ask: []string{clerk.Tools[0].(*pawl.Tool).Name}}
				clerk.Middleware = append(clerk.Middleware, rules.Middleware())
				o.Front.About = map[string]server.About{"clerk": {Side: server.Side{Model: small, Allow: "known"}}}
			})
			var out completion
			v.do("POST", "/v1/chat/completions", test.body, 200, &out)

			want, kind := "answer", ""
			if test.side {
				want, kind = "A Title", "side"
			}
			if out.Choices[0].Message.Content != want || out.Model != "clerk" || (light == 1) != test.side {
				t.Errorf("got %+v, and the side model was asked %d times", out, light)
			}
			instructed := strings.Contains(got.Messages[0].Text(), "Pay.")
			if bare := len(got.Tools) == 0 && !instructed; bare != test.side {
				t.Errorf("tools %d, instructions %q", len(got.Tools), got.Messages[0].Text())
			}
			var list api.Runs
			v.do("GET", "/v1/runs", "", 200, &list)
			if len(list.Runs) != 1 || list.Runs[0].Kind != kind {
				t.Errorf("stored runs: %+v, want one of the kind %q", list.Runs, kind)
			}
		})
	}
}

// An agent answers the side requests that Allow names. The known ones otherwise get an empty
// answer: they have tools in no case.
func TestSideRequestsAreAllowed(t *testing.T) {
	const title = "Provide a concise, 5-word-or-less title for the conversation, please.\n\nConversation:\nUser: hi"
	for _, test := range []struct {
		allow, model, header, text string
		status                     int
		want                       string
	}{
		{"", "clerk", "", title, 200, ""},
		{"none", "clerk", "", title, 200, ""},
		{"known", "clerk", "", title, 200, "A Title"},
		{"any", "clerk", "", title, 200, "A Title"},
		{"", "clerk:side", "", "Pay 7.", 403, ""},
		{"known", "clerk:side", "", "Pay 7.", 403, ""},
		{"known", "clerk", "1", "Pay 7.", 403, ""},
		{"any", "clerk:side", "", "Pay 7.", 200, "A Title"},
		{"any", "clerk", "1", "Pay 7.", 200, "A Title"},
		{"any", "clerk", "", "Pay 7.", 200, "answer"},
		{"any", "nobody:side", "", "Pay 7.", 404, ""},
	} {
		v := serve(t, func(o *options) {
			o.Agents[0].Model = always(func(*llm.Request) script.Turn { return script.Say("answer") })
			small := always(func(*llm.Request) script.Turn { return script.Say("A Title") })
			o.Front.About = map[string]server.About{"clerk": {Side: server.Side{Model: small, Allow: test.allow}}}
		})
		for path, body := range map[string]string{
			"/v1/chat/completions": chatBody(t, test.text, map[string]any{"model": test.model}),
			"/v1/responses":        `{"model":"` + test.model + `","input":` + strconv.Quote(test.text) + `}`,
		} {
			res := v.request("POST", path, body, "X-Pawl-Side", test.header)
			got, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != test.status {
				t.Errorf("%+v: %s: status %d, %v: %s", test, path, res.StatusCode, err, got)
			}
			answers := strings.Contains(string(got), "A Title") || strings.Contains(string(got), `"answer"`)
			if test.want == "" && answers || !strings.Contains(string(got), test.want) {
				t.Errorf("%+v: %s: got %s", test, path, got)
			}
		}
	}
}

// A side answer has no tools of the client and a bounded length.
func TestSideRequestsAreBounded(t *testing.T) {
	var got *llm.Request
	v := serve(t, func(o *options) {
		small := always(func(req *llm.Request) script.Turn { got = req; return script.Say("A Title") })
		o.Front.About = map[string]server.About{"clerk": {Side: server.Side{Model: small, Allow: "any"}}}
	})
	tools := []any{map[string]any{"type": "function", "function": map[string]any{"name": "open", "parameters": map[string]any{"type": "object"}}}}
	v.do("POST", "/v1/chat/completions", chatBody(t, "hi", map[string]any{"model": "clerk:side", "tools": tools, "max_tokens": 100_000}), 200, nil)
	if len(got.Tools) != 0 || got.Settings.MaxTokens != 4000 {
		t.Errorf("%d tools, at most %d tokens", len(got.Tools), got.Settings.MaxTokens)
	}

	var list struct{ Data []struct{ ID string } }
	v.do("GET", "/v1/models", "", 200, &list)
	if len(list.Data) != 2 || list.Data[1].ID != "clerk:side" {
		t.Errorf("models: %+v", list.Data)
	}
	v.do("GET", "/v1/models/clerk:side", "", 200, nil)
}

// Without a side model the agent's own answers, without tools.
func TestSideRequestsUseTheAgentsModel(t *testing.T) {
	v := serve(t, func(o *options) {
		o.Front.About = map[string]server.About{"clerk": {Side: server.Side{Allow: "known"}}}
	})
	var out completion
	v.do("POST", "/v1/chat/completions", chatBody(t, "### Task:\nGenerate 1-3 broad tags\n<chat_history>\nx\n</chat_history>", nil), 200, &out)
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
	want := map[string]any{"id": "clerk", "object": "model", "created": 1.7e9, "owned_by": "pawl", "name": "The clerk", "description": "Pays.", "context_length": 128000.0,
		"type": "model", "display_name": "The clerk", "created_at": "2023-11-14T22:13:20Z"}
	if len(list.Data) != 1 || len(list.Data[0]) != len(want) {
		t.Fatalf("got %v", list.Data)
	}
	for k, w := range want {
		if list.Data[0][k] != w {
			t.Errorf("%s: got %v, want %v", k, list.Data[0][k], w)
		}
	}
}

// GET /v1/models/NAME finds the agents that a request may name as its model.
func TestAModelIsFoundByTheNameOfARequest(t *testing.T) {
	v := serve(t, func(o *options) {
		model := script.New(script.Say("Yes?"))
		o.Agents = []*pawl.Agent{{Name: "clerk@1", Model: model}, {Name: "clerk@2", Model: model}}
		o.Front.About = map[string]server.About{"clerk@2": {Title: "The second"}}
	})
	for id, name := range map[string]string{"clerk": "The second", "clerk@1": "clerk@1"} {
		var got struct{ ID, Name string }
		v.do("GET", "/v1/models/"+id, "", 200, &got)
		if got.ID != id || got.Name != name {
			t.Errorf("%s: got %+v, want the name %q", id, got, name)
		}
	}
	v.code("GET", "/v1/models/nobody", "", 404, "not_found")
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
