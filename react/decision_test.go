package react_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
)

// The model receives each fault in words, each fault emits a notice, and after the last retry the
// failed step has an execution.
func TestBadDecisions(t *testing.T) {
	const (
		notJSON = "I think you should take one."
		badType = `{"thought":"","type":"dance"}`
		unknown = `{"thought":"","type":"call_tool","tool":"wether","args":{"city":"Oslo"}}`
		noTool  = `{"thought":"","type":"call_tool","tool":null,"args":{}}`
		noArgs  = `{"thought":"","type":"call_tool","tool":"weather","args":{}}`
		badArgs = `{"thought":"","type":"call_tool","tool":"weather","args":{"city":7}}`
		list    = `{"thought":"","type":"call_tool","tool":"weather","args":["Oslo"]}`
		empty   = `{"thought":"","type":"final_answer","answer":""}`
	)
	for _, tt := range []struct {
		name, reply string
		stage, told string
		format      react.Format
	}{
		{"no decision", notJSON, react.Extraction, "no JSON object that is a decision", ""},
		{"empty", "", react.Extraction, "empty", ""},
		{"cut", `{"thought":"I lo`, react.Extraction, "ends too early", ""},
		{"bad type", badType, react.Validation, "Decision type must be call_tool or final_answer.", ""},
		{"unknown tool", unknown, react.Validation, `not available: "wether". Available tools: weather.`, ""},
		{"no tool", noTool, react.Validation, "Tool name is required when type=call_tool.", ""},
		{"missing argument", noArgs, react.Validation, "city", ""},
		{"bad argument", badArgs, react.Validation, "field city: expected string, got number 7", ""},
		{"a list", list, react.Validation, "a JSON object keyed by parameter name, not a list", ""},
		{"no answer", empty, react.Validation, "Answer is required when type=final_answer.", ""},
		{"both", "Action: weather\nAction Input: {\"city\":\"Oslo\"}\nFinal Answer: yes", react.Extraction, "both an action and a final answer", react.Text},
		{"neither", "Thought: hm", react.Extraction, "neither", react.Text},
		{"no tags", "hm", react.Extraction, "neither <tool> nor <answer>", react.XML},
		{"no input", "Calling tool: weather", react.Validation, "needs them", react.Plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code := react.NoticeExtraction
			if tt.stage == react.Validation {
				code = react.NoticeValidation
			}
			good := map[react.Format]string{"": answer, react.Text: "Final Answer: Take an umbrella.", react.XML: "<answer>Take an umbrella.</answer>", react.Plain: "Take an umbrella."}[tt.format]

			// After a repair at the second attempt, the transcript has nothing of the first.
			res, notices, log, err := simulated(t, &react.Options{Format: tt.format}, tt.reply, good)
			if err != nil || res.Text() != "Take an umbrella." || len(res.Messages) != 2 {
				t.Fatalf("mended: got %q, error %v, %d messages", res.Text(), err, len(res.Messages))
			}
			if diff := cmp.Diff(notices, []string{code}); diff != "" {
				t.Errorf("notices: %s", diff)
			}
			fed := log[1].Messages
			if got := fed[len(fed)-1]; got.Role != llm.RoleUser || !strings.Contains(got.Text(), tt.told) {
				t.Errorf("the model was told %q, want %q in it", got.Text(), tt.told)
			}
			if got := fed[len(fed)-2]; tt.reply != "" && got.Text() != tt.reply {
				t.Errorf("the model was shown %q, want what it wrote", got.Text())
			}
			if u := res.Spent.Usage; u.Input != 200 {
				t.Errorf("usage: got %+v, want that of both attempts", u)
			}

			// Without a repair the run fails, with the attempts recorded.
			res, notices, log, err = simulated(t, &react.Options{Format: tt.format}, tt.reply, tt.reply, tt.reply)
			var de *react.DecisionError
			if !errors.As(err, &de) || de.Stage != tt.stage || de.Attempts != 3 || res.Stop != pawl.StopFailed {
				t.Fatalf("used up: got %v (%v)", err, res.Stop)
			}
			if diff := cmp.Diff(notices, []string{code, code, code}); diff != "" || len(log) != 3 {
				t.Errorf("%d requests, notices: %s", len(log), diff)
			}
			step := res.Steps[len(res.Steps)-1]
			if len(step.Executions) != 1 || step.Executions[0].Call.Name != tt.stage ||
				!step.Executions[0].Outcome.Failed() || step.Executions[0].Attempts != 3 {
				t.Errorf("the failed step has %+v", step.Executions)
			}
			if !strings.Contains(step.Executions[0].Error, tt.told) || step.Request == nil {
				t.Errorf("the execution says %q", step.Executions[0].Error)
			}
			if len(res.Messages) != 1 || res.Spent.Usage.Input != 300 || res.Spent.Calls != 0 {
				t.Errorf("got %d messages and %+v, want the task alone and the usage of three attempts", len(res.Messages), res.Spent)
			}
		})
	}
}

