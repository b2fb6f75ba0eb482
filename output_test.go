package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

const weatherOutput = `{"type":"object","properties":{"rain":{"type":"boolean"},"mm":{"type":"integer"}},"required":["rain"],"additionalProperties":false}`

// holder is a model whose provider enforces an output schema together with tools, as configured.
type holder struct{ *script.Model }

func (holder) HoldsOutput(*llm.Request) bool { return true }

func glance() *pawl.Tool {
	return &pawl.Tool{Name: "look", Effect: pawl.EffectRead,
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("wet"), nil }}
}

func TestOutput(t *testing.T) {
	for name, tt := range map[string]struct {
		turns   []script.Turn
		tools   bool // offered to a model that cannot enforce a schema
		limits  pawl.Limits
		choice  llm.ToolChoice
		output  string
		repairs int
		stop    pawl.StopReason
		err     string // of an *OutputError
		told    []string
		spent   int // corrections
	}{
		"fits": {turns: []script.Turn{script.Say(`{"rain":true}`)}, output: `{"rain":true}`, stop: pawl.StopAnswer},
		"fenced": {turns: []script.Turn{script.Say("Here it is:\n```json\n{\"rain\": true,}\n```")}, output: `{"rain":true}`, repairs: 3,
			stop: pawl.StopAnswer},
		"number as text": {turns: []script.Turn{script.Say(`{"rain":true,"mm":"3"}`)}, output: `{"mm":3,"rain":true}`, repairs: 1, stop: pawl.StopAnswer},
		"corrected": {turns: []script.Turn{script.Say(`{"rain":"maybe"}`), script.Say(`{"rain":false}`)}, output: `{"rain":false}`, stop: pawl.StopAnswer,
			told: []string{"field rain: expected boolean", "one JSON value"}, spent: 1},
		"two readings": {turns: []script.Turn{script.Say(`{"rain":true} or {"rain":false}`), script.Say(`{"rain":false}`)}, output: `{"rain":false}`,
			stop: pawl.StopAnswer, told: []string{"not valid JSON"}, spent: 1},
		"empty": {turns: []script.Turn{script.Say(" "), script.Say(`{"rain":false}`)}, output: `{"rain":false}`, stop: pawl.StopAnswer,
			told: []string{"There was no answer"}, spent: 1},
		"never": {turns: []script.Turn{script.Loop(script.Say("It rains."))}, stop: pawl.StopFailed, err: "it is no JSON", spent: 2},
		"unclosed is not mended": {turns: []script.Turn{script.Loop(script.Say(`{"rain":true`))}, stop: pawl.StopFailed, err: "ends too early", spent: 2,
			limits: pawl.Limits{}},
		"more corrections": {turns: []script.Turn{script.Say("a"), script.Say("b"), script.Say("c"), script.Say(`{"rain":true}`)},
			limits: pawl.Limits{Corrections: 3}, output: `{"rain":true}`, stop: pawl.StopAnswer, spent: 3},
		"none": {turns: []script.Turn{script.Say("a")}, limits: pawl.Limits{Corrections: -1},
			stop: pawl.StopFailed, err: "no JSON"},
		"cut is no output": {turns: []script.Turn{script.Cut(script.Say(`{"rain":true}`))}, stop: pawl.StopLimit},
		"by call": {tools: true, turns: []script.Turn{script.Call("look", nil),
			script.Call("final_answer", `{"rain":true}`)}, output: `{"rain":true}`, stop: pawl.StopAnswer},
		"by call, mended": {tools: true, turns: []script.Turn{script.Call("final_answer", `{'rain':true,}`)}, output: `{"rain":true}`, repairs: 2, stop: pawl.StopAnswer},
		"by call, beside one": {tools: true, turns: []script.Turn{script.Together(script.Call("final_answer",
			`{"rain":true}`), script.Call("look", nil))}, output: `{"rain":true}`, stop: pawl.StopAnswer},
		"as text all the same": {tools: true, turns: []script.Turn{script.Say(`{"rain":true}`)}, output: `{"rain":true}`,
			stop: pawl.StopAnswer},
		"prose where a call is wanted": {tools: true, turns: []script.Turn{script.Say("It rains."), script.Call("final_answer", `{"rain":true}`)}, output: `{"rain":true}`,
			stop: pawl.StopAnswer, told: []string{"call final_answer", `{"rain":`}, spent: 1},
		"by call, corrected": {tools: true, turns: []script.Turn{script.Call("final_answer", `{"rain":7}`), script.Call("final_answer", `{"rain":true}`)}, output: `{"rain":true}`,
			stop: pawl.StopAnswer, told: []string{"field rain: expected boolean"}, spent: 1},
		"by call, never": {tools: true, turns: []script.Turn{script.Loop(script.Call("final_answer", `{"rain":7}`),
			script.Call("final_answer", `{"rain":8}`))}, stop: pawl.StopFailed, err: "field rain", spent: 2},
		"cut call is not run": {tools: true, turns: []script.Turn{script.Cut(script.Call("final_answer", `{"rain":true}`)), script.Call("final_answer", `{"rain":false}`)}, output: `{"rain":false}`,
			stop: pawl.StopAnswer, told: []string{"your reply was cut"}},
		"rounds used up": {tools: true, turns: []script.Turn{script.Call("look", nil), script.Say(`{"rain":true}`)},
			limits: pawl.Limits{Rounds: 1}, output: `{"rain":true}`, stop: pawl.StopLimit},
		"rounds used up, by call": {tools: true, turns: []script.Turn{script.Call("look", nil),
			script.Call("final_answer", `{"rain":true}`)}, limits: pawl.Limits{Rounds: 1}, output: `{"rain":true}`,
			stop: pawl.StopLimit},
		"handed back, but for the answer": {tools: true, turns: []script.Turn{script.Call("look", nil), script.Call("final_answer", `{"rain":true}`)},
			limits: pawl.Limits{Rounds: 1, AtLimit: pawl.AtLimitReturn}, output: `{"rain":true}`, stop: pawl.StopAnswer},
		"no calls left for others": {tools: true, turns: []script.Turn{script.Call("look", nil),
			script.Call("final_answer", `{"rain":true}`)}, limits: pawl.Limits{Calls: 1}, output: `{"rain":true}`,
			stop: pawl.StopAnswer},
		"tools forbidden": {tools: true, choice: llm.ToolChoice{Mode: llm.ToolNone},
			turns: []script.Turn{script.Say(`{"rain":true}`)}, output: `{"rain":true}`, stop: pawl.StopAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			m := script.New(tt.turns...)
			a := &pawl.Agent{Model: m, Output: json.RawMessage(weatherOutput), Limits: tt.limits, Choice: tt.choice,
				Middleware: policies(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
					if c.Name == "final_answer" {
						t.Error("somebody was asked whether the model may answer")
					}
					return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
				})}
			if tt.tools {
				a.Tools = []pawl.Toolset{glance()}
			}
			for _, streamed := range []bool{false, true} {
				var res *pawl.Result
				var err error
				if streamed {
					_, res, err = collect(a.Stream(t.Context(), llm.User("Does it rain?")))
				} else {
					res, err = runtest.Ended(a.Run(t.Context(), llm.User("Does it rain?")))
				}
				var oe *pawl.OutputError
				if errors.As(err, &oe) != (tt.err != "") || err != nil && (!strings.Contains(err.Error(), tt.err) ||
					oe.Result != res || oe.Text == "" || len(oe.Faults) == 0) {
					t.Fatalf("streamed %t: got the error %v, want %q", streamed, err, tt.err)
				}
				if string(res.Output) != tt.output || res.Stop != tt.stop || len(res.Repairs) != tt.repairs ||
					res.Spent.Corrections != tt.spent {
					t.Errorf("streamed %t: got output %s, stop %s (%s), repairs %q, %d corrections; want %s, %s, %d, %d", streamed, res.Output, res.Stop, res.Cause, res.Repairs,
						res.Spent.Corrections, tt.output, tt.stop, tt.repairs, tt.spent)
				}
				if tt.output != "" && res.Text() != tt.output {
					t.Errorf("streamed %t: Text() is %s", streamed, res.Text())
				}
				if faults := llm.Check(res.Messages); faults != nil || len(res.Calls()) > 0 {
					t.Errorf("streamed %t: the transcript is not whole: %v, open %v", streamed, faults, res.Calls())
				}
				requests := m.Requests()
				for i, req := range requests { // each gets the schema in exactly one way
					byTool := slices.ContainsFunc(req.Tools,
						func(t *llm.ToolSpec) bool { return t.Name == "final_answer" }) && req.Choice.Mode != llm.ToolNone
					if (req.Output != nil) == byTool {
						t.Errorf("request %d: output %s, final_answer offered: %t", i, req.Output, byTool)
					}
				}
				last := said(requests[len(requests)-1].Messages)
				for _, want := range tt.told {
					if !strings.Contains(last, want) {
						t.Errorf("streamed %t: the model was not told %q:\n%s", streamed, want, last)
					}
				}
				b, err := json.Marshal(res)
				var back pawl.Result
				if err == nil {
					err = json.Unmarshal(b, &back)
				}
				if err != nil || string(back.Output) != tt.output {
					t.Errorf("stored, it has the output %s, error %v", back.Output, err)
				}
			}
		})
	}
}

