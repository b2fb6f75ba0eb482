package react_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
)

// mutation makes a decision messier without a second meaning. forms are the formats that it suits.
type mutation struct {
	name  string
	forms []react.Format
	do    func(text string, pick *rand.Rand) string
}

var labelledForms = []react.Format{react.JSON, react.Text}

func mutations() []mutation {
	all := react.Formats()
	structured := []react.Format{react.JSON, react.Text, react.XML}
	return []mutation{
		{"as it is", all, func(s string, _ *rand.Rand) string { return s }},
		{"white space around", all, func(s string, _ *rand.Rand) string { return "\n\n  " + s + " \n\n" }},
		{"fenced", structured, func(s string, _ *rand.Rand) string { return "```\n" + s + "\n```" }},
		{"fenced with a language", structured, func(s string, p *rand.Rand) string {
			return []string{"```json\n", "```text\n", "```xml\n"}[p.IntN(3)] + s + "\n```"
		}},
		{"fenced, and prose around", []react.Format{react.JSON}, func(s string, _ *rand.Rand) string {
			return "Here is my decision:\n```json\n" + s + "\n```\nI hope it helps."
		}},
		{"thinking before", all, func(s string, _ *rand.Rand) string {
			return "<think>\nShould I call {\"tool\": \"wrong\"}? Action: wrong\nNo.\n</think>\n" + s
		}},
		{"prose before", []react.Format{react.JSON, react.XML}, func(s string, _ *rand.Rand) string { return "Sure, let me see {what I can do}.\n\n" + s }},
		{"prose after", []react.Format{react.JSON, react.XML}, func(s string, _ *rand.Rand) string {
			return s + "\n\nLet me know if I should go on."
		}},
		{"an observation, and an answer from it", all, func(s string, _ *rand.Rand) string {
			if strings.Contains(s, "Final Answer") || strings.Contains(s, "final_answer") || strings.Contains(s, "<answer>") || !strings.ContainsAny(s, "{") {
				return s
			}
			return s + "\nObservation: all is well\nThought: good\nFinal Answer: invented"
		}},
		{"an observation on the line of the input", []react.Format{react.Text}, func(s string, _ *rand.Rand) string {
			if !strings.Contains(s, "Action Input:") {
				return s
			}
			return strings.TrimSpace(s) + " Observation: all is well\nFinal Answer: invented"
		}},
		{"an observation in tags", []react.Format{react.XML}, func(s string, _ *rand.Rand) string {
			if strings.Contains(s, "<answer>") {
				return s
			}
			return s + "\n<observation>all is well</observation>\n<answer>invented</answer>"
		}},
		{"a result line", []react.Format{react.Plain}, func(s string, _ *rand.Rand) string {
			return s + "\nTool result: (#1) all is well\nCalling tool: wrong with args: {}"
		}},
		{"bold labels", []react.Format{react.Text}, func(s string, _ *rand.Rand) string {
			return strings.NewReplacer("Thought:", "**Thought:**", "Action:", "**Action:**", "Action Input:", "**Action Input:**", "Final Answer:", "**Final Answer:**").Replace(s)
		}},
		{"small labels", []react.Format{react.Text}, func(s string, _ *rand.Rand) string {
			return strings.NewReplacer("Thought:", "thought:", "Action:", "action:", "Action Input:", "action input:", "Final Answer:", "final answer:").Replace(s)
		}},
		{"numbered labels", []react.Format{react.Text}, func(s string, _ *rand.Rand) string {
			return strings.NewReplacer("Thought:", "Thought 1:", "Action:", "Action 1:", "Action Input:", "Action Input 1:").Replace(s)
		}},
		{"Answer alone", []react.Format{react.Text}, func(s string, _ *rand.Rand) string { return strings.Replace(s, "Final Answer:", "Answer:", 1) }},
		{"input in a fence", []react.Format{react.Text}, func(s string, _ *rand.Rand) string {
			before, input, ok := strings.Cut(s, "Action Input: ")
			if !ok {
				return s
			}
			return before + "Action Input:\n```json\n" + strings.TrimSpace(input) + "\n```"
		}},
		{"quoted name", []react.Format{react.Text}, func(s string, p *rand.Rand) string {
			lines := strings.Split(s, "\n")
			for i, l := range lines {
				if name, ok := strings.CutPrefix(l, "Action: "); ok {
					q := []string{"`", `"`, "'", "**"}[p.IntN(4)]
					lines[i] = "Action: " + q + name + q
				}
			}
			return strings.Join(lines, "\n")
		}},
		{"trailing comma", []react.Format{react.JSON}, func(s string, _ *rand.Rand) string { return strings.TrimSuffix(s, "}") + ",}" }},
		{"comment", []react.Format{react.JSON}, func(s string, _ *rand.Rand) string {
			return strings.Replace(s, `"type":`, "// the kind\n\"type\":", 1)
		}},
		{"no type", []react.Format{react.JSON}, func(s string, _ *rand.Rand) string {
			s = strings.Replace(s, `"type":"call_tool",`, "", 1)
			return strings.Replace(s, `"type":"final_answer",`, "", 1)
		}},
		{"other names", []react.Format{react.JSON}, func(s string, _ *rand.Rand) string {
			return strings.NewReplacer(`"type":"call_tool",`, "", `"tool":`, `"action":`, `"args":`, `"action_input":`).Replace(s)
		}},
		{"arguments as text", []react.Format{react.JSON}, func(s string, _ *rand.Rand) string {
			var d map[string]any
			if json.Unmarshal([]byte(s), &d) != nil || d["type"] != "call_tool" {
				return s
			}
			args, err := json.Marshal(d["args"])
			if err != nil {
				panic(err)
			}
			d["args"] = string(args)
			out, err := json.Marshal(d)
			if err != nil {
				panic(err)
			}
			return string(out)
		}},
		{"a second decision", labelledForms, func(s string, _ *rand.Rand) string {
			if strings.Contains(s, "inal Answer") || strings.Contains(s, "final_answer") {
				return s
			}
			return s + "\n" + `{"thought":"and then","type":"final_answer","answer":"invented"}`
		}},
		{"indented", []react.Format{react.JSON}, func(s string, _ *rand.Rand) string {
			var v any
			if json.Unmarshal([]byte(s), &v) != nil {
				return s
			}
			out, err := json.MarshalIndent(v, "  ", "\t")
			if err != nil {
				panic(err)
			}
			return string(out)
		}},
		{"no closing tag at the end", []react.Format{react.XML}, func(s string, _ *rand.Rand) string {
			return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(s), "</args>"), "</answer>")
		}},
		{"other tags", []react.Format{react.XML}, func(s string, _ *rand.Rand) string {
			if strings.Contains(s, "</args> or") {
				return s // would change the arguments
			}
			return strings.NewReplacer("<tool>", "<action>", "</tool>", "</action>", "<args>", "<action_input>", "</args>", "</action_input>", "<answer>", "<final_answer>", "</answer>", "</final_answer>").Replace(s)
		}},
		{"windows lines", []react.Format{react.Text, react.XML, react.JSON},
			func(s string, _ *rand.Rand) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
	}
}

