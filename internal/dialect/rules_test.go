package dialect_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/dialect"
)

// Each case shows one rule: the schema of a field f, its output, and the losses, as "kind path
// keyword" with paths below the field. A case that starts with "root " is the schema of the
// arguments themselves. An empty want means unchanged.
type ruleCase struct {
	name, schema, want string
	losses             []string
	err                string // part of the error; the other fields are then not used
}

func runRules(t *testing.T, d *dialect.Dialect, wrap func(field string) string, cases []ruleCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			schema, root := strings.CutPrefix(tt.schema, "root ")
			want := strings.TrimPrefix(tt.want, "root ")
			if !root {
				schema = `{"type":"object","properties":{"f":` + schema + `},"required":["f"],"additionalProperties":false}`
				if want == "" {
					want = strings.TrimPrefix(tt.schema, "root ")
				}
				if !strings.HasPrefix(tt.want, "root ") {
					want = wrap(want)
				}
			}
			c, err := d.Compile(json.RawMessage(schema))
			if tt.err != "" {
				if e := (*dialect.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want *dialect.Error with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(c.Schema); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", schema, got, want)
			}
			var losses []string
			for _, l := range c.Losses {
				if l.Means == "" || l.Kind != dialect.Note && l.Source == "" {
					t.Errorf("%v does not say what it means or where it is from", l)
				}
				path := strings.TrimPrefix(l.Path, "/properties/f")
				if !root && l.Path == "" {
					continue // of the enclosing object
				}
				losses = append(losses, strings.Join(strings.Fields(string(l.Kind)+" "+path+" "+l.Keyword), " "))
			}
			if diff := cmp.Diff(tt.losses, losses); diff != "" {
				t.Errorf("losses of %s (-want +got)\n%s", schema, diff)
			}
			if bad := refused(d.Name, c.Schema); bad != nil {
				t.Errorf("%s is refused: %q", c.Schema, bad)
			}
		})
	}
}