func TestMaxRetries(t *testing.T) {
	for _, tt := range []struct{ retries, want int }{{0, 3}, {1, 2}, {-1, 1}, {4, 5}} {
		_, notices, log, err := simulated(t, &react.Options{MaxRetries: tt.retries}, "a", "b", "c", "d", "e", "f")
		var de *react.DecisionError
		if !errors.As(err, &de) || len(log) != tt.want || len(notices) != tt.want {
			t.Errorf("MaxRetries %d: %d requests, %d notices, %v; want %d", tt.retries, len(log), len(notices), err, tt.want)
		}
	}
}

// With Lenient, a well-formed decision is a call, and the pipeline reports its faults.
func TestLenient(t *testing.T) {
	res, notices, log, err := simulated(t, &react.Options{Lenient: true},
		`{"thought":"","type":"call_tool","tool":"wether","args":{}}`, `{"thought":"","type":"call_tool","tool":"weather","args":{"city":7}}`, answer)
	if err != nil || len(notices) > 0 || len(log) != 3 {
		t.Fatalf("got %v, notices %q, %d requests", err, notices, len(log))
	}
	var got []pawl.Outcome
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			got = append(got, x.Outcome)
		}
	}
	if diff := cmp.Diff(got, []pawl.Outcome{pawl.OutcomeUnknownTool, pawl.OutcomeInvalid}); diff != "" {
		t.Error(diff)
	}
	last := log[2].Messages[len(log[2].Messages)-1].Text()
	if !strings.HasPrefix(last, "Observation: ERROR - ") {
		t.Errorf("the model reads %q", last)
	}
	if _, _, _, err := simulated(t, &react.Options{Lenient: true, MaxRetries: -1}, "no decision"); err == nil {
		t.Error("a reply without a decision was taken")
	}
}

func TestOwnDecision(t *testing.T) {
	type mine struct {
		Do   string         `json:"do"`
		With map[string]any `json:"with"`
		Say  string         `json:"say"`
	}
	form := &react.Form{Schema: json.RawMessage(`{"type":"object","properties":{"do":{"type":"string"},"with":{"type":"object"},"say":{"type":"string"}}}`),
		Read: func(b json.RawMessage) (react.Decision, error) {
			var m mine
			if err := json.Unmarshal(b, &m); err != nil {
				return react.Decision{}, err
			}
			if m.Say != "" {
				return react.Decision{Type: react.FinalAnswer, Answer: m.Say}, nil
			}
			if m.Do == "" {
				return react.Decision{}, errors.New("do or say something")
			}
			args, err := json.Marshal(m.With)
			return react.Decision{Type: react.CallTool, Tool: m.Do, Args: args}, err
		}}
	res, notices, log, err := simulated(t, &react.Options{Decision: form, Enforce: true}, `{}`, "```json\n{\"do\":\"weather\",\"with\":{\"city\":\"Oslo\"}}\n```", `{"say":"Take an umbrella."}`)
	if err != nil || res.Text() != "Take an umbrella." || !slices.Equal(notices, []string{react.NoticeExtraction}) {
		t.Fatalf("got %q, %q, %v", res.Text(), notices, err)
	}
	if !strings.Contains(log[0].Messages[0].Text(), string(form.Schema)) {
		t.Error("the model is not shown the form")
	}
	if len(log[0].Output) == 0 {
		t.Error("with Enforce the form is not sent")
	}
}
