package react_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

type city struct {
	City string `json:"city"`
	Days int    `json:"days,omitempty"`
}

func weather() *pawl.Tool {
	t := pawl.Func("weather", "Current weather in a city.", func(_ context.Context, c city) (string, error) {
		if c.City == "Atlantis" {
			return "", errors.New("no such city")
		}
		return "rain in " + c.City, nil
	})
	t.Effect = pawl.EffectRead
	return t
}

const answer = `{"thought":"I know it.","type":"final_answer","answer":"Take an umbrella."}`

// simulated runs an agent over a simulator that answers any requests with replies in turn.
func simulated(t *testing.T, opts *react.Options, replies ...string) (res *pawl.Result, notices []string,
	log []*llm.Request, err error) {
	t.Helper()
	n := 0
	sim, serr := pawltest.NewSimulator(script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
		n++
		if n > len(replies) {
			return script.Fail(&llm.ProviderError{Status: 400, Message: "asked too often"})
		}
		return script.Turn{Parts: []llm.Part{llm.Text{Text: replies[n-1]}}, Usage: &llm.Usage{Input: 100, Output: 10}}
	}))), nil)
	if serr != nil {
		t.Fatal(serr)
	}
	defer sim.Close()
	inner := openai.NewChat("small", &openai.Options{BaseURL: sim.URL, Key: "test", Retries: -1})
	a := &pawl.Agent{Instructions: "Be brief.", Model: react.New(inner, opts), Tools: []pawl.Toolset{weather()}}
	for e, ferr := range a.Stream(t.Context(), llm.User("Do I need an umbrella in Oslo?")) {
		if ferr != nil {
			err = ferr
			break
		}
		switch e.Kind {
		case pawl.EventNotice:
			notices = append(notices, e.Code)
		case pawl.EventRunEnded:
			res = e.Result
		}
	}
	for _, r := range sim.Received() {
		if len(r.Violations) > 0 {
			t.Errorf("violations: %v", r.Violations)
		}
		log = append(log, r.Request)
	}
	return res, notices, log, err
}

func TestRunOverATextOnlyModel(t *testing.T) {
	for _, tt := range []struct {
		format            react.Format
		call, answer      string
		said, observation string
	}{
		{react.JSON, `{"thought":"I look.","type":"call_tool","tool":"weather","args":{"city":"Oslo"}}`, answer,
			"Thought: I look.\nAction: weather\nAction Input: {\"city\":\"Oslo\"}", "Observation: rain in Oslo"},
		{react.Text, "Thought: I look.\nAction: weather\nAction Input: {\"city\":\"Oslo\"}", "Thought: I know it.\nFinal Answer: Take an umbrella.",
			"Thought: I look.\nAction: weather\nAction Input: {\"city\":\"Oslo\"}", "Observation: rain in Oslo"},
		{react.XML, "<thought>I look.</thought><tool>weather</tool><args>{\"city\":\"Oslo\"}</args>", "<thought>I know it.</thought><answer>Take an umbrella.</answer>",
			"<thought>I look.</thought>\n<tool>weather</tool>\n<args>{\"city\":\"Oslo\"}</args>", "Observation: rain in Oslo"},
		{react.Plain, "I look.\nCalling tool: weather with args: {\"city\":\"Oslo\"}", "Take an umbrella.",
			"I look.\nCalling tool: weather with args: {\"city\":\"Oslo\"} (#1)", "Tool result: (#1) rain in Oslo"},
	} {
		t.Run(string(tt.format), func(t *testing.T) {
			res, notices, log, err := simulated(t, &react.Options{Format: tt.format}, tt.call, tt.answer)
			if err != nil || res.Stop != pawl.StopAnswer || res.Text() != "Take an umbrella." || len(notices) > 0 {
				t.Fatalf("got %v %q, notices %q, error %v", res.Stop, res.Text(), notices, err)
			}
			last := log[len(log)-1].Messages
			if got := last[len(last)-2]; got.Role != llm.RoleAssistant || got.Text() != tt.said {
				t.Errorf("the model is shown %s %q, want %q", got.Role, got.Text(), tt.said)
			}
			if got := last[len(last)-1]; got.Role != llm.RoleUser || got.Text() != tt.observation {
				t.Errorf("the model is shown %s %q, want %q", got.Role, got.Text(), tt.observation)
			}
			for i, req := range log {
				if len(req.Tools) > 0 {
					t.Errorf("request %d offers tools to a model without function calling", i)
				}
				if system := req.Messages[0].Text(); !strings.HasPrefix(system, "Be brief.\n\n") || !strings.Contains(system, `"city"`) {
					t.Errorf("request %d: the system message lacks instructions or tools:\n%s", i, system)
				}
				if !slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return m.Text() == "Do I need an umbrella in Oslo?" }) {
					t.Errorf("request %d lacks the task", i)
				}
			}
			want := llm.ToolCall{ID: "call_1", Name: "weather", Args: json.RawMessage(`{"city":"Oslo"}`)}
			if diff := cmp.Diff(res.Messages[1].Calls(), []llm.ToolCall{want}); diff != "" {
				t.Errorf("calls: got -, want +\n%s", diff)
			}
			if u := res.Spent.Usage; u.Input != 200 || u.Output != 20 {
				t.Errorf("usage: got %+v, want that of two requests", u)
			}
		})
	}
}

