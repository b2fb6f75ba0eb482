package pawltest

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/seal"
	"github.com/pawl-go/pawl/pawltest/internal/suite/model"
	"github.com/pawl-go/pawl/script"
)

// requests are changes to model.Question that an adapter to the API must carry, beyond what
// TestModel sends.
func (a adapter[TT]) requests() map[string]func(*llm.Request) {
	called := llm.Assistant(
		llm.Text{Text: "I look."},
		llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":"x"}`)},
		llm.ToolCall{ID: "b", Name: "find", Args: []byte(`{}`)},
	)
	result := func(id, text string) llm.ToolResult {
		r := llm.TextResult(text)
		r.CallID = id
		return r
	}
	all := map[string]func(*llm.Request){
		"plain":             func(*llm.Request) {},
		"settings together": func(r *llm.Request) { r.Settings = a.settings() },
		"others' reasoning": func(r *llm.Request) {
			secret := llm.Reasoning{Text: "secret", Opaque: &llm.Opaque{Provider: "other", Data: []byte(`"x"`)}}
			r.Messages = append(r.Messages, llm.Assistant(secret, llm.Text{Text: "Hm."}), llm.User("Go on."))
		},
	}

	switch a.api {
	case Anthropic:
		all["failed result, with words after it"] = func(r *llm.Request) {
			failed := result("b", "no such place")
			failed.IsError = true
			r.Messages = append(r.Messages, called, llm.Results(result("a", "one"), failed), llm.User("Hm?"))
		}
	case Gemini:
		all["calls of another model, to a model that demands signatures"] = func(r *llm.Request) {
			r.Messages = append(r.Messages, called, llm.Results(result("a", "one"), result("b", "two")))
			r.Model = "gemini-3-pro-preview"
		}
	}
	return all
}

// settings are several settings that the API can express in one request.
func (a adapter[TT]) settings() llm.Settings {
	temperature := 0.5
	topP := 0.9
	parallel := false
	s := llm.Settings{MaxTokens: 500, Temperature: &temperature}
	switch a.api {
	case Gemini:
		s.TopP = &topP
		s.StopSequences = []string{"END"}
	case Anthropic: // newer models take one of temperature and top_p
		s.StopSequences = []string{"END"}
	default:
		s.TopP = &topP
		s.Effort = "low"
		s.Parallel = &parallel
	}
	return s
}

// testSameBytes sends a request three times: its bytes are the same, so that a provider can read
// them from its cache.
func (a adapter[TT]) testSameBytes(t TT) {
	m, s := a.over(t, script.New(script.Loop(script.Say("yes"))), SimulatorOptions{})
	for range 3 {
		model.Streamed(t, m, model.Question())
	}
	got := s.Received()
	for _, r := range got[1:] {
		if !bytes.Equal(r.Body, got[0].Body) {
			t.Errorf("the same request was sent as\n%s\nand as\n%s", got[0].Body, r.Body)
		}
	}
}

var signaturePattern = regexp.MustCompile(`"(?:signature|thoughtSignature|encrypted_content)":"([^"]*)"`)

// signatures returns the number of the Simulator's signatures in the body of a request. A
// placeholder of the adapter is none.
func signatures(body []byte) (n int) {
	for _, m := range signaturePattern.FindAllSubmatch(body, -1) {
		_, signed := seal.Signed(string(m[1]))
		_, sealed := seal.Open(string(m[1]))
		if signed || sealed {
			n++
		}
	}
	return n
}

// testSignatures sends signed replies back in requests to a model that demands the signatures.
func (a adapter[TT]) testSignatures(t TT) {
	behind := script.New(
		script.Together(script.Think("First both."), script.Call("look", `{"at":"a"}`), script.Call("find", `{"at":"b"}`)),
		script.Together(script.Think("Once more."), script.Call("look", `{"at":"c"}`)),
		script.Say("There."),
	)
	m, s := a.over(t, behind, SimulatorOptions{})
	for _, whole := range []bool{false, true} {
		req := model.Question()
		req.Whole = whole
		switch a.api {
		case Anthropic:
			req.Settings = llm.Settings{MaxTokens: 4096, Options: map[string]json.RawMessage{
				"anthropic": json.RawMessage(`{"thinking":{"type":"enabled","budget_tokens":1024}}`)}}
		case Gemini:
			req.Model = "gemini-3-pro-preview"
		}

		for i := range 3 {
			resp, err := model.Streamed(t, m, req)
			if err != nil {
				t.Errorf("whole %t, reply %d: %v", whole, i+1, err)
				return
			}
			req.Messages = append(req.Messages, resp.Message)
			if results := model.Answer(resp.Message); results != nil {
				req.Messages = append(req.Messages, *results)
			}
		}

		all := s.Received()
		last := all[len(all)-1].Body
		if n := signatures(last); n != 2 {
			t.Errorf("whole %t: two replies were signed, %d signatures came back: %s", whole, n, last)
		}
	}
}

// testPieces requests arguments in pieces, which have the same meaning.
func (a adapter[TT]) testPieces(t TT) {
	written := []string{`{"at":"the \"sky\"","n":[1,2.5,{"deep":null}],"ok":true,"empty":""}`, `{}`, `{"none":[]}`}
	var turns []script.Turn
	for _, args := range written {
		turns = append(turns, script.Call("look", args))
	}
	req := model.Question()
	req.Settings.Options = map[string]json.RawMessage{
		"gemini": json.RawMessage(`{"toolConfig":{"functionCallingConfig":{"mode":"AUTO","streamFunctionCallArguments":true}}}`)}
	m, _ := a.over(t, script.New(script.Together(turns...)), SimulatorOptions{})
	resp, err := model.Streamed(t, m, req)
	if err != nil {
		t.Fatalf("%v", err)
	}

	calls := resp.Message.Calls()
	if len(calls) != len(written) {
		t.Fatalf("%d calls, want %d: %s", len(calls), len(written), model.Form(resp))
	}
	for i, c := range calls {
		if got := model.Sorted(string(c.Args)); got != model.Sorted(written[i]) {
			t.Errorf("call %d: got %s, want %s", i, c.Args, written[i])
		}
	}
}
