package pawltest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// talk is a conversation of three replies, with the text before and after each of the first two.
type talk struct {
	name   string
	effort string
	words  []llm.Part                            // the first messages of the user
	reply  func(nth string) script.Turn          // "first" or "second"
	result func(nth, tool string) llm.ToolResult // nil means that the user continues with a text
}

var picture = llm.Media{MIME: "image/png", Data: []byte("\x89PNG of the sky")}

func saying(s string) []llm.Part { return []llm.Part{llm.Text{Text: s}} }

var talks = []talk{
	{"text", "", saying("Hello."), func(nth string) script.Turn { return script.Say("The " + nth + " word: Grüße, 世界.") }, nil},
	{"parallel calls", "", saying("Look around."), func(nth string) script.Turn {
		return script.Together(script.Say("I look, "+nth+"."), script.Call("look", `{"at":"the `+nth+` \"sky\""}`), script.Call("find", `{"at":"a cloud"}`))
	}, func(nth, tool string) llm.ToolResult { return llm.TextResult(nth + " " + tool + ": grey") }},
	{"reasoning", "low", saying("Think, then look."), func(nth string) script.Turn {
		return script.Together(script.Think("The "+nth+" thought."), script.Call("look", `{"at":"`+nth+`"}`))
	}, func(nth, _ string) llm.ToolResult { return llm.TextResult("seen " + nth) }},
	{"image", "", []llm.Part{llm.Text{Text: "What is this?"}, picture}, func(nth string) script.Turn { return script.Call("look", `{"at":"`+nth+`"}`) },
		func(nth, _ string) llm.ToolResult {
			return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: nth + " picture"},
				llm.Media{MIME: "image/png", Data: []byte("\x89PNG " + nth)}}}
		}},
	{"error result", "", saying("Look around."), func(nth string) script.Turn {
		return script.Together(script.Call("look", `{"at":"`+nth+`"}`), script.Call("find", `{"at":"b"}`))
	}, func(nth, tool string) llm.ToolResult {
		if tool == "find" {
			r := llm.ErrorResult("there is no " + nth)
			if nth == "first" { // and here is a picture of it
				r.Parts = append(r.Parts, picture)
			}
			return r
		}
		return llm.TextResult("clear")
	}},
}

// answers returns the messages after the nth reply of the conversation.
func (c talk) answers(res *pawl.Result, nth string) llm.Message {
	calls := res.Messages[len(res.Messages)-1].Calls()
	if c.result == nil {
		return llm.User("Go on, " + nth + ".")
	}
	results := make([]llm.ToolResult, len(calls))
	for i, call := range calls {
		results[i] = c.result(nth, call.Name)
		results[i].CallID = call.ID
	}
	return llm.Results(results...)
}

// model returns the reply for the current position: the number of replies selects the next one.
func (c talk) model() llm.Model {
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		replies := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				replies++
			}
		}
		switch replies {
		case 0:
			return c.reply("first")
		case 1:
			return c.reply("second")
		}
		return script.Say("Done.")
	})))
}

// A conversation that started on one wire and was stored continues on each other wire and returns:
// twelve pairs, five conversations, streamed and whole. Each request follows the rules of its API
// by an independent checker, and keeps the meaning of the conversation.
func TestConversationsChangeTheirProvider(t *testing.T) {
	cases := 0
	for _, a := range wires {
		for _, b := range wires {
			if a.api == b.api {
				continue
			}
			for _, c := range talks {
				cases++
				for _, stream := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s to %s/%s/streamed %t", a.name, b.name, c.name, stream),
						func(t *testing.T) { cross(t, a, b, c, stream) })
				}
			}
		}
	}
	if cases != 60 {
		t.Errorf("%d cases, want 60", cases)
	}
}

func cross(t *testing.T, a, b wire, c talk, stream bool) {
	modelA, atA := a.on(t, c.model(), pawltest.SimulatorOptions{})
	modelB, atB := b.on(t, c.model(), pawltest.SimulatorOptions{})
	first, _ := run(t, modelA, c.effort, stream, nil, llm.Message{Role: llm.RoleUser, Parts: c.words})
	second, notices := run(t, modelB, c.effort, stream, first, c.answers(first, "first"))
	third, _ := run(t, modelA, c.effort, stream, second, c.answers(second, "second"))
	if got := third.Messages[len(third.Messages)-1].Text(); got != "Done." || third.Stop != pawl.StopAnswer {
		t.Errorf("it ends with %q (%s)", got, third.Stop)
	}
	if faults := llm.Check(third.Messages); faults != nil {
		t.Errorf("the transcript has faults: %v", faults)
	}
	// Claude thinks with a budget only if the turn began with thinking.
	if off := slices.Contains(notices, "thinking_off"); stream && off != (b.api == pawltest.Anthropic && c.effort != "") {
		t.Errorf("notices %v", notices)
	}
	n := len(second.Messages)
	if got, want := len(atA.Received()), 2; got != want || len(atB.Received()) != 1 {
		t.Fatalf("%d and %d requests, want 2 and 1", got, len(atB.Received()))
	}
	transcript := append([]llm.Message{llm.System("Be brief.")}, third.Messages...)
	for _, wrong := range slices.Concat(
		misread(a, atA.Received()[0].Body, transcript[:2]),
		misread(b, atB.Received()[0].Body, transcript[:n]),
		misread(a, atA.Received()[1].Body, transcript[:len(transcript)-1])) {
		t.Error(wrong)
	}
}

