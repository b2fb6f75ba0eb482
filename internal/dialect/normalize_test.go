package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
)

func long(s string) string { return strings.Repeat("n", 80) + s }

func replaceAll(s string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(s) }

func TestNormalize(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		changes        int
	}{
		{"as it is", `{"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", null]}}, "required": ["a"]}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]}},"required":["a"]}`, 0},
		{"python", `{"type":"dict","properties":{"a":{"type":"float"},"b":{"type":"tuple","items":{"type":"int"}},"c":{"type":"list[str]"},"d":{"type":"Optional[int]"},"e":{"type":"dict[str, float]"},"f":{"type":"str | None"}}}`,
			`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"array","items":{"type":"integer"}},"c":{"type":"array","items":{"type":"string"}},"d":{"type":["integer","null"]},` +
				`"e":{"type":"object","additionalProperties":{"type":"number"}},"f":{"type":["string","null"]}}}`, 8},
		{"java", `{"type":"HashMap","properties":{"a":{"type":"ArrayList<Integer>"},"b":{"type":"Boolean"},"c":{"type":"long"},"d":{"type":"int[]"},"e":{"type":"char"}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"b":{"type":"boolean"},"c":{"type":"integer"},"d":{"type":"array","items":{"type":"integer"}},"e":{"type":"string"}}}`, 6},
		{"any", `{"type":"object","properties":{"a":{"type":"any","description":"D"},"b":{"type":"Quaternion"}}}`, `{"type":"object","properties":{"a":{"description":"D"},"b":{}}}`, 2},
		{"protocol buffers", `{"type":6,"properties":{"a":{"type":1},"b":{"type":"TYPE_UNSPECIFIED"},"c":{"type":99}}}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{},"c":{}}}`, 4},
		{"nullable", `{"type":"STRING","nullable":true,"enum":["a"]}`, `{"type":["string","null"],"enum":["a",null]}`, 2},
		{"nullable anyOf", `{"anyOf":[{"type":"string"}],"nullable":true}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`, 1},
		{"not nullable", `{"type":"string","nullable":false}`, `{"type":"string"}`, 1},
		{"nothing in lists", `{"type":"object","properties":[],"required":null,"enum":[],"description":null}`, `{"type":"object","properties":{}}`, 4},
		{"required at the property", `{"type":"object","properties":{"a":{"type":"string","required":true},"b":{"required":false}}}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"]}`, 2},
		{"a field that is called type", `{"type":"object","properties":{"type":{"type":"string"},"required":{"type":"boolean"},"properties":{"type":"object","properties":{}}}}`,
			`{"type":"object","properties":{"type":{"type":"string"},"required":{"type":"boolean"},"properties":{"type":"object","properties":{}}}}`, 0},
		{"a word for a schema", `{"type":"object","properties":{"a":"string","b":7}}`, `{"type":"object","properties":{"a":{"type":"string"},"b":true}}`, 2},
		{"digits for an integer", `{"type":"integer","enum":["1","2"]}`, `{"type":"integer","enum":[1,2]}`, 1},
		{"words for an integer", `{"type":"integer","enum":["1","two"]}`, `{"type":"integer","enum":["1","two"]}`, 0},
		{"numbers for a text", `{"type":"string","enum":[1,2.5]}`, `{"type":"string","enum":["1","2.5"]}`, 1},
		{"texts for an array", `{"type":"array","items":{"type":"string"},"enum":["a","b"]}`, `{"type":"array","items":{"type":"string","enum":["a","b"]}}`, 1},
		{"an object or nothing", `{"type":["object","null"],"properties":{"a":{"type":["object","null"]}}}`,
			`{"type":"object","properties":{"a":{"type":["object","null"]}}}`, 1},
		{"no type at all", `{"type":"object","properties":{"a":{"type":[]}}}`, `{"type":"object","properties":{"a":{}}}`, 1},
		{"a place for an id", `{"$id":"https://x.test/a","properties":{"a":{"$id":"#/properties/a","type":"string"}}}`,
			`{"$id":"https://x.test/a","properties":{"a":{"type":"string"}}}`, 1},
		{"one text that fits", `{"type":"string","enum":["a",1]}`, `{"type":"string","enum":["a",1]}`, 0},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/A","minLength":9},"b":{"items":[{"type":"string"}],"additionalItems":false}},"definitions":{"A":{}},"dependencies":{"a":["b"],"b":{"required":["c"]}}}`,
			`{"properties":{"a":{"$ref":"#/definitions/A"},"b":{"prefixItems":[{"type":"string"}],"items":false}},"definitions":{"A":{}},"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"required":["c"]}}}`, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, changes, err := dialect.Normalize(json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("%s\ngot  %s\nwant %s", tt.in, got, tt.want)
			}
			if len(changes) != tt.changes {
				t.Errorf("got %d changes, want %d: %v", len(changes), tt.changes, changes)
			}
			again, more, err := dialect.Normalize(got)
			if err != nil || string(again) != string(got) || len(more) != 0 {
				t.Errorf("a second time: %s, %v, %v", again, more, err)
			}
		})
	}
	for _, bad := range []string{``, `[`, `[]`, `"x"`, strings.Repeat(`{"items":`, 300) + `{}` + strings.Repeat(`}`, 300)} {
		if got, _, err := dialect.Normalize(json.RawMessage(bad)); err == nil {
			t.Errorf("Normalize(%.40s) = %s, want an error", bad, got)
		}
	}
}

// TestCorpusNonstandard reads tool descriptions that are not JSON Schema. After Normalize the core
// accepts each, and each dialect expresses it or returns an error with the reason.
func TestCorpusNonstandard(t *testing.T) {
	soak.Sequential(t)
	docs := corpora.Lines[struct {
		Name       string
		Parameters json.RawMessage
	}](t, "tool-schemas/bfcl-raw-nonstandard.dev.jsonl.gz")
	before, changes, said := 0, 0, map[string]int{}
	var sum tally
	for i, doc := range docs {
		if _, err := validator(doc.Parameters); err == nil {
			before++
		}
		schema, ch, err := dialect.Normalize(doc.Parameters)
		if err != nil {
			t.Errorf("%s: %v", doc.Name, err)
			continue
		}
		changes += len(ch)
		if _, err := validator(schema); err != nil {
			t.Errorf("%s: %s is still no JSON Schema: %v", doc.Name, schema, err)
		}
		if strings.Contains(strings.Join(texts(ch), "\n"), "not known") {
			t.Errorf("%s: %v", doc.Name, ch)
		}
		for _, d := range dialect.All() {
			c, err := d.Compile(schema)
			if err != nil {
				t.Logf("%s: %v", doc.Name, err)
				continue
			}
			said[d.Name]++
			if bad := refused(d.Name, c.Schema); bad != nil {
				t.Errorf("%s: %s: refused for %q", doc.Name, d.Name, bad)
			}
			if raw, err := d.Compile(doc.Parameters); err != nil || string(raw.Schema) != string(c.Schema) &&
				len(ch) == 0 {
				t.Errorf("%s: %s: the document itself: %v", doc.Name, d.Name, err)
			}
			compare(t, d, schema, c, 5, uint64(i), &sum)
		}
	}
	t.Logf("%d documents, %d of them JSON Schema as they are; %d changes; said: %v", len(docs), before, changes, said)
	t.Logf("meaning: %d schemas, %d values, %d fit one side, %d only what is sent, %d only the original", sum.schemas, sum.values, sum.fit, sum.looser, sum.stricter)
}

func texts(ch []dialect.Change) (out []string) {
	for _, c := range ch {
		out = append(out, c.String())
	}
	return out
}
