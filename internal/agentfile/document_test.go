package agentfile_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
)

// TestReadDocument reads files of another kind, and reports all that is wrong in them.
func TestReadDocument(t *testing.T) {
	for _, row := range []struct {
		name string
		text string
		want []string // parts of the error; nil means that there is none
	}{
		{"right", "name: a\n", nil},
		{"an empty document behind it", "name: a\n---\n# nothing\n", nil},
		{"empty", "# nothing\n", []string{"d.yaml:1:1: the file is empty"}},
		{"no YAML", "name: [\n", []string{"d.yaml:"}},
		{"two documents", "nam: a\n---\nname: b\n", []string{"1:1: the key name is missing", "did you mean name?",
			"d.yaml:3:1: the file has a second document"}},
	} {
		var into struct {
			Name string `yaml:"name" required:"true"`
		}
		err := agentfile.ReadDocument("d.yaml", []byte(row.text), &into, nil).Err()
		if row.want == nil {
			if err != nil || into.Name != "a" {
				t.Errorf("%s: got %q, %v", row.name, into.Name, err)
			}
			continue
		}
		for _, want := range row.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", row.name, err, want)
			}
		}
	}
}