func TestErrorsAreObservations(t *testing.T) {
	_, _, log, err := simulated(t, nil, `{"thought":"","type":"call_tool","tool":"weather","args":{"city":"Atlantis"}}`, answer)
	if err != nil {
		t.Fatal(err)
	}
	if got := log[1].Messages[len(log[1].Messages)-1].Text(); !strings.HasPrefix(got, "Observation: ERROR - ") || !strings.Contains(got, "no such city") {
		t.Errorf("got %q", got)
	}
}

// What a model wrote after its action was written before there was a result.
func TestInventedObservation(t *testing.T) {
	for _, f := range []react.Format{react.JSON, react.Text} {
		res, notices, log, err := simulated(t, &react.Options{Format: f},
			"Thought: I look.\nAction: weather\nAction Input: {\"city\":\"Oslo\"}\nObservation: sunshine for ever\nThought: I know.\nFinal Answer: No.",
			"Final Answer: Take an umbrella.")
		if err != nil || res.Text() != "Take an umbrella." {
			t.Fatalf("%s: got %q, %v", f, res.Text(), err)
		}
		if diff := cmp.Diff(notices, []string{react.NoticeMended}); diff != "" {
			t.Errorf("%s: %s", f, diff)
		}
		all, err := json.Marshal(append(res.Messages, log[1].Messages...))
		if err != nil || strings.Contains(string(all), "sunshine") {
			t.Errorf("%s: the invented observation is kept: %s", f, all)
		}
	}
}

func TestParallel(t *testing.T) {
	const two = `{"thought":"both","type":"call_tool","calls":[{"tool":"weather","args":{"city":"Oslo"}},{"tool":"weather","args":{"city":"Bergen"}}]}`
	res, notices, log, err := simulated(t, &react.Options{Parallel: true}, two, answer)
	if err != nil || len(notices) > 0 || len(res.Messages[1].Calls()) != 2 {
		t.Fatalf("got %v, %q, %+v", err, notices, res.Messages)
	}
	n := len(log[1].Messages)
	if got := log[1].Messages[n-1].Text(); got != "Observation: (2 of 2, weather) rain in Bergen" {
		t.Errorf("got %q", got)
	}
	if got := log[1].Messages[n-2].Text(); got != "Observation: (1 of 2, weather) rain in Oslo" {
		t.Errorf("got %q", got)
	}
	res, notices, _, err = simulated(t, nil, two, answer)
	if err != nil || len(res.Messages[1].Calls()) != 1 || !slices.Equal(notices, []string{react.NoticeMended}) {
		t.Errorf("without Parallel: got %v, %q, %+v; want the first call alone, and a word about the other", err, notices, res.Messages[1])
	}
}

func TestFinalViaInference(t *testing.T) {
	final := script.New(script.Loop(script.Turn{Parts: []llm.Part{llm.Text{Text: "Yes, an umbrella."}},
		Usage: &llm.Usage{Input: 1000, Output: 5}}))
	temperature := 0.1
	res, _, log, err := simulated(t, &react.Options{FinalViaInference: true, FinalModel: final,
		FinalSettings: &llm.Settings{Temperature: &temperature}},
		`{"thought":"","type":"call_tool","tool":"weather","args":{"city":"Oslo"}}`, answer)
	if err != nil || res.Text() != "Yes, an umbrella." {
		t.Fatalf("got %q, %v", res.Text(), err)
	}
	reqs := final.Requests()
	if len(log) != 2 || len(reqs) != 1 {
		t.Fatalf("%d decisions, %d final requests", len(log), len(reqs))
	}
	req := reqs[0]
	if req.Key != "run/1/model/final" || req.Settings.Temperature != &temperature || len(req.Tools) > 0 {
		t.Errorf("the final request is %+v", req)
	}
	var said []string
	for _, m := range req.Messages[1:] {
		said = append(said, string(m.Role)+": "+m.Text())
	}
	if diff := cmp.Diff(said, []string{"user: Do I need an umbrella in Oslo?", "assistant: Action: weather\nAction Input: {\"city\":\"Oslo\"}", "user: Observation: rain in Oslo"}); diff != "" {
		t.Errorf("conversation: got -, want +\n%s", diff)
	}
	if u := res.Spent.Usage; u.Input != 1200 || u.Output != 25 {
		t.Errorf("usage: got %+v, want that of all three requests", u)
	}
}