// said returns all text in msgs, results included.
func said(msgs []llm.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		b.WriteString(string(m.Role) + ": " + m.Text())
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				b.WriteString(r.Text())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A run that failed for its answer resumes with the next message and the remaining corrections.
func TestOutputGoesOn(t *testing.T) {
	m := script.New(script.Say("no"), script.Say("no"), script.Say("no"), script.Say(`{"rain":true}`))
	a := &pawl.Agent{Model: m, Output: json.RawMessage(weatherOutput)}
	res, err := a.Run(t.Context(), llm.User("Does it rain?"))
	if err == nil || res.Stop != pawl.StopFailed || res.Cause == "" {
		t.Fatalf("got %v, %v", res.Stop, err)
	}
	if res, err = a.Resume(t.Context(), res, llm.User("Come on.")); err != nil || string(res.Output) != `{"rain":true}` {
		t.Fatalf("got %s, %v", res.Output, err)
	}
	if res.Spent.Corrections != 2 {
		t.Errorf("got %d corrections, want the 2 of the run before", res.Spent.Corrections)
	}
}

// An answer next to a pending call is not final: the model is asked again after the call has its
// result.
func TestOutputBesidePending(t *testing.T) {
	m := script.New(script.Together(script.Call("ask", nil), script.Call("final_answer", `{"rain":true}`)), script.Call("final_answer", `{"rain":false}`))
	a := &pawl.Agent{Model: m, Output: json.RawMessage(weatherOutput), Tools: []pawl.Toolset{passive("ask")}}
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("Does it rain?")))
	if err != nil || res.Stop != pawl.StopPending || res.Output != nil {
		t.Fatalf("got %s, output %s, %v", res.Stop, res.Output, err)
	}
	if res, err = a.Resume(t.Context(), res, llm.DecisionMessage(res.Pending[0].Answer("ann",
		llm.TextResult("dry")))); err != nil || string(res.Output) != `{"rain":false}` || res.Stop != pawl.StopAnswer {
		t.Errorf("got %s, output %s, %v", res.Stop, res.Output, err)
	}
	if faults := llm.Check(res.Messages); faults != nil {
		t.Error(faults)
	}
}

