package dialect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawl-go/pawl/internal/dialect"
)

// FuzzCompile compiles any text: it gives an *Error, or a schema that the provider accepts and that
// is deterministic.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"allOf":[{"$ref":"#/$defs/A"},{"type":["array","null"],"items":[{"enum":[1,"",null]}]}]}}}`,
		`{"oneOf":[{"properties":{"$a":{"const":[1]}},"required":["$a","b"]},true,{"$ref":"#"}],"dependencies":{"a":["b"],"c":{"not":{}}}}`,
		`{"type":"dict","properties":{"a":"list<map<str,int?>>","b":{"type":3,"nullable":true,"exclusiveMinimum":true,"minimum":1.5}},"required":true}`,
		`{"anyOf":[{"anyOf":[{"type":"null"},{"enum":[{},[]]}]}],"patternProperties":{"^x":false},"unevaluatedProperties":{"type":"string"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		before := bytes.Clone(schema)
		for _, d := range dialect.All() {
			c, err := d.Compile(schema)
			if err != nil {
				if e := (*dialect.Error)(nil); !errors.As(err, &e) {
					t.Fatalf("%v is no *dialect.Error", err)
				}
				continue
			}
			if len(schema) > 0 && !json.Valid(schema) || !json.Valid(c.Schema) {
				t.Fatalf("%s became %s", schema, c.Schema)
			}
			if bad := refused(d.Name, c.Schema); bad != nil {
				t.Errorf("%s: %s\nis refused for %q\n%s", d.Name, schema, bad, c.Schema)
			}
			if again, err := d.Compile(schema); err != nil || !bytes.Equal(again.Schema, c.Schema) {
				t.Errorf("%s: %s\nis not the same twice", d.Name, schema)
			}
			c.Restore(schema)
		}
		if n, _, err := dialect.Normalize(schema); err == nil {
			if again, _, err := dialect.Normalize(n); err != nil || !bytes.Equal(again, n) {
				t.Errorf("%s\nis normalized to %s\nand again to %s", schema, n, again)
			}
		}
		if tools, err := dialect.ReadTools(schema); err == nil && len(tools) < 20 {
			dialect.Lint(tools)
		}
		if !bytes.Equal(before, schema) {
			t.Error("the original was changed")
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	schema := []byte(`{"type":"object","properties":{"path":{"type":"string","description":"Path of the file."},"mode":{"enum":["r","w"]},"lines":{"type":"array","items":{"type":"integer","minimum":1}},` +
		`"at":{"$ref":"#/$defs/At"}},"required":["path"],"additionalProperties":false,"$defs":{"At":{"type":"object","properties":{"line":{"type":"integer"},"column":{"type":"integer"}},"required":["line"]}}}`)
	for _, d := range dialect.All() {
		b.Run(d.Name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Compile(schema); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
