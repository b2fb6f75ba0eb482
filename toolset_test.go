package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// toolNames lists the names of the tools in set.
func toolNames(t testing.TB, set pawl.Toolset) string {
	t.Helper()
	tools, err := set.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func TestRegistry(t *testing.T) {
	var r pawl.Registry
	if got := toolNames(t, &r); got != "" || r.Lookup("a") != nil || r.Remove("a") {
		t.Errorf("an empty registry has %q", got)
	}
	a, b := says("a", "1"), says("b", "2")
	if err := r.Add(a, b); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		tools []*pawl.Tool
		want  error
		text  string
	}{
		"taken":        {[]*pawl.Tool{says("a", "")}, pawl.ErrDuplicate, `add tool "a": a tool of that name is there already; Replace replaces it`},
		"twice":        {[]*pawl.Tool{says("c", ""), says("c", "")}, pawl.ErrDuplicate, `add tool "c"`},
		"reserved":     {[]*pawl.Tool{says("decision_extraction", "")}, pawl.ErrReserved, "reserved"},
		"reserved too": {[]*pawl.Tool{says("c", ""), says("decision_validation", "")}, pawl.ErrReserved, "reserved"},
		"plan":         {[]*pawl.Tool{says("execute_plan", "")}, pawl.ErrReserved, "it belongs to a tool with EffectCompose"},
		"broken":       {[]*pawl.Tool{{Name: "c"}}, nil, "neither Run nor Passive"},
	} {
		err := r.Add(test.tools...)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := toolNames(t, &r); got != "a b" {
			t.Errorf("%s: a part was added all the same: %s", name, got)
		}
	}
	plan := says("execute_plan", "")
	plan.Effect = pawl.EffectCompose
	if err := r.Add(plan); err != nil {
		t.Errorf("a tool that composes: %v", err)
	}
	seen, _ := r.Tools(t.Context())
	newA := says("a", "new")
	if err := r.Replace(newA); err != nil || r.Lookup("a") != newA || toolNames(t, &r) != "a b execute_plan" {
		t.Errorf("Replace: %v, %s", err, toolNames(t, &r))
	}
	if err := r.Replace(says("x", "")); !errors.Is(err, pawl.ErrNotFound) {
		t.Errorf("Replace of nothing: %v", err)
	}
	if err := r.Replace(says("execute_plan", "")); !errors.Is(err, pawl.ErrReserved) {
		t.Errorf("Replace by what may not have the name: %v", err)
	}
	if err := r.Replace(&pawl.Tool{Name: "a"}); err == nil {
		t.Error("Replace by a broken tool gave no error")
	}
	if !r.Remove("a") || r.Remove("a") || toolNames(t, &r) != "b execute_plan" {
		t.Errorf("Remove: %s", toolNames(t, &r))
	}
	if seen[0] != a || len(seen) != 3 {
		t.Error("what was given out before has changed")
	}
}

func TestRegistryExecute(t *testing.T) {
	var r pawl.Registry
	double := pawl.Func("double", "", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (int, error) {
		if in.N == 13 {
			panic("unlucky")
		}
		return 2 * in.N, nil
	})
	if err := r.Add(double, passive("ask")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, args string
		want       pawl.Outcome
		text       string
	}{
		{"double", `{"n":4}`, pawl.OutcomeOK, "8"},
		{"double", `{"n":"four"}`, pawl.OutcomeInvalid, "The arguments of double do not fit its schema:\n- field n: expected integer, got string \"four\"\nArguments of the right form, with your own values: {\"n\":1}"},
		{"double", `{"n":"4"}`, pawl.OutcomeOK, "8"},
		{"double", `{"n":13}`, pawl.OutcomePanicked, "The tool failed unexpectedly and gave no result."},
		{"dbl", `{}`, pawl.OutcomeUnknownTool, `Unknown tool "dbl". Available tools: double, ask`},
		{"ask", `{}`, pawl.OutcomeDenied, "Not run: ask needs an answer from outside, and a call made inside another call cannot wait for one here. Call it directly."},
	} {
		x := r.Execute(t.Context(), test.name, json.RawMessage(test.args))
		if x.Outcome != test.want || x.Result.Text() != test.text || x.Result.CallID != x.Call.ID {
			t.Errorf("%s %s: got %s, %q", test.name, test.args, x.Outcome, x.Result.Text())
		}
	}
}

// A run uses the tools that existed when it started.
func TestARegistryMayChangeWhileARunGoesOn(t *testing.T) {
	var r pawl.Registry
	changes := does("changes", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		r.Remove("changes")
		return llm.TextResult("changed"), r.Add(says("fresh", "new"))
	})
	if err := r.Add(changes); err != nil {
		t.Fatal(err)
	}
	m := script.New(script.Call("changes", nil), script.Call("fresh", nil), script.Say("done"))
	res, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{&r}}).Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outcomes(res), []pawl.Outcome{pawl.OutcomeOK, pawl.OutcomeUnknownTool}); diff != "" {
		t.Error(diff)
	}
	for _, req := range m.Requests() {
		if len(req.Tools) != 1 || req.Tools[0].Source != changes {
			t.Errorf("request %s has other tools", req.Key)
		}
	}
}

