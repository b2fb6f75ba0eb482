package agentfile_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/sandbox"
)

// Where the sandbox cannot be enforced, a check says which agents cannot start their programs. That
// is no fault of the agent.
func TestCheckSaysThatThereIsNoSandbox(t *testing.T) {
	absent := sandbox.Check(sandbox.Strict) != nil
	for _, c := range []struct {
		tools string
		needs bool
	}{
		{"tools: [shell]", true},
		{"tools: [code]", true},
		{"tools: [{command: {name: now, description: The time., run: [date]}}]", true},
		{"tools: [code]\ncode: embedded", false},
		{"tools: [file]", false},
	} {
		file, err := agentfile.Parse("agent.yaml", []byte("agent: a\nmodel: openai:m\n"+c.tools+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		said := false
		wrong := file.Agents[0].Check(t.Context(), &agentfile.Options{
			Getenv: environment,
			Notice: func(text string) {
				said = said || strings.Contains(text, "on this machine the agent's commands and code are refused")
			},
		})
		if len(wrong) > 0 {
			t.Errorf("%s: %v", c.tools, wrong)
		}
		if want := c.needs && absent; said != want {
			t.Errorf("%s: the notice is there: %t, want %t", c.tools, said, want)
		}
	}
}