// A provider that enforces a schema together with tools gets the schema, and no additional tool.
func TestOutputHeld(t *testing.T) {
	m := script.New(script.Call("look", nil), script.Say(`{"rain":true}`))
	a := &pawl.Agent{Model: holder{m}, Output: json.RawMessage(weatherOutput), Tools: []pawl.Toolset{glance()}}
	res, err := a.Run(t.Context(), llm.User("Does it rain?"))
	if err != nil || string(res.Output) != `{"rain":true}` {
		t.Fatalf("got %s, %v", res.Output, err)
	}
	for _, req := range m.Requests() {
		if len(req.Tools) != 1 || string(req.Output) != weatherOutput {
			t.Errorf("got %d tools and the output %s", len(req.Tools), req.Output)
		}
	}
}

func TestOutputSchema(t *testing.T) {
	for _, tt := range []struct{ schema, answer, output, err string }{
		{`{"type":"array","items":{"type":"integer"}}`, `[1,2]`, `[1,2]`, ""},
		{`{"type":"string","enum":["a","b"]}`, `"b"`, `"b"`, ""},
		{`{"anyOf":[{"type":"null"},{"type":"object"}]}`, `null`, `null`, ""},
		{`{"type":"objekt"}`, ``, ``, "Output: schema: at '/type': value must be one of"},
		{`[]`, ``, ``, "want a JSON object"},
		{`{"$ref":"http://example.com/x"}`, ``, ``, "is not loaded"},
	} {
		a := &pawl.Agent{Model: script.New(script.Say(tt.answer)), Output: json.RawMessage(tt.schema),
			Tools: []pawl.Toolset{glance()}}
		res, err := a.Run(t.Context(), llm.User("?"))
		if tt.err != "" {
			if res != nil || err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want %q", tt.schema, err, tt.err)
			}
			continue
		}
		if err != nil || string(res.Output) != tt.output {
			t.Errorf("%s: got %s, %v", tt.schema, res.Output, err)
		}
	}
	taken := glance()
	taken.Name = "final_answer"
	a := &pawl.Agent{Model: script.New(), Output: json.RawMessage(weatherOutput), Tools: []pawl.Toolset{taken}}
	if _, err := a.Run(t.Context(), llm.User("?")); err == nil || !strings.Contains(err.Error(), "final_answer") {
		t.Errorf("a tool of the same name: got %v", err)
	}
}

