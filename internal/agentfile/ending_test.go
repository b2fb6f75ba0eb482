package agentfile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/provider/catalog"
)

const endingFile = `agent: a
model:
  - openai:old
  - {name: "openai-chat:old", base_url: "https://gateway.example/v1", key_env: K}
  - openai:new
side: {model: anthropic:old}
guards: [{model: openai:old, rules: Be kind.}, {model: gemini:old, rules: Be kind.}]
team: {manager: network, workers: [b]}
---
agent: b
model: openai:old
`

// Each model of an agent that ends is a warning with its place, and a build reports it once. A
// model at an address of the file's own is not checked.
func TestEndings(t *testing.T) {
	known, err := catalog.Parse([]byte(`[{"provider":"openai","id":"old","ends":"2026-12-11","successor":"new"},
		{"provider":"anthropic","id":"old","ends":"2026-11-20"},{"provider":"gemini","id":"old","ends":"2027-06-01"},{"provider":"openai","id":"new"}]`))
	if err != nil {
		t.Fatal(err)
	}
	f, err := agentfile.Parse("agent.yaml", []byte(endingFile), &agentfile.LoadOptions{Getenv: environment})
	if err != nil {
		t.Fatal(err)
	}
	var notices []string
	o := &agentfile.Options{
		Getenv:  func(name string) string { return map[string]string{"K": "key"}[name] },
		Catalog: known,
		Now:     func() time.Time { return time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC) },
		Notice:  func(text string) { notices = append(notices, text) },
	}

	a := f.Agents[0]
	var got []string
	for _, one := range a.Endings(o) {
		got = append(got, one.Error())
		if !one.Warning() {
			t.Errorf("%s is no warning", one)
		}
	}
	if diff := cmp.Diff(got, []string{
		"agent.yaml:3:5: warning: openai:old ends on 2026-12-11, in 12 days (its provider recommends openai:new)",
		"agent.yaml:6:15: warning: anthropic:old ended on 2026-11-20: its provider does not serve it any more (pawl models list --provider anthropic has others)",
	}); diff != "" {
		t.Errorf("warnings (-got +want):\n%s", diff)
	}

	built, err := a.Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	built.Close()
	notices = slices.DeleteFunc(notices, func(s string) bool { return !strings.Contains(s, " end") })
	if diff := cmp.Diff(notices, []string{
		"openai:old ends on 2026-12-11, in 12 days; its provider recommends openai:new",
		"anthropic:old ended on 2026-11-20: its provider does not serve it any more; pawl models list --provider anthropic has others",
	}); diff != "" {
		t.Errorf("notices (-got +want):\n%s", diff)
	}

	o.Now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	if early := a.Endings(o); early != nil {
		t.Errorf("months before the ends: %v", early)
	}
}
