package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

func TestToolChoice(t *testing.T) {
	offered := []*pawl.Tool{{Name: "look"}, {Name: "none_such"}}
	for _, test := range []struct {
		flag, file, env string
		tools           []*pawl.Tool
		want            pawl.ToolChoice
		err             string
	}{
		{"", "", "", offered, pawl.ToolChoice{}, ""},
		{"required", "none", "auto", offered, pawl.ToolChoice{Mode: pawl.ToolRequired}, ""},
		{"auto", "none", "required", offered, pawl.ToolChoice{}, ""},
		{"", "none", "required", offered, pawl.ToolChoice{Mode: pawl.ToolNone}, ""},
		{"", "", " required\n", offered, pawl.ToolChoice{Mode: pawl.ToolRequired}, ""},
		{"", "", "look", offered, pawl.Named("look"), ""},
		{"look", "", "", offered, pawl.Named("look"), ""},
		{"lok", "", "", offered, pawl.ToolChoice{}, `--tool-choice: no tool "lok" is offered; offered: look, none_such`},
		{"", "lok", "", offered, pawl.ToolChoice{}, `the file's tool choice: no tool "lok" is offered`},
		{"", "", "lok", offered, pawl.ToolChoice{}, `OPENAI_TOOL_CHOICE: no tool "lok" is offered`},
		{"look", "", "", nil, pawl.ToolChoice{}, "offered: none"},
		{"", "", "look", nil, pawl.ToolChoice{}, ""}, // the environment may speak of tools that are not offered here
	} {
		got, err := toolChoice(test.flag, test.file, test.env, test.tools)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("flag %q, file %q, env %q: got error %v, want %q", test.flag, test.file, test.env, err, test.err)
			}
			continue
		}
		if diff := cmp.Diff(got, test.want); diff != "" || err != nil {
			t.Errorf("flag %q, file %q, env %q: %v, got -, want +\n%s", test.flag, test.file, test.env, err, diff)
		}
	}
}
