package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
)

// The agent's choice comes first, then the environment's, then auto.
func TestToolChoice(t *testing.T) {
	offered := []pawl.Toolset{&pawl.Tool{Name: "look", Passive: true}, &pawl.Tool{Name: "none_such", Passive: true}}
	for _, test := range []struct {
		said  config.Choice
		env   string
		tools []pawl.Toolset
		want  pawl.ToolChoice
		err   string
	}{
		{nil, "", offered, pawl.ToolChoice{}, ""},
		{config.Choice{"required"}, "auto", offered, pawl.ToolChoice{Mode: pawl.ToolRequired}, ""},
		{config.Choice{"auto"}, "required", offered, pawl.ToolChoice{}, ""},
		{config.Choice{"none"}, "required", offered, pawl.ToolChoice{Mode: pawl.ToolNone}, ""},
		{nil, " required\n", offered, pawl.ToolChoice{Mode: pawl.ToolRequired}, ""},
		{nil, "look", offered, pawl.Named("look"), ""},
		{nil, `{"type":"function","function":{"name":"look"}}`, offered, pawl.Named("look"), ""},
		{config.Choice{"look"}, "", offered, pawl.Named("look"), ""},
		{config.Choice{"look", "none_such"}, "", offered, pawl.Named("look", "none_such"), ""},
		{config.Choice{"lok"}, "", offered, pawl.ToolChoice{}, `tool_choice: no tool "lok" is offered; offered: look, none_such`},
		{nil, "lok", offered, pawl.ToolChoice{}, `OPENAI_TOOL_CHOICE: no tool "lok" is offered`},
		{config.Choice{"look"}, "", nil, pawl.ToolChoice{}, "offered: none"},
		// the environment may name tools that are not offered here
		{nil, "look", nil, pawl.ToolChoice{}, ""},
	} {
		a := &config.Agent{Model: config.Models{{Name: "openai:gpt-5-mini"}}, Choice: test.said}
		env := func(name string) string { return map[string]string{"OPENAI_TOOL_CHOICE": test.env}[name] }
		built, err := a.Build(t.Context(), &config.Options{Getenv: env, Tools: test.tools})
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