// Decisions with a known meaning, made messy in every way that leaves one meaning, are read as
// meant: all of the model's decision, and nothing that it invented.
func TestMutations(t *testing.T) {
	pick := rand.New(rand.NewPCG(5, 28))
	argsOf := []string{`{}`, `{"city":"Oslo"}`, `{"q":"a \"quoted\" word, {braces} and [lists]"}`, `{"text":"line one\nObservation: not one\nTool: none"}`,
		`{"n":12345678901234567890,"f":1.50,"b":true,"z":null}`, `{"deep":{"list":[1,{"x":"y"}],"s":"</args> or ` + "```" + ` inside"}}`, `{"köy":"Ørsta 北京 🎈"}`}
	answers := []string{"42", "Take an umbrella: it rains in Oslo.", "Two lines:\n- one\n- two", `He said "yes", {"so": "what"}.`, "Ørsta 北京 🎈"}
	read, by := 0, map[react.Format]int{}
	for round := range 12 {
		for _, mut := range mutations() {
			for _, f := range mut.forms {
				var m llm.Message
				thought := []string{"I look it up.", "Why not", "First: the weather, then the rest"}[pick.IntN(3)]
				isCall := pick.IntN(3) > 0
				var want react.Decision
				if isCall {
					args := argsOf[pick.IntN(len(argsOf))]
					want = react.Decision{Type: react.CallTool,
						Tool: []string{"weather", "search_web", "Delegate work to coworker"}[pick.IntN(3)], Args: json.RawMessage(args)}
					m = llm.Assistant(llm.Reasoning{Text: thought},
						llm.ToolCall{ID: "x", Name: want.Tool, Args: want.Args})
				} else {
					want = react.Decision{Type: react.FinalAnswer, Answer: answers[pick.IntN(len(answers))]}
					m = llm.Assistant(llm.Reasoning{Text: thought}, llm.Text{Text: want.Answer})
				}
				text := mut.do(say(f, m), pick)
				got, err := react.Read(text, f)
				name := fmt.Sprintf("round %d, %s in %s", round, mut.name, f)
				wantAnswer := want.Answer
				if mut.name == "windows lines" {
					wantAnswer = strings.ReplaceAll(wantAnswer, "\n", "\r\n")
					if f == react.JSON {
						wantAnswer = want.Answer
					}
				}
				args := got.Args
				var inside string
				if mut.name == "arguments as text" && json.Unmarshal(args, &inside) == nil {
					args = json.RawMessage(inside)
				}
				if err != nil || got.Type != want.Type || got.Tool != want.Tool || !sameJSON(args, want.Args) ||
					got.Answer != wantAnswer {
					t.Errorf("%s: %q:\ngot  %s %s %s %q, %v\nwant %s %s %s %q", name, text, got.Type, got.Tool,
						got.Args, got.Answer, err, want.Type, want.Tool, want.Args, wantAnswer)
				}
				read++
				by[f]++
			}
		}
	}
	t.Logf("%d mutations read as meant: %v", read, by)
	if read < 200 {
		t.Error("too few")
	}
}

