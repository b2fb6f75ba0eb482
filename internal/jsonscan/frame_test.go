package jsonscan_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

func TestFrame(t *testing.T) {
	const first = `{"a":1,"text":"one","b":[2]}`
	var f jsonscan.Frame
	if _, ok := f.Find([]byte(first)); ok {
		t.Error("no frame was set, and one was found")
	}
	from := strings.Index(first, `"one"`)
	f.Set([]byte(first), from, from+len(`"one"`))
	for doc, want := range map[string]string{
		first:                                    "one",
		`{"a":1,"text":"t\"wo,\"b\":","b":[2]}`:  `t"wo,"b":`,
		`{"a":1,"text":{"x":"}"},"b":[2]}`:       "",
		`{"a":1,"text":"one","b":[3]}`:           "-",
		`{"a":1,"text":"one","b":[2]} `:          "-",
		`{"a":1,"text":"one","c":0,"b":[2]}`:     "-",
		`{"a":2,"text":"one","b":[2]}`:           "-",
		`{"a":1,"text":"one`:                     "-",
		`{"a":1,"text":`:                         "-",
		`{"a":1,"text":"one","b":[2]`:            "-",
		`{"a":1,"text":"one" "two","b":[2]}`:     "-",
		`{"a":1,"text":tru,"b":[2]}`:             "-",
		`{"a":1,"text":"one\",\"b\":[2]}`:        "-",
		`{"a":1,"text":"","b":[2]}`:              "",
		`{"a":1,"text":["one","b":[2],{}],"b":1`: "-",
	} {
		c, ok := f.Find([]byte(doc))
		got := "-"
		if ok {
			got = c.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}
