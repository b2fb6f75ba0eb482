package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
)

// A file of rules is read by the rules of agents' files: each fault has a place and a hint.
func TestReadRules(t *testing.T) {
	for _, row := range []struct {
		text string
		want []string // parts of the error; nil means that there is none
	}{
		{"allow: [\"refund(amount <= 100)\"]\nwithin: 10m\n", nil},
		{"else: ask\n", nil},
		{"", []string{"r.yaml:1:1: the file is empty"}},
		{"within: 10m\n", []string{"the file has no rule", "deny, ask, allow"}},
		{"deny: [pay]\nforbid: [mail]\n", []string{`r.yaml:2:1: there is no key "forbid"`, "deny, ask, allow, else, within"}},
		{"denny: [pay]\nelse: maybe\n", []string{"r.yaml:1:1", "did you mean deny?", `r.yaml:2:7: "maybe"`, "allow, ask"}},
		{"deny: {a: b}\n", []string{"r.yaml:1:7: want a list"}},
	} {
		name := filepath.Join(t.TempDir(), "r.yaml")
		if err := os.WriteFile(name, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		rules, err := agentfile.ReadRules(name)
		if row.want == nil {
			if err != nil || rules == nil {
				t.Errorf("%q: %v", row.text, err)
			}
			continue
		}
		for _, want := range row.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %q", row.text, err, want)
			}
		}
	}

	if _, err := agentfile.ReadRules("none.yaml"); len(agentfile.FindingsOf(err)) != 1 {
		t.Errorf("a file that does not exist: %v", err)
	}
}
