package protect_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/internal/protect"
)

// A file .git names a repository only by a gitdir line.
func TestAFileWithoutGitdirNamesNoRepository(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		before string
		want   bool
	}{{"gitdir: ", true}, {"", false}} {
		target := filepath.Join(dir, "elsewhere")
		if err := os.WriteFile(filepath.Join(dir, ".git"), []byte(test.before+target+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		places, err := protect.New(dir, nil, protect.Own{})
		if err != nil {
			t.Fatal(err)
		}
		if got := places.Find("elsewhere/config"); (got != "") != test.want {
			t.Errorf("%q: elsewhere/config is protected by %q, want it protected: %v", test.before, got, test.want)
		}
	}
}