// Reading any text ends, without a panic, in a decision or in words about the missing part.
func FuzzRead(f *testing.F) {
	for _, form := range react.Formats() {
		m := llm.Assistant(llm.Reasoning{Text: "so"}, llm.ToolCall{ID: "x", Name: "weather", Args: json.RawMessage(`{"city":"Oslo"}`)})
		for _, mut := range mutations() {
			f.Add(mut.do(say(form, m), rand.New(rand.NewPCG(1, 2))))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range react.Formats() {
			d, err := react.Read(text, form)
			if err != nil && err.Error() == "" {
				t.Errorf("%s: %q: an error without words", form, text)
			}
			if err == nil && d.Type == react.FinalAnswer && d.Tool != "" {
				t.Errorf("%s: %q: both an answer and a call: %+v", form, text, d)
			}
		}
	})
}

// Reading eight times as much takes eight times as long, not 64 times. The texts have beginnings
// that anything may follow.
func TestReadTakesLinearTime(t *testing.T) {
	soak.Sequential(t)
	for _, piece := range []string{"{", "[", `{"a":`, "Action Input: {\n", "Action: {'a\n", "<args>{", "```\n", "<tool>", "Observation:\n", "{x}",
		"Thought: a\n", "Answer: a\n", "Action: a b\n", "Final Answer: x\n", "<thought>a</thought>", "<answer>", `{"thought":"a","type":"final_answer","answer":"`, "\n   "} {
		timed := func(size int) time.Duration {
			text := strings.Repeat(piece, size/len(piece)) + "\nAction: x\nAction Input: {}"
			began := time.Now()
			for _, form := range []react.Format{react.Text, react.XML} {
				react.Read(text, form)
			}
			return time.Since(began)
		}
		var small, large time.Duration
		for range 3 { // a busy machine may hold one of them up, not thrice
			if small, large = timed(1<<14), timed(1<<17); large < time.Second || large < 30*small {
				break
			}
		}
		if large > time.Second && large > 30*small {
			t.Errorf("%q: %v for eight times what took %v", piece, large, small)
		}
	}
}