type forecast struct {
	City string `json:"city" jsonschema:"Where"`
	Days []int  `json:"days"`
}

// relay is a Runner that is not an Agent.
type relay struct{ a *pawl.Agent }

func (r relay) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return r.a.Stream(ctx, msgs...)
}
func (r relay) WithOutput(schema json.RawMessage) pawl.Runner {
	return relay{r.a.WithOutput(schema).(*pawl.Agent)}
}

func TestInto(t *testing.T) {
	m := script.New(script.Say(`{"city":"Oslo","days":["1",2.0]}`))
	for _, r := range []pawl.OutputRunner{&pawl.Agent{Model: m}, relay{&pawl.Agent{Model: m}}} {
		got, res, err := pawl.Into[forecast](t.Context(), r, llm.User("?"))
		if err != nil || !cmp.Equal(got, forecast{"Oslo", []int{1, 2}}) || res.Stop != pawl.StopAnswer {
			t.Errorf("%T: got %v, %v", r, got, err)
		}
	}
	list, _, err := pawl.Into[[]string](t.Context(), &pawl.Agent{Model: script.New(script.Say(`{"value":["a"]}`))}, llm.User("?"))
	if err != nil || !cmp.Equal(list, []string{"a"}) {
		t.Errorf("a list: got %v, %v", list, err)
	}
	var oe *pawl.OutputError
	_, res, err := pawl.Into[forecast](t.Context(), &pawl.Agent{Model: script.New(script.Call("ask", nil)),
		Tools: []pawl.Toolset{&pawl.Tool{Name: "ask", Passive: true}}}, llm.User("?"))
	var stop *pawl.StopError
	if !errors.As(err, &stop) || errors.As(err, &oe) || stop.Result != res || res.Stop != pawl.StopPending {
		t.Errorf("a run that pends: got %v", err)
	}
	_, _, err = pawl.Into[struct {
		N int8 `json:"n"`
	}](t.Context(), &pawl.Agent{Model: script.New(script.Loop(script.Say(`{"n":1000}`)))}, llm.User("?"))
	if !errors.As(err, &oe) {
		t.Errorf("a number that is too large: got %v", err)
	}
	got, res, err := pawl.Into[forecast](t.Context(), &pawl.Agent{Model: script.New(script.Call("look", nil),
		script.Say(`{"city":"Oslo","days":[]}`)), Tools: []pawl.Toolset{glance()},
		Limits: pawl.Limits{Rounds: 1}}, llm.User("?"))
	if !errors.As(err, &stop) || errors.As(err, &oe) || got.City != "Oslo" || res.Stop != pawl.StopLimit {
		t.Errorf("at the limit: got %v, %v", got, err)
	}
}

// An agent's output is its tool's output.
func TestOutputOfInnerAgent(t *testing.T) {
	clerk := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("```\n{\"rain\":true}\n```")), Output: json.RawMessage(weatherOutput)}
	a := &pawl.Agent{Model: script.New(script.Call("clerk", `{"task":"look"}`), script.Say("done")), Tools: []pawl.Toolset{clerk.Tool("Looks.")}}
	res, err := a.Run(t.Context(), llm.User("?"))
	if err != nil {
		t.Fatal(err)
	}
	r := res.Steps[0].Executions[0].Result
	if string(r.Data) != `{"rain":true}` || r.Text() != `{"rain":true}` {
		t.Errorf("got %s, %s", r.Data, r.Text())
	}
}

// Turn returns the place of the last user message. A correction is not a user message.
func TestRequestTurn(t *testing.T) {
	for _, instructions := range []string{"", "Be brief."} {
		m := script.New(script.Say("earlier"), script.Call("look", nil), script.Say("no"), script.Say(`{"rain":true}`))
		a := &pawl.Agent{Model: m, Instructions: instructions, Output: json.RawMessage(weatherOutput),
			Tools: []pawl.Toolset{glance()}}
		if _, err := a.Run(t.Context(), llm.User("first"), llm.Assistant(llm.Text{Text: "earlier"}), llm.User("now")); err != nil {
			t.Fatal(err)
		}
		for i, req := range m.Requests() {
			if got := req.Messages[req.Turn].Text(); got != "now" {
				t.Errorf("instructions %q, request %d: the turn begins at %d, %q", instructions, i, req.Turn, got)
			}
		}
	}
}
