package pawltest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider"
)

// whatever returns a history as left by crashes, other programs and people with an editor: known
// roles and parts, in any order.
func whatever(t *rapid.T) []llm.Message {
	id := rapid.SampledFrom([]string{"a", "b", "c", ""})
	name := rapid.SampledFrom([]string{"look", "find", "gone"})
	part := rapid.Custom(func(t *rapid.T) llm.Part {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return llm.Text{Text: rapid.SampledFrom([]string{"", "hi", " ", "Grüße"}).Draw(t, "text")}
		case 1, 2:
			return llm.ToolCall{ID: id.Draw(t, "id"), Name: name.Draw(t, "name"),
				Args: json.RawMessage(rapid.SampledFrom([]string{"", "{}", `{"at":"x"}`, `{"at`}).Draw(t, "args"))}
		case 3, 4:
			r := llm.TextResult("seen")
			r.CallID, r.IsError = id.Draw(t, "of"), rapid.Bool().Draw(t, "error")
			return r
		}
		return llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: "elsewhere", Data: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"x"}`)}}
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) llm.Message {
		role := rapid.SampledFrom([]llm.Role{llm.RoleUser, llm.RoleAssistant, llm.RoleTool, llm.RoleAssistant,
			llm.RoleSystem, llm.RoleDeveloper})
		return llm.Message{Role: role.Draw(t, "role"), Parts: rapid.SliceOfN(part, 0, 4).Draw(t, "parts")}
	}), 0, 8).Draw(t, "history")
}

// For any history, the request follows the rules of its API, and notices report the repairs.
func TestAnyHistoryArrivesInOrder(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			m, s := w.on(t, say("Well."), pawltest.SimulatorOptions{})
			rules := rulesOf(w.api)
			rapid.Check(t, func(rt *rapid.T) {
				req := &llm.Request{Messages: append(whatever(rt), llm.User("And now?")), Whole: rapid.Bool().Draw(rt, "whole")}
				for _, set := range passive() {
					tools, _ := set.Tools(t.Context())
					req.Tools = append(req.Tools, specs(tools)...)
				}
				told := 0
				for d, err := range m.Stream(t.Context(), req) {
					if err != nil {
						all := s.Received()
						rt.Fatalf("%v: %s", err, all[len(all)-1].Body)
					}
					if d.Notice != nil && d.Notice.Code == "healed" {
						told++
					}
				}
				if want := len(rules.Check(req.Messages)); told != want {
					rt.Fatalf("%d mends were told, there are %d faults: %v", told, want, rules.Check(req.Messages))
				}
			})
			for _, r := range s.Received() {
				for _, v := range r.Violations {
					t.Errorf("%v: %s", v, r.Body)
				}
			}
		})
	}
}

// A conversation of one wire, cut after any message by a crash, is accepted by each wire.
func TestCutConversationsGoOn(t *testing.T) {
	for _, from := range wires {
		for _, c := range talks {
			m, _ := from.on(t, c.model(), pawltest.SimulatorOptions{})
			res, _ := run(t, m, c.effort, false, nil, llm.Message{Role: llm.RoleUser, Parts: c.words})
			res, _ = run(t, m, c.effort, false, res, c.answers(res, "first"))
			res, _ = run(t, m, c.effort, false, res, c.answers(res, "second"))
			for _, to := range wires {
				other, s := to.on(t, say("Well."), pawltest.SimulatorOptions{})
				for n := range res.Messages {
					for first := range n {
						req := &llm.Request{Messages: append(append([]llm.Message{}, res.Messages[first:n]...),
							llm.User("And now?")), Settings: llm.Settings{Effort: c.effort}}
						if _, err := llm.Complete(t.Context(), other, req); err != nil {
							t.Errorf("%s to %s, %s, messages %d to %d: %v", from.name, to.name, c.name, first, n, err)
						}
					}
				}
				for _, r := range s.Received() {
					for _, v := range r.Violations {
						t.Errorf("%s to %s, %s: %v: %s", from.name, to.name, c.name, v, r.Body)
					}
				}
			}
		}
	}
}

// A caller whose server stores the conversation sends results without their calls. They do not
// count as stray results.
func TestWhatTheServerKeepsIsNotMended(t *testing.T) {
	for _, w := range wires {
		heads := map[string]string{pawltest.Responses: `{"previous_response_id":"resp_1"}`, pawltest.Gemini: `{"cachedContent":"cachedContents/1"}`}
		if heads[w.api] == "" {
			continue
		}
		m, s := w.on(t, say("Well."), pawltest.SimulatorOptions{})
		result := llm.TextResult("seen")
		result.CallID = "c1"
		call := llm.Assistant(llm.ToolCall{ID: "c1", Name: "look", Args: []byte(`{}`)})
		req := &llm.Request{Messages: []llm.Message{llm.Results(result)},
			Settings: llm.Settings{Options: map[string]json.RawMessage{tagOf[w.api]: json.RawMessage(heads[w.api])}}}
		if w.api == pawltest.Gemini { // this API wants the call, but not the user message before it
			req.Messages = append([]llm.Message{call}, req.Messages...)
		}
		for d, err := range m.Stream(t.Context(), req) {
			if err == nil && d.Notice != nil {
				t.Errorf("%s: %s", w.name, d.Notice.Text)
			}
		}
		if got := s.Received(); len(got) != 1 ||
			fmt.Sprint(meaning(got[0].Request.Messages)) != fmt.Sprint(meaning(req.Messages)) {
			t.Errorf("%s: was sent %s", w.name, got[0].Body)
		}
	}
}

func rulesOf(api string) llm.HistoryRules {
	a, _ := provider.FindAPI(api)
	return a.Rules
}
