package dialect_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/schema"
)

// A schema with an expression that RE2 does not have becomes a schema that accepts the same and
// more, and names the expression to the model.
func TestUnchecked(t *testing.T) {
	const ahead = `^(?!-)x$`
	quoted, _ := json.Marshal(ahead)
	check := func(p string) error { _, err := regexp.Compile(p); return err }
	tests := []struct {
		name, schema, fits string
		refuses            string // what is still refused; empty means nothing
	}{
		{"a pattern", `{"type":"object","properties":{"a":{"type":"string","pattern":@}}}`, `{"a":"x"}`, `{"a":1}`},
		{"a count above 1000", `{"type":"object","properties":{"a":{"type":"string","pattern":"^\\S{1,2048}$"}}}`, `{"a":"x"}`, `{"a":1}`},
		{"in a list", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","pattern":@}}}}`, `{"a":["x"]}`, `{"a":[1]}`},
		{"in not", `{"type":"object","properties":{"a":{"type":"string","not":{"pattern":@}}}}`, `{"a":"y"}`, `{"a":1}`},
		{"in oneOf", `{"type":"object","properties":{"a":{"oneOf":[{"type":"string","pattern":@},{"type":"string","maxLength":9}]}}}`, `{"a":"y"}`, `{"a":1}`},
		{"in if", `{"type":"object","properties":{"a":{"if":{"pattern":@},"then":{"const":"x"}}}}`, `{"a":"y"}`, ``},
		{"behind a reference in not", `{"type":"object","$defs":{"p":{"pattern":@}},"properties":{"a":{"not":{"$ref":"#/$defs/p"}}}}`, `{"a":"y"}`, ``},
		{"of names", `{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{@:{"type":"integer"}},"additionalProperties":false}`, `{"x":1}`, `{"a":1}`},
		{"of all names", `{"type":"object","propertyNames":{"pattern":@}}`, `{"x":1}`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := json.RawMessage(strings.ReplaceAll(test.schema, "@", string(quoted)))
			if _, err := schema.Compile(in); err == nil {
				t.Fatal("the original compiles")
			}
			out, changes, err := dialect.Unchecked(in, check)
			if err != nil || len(changes) == 0 {
				t.Fatalf("got %v, %v", changes, err)
			}
			s, err := schema.Compile(out)
			if err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if _, _, why := s.Arguments(t.Context(), "t", json.RawMessage(test.fits), false); why != "" {
				t.Errorf("%s does not fit: %s", test.fits, why)
			}
			if test.refuses == "" {
				return
			}
			if _, _, why := s.Arguments(t.Context(), "t", json.RawMessage(test.refuses), false); why == "" {
				t.Errorf("%s fits", test.refuses)
			}
		})
	}

	plain := json.RawMessage(`{"type":"object","properties":{"a":{"pattern":"^x$","not":{"const":"y"}}}}`)
	out, changes, err := dialect.Unchecked(plain, check)
	if string(out) != string(plain) || changes != nil || err != nil {
		t.Errorf("a schema without such an expression: got %s, %v, %v", out, changes, err)
	}
}