// The negative control: the comparison above detects each kind of loss or change by an adapter.
func TestChangedRequestsAreFound(t *testing.T) {
	byName := func(name string) wire {
		return wires[slices.IndexFunc(wires, func(w wire) bool { return w.name == name })]
	}
	for _, test := range []struct{ wire, from, talk, old, new string }{
		{"Anthropic", "Gemini", "error result", `,"is_error":true`, ``},
		{"Anthropic", "Gemini", "image", `"data":"`, `"data":"AAAA`},
		{"Anthropic", "Anthropic", "reasoning", `The first thought.`, `A thought.`},
		{"Anthropic", "Anthropic", "reasoning", `"thinking":"The first thought.",`, ``},
		{"Anthropic", "Gemini", "parallel calls", `{"type":"text","text":"I look, first."},`, ``},
		{"Gemini", "Anthropic", "error result", `"response":{"error"`, `"response":{"result"`},
		{"Gemini", "Gemini", "reasoning", `"thoughtSignature":"c2lt`, `"thoughtSignature":"d2lt`},
		{"Gemini", "OpenAI Responses", "parallel calls", `"at":"a cloud"`, `"at":"a crowd"`},
		{"Chat Completions", "Gemini", "error result", `Error: there is no first`, `there is no first`},
		{"Chat Completions", "Gemini", "parallel calls", `"content":"first look: grey"`, `"content":"first find: grey"`},
		{"OpenAI Responses", "OpenAI Responses", "reasoning", `"encrypted_content":"sim_`, `"encrypted_content":"sin_`},
		{"OpenAI Responses", "Chat Completions", "reasoning", `{"type":"function_call",`, `{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call",`},
		{"OpenAI Responses", "Chat Completions", "text", `"content":"Go on, first."`, `"content":"Go on."`},
	} {
		w, c := byName(test.wire), talks[slices.IndexFunc(talks, func(c talk) bool { return c.name == test.talk })]
		modelA, _ := byName(test.from).on(t, c.model(), pawltest.SimulatorOptions{})
		modelB, atB := w.on(t, c.model(), pawltest.SimulatorOptions{})
		first, _ := run(t, modelA, c.effort, false, nil, llm.Message{Role: llm.RoleUser, Parts: c.words})
		second, _ := run(t, modelB, c.effort, false, first, c.answers(first, "first"))
		said := append([]llm.Message{llm.System("Be brief.")}, second.Messages[:len(first.Messages)+1]...)
		body := atB.Received()[0].Body
		if wrong := misread(w, body, said); wrong != nil {
			t.Errorf("%+v: as it was sent: %v", test, wrong)
		}
		if !bytes.Contains(body, []byte(test.old)) {
			t.Errorf("%+v: that is not in %s", test, body)
		}
		if misread(w, bytes.Replace(body, []byte(test.old), []byte(test.new), 1), said) == nil {
			t.Errorf("%+v: the change is not found", test)
		}
	}
}

// misread returns the differences between a request and the conversation, and the violated rules of
// the API.
func misread(w wire, body []byte, said []llm.Message) (wrong []string) {
	add := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf(format, args...)+fmt.Sprintf("\n%s: %s", w.name, body))
	}
	for _, v := range pawltest.CheckModel(w.api, "gemini-3-flash-preview", body) {
		add("the checker: %v", v)
	}
	req, err := pawltest.ReadRequest(w.api, body)
	if err != nil {
		add("%v", err)
		return wrong
	}
	tag := ""
	for _, m := range said {
		for _, p := range m.Parts {
			if o := opaqueOf(p); o != nil && strings.HasPrefix(o.Provider, tagOf[w.api]+"@") {
				tag = o.Provider
			}
		}
	}
	if diff := cmp.Diff(meaning(req.Messages), expected(w, tag, said)); diff != "" {
		add("got -, was said +\n%s", diff)
	}
	for _, m := range said {
		for _, p := range m.Parts {
			o := opaqueOf(p)
			if o == nil {
				continue
			}
			own := o.Provider == tag
			for _, secret := range secrets(o.Data) {
				if bytes.Contains(body, []byte(secret)) != own {
					add("what only %s can read is there: %t", o.Provider, !own)
				}
			}
			if _, whole := p.(llm.Reasoning); whole && own &&
				(w.api == pawltest.Anthropic || w.api == pawltest.Responses) && !bytes.Contains(body, o.Data) {
				add("its own %s is not there byte for byte", o.Data)
			}
		}
	}
	return wrong
}

