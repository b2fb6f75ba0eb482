package agentfile_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/mcp"
)

// Tools that fetch the words of strangers turn the key flow on; what the agent says comes first.
func TestFlowModes(t *testing.T) {
	for _, test := range []struct {
		agent agentfile.Agent
		want  string
	}{
		{agentfile.Agent{}, "log"}, {agentfile.Agent{Tools: []agentfile.Tool{{Set: "file"}}}, "log"},
		{agentfile.Agent{Tools: []agentfile.Tool{{Set: "http"}}}, "on"}, {agentfile.Agent{Tools: []agentfile.Tool{{Set: "search"}}}, "on"},
		{agentfile.Agent{Servers: map[string]mcp.Server{"mail": {}}}, "on"},
		{agentfile.Agent{Flow: "off", Tools: []agentfile.Tool{{Set: "http"}}}, "off"}, {agentfile.Agent{Flow: "ask"}, "ask"},
	} {
		test.agent.Instructions = "Copy the boss."
		f := test.agent.Rules().Flow
		if f.Mode != test.want || f.Words != "Copy the boss." {
			t.Errorf("%+v: got mode %q and words %q, want mode %q", test.agent, f.Mode, f.Words, test.want)
		}
	}
}

func TestFlowLabels(t *testing.T) {
	look := &pawl.Tool{Name: "look", Passive: true}
	for _, test := range []struct {
		labels map[string]string
		err    string
	}{
		{map[string]string{"look": "trusted private"}, ""}, {map[string]string{"l*": "out"}, ""},
		{map[string]string{"lok": "out"}, `no tool is named "lok"`}, {map[string]string{"look": "safe"}, `"safe" has a word that is no label`},
	} {
		a := &agentfile.Agent{Model: agentfile.Models{{Name: "openai:gpt-6.1-terra"}}, FlowLabels: test.labels}
		o := &agentfile.Options{Getenv: func(string) string { return "" }, Tools: []pawl.Toolset{look}}
		_, err := a.Build(t.Context(), o)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%v: got %v, want %q", test.labels, err, test.err)
		}
	}
}
