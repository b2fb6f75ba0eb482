package assemble

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// The n-th call gets the n-th result, in the order in which the model made the calls. Retries of a
// call change nothing.
func TestRehearsalOrder(t *testing.T) {
	for range 50 {
		checkRehearsal(t)
	}
}

// checkRehearsal makes forty calls of two tools in two steps.
func checkRehearsal(t *testing.T) {
	t.Helper()
	var set pawl.Toolsets
	for _, name := range []string{"a", "b"} {
		d := toolDef{Name: name}
		for i := range 20 {
			d.Results = append(d.Results, json.RawMessage(fmt.Sprintf(`"%s%d"`, name, i)))
		}
		set = append(set, rehearsed(d))
	}
	var reply []script.Turn
	var want []string
	for i := range 10 {
		reply = append(reply, script.Call("a", nil), script.Call("b", nil))
		want = append(want, fmt.Sprint("a", i), fmt.Sprint("b", i))
	}
	for i := range 10 {
		want = append(want, fmt.Sprint("a", i+10), fmt.Sprint("b", i+10))
	}
	agent := &pawl.Agent{Model: script.New(script.Together(reply...), script.Together(reply...), script.Say("done")),
		Tools: []pawl.Toolset{set}}
	res, err := agent.Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range res.Messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				got = append(got, r.Text())
			}
		}
	}
	if diff := cmp.Diff(strings.Join(got, " "), strings.Join(want, " ")); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
}
