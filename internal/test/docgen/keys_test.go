package docgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keysHead begins the file of keys.
const keysHead = `# Made from the comments of the fields; make docs writes it again.
# The meaning of each key, for docs/yaml.md and docs/agent.schema.json: KEY, a tab and its meaning, below the type that has the key.
`

// TestAgentFileKeys keeps the meanings of an agent file's keys equal to the comments of their
// fields.
func TestAgentFileKeys(t *testing.T) {
	want, err := Keys(
		KeyTypes{
			Dir: filepath.Join(root, "internal/agentfile"),
			Tag: "yaml",
			Types: []string{
				"Agent", "Model", "PromptCache", "Tool", "React", "Limits", "SandboxLimits", "Approve", "Settings",
				"History", "Window", "Memory", "Store", "Embed", "Rate", "Breaker", "Cache", "Guard",
				"Team", "Worker", "Rule", "Schedule", "ScheduledCall",
			},
		},
		KeyTypes{
			Dir:    filepath.Join(root, "mcp"),
			Prefix: "mcp.",
			Tag:    "yaml",
			Types:  []string{"Prompt", "Argument", "Server", "OAuth", "Identity"},
		},
		KeyTypes{
			Dir:    filepath.Join(root, "internal/notify"),
			Prefix: "notify.",
			Tag:    "yaml",
			Types:  []string{"Setting", "Webhook", "Slack", "Email"},
		},
		KeyTypes{
			Dir:    filepath.Join(root, "internal/agentfile/agentframework"),
			Prefix: "agentframework.",
			Tag:    "yaml",
			Types: []string{
				"Document", "memory", "policies", "metadata", "resources", "resource", "spec", "typed", "worker",
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	current(t, "internal/agentfile/keys.txt", keysHead+want)
}

func TestKeys(t *testing.T) {
	const source = `package p

type A struct {
	// The name of it,
	// in two lines.
	Name string ` + "`yaml:\"name,omitempty\"`" + `

	Silent int ` + "`yaml:\"silent\"`" + `

	// Without a key.
	None int ` + "`yaml:\"-\"`" + `
}

type B struct{ C int }
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		types []string
		want  string
		fault string
	}{
		{types: []string{"A"}, want: "\n[p.A]\nname\tThe name of it, in two lines.\n"},
		{types: []string{"B"}, fault: "no field of p.B has a key"},
		{types: []string{"C"}, fault: "has no struct C"},
	} {
		got, err := Keys(KeyTypes{Dir: dir, Prefix: "p.", Tag: "yaml", Types: tt.types})
		switch {
		case tt.fault == "" && (err != nil || got != tt.want):
			t.Errorf("%q: got %q, %v, want %q", tt.types, got, err, tt.want)
		case tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
			t.Errorf("%q: got %v, want an error with %q", tt.types, err, tt.fault)
		}
	}
}
