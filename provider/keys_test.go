package provider_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/provider"
)

// Every variable with a key that an adapter names in its source is on the list.
func TestKeyVariables(t *testing.T) {
	names := provider.KeyVariables()
	found := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "keys.go" {
			return err
		}
		src, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`"([A-Z_]+_(?:API_KEY|API_TOKEN))"`).FindAllStringSubmatch(string(src), -1) {
			if found++; !slices.Contains(names, m[1]) {
				t.Errorf("%s: %s is not on the list %q", path, m[1], names)
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("%d variables found: %v", found, err)
	}
	for _, c := range [][]string{{"openai-chat", "OPENAI_API_KEY"}, {"gemini", "GEMINI_API_KEY", "GOOGLE_API_KEY"}, {"groq", "GROQ_API_KEY"}, {"nobody"}} {
		if got := provider.KeyVariables(c[0]); !slices.Equal(got, c[1:]) {
			t.Errorf("%s: got %q, want %q", c[0], got, c[1:])
		}
	}
	for _, p := range provider.Names() {
		if len(provider.KeyVariables(p)) == 0 {
			t.Errorf("%s has no variable", p)
		}
	}
}