func TestToolsets(t *testing.T) {
	boom := errors.New("boom")
	all := pawl.Toolsets{says("a", ""), pawl.Toolsets{says("b", ""), says("c", "")},
		pawl.Filter(pawl.Toolsets{says("d", ""), says("e", "")}, func(t *pawl.Tool) bool { return t.Name == "e" }),
		pawl.Prefix("x_", pawl.Toolsets{says("a", ""), says("b", "")})}
	if got := toolNames(t, all); got != "a b c e x_a x_b" {
		t.Errorf("got %s", got)
	}
	if _, err := (pawl.Toolsets{says("a", ""), says("a", "")}).Tools(t.Context()); err == nil ||
		!strings.Contains(err.Error(), `two tools are named "a"; rename one, or put a Prefix around its toolset`) {
		t.Errorf("got %v", err)
	}
	for name, set := range map[string]pawl.Toolset{"plain": pawl.Toolsets{brokenSet{boom}},
		"filter": pawl.Filter(brokenSet{boom}, func(*pawl.Tool) bool { return true }), "prefix": pawl.Prefix("p", brokenSet{boom})} {
		if _, err := set.Tools(t.Context()); !errors.Is(err, boom) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A tool behind a prefix receives its own name, is the same tool in each run, and keeps its other
// fields.
func TestPrefix(t *testing.T) {
	var saw string
	inner := does("look", func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		saw = c.Name
		return llm.TextResult(""), nil
	})
	inner.Effect = pawl.EffectRead
	set := pawl.Prefix("web_", pawl.Toolsets{inner, passive("ask")})
	first, _ := set.Tools(t.Context())
	second, _ := set.Tools(t.Context())
	if first[0] != second[0] || first[0].Effect != pawl.EffectRead || !first[1].Passive || first[1].Run != nil ||
		inner.Name != "look" {
		t.Errorf("got %+v", first)
	}
	if x := (pawl.Toolsets{set}).Execute(t.Context(), call("", "web_look", "{}")); x.Outcome != pawl.OutcomeOK || saw != "look" {
		t.Errorf("got %s, the tool saw %q", x.Outcome, saw)
	}
	if x := (pawl.Toolsets{set}).Execute(t.Context(),
		call("", "look", "{}")); x.Outcome != pawl.OutcomeUnknownTool ||
		!strings.HasSuffix(x.Result.Text(), `Did you mean "web_look"?`) && !strings.Contains(x.Result.Text(), "web_look") {
		t.Errorf("got %s, %q", x.Outcome, x.Result.Text())
	}
}

func TestToolChoiceCheck(t *testing.T) {
	tools := []*llm.ToolSpec{says("a", "").Spec(), says("b", "").Spec()}
	for _, test := range []struct {
		choice llm.ToolChoice
		tools  []*llm.ToolSpec
		want   string
	}{
		{llm.ToolChoice{}, nil, ""},
		{llm.ToolChoice{Mode: llm.ToolRequired}, tools, ""},
		{llm.Named("b"), tools, ""},
		{llm.Named("a", "b"), tools, ""},
		{llm.Named("c"), tools, `tool choice: no tool "c" is offered; offered: a, b`},
		{llm.Named("a", "c"), tools, `no tool "c"`},
		{llm.Named("a"), nil, "offered: none"},
		{llm.Named(), tools, "no name is given"},
	} {
		err := test.choice.Check(test.tools)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q", test.choice, err, test.want)
		}
	}
	for mode, want := range map[llm.ToolMode]string{llm.ToolAuto: "auto", llm.ToolNone: "none",
		llm.ToolRequired: "required", llm.ToolNamed: "named", 7: "ToolMode(7)"} {
		if mode.String() != want {
			t.Errorf("got %s, want %s", mode, want)
		}
	}
}

func ExampleRegistry() {
	var tools pawl.Registry
	upper := pawl.Func("upper", "Text in capitals.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return strings.ToUpper(in.Text), nil
	})
	fmt.Println(tools.Add(upper))
	fmt.Println(tools.Add(upper))

	x := tools.Execute(context.Background(), "upper", json.RawMessage(`{"text":"umbrella"}`))
	fmt.Println(x.Outcome, x.Result.Text())
	x = tools.Execute(context.Background(), "uper", json.RawMessage(`{"text":"umbrella"}`))
	fmt.Println(x.Outcome, x.Result.Text())
	// Output:
	// <nil>
	// add tool "upper": a tool of that name is there already; Replace replaces it
	// ok UMBRELLA
	// unknown_tool Unknown tool "uper". Available tools: upper. Did you mean "upper"?
}
