package dialect_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/internal/dialect"
)

func TestRestore(t *testing.T) {
	for _, tt := range []struct {
		name    string
		dialect *dialect.Dialect
		schema  string
		args    string
		want    string // empty means unchanged
	}{
		{"nothing to do", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, ` {"a": null}`, ""},
		{"left out", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`, `{"a":null,"b":1}`, `{"b":1}`},
		{"nothing left out", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":"string"}}}`, ` {"a" : "x"}`, ""},
		{"null that is meant", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"string"}}}`, `{"a":null,"b":null}`, `{"a":null}`},
		{"unknown field", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"z":null,"a":null}`, `{"z":null}`},
		{"inside", dialect.OpenAIStrict, `{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}}}}`,
			`{"l":[{"a":null,"b":"x"},{"a":"y","b":"z"}]}`, `{"l":[{"b":"x"},{"a":"y","b":"z"}]}`},
		{"recursive", dialect.OpenAIStrict, `{"type":"object","properties":{"v":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#"}}}}`,
			`{"v":null,"kids":[{"v":"a","kids":null},{"v":null,"kids":[]}]}`, `{"kids":[{"v":"a"},{"kids":[]}]}`},
		{"the form with these fields", dialect.OpenAIStrict,
			`{"type":"object","properties":{"s":{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"c":{"type":["string","null"]}},"required":["a","c"]},{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"required":["b"]}]}},"required":["s"]}`,
			`{"s":{"b":"x","c":null}}`, `{"s":{"b":"x"}}`},
		{"the other form", dialect.OpenAIStrict,
			`{"type":"object","properties":{"s":{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"c":{"type":["string","null"]}},"required":["a","c"]},{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"required":["b"]}]}},"required":["s"]}`,
			`{"s":{"a":"x","c":null}}`, ""},
		{"the form with this value", dialect.OpenAIStrict,
			`{"type":"object","properties":{"s":{"anyOf":[{"type":"object","properties":{"k":{"const":"x"},"c":{"type":["string","null"]}},"required":["k","c"]},{"type":"object","properties":{"k":{"const":"y"},"c":{"type":"string"}},"required":["k"]}]}},"required":["s"]}`,
			`{"s":{"k":"y","c":null}}`, `{"s":{"k":"y"}}`},
		{"names", dialect.Anthropic, `{"type":"object","properties":{"$top":{"type":"integer"},"in":{"type":"object","properties":{"$top":{}},"additionalProperties":{"properties":{"a b":{}}}}}}`,
			`{"WIRE":3,"in":{"WIRE":4,"x":{"a_b_WIRE2":5},"y":6}}`, `{"$top":3,"in":{"$top":4,"x":{"a b":5},"y":6}}`},
		{"names in all forms", dialect.Anthropic, `{"type":"object","properties":{"f":{"oneOf":[{"properties":{"$top":{}}},{"prefixItems":[{"properties":{"$top":{}}}]}]}}}`,
			`{"f":[{"WIRE":3}]}`, `{"f":[{"$top":3}]}`},
		{"names in the strict form", dialect.AnthropicStrict, `{"type":"object","properties":{"$top":{"type":"integer"}},"required":["$top"]}`, `{"WIRE":3}`, `{"$top":3}`},
		{"no JSON", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":nul`, ""},
		{"no object", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":"string"}}}`, `[null]`, ""},
		{"numbers keep their digits", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number"}}}`,
			`{"a":null,"n":1.10e2}`, `{"n":1.10e2}`},
		{"texts keep their characters", dialect.OpenAIStrict, `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"string"}}}`,
			`{"a":null,"n":"<é\u0001\"\\\n>"}`, `{"n":"<é\u0001\"\\\n>"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := tt.dialect.Compile(json.RawMessage(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			args := replaceAll(tt.args, "a_b_WIRE2", wireName(t, "a b"), "WIRE", wireName(t, "$top"))
			want := tt.want
			if want == "" {
				want = args
			}
			if got := string(c.Restore(json.RawMessage(args))); got != want {
				t.Errorf("%s\n%s\ngot  %s\nwant %s", c.Schema, args, got, want)
			}
		})
	}
}

// wireName returns the name of a field for Anthropic.
func wireName(t *testing.T, name string) string {
	t.Helper()
	c, err := dialect.Anthropic.Compile(fmt.Appendf(nil, `{"properties":{%q:{}}}`, name))
	if err != nil {
		t.Fatal(err)
	}
	for wire := range sub(decode(c.Schema).(node), "properties") {
		return wire
	}
	t.Fatal("no property")
	return ""
}

// TestNamesStayApart uses names that become equal when their characters are replaced.
func TestNamesStayApart(t *testing.T) {
	c, err := dialect.Anthropic.Compile(json.RawMessage(`{"properties":{"a b":{},"a?b":{},"a_b":{},"":{},"` + long("x") + `":{},"` + long("y") + `":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(sub(decode(c.Schema).(node), "properties")); n != 6 {
		t.Errorf("6 names became %d: %s", n, c.Schema)
	}
	if bad := refused("anthropic", c.Schema); bad != nil {
		t.Error(bad)
	}
}
