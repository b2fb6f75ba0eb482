package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/find"
)

// many returns n tools of n services, and a tool that sends mail.
func many(n int) pawl.Toolsets {
	run := func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("done"), nil }
	var all pawl.Toolsets
	for i := range n - 1 {
		all = append(all, &pawl.Tool{Name: fmt.Sprintf("service%d_listItems", i), Description: "Lists the items of a service.", Run: run})
	}
	return append(all, &pawl.Tool{Name: "mail_send", Description: "Sends an e-mail to one or more people.", Input: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`), Run: run})
}

func offeredNames(tools []*llm.ToolSpec) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func TestSearch(t *testing.T) {
	m := script.New(
		script.Call("tool_search", `{"query":"send mails"}`),
		script.Call("mail_send", `{"to":"ada"}`),
		script.Together(script.Call("tool_search", `{"query":"service3"}`), script.Call("service7_listItems", `{}`)),
		script.Say("sent"),
	)
	a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{weatherTool(), find.OnDemand(many(30), nil)}}
	res, err := a.Run(t.Context(), llm.User("mail"))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, r := range m.Requests() {
		got = append(got, offeredNames(r.Tools))
	}
	want := [][]string{
		{"weather", "tool_search"},
		{"weather", "tool_search", "mail_send"},
		{"weather", "tool_search", "mail_send"},
		// called before it was found, and after
		{"weather", "tool_search", "mail_send", "service7_listItems", "service3_listItems"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if x := res.Steps[1].Executions[0]; x.Outcome != pawl.OutcomeOK {
		t.Errorf("%s %q", x.Outcome, x.Result.Text())
	}
	again := script.New(script.Say("x"), script.Say("y"), script.Say("z"), script.Say("u"), script.Say("v"))
	a.Model = again
	if _, err := a.Run(t.Context(), append(slices.Clone(res.Messages), llm.User("more"))...); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want[3], offeredNames(again.Requests()[0].Tools)); d != "" {
		t.Errorf("a run that goes on from the transcript alone: %s", d)
	}
}

func weatherTool() *pawl.Tool {
	return pawl.Func("weather", "Weather.", func(context.Context, struct{}) (string, error) { return "rain", nil })
}

func TestSearchWords(t *testing.T) {
	set := find.OnDemand(many(30), &find.Options{Most: 2})
	for _, test := range []struct{ query, want string }{
		{"E-MAIL", "mail_send"},
		{"sends people something", "mail_send"},
		{"service12 items", "service12_listItems"},
		{"mail_send", "mail_send"},
		{"listitems", ""},
		{"quantum", ""},
	} {
		x := pawl.Toolsets{set}.Execute(t.Context(),
			llm.ToolCall{ID: "1", Name: "tool_search", Args: json.RawMessage(fmt.Sprintf(`{"query":%q}`, test.query))})
		var data struct{ Found []string }
		_ = json.Unmarshal(x.Result.Data, &data)
		if test.want == "" && len(data.Found) > 0 ||
			test.want != "" && (len(data.Found) == 0 || data.Found[0] != test.want || len(data.Found) > 2) {
			t.Errorf("%q finds %v, want %q first: %s", test.query, data.Found, test.want, x.Result.Text())
		}
	}
}

func TestSearchPays(t *testing.T) {
	few, err := find.OnDemand(many(19), nil).Tools(t.Context())
	if err != nil || len(few) != 19 || slices.Contains(namesOf(few), "tool_search") {
		t.Errorf("19 tools: %v, %v", namesOf(few), err)
	}
	set := find.OnDemand(many(20), &find.Options{Always: func(t *pawl.Tool) bool {
		return strings.HasPrefix(t.Name,
			"mail")
	}})
	tools, err := set.Tools(t.Context())
	if err != nil || len(tools) != 21 || tools[0].Name != "mail_send" || tools[0].Deferred ||
		tools[1].Name != "tool_search" || !tools[2].Deferred {
		t.Errorf("20 tools: %v, %v", namesOf(tools), err)
	}
	if again, err := set.Tools(t.Context()); err != nil || &again[0] != &tools[0] {
		t.Errorf("the second time there are other tools, %v", err)
	}
	x := pawl.Toolsets{set}.Execute(t.Context(), llm.ToolCall{ID: "1", Name: "mail_sent", Args: json.RawMessage(`{}`)})
	if want := `Unknown tool "mail_sent". Available tools: mail_send, tool_search, and more that tool_search finds. Did you mean "mail_send"?`; x.Result.Text() != want {
		t.Errorf("got %q, want %q", x.Result.Text(), want)
	}
	alone := pawl.Filter(set, func(t *pawl.Tool) bool { return t.Name != "tool_search" })
	m := script.New(script.Say("ok"))
	if _, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{alone}}).Run(t.Context(),
		llm.User("x")); err != nil || len(m.Requests()[0].Tools) != 20 {
		t.Errorf("without the search %d tools are offered, want all 20; %v", len(m.Requests()[0].Tools), err)
	}
}

func namesOf(tools []*pawl.Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}
