package fit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl/internal/schema/fit"
)

// free charges nothing.
func free(int) {}

func compile(t testing.TB, src string) *jsonschema.Schema {
	t.Helper()
	s, err := compiled(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return s
}

func compiled(src string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(src))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:test", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:test")
}

func Example() {
	schema, err := compiled(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},"units":{"enum":["metric","imperial"]}},"required":["city","days"]}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fixed, repairs, ok := fit.Coerce(schema, []byte(`{"City":"Oslo","days":"3","units":"Metric"}`), free)
	fmt.Printf("%s %t\n%s\n", fixed, ok, strings.Join(repairs, "\n"))
	fmt.Printf("%s\n", fit.Example(schema, free))
	// Output:
	// {"city":"Oslo","days":3,"units":"metric"} true
	// City: read as city
	// days: read the text "3" as the number 3
	// units: read "Metric" as "metric"
	// {"city":"text","days":1}
}

// Each line holds a schema, arguments, and the arguments after repair, with the repairs. "left"
// means that there is no reading, or several.
func TestCoerce(t *testing.T) {
	const left = "left"
	for _, test := range [][3]string{
		// numbers and booleans as text
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"10"}`, `{"n":10} | n: read the text "10" as the number 10`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"10.0"}`, `{"n":10} | n: read the text "10.0" as the number 10`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"12345678901234567890"}`, `{"n":12345678901234567890} | n: read the text "12345678901234567890" as the number 12345678901234567890`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"10.5"}`, left},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"1e2"}`, left},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":" 10"}`, left},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"010"}`, left},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"1,000"}`, left},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"ten"}`, left},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":""}`, left},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":true}`, left},
		{`{"properties":{"n":{"type":"integer","maximum":5}}}`, `{"n":"10"}`, left},
		{`{"properties":{"n":{"type":"number"}}}`, `{"n":"-1.5e3"}`, `{"n":-1.5e3} | n: read the text "-1.5e3" as the number -1.5e3`},
		{`{"properties":{"n":{"type":"number"}}}`, `{"n":"1e99999"}`, left},
		{`{"properties":{"n":{"type":"number"}}}`, `{"n":"NaN"}`, left},
		{`{"properties":{"n":{"type":["integer","string"],"pattern":"x"}}}`, `{"n":"10"}`, left},
		{`{"properties":{"n":{"enum":[1,2]}}}`, `{"n":"2"}`, `{"n":2} | n: read the text "2" as the number 2`},
		{`{"properties":{"b":{"type":"boolean"}}}`, `{"b":"True"}`, `{"b":true} | b: read the text "True" as true`},
		{`{"properties":{"b":{"type":["boolean","null"]}}}`, `{"b":"false"}`, `{"b":false} | b: read the text "false" as false`},
		{`{"properties":{"b":{"type":"boolean"}}}`, `{"b":"yes"}`, left},
		{`{"properties":{"b":{"type":"boolean"}}}`, `{"b":1}`, left},
		{`{"properties":{"s":{"type":"string"}}}`, `{"s":94105}`, left},

		// JSON as text
		{`{"properties":{"o":{"type":"object"}}}`, `{"o":"{\"a\":1}"}`, `{"o":{"a":1}} | o: read the text as the JSON that it is`},
		{`{"properties":{"o":{"type":"object","properties":{"n":{"type":"integer"}}}}}`, `{"o":"{'n':'1',}"}`,
			`{"o":{"n":1}} | o: read the text as the JSON that it is | o: replaced single quotes | o: removed a trailing comma | o.n: read the text "1" as the number 1`},
		{`{"properties":{"o":{"type":"object"}}}`, `{"o":"{\"a\":1"}`, left},
		{`{"properties":{"o":{"type":"object"}}}`, `{"o":"[1]"}`, left},
		{`{"properties":{"o":{"type":"object"}}}`, `{"o":"see {\"a\":1}"}`, left},
		{`{"properties":{"o":{"type":["object","string"],"maxLength":2}}}`, `{"o":"{\"a\":1}"}`, left},
		{`{"properties":{"l":{"type":"array","items":{"type":"string"}}}}`, `{"l":"[\"a\",\"b\"]"}`, `{"l":["a","b"]} | l: read the text as the JSON that it is`},
		{`{"properties":{"l":{"type":"array","items":{"type":"string"}}}}`, `{"l":"[a, b]"}`, left},
		{`{"type":"object"}`, `"{\"a\":1}"`, `{"a":1} | read the text as the JSON that it is`},
		{`{"type":"object"}`, `"\"{\\\"a\\\":1}\""`, `{"a":1} | read the text as the JSON that it is | read the text as the JSON that it is`},
		{`{"type":"object"}`, `"no object"`, left},
		{`{"type":"object"}`, `[{"a":1}]`, left},

		// a lone value for a list
		{`{"properties":{"l":{"type":"array","items":{"type":"string"}}}}`, `{"l":"a b"}`, `{"l":["a b"]} | l: put the lone value in a list`},
		{`{"properties":{"l":{"type":"array","items":{"type":"integer"}}}}`, `{"l":"7"}`, `{"l":[7]} | l: put the lone value in a list | l[0]: read the text "7" as the number 7`},
		{`{"properties":{"l":{"type":"array","items":{"type":"object"}}}}`, `{"l":{"a":1}}`, `{"l":[{"a":1}]} | l: put the lone value in a list`},
		{`{"properties":{"l":{"type":"array","items":{"type":"string"}}}}`, `{"l":"a, b"}`, left},
		{`{"properties":{"l":{"type":"array","items":{"enum":["a, b"]}}}}`, `{"l":"a, b"}`, `{"l":["a, b"]} | l: put the lone value in a list`},
		{`{"properties":{"l":{"type":"array","items":{"type":"string"}}}}`, `{"l":""}`, left},
		{`{"properties":{"l":{"type":"array"}},"required":["l"]}`, `{"l":null}`, left},
		{`{"properties":{"l":{"type":"array","items":{"type":"integer"}}}}`, `{"l":"x"}`, left},
		{`{"properties":{"l":{"type":"array","minItems":2}}}`, `{"l":1}`, left},
		{`{"properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}}`, `{"l":[1,2]}`, left},
		{`{"properties":{"l":{"type":"array","maxItems":2}}}`, `{"l":[1,2,3]}`, left},
		{`{"properties":{"l":{"type":"array","uniqueItems":true,"items":{}}}}`, `{"l":[1,1]}`, left},
		{`{"properties":{"l":{"type":"array","items":{"type":"array","minItems":2}}}}`, `{"l":[1,2]}`, `{"l":[[1,2]]} | l: put the lone value in a list`},
		{`{"properties":{"l":{"prefixItems":[{"type":"integer"},{"type":"boolean"}]}}}`, `{"l":["1","true"]}`,
			`{"l":[1,true]} | l[0]: read the text "1" as the number 1 | l[1]: read the text "true" as true`},

		// names
		{`{"properties":{"user_id":{}},"required":["user_id"]}`, `{"userId":1}`, `{"user_id":1} | userId: read as user_id`},
		{`{"properties":{"maxResults":{"type":"integer"}},"additionalProperties":false}`, `{"max_results":"5"}`,
			`{"maxResults":5} | max_results: read as maxResults | maxResults: read the text "5" as the number 5`},
		{`{"properties":{"userId":{},"user_id":{}},"required":["userId"]}`, `{"USERID":1}`, left},
		{`{"properties":{"a":{}},"required":["a"]}`, `{"A":1,"_a":2}`, left},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"A":2}`, left},
		{`{"properties":{"a":{},"n":{"type":"integer"}}}`, `{"A":1,"n":"1"}`, `{"A":1,"n":1} | n: read the text "1" as the number 1`},
		{`{"properties":{"city":{}},"required":["city"]}`, `{"town":1}`, left},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"b":2}`, left},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"b":null}`, left},
		{`{"properties":{"o":{"type":"object","properties":{"in":{}},"required":["in"]}}}`, `{"o":{"IN":1}}`, `{"o":{"in":1}} | o.IN: read as in`},

		// null
		{`{"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`, `{"a":null,"b":1}`, `{"b":1} | a: left out, since it was null`},
		{`{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":null}`, left},
		{`{"properties":{"a":{"type":["string","null"]},"n":{"type":"integer"}}}`, `{"a":null,"n":"1"}`, `{"a":null,"n":1} | n: read the text "1" as the number 1`},
		{`{"properties":{"l":{"type":"array","items":{"type":"string"}}}}`, `{"l":["a",null]}`, left},
		{`{"patternProperties":{"a":{"type":"string"}}}`, `{"a":null}`, left},

		// words from a list
		{`{"properties":{"u":{"type":"string","enum":["celsius","fahrenheit"]}}}`, `{"u":" Celsius "}`, `{"u":"celsius"} | u: read " Celsius " as "celsius"`},
		{`{"properties":{"u":{"enum":["a","A"]}}}`, `{"u":" a"}`, left},
		{`{"properties":{"u":{"enum":["celsius"]}}}`, `{"u":"celcius"}`, left},
		{`{"properties":{"u":{"const":"On"}}}`, `{"u":"on"}`, `{"u":"On"} | u: read "on" as "On"`},

		// wrappers
		{`{"properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"arguments":{"a":"1"}}`, `{"a":1} | took the arguments out of "arguments" | a: read the text "1" as the number 1`},
		{`{"properties":{},"additionalProperties":false}`, `{"parameters":{}}`, `{} | took the arguments out of "parameters"`},
		{`{"properties":{},"additionalProperties":false}`, `{"parameters":{"x":1}}`, left},
		{`{"properties":{"a":{}},"required":["a"]}`, `{"input":"{\"a\":1}"}`, `{"a":1} | took the arguments out of "input" | read the text as the JSON that it is`},
		{`{"properties":{"a":{},"args":{"type":"string"}},"required":["a"]}`, `{"args":{"a":1}}`, left},
		{`{"properties":{"a":{}},"required":["a"]}`, `{"arguments":{"a":1},"b":2}`, left},

		// branches and references
		{`{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"n":"1"}`, `{"n":1} | n: read the text "1" as the number 1`},
		{`{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`, `{"n":["1"]}`, left},
		{`{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"integer"}}]}}}`, `{"n":"1"}`, left},
		{`{"properties":{"n":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"string"}}]}}}`, `{"n":"1"}`, left},
		{`{"properties":{"n":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"number"}}]}}}`, `{"n":"1"}`,
			`{"n":[1]} | n: put the lone value in a list | n[0]: read the text "1" as the number 1`},
		{`{"oneOf":[{"properties":{"k":{"const":"circle"},"r":{"type":"number"}},"required":["k","r"]},{"properties":{"k":{"const":"square"},"a":{"type":"number"}},"required":["k","a"]}]}`,
			`{"k":"circle","r":"2"}`, `{"k":"circle","r":2} | r: read the text "2" as the number 2`},
		{`{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"},"b":{"allOf":[{"$ref":"#/$defs/n"}]}}}`, `{"a":"1","b":"2"}`,
			`{"a":1,"b":2} | a: read the text "1" as the number 1 | b: read the text "2" as the number 2`},
		{`{"$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/t"}}}}},"$ref":"#/$defs/t"}`,
			`{"v":1,"kids":[{"v":"2","kids":[{"v":"3"}]}]}`,
			`{"kids":[{"kids":[{"v":3}],"v":2}],"v":1} | kids[0].kids[0].v: read the text "3" as the number 3 | kids[0].v: read the text "2" as the number 2`},
		{`{"additionalProperties":{"type":"integer"}}`, `{"x":"1"}`, `{"x":1} | x: read the text "1" as the number 1`},
		{`{"patternProperties":{"^n_":{"type":"integer"}}}`, `{"n_x":"1"}`, `{"n_x":1} | n_x: read the text "1" as the number 1`},

		// all or nothing; values that fit keep their spelling
		{`{"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`, `{"a":"1","b":"x"}`, left},
		{`{"properties":{"a":{"type":"integer"}}}`, `{ "a" : 1 }`, `{ "a" : 1 }`},
		{`{"properties":{"a":{"type":"integer"}}}`, "{\"a\":\"1\",\"b\":\"\xff\"}", left},
		{`{"properties":{"a":{"type":"integer"},"h":{"type":"string"}}}`, `{"a":"1","h":"<b>&"}`, `{"a":1,"h":"<b>&"} | a: read the text "1" as the number 1`},
	} {
		fixed, repairs, ok := fit.Coerce(compile(t, test[0]), []byte(test[1]), free)
		got := left
		if ok {
			got = strings.Join(append([]string{string(fixed)}, repairs...), " | ")
		}
		if diff := cmp.Diff(got, test[2]); diff != "" {
			t.Errorf("%s\n%s: got -, want +\n%s", test[0], test[1], diff)
		}
	}
}

