package cli

import (
	"encoding/json"
	"testing"
)

// An answer on a pipe controls no terminal that shows it later, and JSON keeps its value.
func TestHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\nä":             "plain\ttext\nä",
		"a\x1b[8mb\u202ec\u009b":     `a\x1b[8mb\u202ec\x9b`,
		"{\"a\":\"\u202e\u009b\"}":   `{"a":"\u202e\u009b"}`,
		"{\r\n\"a\":\"\U000e0041\"}": "{\n\"a\":\"\\udb40\\udc41\"}",
		`"\\x41"`:                    `"\\x41"`,
	} {
		got := Harmless(in)
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		var a, b any
		if json.Unmarshal([]byte(in), &a) != nil {
			continue
		}
		if err := json.Unmarshal([]byte(got), &b); err != nil || mustJSON(a) != mustJSON(b) {
			t.Errorf("%q: the value differs: %q", in, got)
		}
	}
	if got := WholeLine("a\n" + string(make([]byte, 3))); got != `a↵\x00\x00\x00` {
		t.Errorf("got %q", got)
	}
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
