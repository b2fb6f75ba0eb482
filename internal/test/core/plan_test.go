package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

// systemOf runs an agent once with plan and returns its system prompt.
func systemOf(t interface{ Fatal(...any) }, instructions string, plan json.RawMessage) string {
	m := script.New(script.Say("Done."))
	a := &pawl.Agent{Model: m, Instructions: instructions}
	if _, err := a.Resume(context.Background(), &pawl.Result{Values: pawl.Values{team.PlanKey: plan}},
		llm.User("Go.")); err != nil {
		t.Fatal(err)
	}
	req := m.Requests()[0]
	if req.Messages[0].Role != llm.RoleSystem || req.Turn != 1 {
		t.Fatal("no system text, or the turn is not where the user speaks")
	}
	return req.Messages[0].Text()
}

// Any agent accepts a plan. The system prompt contains it as JSON with an indentation of two
// spaces, in its written order.
func TestStrategicPlan(t *testing.T) {
	got := systemOf(t, "Be brief.\n", json.RawMessage(`{"phases":[{"worker":"data-analysis","goals":"Analyze."}],"a":1}`))
	want := "Be brief.\n\nSTRATEGIC PLAN:\n{\n  \"phases\": [\n    {\n      \"worker\": \"data-analysis\",\n      \"goals\": \"Analyze.\"\n    }\n  ],\n  \"a\": 1\n}"
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if got := systemOf(t, "", json.RawMessage(`{}`)); got != "STRATEGIC PLAN:\n{}" {
		t.Errorf("without instructions: got %q", got)
	}
}

// A plan that is not a JSON object is an error before the first request.
func TestStrategicPlanNoObject(t *testing.T) {
	for _, plan := range []string{`[]`, `"do it"`, `null`, `{"phases"`} {
		m := script.New(script.Say("Done."))
		_, err := (&pawl.Agent{Model: m}).Resume(t.Context(),
			&pawl.Result{Values: pawl.Values{team.PlanKey: json.RawMessage(plan)}}, llm.User("Go."))
		if err == nil || !strings.Contains(err.Error(), `value "strategic_plan": want a JSON object`) || len(m.Requests()) != 0 {
			t.Errorf("%s: got %v and %d requests", plan, err, len(m.Requests()))
		}
	}
}

// A plan that is too long loses whole phases from the end, and a line reports it.
func TestStrategicPlanTooLong(t *testing.T) {
	var phases []string
	for i := range 12 {
		phases = append(phases, fmt.Sprintf(`{"worker":"w","goals":"%d %s"}`, i, strings.Repeat("é", 150)))
	}
	got := systemOf(t, "", json.RawMessage(`{"title":"T","phases":[`+strings.Join(phases, ",")+`],"rationale":"R"}`))
	block, note, _ := strings.Cut(strings.TrimPrefix(got, "STRATEGIC PLAN:\n"), "\n(")
	var plan struct {
		Title, Rationale string
		Phases           []struct{ Goals string }
	}
	if err := json.Unmarshal([]byte(block), &plan); err != nil {
		t.Fatalf("what is left is no JSON: %v\n%s", err, got)
	}
	if n := len(plan.Phases); n < 4 || n > 6 || plan.Title != "T" || plan.Rationale != "R" ||
		!strings.HasPrefix(plan.Phases[n-1].Goals, fmt.Sprint(n-1)) {
		t.Errorf("%d phases are left of 12, in %d characters:\n%s", n, utf8.RuneCountInString(got), got)
	}
	if want := fmt.Sprintf("The first %d of 12 phases; the others are left out, for the length.)", len(plan.Phases)); note != want {
		t.Errorf("got the line %q, want %q", note, want)
	}
	got = systemOf(t, "", json.RawMessage(`{"phases":[{"goals":"`+strings.Repeat("x", 3000)+`"}],"why":"`+strings.Repeat("y", 3000)+`"}`))
	if want := "STRATEGIC PLAN:\n{\n  \"phases\": []\n}\n(The first 0 of 1 phases; the others are left out, for the length.)\n(Left out, for the length: why.)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// For any plan the block has at most 1,500 characters, is JSON except for the lines after it, and
// reports missing phases.
func TestStrategicPlanBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 400, -1)
		plan := map[string]any{}
		for _, name := range rapid.SliceOfN(rapid.StringN(0, 60, -1), 0, 6).Draw(t, "names") {
			plan[name] = text.Draw(t, "value")
		}
		var phases []map[string]string
		for range rapid.IntRange(0, 12).Draw(t, "phases") {
			phases = append(phases, map[string]string{"worker": "w", "goals": text.Draw(t, "goals")})
		}
		plan[rapid.SampledFrom([]string{"phases", "steps", "x"}).Draw(t, "key")] = phases
		raw, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		got := systemOf(t, "", raw)
		if n := utf8.RuneCountInString(got); n > 1500 {
			t.Fatalf("%d characters", n)
		}
		body := strings.TrimPrefix(got, "STRATEGIC PLAN:\n")
		d := json.NewDecoder(strings.NewReader(body))
		var left map[string]json.RawMessage
		if err := d.Decode(&left); err != nil {
			t.Fatalf("%v in %s", err, got)
		}
		note := body[d.InputOffset():]
		var same, was any
		_ = json.Unmarshal(raw, &was)
		_ = json.Unmarshal([]byte(body[:d.InputOffset()]), &same)
		if (note == "") != cmp.Equal(same, was) {
			t.Fatalf("the line is %q", note)
		}
	})
}

// The runs of agents within calls have the plan of the enclosing run, or the plan that an earlier
// call has set.
func TestStrategicPlanInside(t *testing.T) {
	inner := script.New(script.Say("Found."))
	clerk := &pawl.Agent{Name: "clerk", Model: inner, Instructions: "Find."}
	set := &pawl.Tool{Name: "set", Description: "Sets the plan.", Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		return llm.TextResult("set"), pawl.InvocationFrom(ctx).Set(team.PlanKey, map[string]any{"b": 2})
	}}
	lead := &pawl.Agent{Model: script.New(script.Call("clerk", `{"task":"t"}`), script.Call("set", `{}`), script.Call("clerk", `{"task":"u"}`), script.Say("Done.")),
		Tools: []pawl.Toolset{clerk.Tool("Finds."), set}}
	if _, err := lead.Resume(t.Context(),
		&pawl.Result{Values: pawl.Values{team.PlanKey: json.RawMessage(`{"a":"R\u0026D"}`)}}, llm.User("Go.")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"Find.\n\nSTRATEGIC PLAN:\n{\n  \"a\": \"R&D\"\n}", "Find.\n\nSTRATEGIC PLAN:\n{\n  \"b\": 2\n}"} {
		if got := inner.Requests()[i].Messages[0].Text(); got != want {
			t.Errorf("run %d: got %q, want %q", i, got, want)
		}
	}
}
