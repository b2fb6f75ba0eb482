package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/policy"
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

// TestFlowOfATeam: an agent that acts on what another has read is as strict as the other, in a
// team, in a line of handoffs, and in a team in a team.
func TestFlowOfATeam(t *testing.T) {
	const clerk = "agent: clerk\nmodel: openai:gpt-6.1-terra\n"
	const scout = "agent: scout\nmodel: openai:gpt-6.1-terra\ntools: [http]\n"
	const other = "agent: other\nmodel: openai:gpt-6.1-terra\n"
	const head = "agent: desk\nmodel: openai:gpt-6.1-terra\n"
	const both = "team: {manager: network, workers: [{file: scout.yaml}, {file: clerk.yaml}]}\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string // the modes of all agents
	}{
		"a network":         {map[string]string{"agent.yaml": head + both, "scout.yaml": scout, "clerk.yaml": clerk}, "on on on"},
		"nothing is read":   {map[string]string{"agent.yaml": head + both, "scout.yaml": other, "clerk.yaml": clerk}, "log log log"},
		"one is stricter":   {map[string]string{"agent.yaml": head + both, "scout.yaml": scout, "clerk.yaml": clerk + "flow: ask\n"}, "ask ask ask"},
		"one is off":        {map[string]string{"agent.yaml": head + both, "scout.yaml": scout, "clerk.yaml": clerk + "flow: off\n"}, "on on on"},
		"the lead reads":    {map[string]string{"agent.yaml": head + "tools: [http]\n" + both, "scout.yaml": other, "clerk.yaml": clerk}, "on on on"},
		"a line":            {map[string]string{"agent.yaml": head + "tools: [http]\nhandoffs: [{file: clerk.yaml}]\n", "clerk.yaml": clerk}, "on on"},
		"a team in a team":  {map[string]string{"agent.yaml": head + "team: {manager: network, workers: [{file: inner.yaml}]}\n", "inner.yaml": "agent: inner\nmodel: openai:gpt-6.1-terra\n" + both, "scout.yaml": scout, "clerk.yaml": clerk}, "on on on on"},
		"all have it off":   {map[string]string{"agent.yaml": head + "flow: off\n" + both, "scout.yaml": scout + "flow: off\n", "clerk.yaml": clerk + "flow: off\n"}, "off off off"},
		"the reader has it": {map[string]string{"agent.yaml": head + both, "scout.yaml": scout + "flow: log\n", "clerk.yaml": clerk}, "log log log"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range test.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			getenv := func(name string) string { return map[string]string{"OPENAI_API_KEY": "k"}[name] }
			f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), &agentfile.LoadOptions{Getenv: getenv})
			if err != nil {
				t.Fatal(err)
			}
			a, err := f.Agent("")
			if err != nil {
				t.Fatal(err)
			}

			var modes []string
			note := func(r policy.Rules) pawl.Middleware {
				modes = append(modes, r.Flow.Mode)
				return r.Middleware()
			}
			built, err := a.Build(t.Context(), &agentfile.Options{Getenv: getenv, Approve: note, Inner: note})
			if err != nil {
				t.Fatal(err)
			}
			built.Close()
			if got := strings.Join(modes, " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
