package pawltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// requests are changes to question that must arrive at api.
func requests(api string) map[string]func(*llm.Request) {
	temperature := 0.5
	topP := 0.9
	parallel := false
	all := map[string]func(*llm.Request){
		"plain":    func(*llm.Request) {},
		"no tools": func(r *llm.Request) { r.Tools = nil },
		"none":     func(r *llm.Request) { r.Choice = llm.ToolChoice{Mode: llm.ToolNone} },
		"required": func(r *llm.Request) { r.Choice = llm.ToolChoice{Mode: llm.ToolRequired} },
		"named":    func(r *llm.Request) { r.Choice = llm.Named("find") },
		"output": func(r *llm.Request) {
			r.Output = json.RawMessage(`{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`)
		},
		"image": func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{
				llm.Text{Text: "What is this?"}, llm.Media{MIME: "image/png", Data: []byte("\x89PNG")}, llm.Media{URL: "https://example.com/a.png"}}})
		},
		"parallel results": func(r *llm.Request) {
			r.Messages = append(r.Messages,
				llm.Assistant(llm.Text{Text: "I look."}, llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":"x"}`)},
					llm.ToolCall{ID: "b", Name: "find", Args: []byte(`{}`)}),
				llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "one"}}},
					llm.ToolResult{CallID: "b", Parts: []llm.Part{llm.Text{Text: "two"}}}))
		},
		"same ids in two replies": func(r *llm.Request) {
			for range 2 {
				r.Messages = append(r.Messages, llm.Assistant(llm.ToolCall{ID: "call_0", Name: "look", Args: []byte(`{}`)}),
					llm.Results(llm.ToolResult{CallID: "call_0", Parts: []llm.Part{llm.Text{Text: "one"}}}))
			}
		},
		"others' reasoning": func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Assistant(llm.Text{Text: "Hm."}), llm.User("Go on."))
			r.Messages[2].Parts = append([]llm.Part{llm.Reasoning{Text: "secret",
				Opaque: &llm.Opaque{Provider: "other", Data: []byte(`"x"`)}}},
				r.Messages[2].Parts...)
		},
	}
	set := func(name string, s llm.Settings) { all[name] = func(r *llm.Request) { r.Settings = s } }
	switch api {
	case Anthropic:
		set("temperature", llm.Settings{MaxTokens: 500, Temperature: &temperature})
		set("top_p, stop", llm.Settings{MaxTokens: 500, TopP: &topP, StopSequences: []string{"END"}})
		set("one call at a time", llm.Settings{MaxTokens: 500, Parallel: &parallel})
		all["failed result, with words after it"] = func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Assistant(llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{}`)}),
				llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "no such place"}}, IsError: true}), llm.User("Hm?"))
		}
	case Gemini:
		set("settings", llm.Settings{MaxTokens: 500, Temperature: &temperature, TopP: &topP, StopSequences: []string{"END"}})
		all["calls of another model, to a model that demands signatures"] = func(r *llm.Request) {
			all["parallel results"](r)
			r.Model = "gemini-3-pro-preview"
		}
	default:
		set("settings", llm.Settings{MaxTokens: 500, Temperature: &temperature, TopP: &topP, Effort: "low", Parallel: &parallel})
	}
	return all
}

// requestForm returns the content of a request that must arrive at api. An empty api can express
// everything. Reasoning is left out, names of media have the API's form, and messages of one role
// may be joined.
func requestForm(api string, r *llm.Request) string {
	c := *r
	c.Messages = nil
	for _, m := range r.Messages {
		n := llm.Message{Role: m.Role}
		if n.Role == llm.RoleDeveloper {
			n.Role = llm.RoleSystem
		}
		for _, p := range m.Parts {
			switch q := p.(type) {
			case llm.Reasoning:
				continue
			case llm.Text:
				p = llm.Text{Text: q.Text}
			case llm.Media:
				if q.URL != "" {
					p = llm.Media{URL: q.URL}
				}
			case llm.ToolCall:
				q.Opaque = nil
				p = q
			}
			n.Parts = append(n.Parts, p)
		}
		if last := len(c.Messages) - 1; last >= 0 && c.Messages[last].Role == n.Role && n.Role != llm.RoleAssistant {
			c.Messages[last].Parts = append(c.Messages[last].Parts, n.Parts...)
			continue
		}
		c.Messages = append(c.Messages, n)
	}
	c.Tools = nil
	for _, t := range r.Tools {
		c.Tools = append(c.Tools,
			&llm.ToolSpec{Name: t.Name, Description: t.Description, Input: schemaForm(api, t.Input),
				Output: t.Output, Deferred: t.Deferred, NoRepair: t.NoRepair})
	}
	c.Output = schemaForm(api, r.Output)
	// IDs come from the API or from pawl; only the pairing matters.
	if api == "" {
		ordinals(c.Messages)
	}
	if api == Anthropic || api == Gemini {
		ordinals(c.Messages)
		if p := c.Settings.Parallel; p != nil && *p {
			c.Settings.Parallel = nil
		}
	}
	return form(&c)
}

// instructed reports whether the instructions hold text.
func instructed(messages []llm.Message, text string) bool {
	return messages[0].Role == llm.RoleSystem && strings.Contains(messages[0].Text(), text)
}

// ordinals numbers the calls of each reply in place of their ids.
func ordinals(messages []llm.Message) {
	var ids map[string]string
	for _, m := range messages {
		if m.Role == llm.RoleAssistant {
			ids = map[string]string{}
		}
		for i, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				if ids != nil {
					ids[p.ID] = fmt.Sprint(len(ids))
				}
				p.ID = ids[p.ID]
				m.Parts[i] = p
			case llm.ToolResult:
				p.CallID = ids[p.CallID]
				m.Parts[i] = p
			}
		}
	}
}

// schemaForm returns a schema with sorted keys. For Gemini it leaves out the parts that its dialect
// writes in another way.
func schemaForm(api string, schema json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return schema
	}
	if api == Gemini {
		plainSchema(v)
	}
	return marshal(v)
}

func plainSchema(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	delete(m, "additionalProperties")
	delete(m, "propertyOrdering")
	if kind, ok := m["type"].(string); ok {
		m["type"] = strings.ToLower(kind)
	}
	props, _ := m["properties"].(map[string]any)
	for _, p := range props {
		plainSchema(p)
	}
	plainSchema(m["items"])
}

type faultCase struct {
	fault     Fault
	code      llm.Code // "" means any
	retryable bool
	after     time.Duration
}

// faults are the possible faults at api, in its own words.
func faults(api string) map[string]faultCase {
	all := map[string]faultCase{
		"rate limit":      {Fault{Status: 429, RetryAfter: "7"}, llm.CodeRateLimit, true, 7 * time.Second},
		"no auth":         {Fault{Status: 401}, llm.CodeAuthentication, false, 0},
		"forbidden":       {Fault{Status: 403}, llm.CodePermission, false, 0},
		"no such model":   {Fault{Status: 404}, llm.CodeNotFound, false, 0},
		"bad request":     {Fault{Status: 400}, llm.CodeInvalidRequest, false, 0},
		"server error":    {Fault{Status: 500}, llm.CodeServer, true, 0},
		"HTML":            {Fault{Status: 502, Body: []byte("<html>Bad Gateway</html>"), ContentType: "text/html"}, "", true, 0},
		"an empty error":  {Fault{Status: 500, Body: []byte{}}, llm.CodeServer, true, 0},
		"HTML as a reply": {Fault{Body: []byte("<html>Hello</html>"), ContentType: "text/html"}, "", true, 0},
		"an empty reply":  {Fault{Body: []byte{}}, "", true, 0},
		"broken":          {Fault{Break: true, After: 3}, "", true, 0},
		"broken at once":  {Fault{Break: true}, "", true, 0},
		"broken in bytes": {Fault{Break: true, Bytes: 40}, "", true, 0},
	}
	switch api {
	case Anthropic:
		all["quota"] = faultCase{Fault{Status: 402}, llm.CodeQuota, false, 0}
		all["too long"] = faultCase{Fault{Status: 400, Message: "prompt is too long: 208310 tokens > 200000 maximum"}, llm.CodeContextLength, false, 0}
		all["overloaded"] = faultCase{Fault{Status: 529}, llm.CodeOverloaded, true, 0}
	case Gemini:
		all["too long"] = faultCase{Fault{Status: 400, Message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."},
			llm.CodeContextLength, false, 0}
		all["overloaded"] = faultCase{Fault{Status: 503, Message: "The model is overloaded. Please try again later."}, llm.CodeOverloaded, true, 0}
	default:
		all["quota"] = faultCase{Fault{Status: 429, Code: "insufficient_quota"}, llm.CodeQuota, false, 0}
		all["too long"] = faultCase{Fault{Status: 400, Code: "context_length_exceeded"}, llm.CodeContextLength, false, 0}
		all["overloaded"] = faultCase{Fault{Status: 503}, llm.CodeOverloaded, true, 0}
	}
	return all
}

// unspeakable reports whether api cannot transport the calls of turn, because their arguments are
// not an object. A stream of Anthropic's can, and a whole reply cannot.
func unspeakable(api string, turn script.Turn, whole bool) bool {
	if api != Gemini && (api != Anthropic || !whole) {
		return false
	}
	for _, p := range turn.Parts {
		if c, ok := p.(llm.ToolCall); ok && !isObject(string(c.Args)) {
			return true
		}
	}
	return false
}

// testSignatures sends signed replies back in requests to a model that demands the signatures.
func testSignatures[TT T[TT]](t TT, api string, m llm.Model, s *Simulator) {
	mark := map[string]string{Anthropic: `"signature":`, Gemini: `"thoughtSignature":`, Responses: `"encrypted_content":"`}[api]
	for _, whole := range []bool{false, true} {
		req := question()
		req.Whole = whole
		switch api {
		case Anthropic:
			req.Settings = llm.Settings{MaxTokens: 4096, Options: map[string]json.RawMessage{
				"anthropic": json.RawMessage(`{"thinking":{"type":"enabled","budget_tokens":1024}}`)}}
		case Gemini:
			req.Model = "gemini-3-pro-preview"
		}
		for i := range 3 {
			resp, err := streamed(t, m, req)
			if err != nil {
				t.Errorf("whole %t, reply %d: %v", whole, i+1, err)
				return
			}
			req.Messages = append(req.Messages, resp.Message)
			if results := answer(resp.Message); results != nil {
				req.Messages = append(req.Messages, *results)
			}
		}
		all := s.Received()
		if n := bytes.Count(all[len(all)-1].Body, []byte(mark)); n != 2 {
			t.Errorf("whole %t: two replies were signed, %d signatures came back: %s", whole, n, all[len(all)-1].Body)
		}
	}
}

// testPieces requests arguments in pieces, which have the same meaning.
func testPieces[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	written := []string{`{"at":"the \"sky\"","n":[1,2.5,{"deep":null}],"ok":true,"empty":""}`, `{}`, `{"none":[]}`}
	var turns []script.Turn
	for _, args := range written {
		turns = append(turns, script.Call("look", args))
	}
	req := question()
	req.Settings.Options = map[string]json.RawMessage{
		"gemini": json.RawMessage(`{"toolConfig":{"functionCallingConfig":{"mode":"AUTO","streamFunctionCallArguments":true}}}`)}
	resp, err := streamed(t, open(t, script.New(script.Together(turns...))), req)
	if err != nil {
		t.Fatalf("%v", err)
	}
	calls := resp.Message.Calls()
	if len(calls) != len(written) {
		t.Fatalf("%d calls, want %d: %s", len(calls), len(written), form(resp))
	}
	for i, c := range calls {
		if got := sorted(string(c.Args)); got != sorted(written[i]) {
			t.Errorf("call %d: got %s, want %s", i, c.Args, written[i])
		}
	}
}

// answer returns a result for each call of m. nil means that m has no call.
func answer(m llm.Message) *llm.Message {
	calls := m.Calls()
	if len(calls) == 0 {
		return nil
	}
	results := make([]llm.ToolResult, len(calls))
	for i, c := range calls {
		results[i] = llm.TextResult(fmt.Sprintf("%s of %s", c.Name, c.Args))
		results[i].CallID = c.ID
	}
	message := llm.Results(results...)
	return &message
}
