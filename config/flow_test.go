package config_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/mcp"
)

// Tools that fetch the words of strangers turn the key flow on; what the agent says comes first.
func TestFlowModes(t *testing.T) {
	for _, test := range []struct {
		agent config.Agent
		want  string
	}{
		{config.Agent{}, "log"}, {config.Agent{Tools: []config.Tool{{Set: "file"}}}, "log"},
		{config.Agent{Tools: []config.Tool{{Set: "http"}}}, "on"}, {config.Agent{Tools: []config.Tool{{Set: "search"}}}, "on"},
		{config.Agent{Servers: map[string]mcp.Server{"mail": {}}}, "on"},
		{config.Agent{Flow: "off", Tools: []config.Tool{{Set: "http"}}}, "off"}, {config.Agent{Flow: "ask"}, "ask"},
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
		a := &config.Agent{Model: config.Models{{Name: "openai:gpt-5-mini"}}, FlowLabels: test.labels}
		o := &config.Options{Getenv: func(string) string { return "" }, Tools: []pawl.Toolset{look}}
		_, err := a.Build(t.Context(), o)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%v: got %v, want %q", test.labels, err, test.err)
		}
	}
}
