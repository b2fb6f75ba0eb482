package dialect_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/pawl-go/pawl/internal/dialect"
)

// A root that contains itself in two places is sent as deep in the second as in the first.
func TestRootInTwoPlaces(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"n":{"type":"integer"}}}`)
	cut := 0
	for _, d := range dialect.All() {
		c, err := d.Compile(schema)
		if err != nil {
			continue // the dialect has neither recursion nor a depth at which it ends
		}
		var out struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(c.Schema, &out); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Properties["a"], out.Properties["b"]) {
			t.Errorf("%s: a is %s\nb is %s", d.Name, out.Properties["a"], out.Properties["b"])
		}
		if !bytes.Contains(c.Schema, []byte("$ref")) {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no dialect cuts recursion: the test shows nothing")
	}
}

// A schema that nothing fits is an error of every dialect that checks it, and never a panic.
func TestNothingFitsRoot(t *testing.T) {
	failed := 0
	for _, d := range dialect.All() {
		for _, schema := range []string{`{"enum":[]}`, `{"$ref":"#/$defs/a","$defs":{"a":{"enum":[]}}}`} {
			if _, err := d.Compile(json.RawMessage(schema)); err != nil {
				failed++
			}
		}
	}
	if failed == 0 {
		t.Error("no dialect says that nothing fits")
	}
}