// A schema that refers to itself in several branches multiplies the readings with every level.
// Coerce must give up.
func TestCoerceEnds(t *testing.T) {
	schema := compile(t, `{"$defs":{"t":{"anyOf":[{"type":"object","properties":{"k":{"$ref":"#/$defs/t"}},"required":["x"]},
		{"type":"object","properties":{"k":{"$ref":"#/$defs/t"}},"required":["y"]},{"type":"array","items":{"$ref":"#/$defs/t"}}]}},"$ref":"#/$defs/t"}`)
	args := strings.Repeat(`{"k":`, 7) + `"1"` + strings.Repeat(`}`, 7)
	if fixed, _, ok := fit.Coerce(schema, []byte(args), free); ok {
		t.Errorf("became %s, want it left", fixed)
	}
	deep := strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)
	if fixed, _, ok := fit.Coerce(schema, []byte(deep), free); ok {
		t.Errorf("became %s, want it left", fixed)
	}
}

func TestExample(t *testing.T) {
	for src, want := range map[string]string{
		`{"type":"object"}`: `{}`,
		`{}`:                `{}`,
		`{"properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{}},"required":["a","b","c"]}`:                                                                                     `{"a":"text","b":1,"c":"text"}`,
		`{"properties":{"d":{"type":"string","format":"date"},"e":{"format":"email"}},"required":["d","e"]}`:                                                                                `{"d":"2025-01-31","e":"name@example.com"}`,
		`{"properties":{"a":{"type":"number","exclusiveMaximum":0.5,"minimum":0},"b":{"type":"integer","multipleOf":5,"minimum":7}},"required":["a","b"]}`:                                  `{"a":0.4,"b":10}`,
		`{"properties":{"a":{"type":"string","enum":["x","y"]},"b":{"const":7},"c":{"type":"string","examples":["Oslo"]},"d":{"type":"integer","default":5}},"required":["a","b","c","d"]}`: `{"a":"x","b":7,"c":"Oslo","d":5}`,
		`{"properties":{"l":{"type":"array","items":{"type":"integer"},"minItems":2,"uniqueItems":false}},"required":["l"]}`:                                                                `{"l":[1,1]}`,
		`{"properties":{"l":{"type":"array","items":{"type":"string"},"minItems":2,"uniqueItems":true}},"required":["l"]}`:                                                                  `{"l":["text","text2"]}`,
		`{"properties":{"l":{"type":"array","items":{"type":"string"}}},"required":["l"]}`:                                                                                                  `{"l":["text"]}`,
		`{"properties":{"o":{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]}},"required":["o"]}`:                                                                    `{"o":{"a":true}}`,
		`{"properties":{"n":{"anyOf":[{"type":"null"},{"type":"integer"}]}},"required":["n"]}`:                                                                                              `{"n":1}`,
		`{"properties":{"s":{"type":"string","minLength":6,"maxLength":6},"p":{"type":"string","pattern":"^[A-Z]{3}$"}},"required":["s","p"]}`:                                              `{"p":"ABC","s":"textxx"}`,
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`:                                                    `{"a":1}`,
		`{"$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/t"}},"required":["v"]}},"$ref":"#/$defs/t"}`:                                           `{"v":1}`,
		`{"type":"object","minProperties":2}`: `{"name1":"text","name2":"text"}`,
		// no example for values that cannot be constructed
		`{"properties":{"p":{"type":"string","pattern":"^[a-f]{17}7$"}},"required":["p"]}`:                                    ``,
		`{"required":["a"],"additionalProperties":false}`:                                                                     ``,
		`{"$defs":{"t":{"type":"object","properties":{"next":{"$ref":"#/$defs/t"}},"required":["next"]}},"$ref":"#/$defs/t"}`: ``,
	} {
		s := compile(t, src)
		got := fit.Example(s, free)
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
		if got != nil {
			if v, err := jsonschema.UnmarshalJSON(bytes.NewReader(got)); err != nil || s.Validate(v) != nil {
				t.Errorf("%s: the example %s does not fit", src, got)
			}
		}
	}
}

// Repaired arguments fit and come with a description; arguments that fit are returned unchanged.
func FuzzCoerce(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"integer"},"l":{"type":"array","items":{"type":"boolean"}}},"required":["a"]}`, `{"A":"1","l":"true"}`)
	f.Add(`{"anyOf":[{"properties":{"a":{"enum":["x"]}}},{"type":"object","additionalProperties":false}]}`, `"{'a':' X'}"`)
	f.Add(`{"properties":{},"additionalProperties":false}`, `{"arguments":{}}`)
	f.Add(`{"type":"object"}`, `{}}`)
	f.Fuzz(func(t *testing.T, src, args string) {
		s, err := compiled(src)
		if err != nil {
			return
		}
		fit.Example(s, free)
		fixed, repairs, ok := fit.Coerce(s, []byte(args), free)
		if !ok {
			return
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(fixed))
		if err != nil || s.Validate(v) != nil {
			t.Errorf("%s\n%s became %s, which does not fit", src, args, fixed)
		}
		if len(repairs) == 0 && string(fixed) != args || len(repairs) > 0 && json.Valid([]byte(args)) &&
			string(fixed) == args {
			t.Errorf("%s\n%s became %s with the repairs %q", src, args, fixed, repairs)
		}
	})
}