func TestPrompt(t *testing.T) {
	_, _, log, err := simulated(t, &react.Options{Prompt: "Tools: {{range .Tools}}{{.Name}} {{end}}"}, answer)
	if err != nil || log[0].Messages[0].Text() != "Be brief.\n\nTools: weather" {
		t.Errorf("got %q, %v", log[0].Messages[0].Text(), err)
	}
	for name, opts := range map[string]*react.Options{
		"format":   {Format: "yaml"},
		"template": {Prompt: "{{"},
		"enforce":  {Format: react.Text, Enforce: true},
		"decision": {Format: react.XML, Decision: &react.Form{}},
		"reader":   {Decision: &react.Form{}},
	} {
		if _, err := llm.Complete(t.Context(), react.New(script.New(script.Say("x")), opts), &llm.Request{}); err == nil {
			t.Errorf("%s: bad options were taken", name)
		}
	}
}

func TestChoice(t *testing.T) {
	call := `{"thought":"","type":"call_tool","tool":"weather","args":{"city":"Oslo"}}`
	for _, tt := range []struct {
		choice llm.ToolChoice
		reply  string
		ok     bool
	}{
		{llm.ToolChoice{}, call, true},
		{llm.ToolChoice{Mode: llm.ToolNone}, call, false},
		{llm.ToolChoice{Mode: llm.ToolNone}, answer, true},
		{llm.ToolChoice{Mode: llm.ToolRequired}, answer, false},
		{llm.ToolChoice{Mode: llm.ToolRequired}, call, true},
		{llm.Named("weather"), call, true},
		{llm.Named("other"), call, false},
		{llm.Named("weather"), answer, false},
	} {
		m := react.New(script.New(script.Say(tt.reply)), &react.Options{MaxRetries: -1})
		_, err := llm.Complete(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("go")},
			Tools: []*llm.ToolSpec{weather().Spec()}, Choice: tt.choice})
		if (err == nil) != tt.ok {
			t.Errorf("choice %v, %s: got %v, want ok %t", tt.choice, tt.reply, err, tt.ok)
		}
	}
}