func TestOpenAI(t *testing.T) {
	wrap := func(f string) string {
		return `{"type":"object","properties":{"f":` + f + `},"required":["f"],"additionalProperties":false}`
	}
	runRules(t, dialect.OpenAI, wrap, []ruleCase{
		{name: "as it is", schema: `{"type":"string","minLength":1,"pattern":"^a","format":"uri","default":"a","title":"F","examples":["a"]}`},
		{name: "alternatives inside", schema: `{"oneOf":[{"type":"string"},{"type":["integer","null"]}],"not":{"const":"x"}}`},
		{name: "array without items", schema: `{"type":"array"}`, want: `{"type":"array","items":{}}`},
		{name: "items true", schema: `{"type":"array","items":true}`, want: `{"type":"array","items":{}}`},
		{name: "tuple", schema: `{"type":"array","prefixItems":[{"type":"number"}]}`, want: `{"type":"array","prefixItems":[{"type":"number"}],"items":{}}`},
		{name: "tuple of draft 7", schema: `{"type":"array","items":[{"type":"number"}],"additionalItems":false}`, want: `{"type":"array","prefixItems":[{"type":"number"}],"items":{"not":{}}}`},
		{name: "object without properties", schema: `{"type":"object","additionalProperties":{"type":"string"}}`, want: `{"type":"object","additionalProperties":{"type":"string"},"properties":{}}`},
		{name: "vendor keyword", schema: `{"type":"string","x-order":1,"strict":true}`, want: `{"type":"string"}`, losses: []string{"note x-order", "note strict"}},
		{name: "reference inlined", schema: `{"$ref":"#/definitions/A","description":"mine"}`, err: "points to nothing"},
		{name: "root null", schema: "root null", err: "is an object"},
		{name: "root array", schema: `root {"type":"array"}`, err: `arguments are an object`},
		{name: "root empty", schema: `root {}`, want: `root {"type":"object","properties":{}}`},
		{name: "properties null", schema: `root {"type":"object","properties":null,"required":null}`, want: `root {"type":"object","properties":{}}`},
		{name: "definitions", schema: `root {"properties":{"a":{"$ref":"#/definitions/A","description":"mine"},"b":{"$ref":"#/$defs/A"}},"definitions":{"A":{"type":"string","description":"its"}}}`,
			want: `root {"properties":{"a":{"type":"string","description":"mine"},"b":{"type":"string","description":"its"}},"type":"object"}`},
		{name: "recursion from the middle", schema: `root {"type":"object","properties":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/properties/tree"}}}}}}`,
			want: `root {"type":"object","properties":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}},"$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`},
		{name: "recursion from the root", schema: `root {"type":"object","properties":{"a":{"$ref":"#"}}}`,
			want: `root {"type":"object","properties":{"a":{"$ref":"#/$defs/root"}},"$defs":{"root":{"type":"object","properties":{"a":{"$ref":"#/$defs/root"}}}}}`},
		{name: "reference to itself", schema: `root {"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/A"}}}`, err: "without a step inside"},
		{name: "reference to itself among others", schema: `root {"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"anyOf":[{"type":"string"},{"not":{"$ref":"#/$defs/A"}}]}}}`, err: "without a step inside"},
		{name: "reference elsewhere", schema: `root {"properties":{"a":{"$ref":"https://example.com/a.json"}}}`, err: "nothing is loaded"},
		{name: "root reference", schema: `root {"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			want: `root {"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
		{name: "root allOf", schema: `root {"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}]}`,
			want: `root {"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"],"type":"object"}`},
		{name: "root anyOf of required", schema: `root {"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			want: `root {"type":"object","properties":{"a":{},"b":{}},"description":"give a, or b"}`, losses: []string{"looser anyOf"}},
		{name: "root oneOf", schema: `root {"oneOf":[{"type":"object","properties":{"k":{"const":"x"},"a":{"type":"string"}},"required":["k","a"],"additionalProperties":false},
			{"type":"object","properties":{"k":{"const":"y"},"b":{"type":"string"}},"required":["k","b"],"additionalProperties":false}]}`,
			want:   `root {"type":"object","properties":{"k":{"anyOf":[{"const":"x"},{"const":"y"}]},"a":{"type":"string"},"b":{"type":"string"}},"required":["k"],"additionalProperties":false,"description":"give a, or b"}`,
			losses: []string{"looser oneOf"}},
		{name: "root oneOf open", schema: `root {"oneOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`,
			want: `root {"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, losses: []string{"looser oneOf", "stricter oneOf"}},
		{name: "root oneOf of texts", schema: `root {"oneOf":[{"type":"string"}]}`, err: "no alternative is an object"},
		{name: "root not", schema: `root {"properties":{"a":{},"b":{}},"not":{"required":["a","b"]}}`,
			want: `root {"properties":{"a":{},"b":{}},"type":"object","description":"not with a and b"}`, losses: []string{"looser not"}},
		{name: "root enum", schema: `root {"enum":[{"a":1}]}`, want: `root {"type":"object","properties":{},"description":"one of {\"a\":1}"}`, losses: []string{"looser enum"}},
		{name: "draft 4", schema: `{"type":"integer","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`, want: `{"type":"integer","maximum":9,"exclusiveMinimum":0}`},
		{name: "foreign types", schema: `{"type":"dict","properties":{"a":{"type":"ArrayList<String>"},"b":{"type":"OBJECT"},"c":{"type":"any"},"d":{"type":6}}}`,
			want: `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"object","properties":{}},"c":{},"d":{"type":"object","properties":{}}}}`},
	})
}

func TestAnthropic(t *testing.T) {
	wrap := func(f string) string {
		return `{"type":"object","properties":{"f":` + f + `},"required":["f"],"additionalProperties":false}`
	}
	runRules(t, dialect.Anthropic, wrap, []ruleCase{
		{name: "as it is", schema: `{"type":"array","oneOf":[{"minItems":1},{"maxItems":0}]}`},
		{name: "root anyOf", schema: `root {"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			want: `root {"type":"object","properties":{"a":{},"b":{}},"description":"give a, or b"}`, losses: []string{"looser anyOf"}},
		{name: "root not stays", schema: `root {"type":"object","properties":{},"not":{"required":["a"]}}`, want: `root {"type":"object","properties":{},"not":{"required":["a"]}}`},
		{name: "names", schema: `root {"properties":{"$top":{"type":"integer"},"ok-1.a":{}},"required":["$top"]}`,
			want: `root {"properties":{"_top_k12t9m":{"type":"integer"},"ok-1.a":{}},"required":["_top_k12t9m"],"type":"object"}`, losses: []string{"reshaped /properties/$top properties"}},
		{name: "recursion", schema: `root {"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"properties":{"a":{"$ref":"#/$defs/A","description":"deeper"}}}}}`,
			want: `root {"properties":{"a":{"$ref":"#/$defs/A"}},"type":"object","$defs":{"A":{"properties":{"a":{"$ref":"#/$defs/A","description":"deeper"}}}}}`},
	})
}

func TestAnthropicStrict(t *testing.T) {
	wrap := func(f string) string {
		return `{"type":"object","properties":{"f":` + f + `},"required":["f"],"additionalProperties":false}`
	}
	runRules(t, dialect.AnthropicStrict, wrap, []ruleCase{
		{name: "as it is", schema: `{"type":"string","format":"uri","enum":["a:b"]}`},
		{name: "optional stays", schema: `{"type":"object","properties":{"a":{"type":["string","null"]}},"additionalProperties":false}`,
			want: `{"type":"object","properties":{"a":{"type":["string","null"]}},"additionalProperties":false}`},
		{name: "open", schema: `{"type":"object","properties":{"a":{"type":"string"}}}`,
			want: `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, losses: []string{"stricter additionalProperties"}},
		{name: "free", schema: `{"type":"object"}`, err: "without named fields"},
		{name: "bounds", schema: `{"type":"integer","minimum":1,"maximum":9}`, want: `{"type":"integer","description":"at least 1; at most 9"}`, losses: []string{"looser minimum", "looser maximum"}},
		{name: "pattern", schema: `{"type":"string","pattern":"^a"}`, want: `{"type":"string","description":"matches ^a"}`, losses: []string{"looser pattern"}},
		{name: "one item", schema: `{"type":"array","items":{"type":"string"},"minItems":1}`, want: `{"type":"array","minItems":1,"items":{"type":"string"}}`},
		{name: "two items", schema: `{"type":"array","items":{"type":"string"},"minItems":2}`, want: `{"type":"array","minItems":1,"description":"at least 2 items","items":{"type":"string"}}`,
			losses: []string{"looser minItems"}},
		{name: "names", schema: `root {"properties":{"$top":{"type":"integer"}},"required":["$top"],"additionalProperties":false}`,
			want: `root {"type":"object","properties":{"_top_k12t9m":{"type":"integer"}},"required":["_top_k12t9m"],"additionalProperties":false}`, losses: []string{"reshaped /properties/$top properties"}},
		{name: "recursion", schema: `root {"properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"array","items":{"$ref":"#/$defs/A"}}}}`,
			want: `root {"type":"object","properties":{"a":{"type":"array","items":{"type":"array","description":"always empty","items":` +
				`{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"null"}]}},{"type":"null"}]}}}},` +
				`"required":["a"],"additionalProperties":false}`,
			losses: []string{"stricter /$defs/A/items $ref", "stricter /$defs/A/items type", "looser /$defs/A items"}},
	})
}

func TestOpenAIStrict(t *testing.T) {
	wrap := func(f string) string {
		return `{"type":"object","properties":{"f":` + f + `},"required":["f"],"additionalProperties":false}`
	}
	runRules(t, dialect.OpenAIStrict, wrap, []ruleCase{
		{name: "as it is", schema: `{"type":"string","pattern":"^a","format":"date","enum":["2026-01-01"]}`},
		{name: "numbers", schema: `{"type":"number","minimum":0,"exclusiveMaximum":9,"multipleOf":3}`},
		{name: "const", schema: `{"const":"x"}`, want: `{"type":"string","enum":["x"]}`},
		{name: "enum without type", schema: `{"enum":["x",1,null]}`, want: `{"anyOf":[{"type":"string","enum":["x"]},{"type":"integer","enum":[1]},{"type":"null"}]}`},
		{name: "length", schema: `{"type":"string","minLength":1,"maxLength":5,"description":"A name."}`,
			want: `{"type":"string","description":"A name. (at least 1 character; at most 5 characters)"}`, losses: []string{"looser minLength", "looser maxLength"}},
		{name: "format", schema: `{"type":"string","format":"uri"}`, want: `{"type":"string","description":"format: uri"}`, losses: []string{"looser format"}},
		{name: "look around", schema: `{"type":"string","pattern":"(?=a)"}`, want: `{"type":"string","description":"matches (?=a)"}`, losses: []string{"looser pattern"}},
		{name: "default", schema: `{"type":"integer","default":3}`, want: `{"type":"integer","description":"default: 3"}`, losses: []string{"note default"}},
		{name: "default that is told", schema: `{"type":"integer","default":3,"description":"Default is 3."}`, want: `{"type":"integer","description":"Default is 3."}`, losses: []string{"note default"}},
		{name: "closed", schema: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
			want: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, losses: []string{"stricter additionalProperties"}},
		{name: "optional", schema: `{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":["x"]},"c":{"anyOf":[{"type":"string"},{"type":"boolean"}]}},"additionalProperties":false}`,
			want: `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","null"],"enum":["x",null]},"c":{"anyOf":[{"type":"string"},{"type":"boolean"},{"type":"null"}]}},` +
				`"required":["a","b","c"],"additionalProperties":false}`,
			losses: []string{"reshaped /properties/a required", "reshaped /properties/b required", "reshaped /properties/c required"}},
		{name: "optional and null", schema: `{"type":"object","properties":{"a":{"type":["string","null"]}},"additionalProperties":false}`,
			want: `{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`, losses: []string{"stricter /properties/a required"}},
		{name: "free", schema: `{"type":"object","additionalProperties":{"type":"string"}}`, err: "without named fields"},
		{name: "free object", schema: `{"type":"object"}`, err: "without named fields"},
		{name: "free by pattern", schema: `{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}`, err: "without named fields"},
		{name: "no arguments", schema: `root {"type":"object"}`, want: `root {"type":"object","properties":{},"required":[],"additionalProperties":false}`, losses: []string{"stricter additionalProperties"}},
		{name: "anything", schema: `{"description":"Whatever."}`,
			want: `{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"null"}]}},{"type":"null"}],` +
				`"description":"Whatever."}`, losses: []string{"stricter type"}},
		{name: "several types", schema: `{"type":["string","array","null"],"items":{"type":"integer"},"minItems":1}`,
			want: `{"anyOf":[{"type":"string"},{"type":"array","minItems":1,"items":{"type":"integer"}},{"type":"null"}]}`},
		{name: "type not stated", schema: `{"properties":{"a":{"minLength":0}},"required":["a"],"additionalProperties":false}`,
			want:   `{"type":"object","properties":{"a":{"type":"string","description":"at least 0 characters"}},"required":["a"],"additionalProperties":false}`,
			losses: []string{"stricter type", "stricter /properties/a type", "looser /properties/a minLength"}},
		{name: "oneOf", schema: `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, want: `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, losses: []string{"looser oneOf"}},
		{name: "allOf", schema: `{"allOf":[{"type":"integer","minimum":1},{"type":"number","minimum":2,"maximum":5}]}`, want: `{"type":"integer","minimum":2,"maximum":5}`},
		{name: "allOf with two patterns", schema: `{"allOf":[{"type":"string","pattern":"^a"},{"pattern":"b$"}]}`,
			want: `{"type":"string","pattern":"^a","description":"matches b$"}`, losses: []string{"looser /allOf/1 pattern"}},
		{name: "anyOf with what all share", schema: `{"description":"D","minimum":1,"anyOf":[{"type":"integer"},{"type":"number","maximum":9}]}`,
			want: `{"anyOf":[{"type":"integer","minimum":1},{"type":"number","minimum":1,"maximum":9}],"description":"D"}`},
		{name: "anyOf never and null", schema: `{"anyOf":[{"type":"number"},{"not":{}},{"type":"null"}]}`, want: `{"type":["number","null"]}`},
		{name: "anyOf of required", schema: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false,"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			want: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`, losses: []string{"looser anyOf"}},
		{name: "tuple", schema: `{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false}`,
			want: `{"type":"array","maxItems":2,"description":"items in this order: a number, a string","items":{"anyOf":[{"type":"number"},{"type":"string"}]}}`, losses: []string{"looser prefixItems"}},
		{name: "open tuple", schema: `{"type":"array","prefixItems":[{"type":"number"}]}`,
			want: `{"type":"array","description":"items in this order: a number","items":{"type":"number"}}`, losses: []string{"looser prefixItems", "stricter prefixItems"}},
		{name: "no item", schema: `{"type":"array","items":false}`,
			want:   `{"type":"array","maxItems":0,"items":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"null"}]}},{"type":"null"}]}}`,
			losses: []string{"stricter /items type"}},
		{name: "unique", schema: `{"type":"array","items":{"type":"string"},"uniqueItems":true}`, want: `{"type":"array","description":"no item twice","items":{"type":"string"}}`, losses: []string{"looser uniqueItems"}},
		{name: "if", schema: `{"type":"string","if":{"minLength":3},"then":{"pattern":"a"}}`, want: `{"type":"string"}`, losses: []string{"looser if"}},
		{name: "only null", schema: `{"type":"null"}`},
		{name: "never", schema: `false`, err: "no value fits this required field"},
		{name: "enum of another type", schema: `{"type":"integer","enum":["1"]}`, err: "/properties/f: no value fits"},
		{name: "required, not described", schema: `root {"type":"object","properties":{},"required":["a"],"additionalProperties":{"type":"string"}}`,
			want: `root {"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, losses: []string{"note required", "stricter additionalProperties"}},
		{name: "definitions", schema: `root {"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"mine"},"b":{"$ref":"#/$defs/A"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`,
			want:   `root {"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/A"}],"description":"mine"},"b":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}},"required":["a","b"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`,
			losses: []string{"reshaped /properties/b required"}},
		{name: "recursion", schema: `root {"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"required":["kids"],"additionalProperties":false}`,
			want: `root {"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/root"}}},"required":["kids"],"additionalProperties":false,` +
				`"$defs":{"root":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/root"}}},"required":["kids"],"additionalProperties":false}}}`},
		{name: "nullable is no keyword", schema: `{"type":"string","nullable":true}`, want: `{"type":"string"}`, losses: []string{"note nullable"}},
		{name: "title", schema: `{"type":"string","title":"F"}`},
		{name: "too deep", schema: strings.Repeat(`{"type":"array","items":`, 11) + `{"type":"string"}` + strings.Repeat("}", 11), err: "levels of nesting, at most 10"},
		{name: "too many values", schema: `{"type":"string","enum":[` + numbered(1001) + `]}`, err: "1001 enum values, at most 1000"},
		{name: "too long values", schema: `{"type":"string","enum":["` + strings.Repeat("x", 15000) + `",` + numbered(251) + `]}`, err: "at most 15000"},
	})
}

// numbered returns n short texts for an enum.
func numbered(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = strconv.Quote(strconv.Itoa(i))
	}
	return strings.Join(words, ",")
}

func TestGemini(t *testing.T) {
	wrap := func(f string) string {
		return `{"type":"OBJECT","properties":{"f":` + f + `},"required":["f"]}`
	}
	const anyType = `{"anyOf":[{"type":"STRING","nullable":true},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"},{"type":"ARRAY","items":{"anyOf":[{"type":"STRING","nullable":true},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"}]}}]}`
	runRules(t, dialect.Gemini, wrap, []ruleCase{
		{name: "text", schema: `{"type":"string","minLength":1,"maxLength":3,"pattern":"^a","format":"date-time","description":"D"}`,
			want: `{"type":"STRING","pattern":"^a","minLength":1,"maxLength":3,"format":"date-time","description":"D"}`},
		{name: "format", schema: `{"type":"string","format":"uri"}`, want: `{"type":"STRING","description":"format: uri"}`, losses: []string{"looser format"}},
		{name: "format of numbers", schema: `{"type":"integer","format":"int32"}`, want: `{"type":"INTEGER","format":"int32"}`},
		{name: "null", schema: `{"type":["string","null"]}`, want: `{"type":"STRING","nullable":true}`},
		{name: "anyOf with null", schema: `{"anyOf":[{"type":"string"},{"type":"null"}],"description":"D","default":null}`, want: `{"type":"STRING","nullable":true,"description":"D"}`, losses: []string{"note default"}},
		{name: "only null", schema: `{"type":"null"}`, want: `{"type":"STRING","nullable":true,"description":"always null"}`, losses: []string{"looser type"}},
		{name: "const", schema: `{"const":"x"}`, want: `{"type":"STRING","enum":["x"]}`},
		{name: "enum", schema: `{"type":"string","enum":["","a"]}`, want: `{"type":"STRING","enum":["a"]}`, losses: []string{"stricter enum"}},
		{name: "empty enum", schema: `{"type":"string","enum":[""]}`, want: `{"type":"STRING","description":"one of \"\""}`, losses: []string{"looser enum"}},
		{name: "enum of numbers", schema: `{"type":"integer","enum":[3,1,2]}`, want: `{"type":"INTEGER","minimum":1,"maximum":3,"description":"one of 3, 1, 2"}`, losses: []string{"looser enum"}},
		{name: "const true", schema: `{"const":true}`, want: `{"type":"BOOLEAN","description":"always true"}`, losses: []string{"looser const"}},
		{name: "exclusive", schema: `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":9.5}`, want: `{"type":"INTEGER","minimum":1,"maximum":9}`},
		{name: "exclusive number", schema: `{"type":"number","exclusiveMinimum":0}`, want: `{"type":"NUMBER","description":"more than 0"}`, losses: []string{"looser exclusiveMinimum"}},
		{name: "multipleOf", schema: `{"type":"integer","multipleOf":5}`, want: `{"type":"INTEGER","description":"a multiple of 5"}`, losses: []string{"looser multipleOf"}},
		{name: "oneOf", schema: `{"description":"D","oneOf":[{"type":"string"},{"type":"integer"}]}`, want: `{"anyOf":[{"type":"STRING","description":"D"},{"type":"INTEGER"}]}`, losses: []string{"looser oneOf"}},
		{name: "anything", schema: `{}`, want: anyType, losses: []string{"stricter type"}},
		{name: "array without items", schema: `{"type":"array"}`, want: `{"type":"ARRAY","items":` + anyType + `}`, losses: []string{"stricter /items type"}},
		{name: "map", schema: `{"type":"object","additionalProperties":{"type":"string"}}`, want: `{"type":"OBJECT","description":"fields of any name, each a string"}`, losses: []string{"looser additionalProperties"}},
		{name: "no arguments", schema: `root {"type":"object"}`, want: `root {"type":"OBJECT","properties":{}}`},
		{name: "required, not described", schema: `root {"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"],"additionalProperties":{"type":"integer"}}`,
			want:   `root {"type":"OBJECT","description":"fields of any name, each an integer","properties":{"a":{"type":"STRING"},"b":{"type":"INTEGER"}},"required":["a","b"]}`,
			losses: []string{"note required", "looser additionalProperties"}},
		{name: "reference", schema: `root {"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"type":"string","title":"A"}}}`,
			want: `root {"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`, losses: []string{"note /definitions/A title"}},
		{name: "title for a description", schema: `{"type":"string","title":"Name of the city"}`, want: `{"type":"STRING","description":"Name of the city"}`, losses: []string{"note title"}},
		{name: "recursion", schema: `root {"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"n":{"type":"string"},"a":{"$ref":"#/$defs/A"}}}}}`,
			want:   `root {"type":"OBJECT","properties":{"a":{"type":"OBJECT","properties":{"n":{"type":"STRING"},"a":{"type":"OBJECT","properties":{"n":{"type":"STRING"},"a":{"type":"OBJECT","description":"goes on as above"}}}}}}}`,
			losses: []string{"looser /$defs/A/properties/a $ref"}},
		{name: "capitals", schema: `{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`, want: `{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`},
		{name: "not", schema: `{"type":"string","not":{"enum":["a"]}}`, want: `{"type":"STRING","description":"not: one of \"a\""}`, losses: []string{"looser not"}},
		{name: "dependent", schema: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"dependentRequired":{"a":["b"]}}`,
			want: `{"type":"OBJECT","description":"a needs b","properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}}}`, losses: []string{"looser dependentRequired"}},
	})
}

// TestEveryRuleHasASource checks that every rule has a source.
func TestEveryRuleHasASource(t *testing.T) {
	for _, d := range dialect.All() {
		if dialect.ByName(d.Name) != d || d.Title == "" {
			t.Errorf("%s is not found by its name, or has no title", d.Name)
		}
		var seen []dialect.Trait
		for _, r := range d.Rules {
			if !strings.HasPrefix(r.Source, "https://") || r.Says == "" {
				t.Errorf("%s: %s has no source or says nothing", d.Name, r.Trait)
			}
			if slices.Contains(seen, r.Trait) {
				t.Errorf("%s: %s is a duplicate; only the first counts", d.Name, r.Trait)
			}
			seen = append(seen, r.Trait)
		}
	}
	if dialect.ByName("none") != nil {
		t.Error("ByName of an unknown name is not nil")
	}
}

// TestRefused checks the provider model of these tests: it refuses what each provider's own error
// messages refuse.
func TestRefused(t *testing.T) {
	for _, tt := range []struct{ dialect, schema, want string }{
		{"openai", `{"type":"object","properties":{},"anyOf":[{}]}`, "anyOf at the root"},
		{"openai", `{"type":"object"}`, "without properties"},
		{"openai", `{"type":"object","properties":{"a":{"type":["array","null"]}}}`, "array without items"},
		{"openai", `{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{}}}`, "$ref #/properties/b"},
		{"openai", `{"type":"object","properties":null}`, "without properties"},
		{"anthropic", `{"type":"object","properties":{"$a":{}}}`, `property "$a"`},
		{"anthropic", `{"properties":{}}`, "root type"},
		{"anthropic", `{"type":"object","properties":{},"oneOf":[]}`, "oneOf at the root"},
		{"openai-strict", `{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`, "a is not required"},
		{"openai-strict", `{"type":"object","properties":{},"required":[]}`, "not closed"},
		{"openai-strict", `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`, "no type"},
		{"openai-strict", `{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`, "keyword minLength"},
		{"openai-strict", `{"type":"object","properties":{"a":{"type":"string","format":"uri"}},"required":["a"],"additionalProperties":false}`, "format uri"},
		{"openai-strict", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a","description":"d"}},"required":["a"],"additionalProperties":false,"$defs":{"a":{"type":"string"}}}`, "siblings"},
		{"openai-strict", `{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`, "a is required and not defined"},
		{"gemini", `{"type":"OBJECT","properties":{"a":{"type":"STRING","const":"x"}}}`, "keyword const"},
		{"gemini", `{"type":"OBJECT","properties":{"a":{"type":["STRING","NULL"]}}}`, "type [STRING NULL]"},
		{"gemini", `{"type":"OBJECT","properties":{"a":{"anyOf":[{"type":"STRING"}],"description":"d"}}}`, "siblings of anyOf"},
		{"gemini", `{"type":"OBJECT","properties":{"a":{"type":"INTEGER","enum":["1"]}}}`, "enum of INTEGER"},
		{"gemini", `{"type":"OBJECT","properties":{"a":{"type":"STRING","enum":[""]}}}`, "enum value"},
		{"gemini", `{"type":"OBJECT","properties":{"a":{"type":"ARRAY"}}}`, "no items"},
		{"gemini", `{"type":"OBJECT","properties":{"a":{"type":"STRING","format":"uri"}}}`, "format uri"},
		{"gemini", `{"type":"OBJECT","properties":{},"required":["a"]}`, "a is required"},
		{"gemini", `{"type":"object","properties":{}}`, "root type"},
	} {
		if got := refused(tt.dialect, []byte(tt.schema)); !strings.Contains(strings.Join(got, "\n"), tt.want) {
			t.Errorf("%s: %s: got %q, want %q", tt.dialect, tt.schema, got, tt.want)
		}
	}
}
