package docgen

import (
	"strings"
	"testing"
)

// TestEndingsPage keeps docs/finish-reasons.md equal to the tables in the adapters.
func TestEndingsPage(t *testing.T) {
	want, err := Endings(read)
	if err != nil {
		t.Fatal(err)
	}
	current(t, "docs/finish-reasons.md", want)
}

// TestEndings shows that the page follows the source: each of these changes changes the page, or is
// refused.
func TestEndings(t *testing.T) {
	was, err := Endings(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, file, old, new, err string }{
		{"another meaning", "provider/gemini/response.go", `"OTHER":                     wire.Cut`, `"OTHER": wire.Answered`, ""},
		{"another word", "provider/anthropic/response.go", `"pause_turn"`, `"pause_again"`, ""},
		{"another comment", "provider/internal/wire/chatwords.go", "// Together", "// Others", ""},
		{"another table", "provider/openai/response.go", "var statuses = ", "var status = ", "has no table statuses"},
		{"an unknown meaning", "provider/openai/response.go", `"steered":           wire.Cut`, `"steered": wire.Torn`, "unknown meaning torn"},
		{"a meaning without a comment", "provider/internal/wire/ending.go", "// cut for another reason", "", "cut has no comment"},
		{"no Go", "provider/gemini/response.go", "package gemini", "package", "expected"},
	} {
		changed := func(path string) (string, error) {
			src, err := read(path)
			if path == tt.file && !strings.Contains(src, tt.old) {
				t.Fatalf("%s: %s has no %q: change this test with it", tt.name, path, tt.old)
			}
			if path == tt.file {
				src = strings.Replace(src, tt.old, tt.new, 1)
			}
			return src, err
		}
		got, err := Endings(changed)
		switch {
		case tt.err == "" && (err != nil || got == was):
			t.Errorf("%s: %v, and the page is the same: %v", tt.name, err, got == was)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.err)
		}
	}
}