// A cut reply may still be a whole decision, but not the intended one: its call is marked as cut,
// and never runs.
func TestCutReply(t *testing.T) {
	m := react.New(script.New(script.Cut(script.Say("Action: weather\nAction Input: {\"city\":\"Oslo\"}"))), &react.Options{Format: react.Text})
	resp, err := llm.Complete(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("go")},
		Tools: []*llm.ToolSpec{weather().Spec()}})
	if err != nil || resp.Finish != llm.FinishReasonLength || !resp.Message.HasCalls() {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// A run that begins with one driver continues with the other, both ways.
func TestDriversChange(t *testing.T) {
	ask := &pawl.Tool{Name: "ask", Description: "Asks.", Input: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`), Passive: true}
	turns := []script.Turn{
		script.Together(script.Think("first"), script.Call("ask", `{"q":"who"}`)),
		script.Together(script.Think("then"), script.Call("ask", `{"q":"when"}`)),
		script.Say("done"),
	}
	native := llm.Model(script.New(turns...))
	text := llm.Model(react.New(speaker{script.New(turns...), react.Text}, &react.Options{Format: react.Text}))
	for name, order := range map[string][]llm.Model{"native first": {native, text, native}, "text first": {text, native, text}} {
		t.Run(name, func(t *testing.T) {
			var res *pawl.Result
			msgs := []llm.Message{llm.User("go")}
			for i, m := range order {
				a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{ask}}
				var err error
				if res == nil {
					res, err = runtest.Ended(a.Run(t.Context(), msgs...))
				} else {
					res, err = runtest.Ended(a.Resume(t.Context(), res, msgs...))
				}
				if err != nil {
					t.Fatal(err)
				}
				msgs = nil
				for _, w := range res.Pending {
					msgs = append(msgs, llm.DecisionMessage(w.Answer("test", llm.TextResult(fmt.Sprint("answer ", i)))))
				}
			}
			if res.Stop != pawl.StopAnswer || res.Text() != "done" || len(res.Messages) != 6 {
				t.Errorf("got %v, %q, %d messages", res.Stop, res.Text(), len(res.Messages))
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	hold := make(chan struct{})
	inner := script.New(script.Turn{Parts: []llm.Part{llm.Text{Text: strings.Repeat("Thought: ", 20)}}, Hold: hold})
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan error)
	go func() {
		_, err := llm.Complete(ctx, react.New(inner, nil), &llm.Request{Messages: []llm.Message{llm.User("go")}})
		got <- err
	}()
	cancel(pawl.ErrCancelled)
	if err := <-got; !errors.Is(err, pawl.ErrCancelled) {
		t.Errorf("got %v, want the cause", err)
	}
}

// Inner requests have keys of their own, so that records can distinguish them.
func TestKeys(t *testing.T) {
	inner := script.New(script.Say("bad"), script.Say("bad again"), script.Say(answer), script.Say("final"))
	n := -1
	seen := script.New(script.Loop(script.Func(func(*llm.Request) script.Turn { n++; return inner.Turns[n] })))
	m := react.New(seen, &react.Options{FinalViaInference: true})
	if _, err := llm.Complete(t.Context(), m, &llm.Request{Key: "run/0/model", Messages: []llm.Message{llm.User("go")}}); err != nil {
		t.Fatal(err)
	}
	var got []llm.Key
	for _, r := range seen.Requests() {
		got = append(got, r.Key)
	}
	if diff := cmp.Diff(got, []llm.Key{"run/0/model", "run/0/model/retry1", "run/0/model/retry2", "run/0/model/final"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
}

// The last request of a run that has used up its rounds asks for an answer.
func TestLimit(t *testing.T) {
	call := `{"thought":"","type":"call_tool","tool":"weather","args":{"city":"Oslo"}}`
	inner := script.New(script.Say(call), script.Say(answer))
	a := &pawl.Agent{Model: react.New(inner, nil), Tools: []pawl.Toolset{weather()}, Limits: pawl.Limits{Rounds: 1}}
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopLimit || res.Text() != "Take an umbrella." {
		t.Fatalf("got %v, %q, %v", res.Stop, res.Text(), err)
	}
	last := inner.Requests()[1].Messages
	if got := last[len(last)-1].Text(); !strings.Contains(got, "Call no tool now") {
		t.Errorf("the last request ends with %q", got)
	}
	if got := inner.Requests()[0].Messages[0].Text(); got != last[0].Text() {
		t.Error("the system message is not the same in both requests")
	}
}

// An answer that must fit a schema is one JSON value, as text. The decision may have it as text or
// as a value.
func TestOutput(t *testing.T) {
	for _, reply := range []string{`{"type":"final_answer","answer":{"rain": true}}`, `{"type":"final_answer","answer":"{\"rain\":true}"}`} {
		inner := script.New(script.Say(reply))
		resp, err := llm.Complete(t.Context(), react.New(inner, nil),
			&llm.Request{Messages: []llm.Message{llm.User("go")}, Output: json.RawMessage(`{"type":"object"}`)})
		if err != nil || resp.Message.Text() != `{"rain":true}` {
			t.Errorf("%s: got %q, %v", reply, resp.Message.Text(), err)
		}
		if !strings.Contains(inner.Requests()[0].Messages[0].Text(), `fits this JSON Schema: {"type":"object"}`) {
			t.Error("the model is not told of the schema")
		}
	}
}

func TestEnforce(t *testing.T) {
	res, _, log, err := simulated(t, &react.Options{Enforce: true, Parallel: true}, answer)
	if err != nil || res.Text() != "Take an umbrella." {
		t.Fatalf("got %q, %v", res.Text(), err)
	}
	schema := string(log[0].Output)
	for _, want := range []string{`"call_tool"`, `"weather"`, `"calls"`} {
		if !strings.Contains(schema, want) {
			t.Errorf("the schema lacks %s: %s", want, schema)
		}
	}
	if _, _, log, _ := simulated(t, nil, answer); len(log[0].Output) > 0 {
		t.Error("a schema was sent without being asked for")
	}
}

// summarizing is a model whose provider shortens conversations itself.
type summarizing struct{ llm.Model }

func (summarizing) Compact(req *llm.Request, _ int) (*llm.Request, bool) { return req, true }
func (summarizing) Compacted(llm.Part) bool                              { return true }

// A summary of the inner model's provider has no place in a conversation in text, so that a window
// edits the conversation itself.
func TestNoProviderSummarizesText(t *testing.T) {
	m, ok := llm.As[llm.Compactor](react.New(summarizing{script.New()}, nil))
	if !ok {
		t.Fatal("no answer whether the provider shortens the conversation")
	}
	if _, ok := m.Compact(&llm.Request{}, 0); ok || m.Compacted(llm.Reasoning{}) {
		t.Error("the provider of the inner model is asked for a summary")
	}
}