// tagOf returns the adapters' name before the host in their tags.
var tagOf = map[string]string{pawltest.Responses: "openai", pawltest.Chat: "openai-chat", pawltest.Anthropic: "anthropic", pawltest.Gemini: "gemini"}

func opaqueOf(p llm.Part) *llm.Opaque {
	switch p := p.(type) {
	case llm.Text:
		return p.Opaque
	case llm.Reasoning:
		return p.Opaque
	case llm.ToolCall:
		return p.Opaque
	}
	return nil
}

// secrets are data that only the provider that wrote them can read.
func secrets(data json.RawMessage) (all []string) {
	var o map[string]any
	if json.Unmarshal(data, &o) != nil {
		return nil
	}
	for _, name := range []string{"signature", "data", "encrypted_content", "thoughtSignature"} {
		if s, ok := o[name].(string); ok && s != "" {
			all = append(all, s)
		}
	}
	return all
}

// meaning formats a history with one line a part: the speaker, the text, and for a result the call
// of the previous reply that it answers.
func meaning(msgs []llm.Message) (lines []string) {
	ids := map[string]int{}
	for _, m := range msgs {
		if m.Role == llm.RoleAssistant {
			ids = map[string]int{}
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				if p.Text != "" {
					lines = append(lines, fmt.Sprintf("%s: %s", m.Role, p.Text))
				}
			case llm.Reasoning:
				lines = append(lines, "thought: "+p.Text)
			case llm.Media:
				lines = append(lines, fmt.Sprintf("%s: %s %q", m.Role, p.MIME, p.Data))
			case llm.ToolCall:
				ids[p.ID] = len(ids)
				lines = append(lines, fmt.Sprintf("call %d: %s %s", ids[p.ID], p.Name, canonical(p.Args)))
			case llm.ToolResult:
				kind := "result"
				if p.IsError {
					kind = "error"
				}
				at, ok := ids[p.CallID]
				if !ok {
					at = -1
				}
				lines = append(lines, fmt.Sprintf("%s of %d: %s", kind, at, p.Text()))
				for _, q := range p.Parts {
					if md, ok := q.(llm.Media); ok {
						lines = append(lines, fmt.Sprintf("%s of %d: %s %q", kind, at, md.MIME, md.Data))
					}
				}
			}
		}
	}
	return lines
}

// expected returns the meaning that msgs must have on w. Thoughts of other providers are left out.
// An error is put into words if the wire has no form for it, and so is the call of an image that
// cannot be part of its result: in Chat Completions always, at Anthropic for errors.
func expected(w wire, tag string, msgs []llm.Message) []string {
	var view []llm.Message
	for _, m := range msgs {
		sent, beside := llm.Message{Role: m.Role}, llm.Message{Role: llm.RoleUser}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Reasoning:
				if p.Opaque == nil || p.Opaque.Provider != tag {
					continue
				}
				sent.Parts = append(sent.Parts, p)
			case llm.ToolResult:
				r := llm.ToolResult{CallID: p.CallID, IsError: p.IsError && w.native}
				word := ""
				if p.IsError && !w.native {
					word = "Error: "
				}
				// A list, with the word first.
				if word != "" && len(p.Parts) > 1 && w.api == pawltest.Responses {
					word, r.Parts = "", saying("Error")
				}
				for _, q := range p.Parts {
					switch q := q.(type) {
					case llm.Text:
						r.Parts = append(r.Parts, llm.Text{Text: word + q.Text})
					case llm.Media:
						if w.api == pawltest.Chat || w.api == pawltest.Anthropic && p.IsError {
							beside.Parts = append(beside.Parts, llm.Text{Text: "From the result of call " + p.CallID + ":"}, q)
						} else {
							r.Parts = append(r.Parts, q)
						}
					}
				}
				sent.Parts = append(sent.Parts, r)
			default:
				sent.Parts = append(sent.Parts, p)
			}
		}
		view = append(view, sent)
		if len(beside.Parts) > 0 {
			view = append(view, beside)
		}
	}
	return meaning(view)
}

// canonical returns JSON with sorted keys.
func canonical(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, _ := json.Marshal(v)
	return string(b)
}
