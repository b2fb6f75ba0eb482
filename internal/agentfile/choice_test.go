package agentfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
)

// The agent's choice comes first, then the environment's, then auto.
func TestToolChoice(t *testing.T) {
	offered := []pawl.Toolset{&pawl.Tool{Name: "look", Passive: true}, &pawl.Tool{Name: "none_such", Passive: true}}
	for _, test := range []struct {
		said  agentfile.Choice
		env   string
		tools []pawl.Toolset
		want  llm.ToolChoice
		err   string
	}{
		{nil, "", offered, llm.ToolChoice{}, ""},
		{agentfile.Choice{"required"}, "auto", offered, llm.ToolChoice{Mode: llm.ToolRequired}, ""},
		{agentfile.Choice{"auto"}, "required", offered, llm.ToolChoice{}, ""},
		{agentfile.Choice{"none"}, "required", offered, llm.ToolChoice{Mode: llm.ToolNone}, ""},
		{nil, " required\n", offered, llm.ToolChoice{Mode: llm.ToolRequired}, ""},
		{nil, "look", offered, llm.Named("look"), ""},
		{nil, `{"type":"function","function":{"name":"look"}}`, offered, llm.Named("look"), ""},
		{agentfile.Choice{"look"}, "", offered, llm.Named("look"), ""},
		{agentfile.Choice{"look", "none_such"}, "", offered, llm.Named("look", "none_such"), ""},
		{agentfile.Choice{"lok"}, "", offered, llm.ToolChoice{}, `tool_choice: no tool "lok" is offered; offered: look, none_such`},
		{nil, "lok", offered, llm.ToolChoice{}, `OPENAI_TOOL_CHOICE: no tool "lok" is offered`},
		{agentfile.Choice{"look"}, "", nil, llm.ToolChoice{}, "offered: none"},
		// the environment may name tools that are not offered here
		{nil, "look", nil, llm.ToolChoice{}, ""},
	} {
		a := &agentfile.Agent{Model: agentfile.Models{{Name: "openai:gpt-6.1-terra"}}, Choice: test.said}
		env := func(name string) string { return map[string]string{"OPENAI_TOOL_CHOICE": test.env}[name] }
		built, err := a.Build(t.Context(), &agentfile.Options{Getenv: env, Tools: test.tools})
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("said %q, env %q: got error %v, want %q", test.said, test.env, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("said %q, env %q: %v", test.said, test.env, err)
			continue
		}
		if diff := cmp.Diff(built.Agent.Choice, test.want); diff != "" {
			t.Errorf("said %q, env %q: got -, want +\n%s", test.said, test.env, diff)
		}
	}
}
