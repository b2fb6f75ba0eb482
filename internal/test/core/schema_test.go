package core_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
)

// takes returns a tool with the given schema.
func takes(schema string) *pawl.Tool {
	return &pawl.Tool{Name: "f", Input: json.RawMessage(schema), Run: says("f", "ok").Run, NoRepair: true}
}

// The result lists the faults of arguments by field, with the expected and the actual value, so
// that the model can correct them.
func TestSchemaErrors(t *testing.T) {
	obj := func(props string) string { return `{"type":"object","properties":` + props + `}` }
	for _, test := range []struct{ schema, args, want string }{
		{`{"type":"object","required":["a","b"]}`, `{}`, `missing required fields "a", "b"`},
		{`{"type":"object","required":["a"]}`, `{"b":1}`, `missing required field "a"`},
		{`{"type":"object","additionalProperties":false}`, `{"x":1}`, `unknown field "x"; there are no fields here`},
		{obj(`{"a":{"type":"integer"}}`), `{"a":"ten"}`, `field a: expected integer, got string "ten"`},
		{obj(`{"a":{"type":"integer"}}`), `{"a":1.5}`, `field a: expected integer, got number 1.5`},
		{obj(`{"a":{"type":["string","null"]}}`), `{"a":false}`, `field a: expected null or string, got boolean false`},
		{obj(`{"a":{"type":"object"}}`), `{"a":[1]}`, `field a: expected object, got array`},
		{obj(`{"a":{"type":"array"}}`), `{"a":{}}`, `field a: expected array, got object`},
		{obj(`{"a":{"type":"string"}}`), `{"a":null}`, `field a: expected string, got null`},
		{obj(`{"a":{"enum":["low","high"]}}`), `{"a":"hihg"}`, `field a: expected one of "low", "high", got string "hihg" (did you mean "high"?)`},
		{obj(`{"a":{"enum":[1,2]}}`), `{"a":3}`, `field a: expected one of 1, 2, got number 3`},
		{obj(`{"a":{"const":"x"}}`), `{"a":"y"}`, `field a: expected "x", got string "y"`},
		{obj(`{"a":{"minimum":1}}`), `{"a":0}`, `field a: expected at least 1, got number 0`},
		{obj(`{"a":{"maximum":1.5}}`), `{"a":2}`, `field a: expected at most 1.5, got number 2`},
		{obj(`{"a":{"exclusiveMinimum":1}}`), `{"a":1}`, `field a: expected more than 1, got number 1`},
		{obj(`{"a":{"exclusiveMaximum":1}}`), `{"a":1}`, `field a: expected less than 1, got number 1`},
		{obj(`{"a":{"multipleOf":5}}`), `{"a":7}`, `field a: expected a multiple of 5, got number 7`},
		{obj(`{"a":{"minLength":2}}`), `{"a":"ø"}`, `field a: expected at least 2 characters, got 1`},
		{obj(`{"a":{"maxLength":2}}`), `{"a":"abc"}`, `field a: expected at most 2 characters, got 3`},
		{obj(`{"a":{"minItems":1}}`), `{"a":[]}`, `field a: expected at least 1 items, got 0`},
		{obj(`{"a":{"maxItems":1}}`), `{"a":[1,2]}`, `field a: expected at most 1 items, got 2`},
		{obj(`{"a":{"uniqueItems":true}}`), `{"a":[1,2,1]}`, `field a: items 0 and 2 are equal; each may be there once`},
		{obj(`{"a":{"minProperties":1}}`), `{"a":{}}`, `field a: expected at least 1 fields, got 0`},
		{obj(`{"a":{"maxProperties":1}}`), `{"a":{"b":1,"c":2}}`, `field a: expected at most 1 fields, got 2`},
		{obj(`{"a":{"pattern":"^[a-z]+$"}}`), `{"a":"A1"}`, `field a: expected text that matches ^[a-z]+$, got string "A1"`},
		{obj(`{"a":{"format":"date"}}`), `{"a":"tomorrow"}`, `field a: expected text of the format date, got string "tomorrow"`},
		{obj(`{"a":{"format":"email"}}`), `{"a":"me"}`, `field a: expected text of the format email, got string "me"`},
		{obj(`{"a":{"format":"date-time"}}`), `{"a":"2026-01-02"}`, `field a: expected text of the format date-time, got string "2026-01-02"`},
		{obj(`{"a":{"format":"uri"}}`), `{"a":"::"}`, `field a: expected text of the format uri, got string "::"`},
		{obj(`{"a":{"format":"uuid"}}`), `{"a":"x"}`, `field a: expected text of the format uuid, got string "x"`},
		{obj(`{"a":false}`), `{"a":1}`, `field a: this field is not allowed; leave it out`},
		{obj(`{"a":{"not":{"type":"string"}}}`), `{"a":"x"}`, `field a: is a form that is not allowed; got string "x"`},
		{obj(`{"a":{"anyOf":[{"type":"string"},{"type":"object","required":["id"]}]}}`), `{"a":{"x":1}}`,
			`field a: missing required field "id"`},
		{obj(`{"a":{"oneOf":[{"type":"integer"},{"minimum":1}]}}`), `{"a":2}`, `field a: fits several of the allowed forms, must fit one; got number 2`},
		{obj(`{"a":{"oneOf":[{"properties":{"k":{"const":"x"}}},{"properties":{"k":{"const":"y"}}}]}}`), `{"a":{"k":"z"}}`,
			`field a.k: expected one of "x", "y", got string "z"`},
		{`{"type":"object","dependentRequired":{"a":["b"]}}`, `{"a":1}`, `field "a" needs "b" too`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","dependencies":{"a":["b"]}}`, `{"a":1}`, `field "a" needs "b" too`},
		{obj(`{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}}}}}`), `{"items":[{"id":1},{"id":"2"}]}`,
			`field items[1].id: expected integer, got string "2"`},
		{`{"type":"object","properties":{"n":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"v":{"type":"integer"}}}}}`,
			`{"n":{"next":{"next":{"v":"x"}}}}`, `field n.next.next.v: expected integer, got string "x"`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`, `{"a":["x",1]}`, `field a:`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s"}}}`, `{"a":1}`,
			`field a: expected string, got number 1`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"prefixItems":[{"type":"string"}],"items":false}}}`, `{"a":["x",1]}`, `field a[1]: this item is not allowed; leave it out`},
		{`{"type":"object","propertyNames":{"maxLength":2}}`, `{"abc":1}`, `the field name "abc" is not allowed: expected at most 2 characters, got 3`},
		{obj(`{"a":{"contains":{"const":1}}}`), `{"a":[2]}`, `field a:`},
		{`{"type":"object","if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `missing required field "b"`},
	} {
		tool := takes(test.schema)
		if err := tool.Check(); err != nil {
			t.Errorf("%s: %v", test.schema, err)
			continue
		}
		x := execute(t, tool, test.args)
		_, got, _ := strings.Cut(x.Result.Text(), "do not fit its schema:\n- ")
		got, _, _ = strings.Cut(got, "\nArguments of the right form") // TestCorrection covers this
		if x.Outcome != pawl.OutcomeInvalid || got != test.want && !(strings.HasSuffix(test.want, ":") &&
			strings.HasPrefix(got, test.want) && len(got) > len(test.want)) {
			t.Errorf("%s takes %s\n got %s: %s\nwant %s", test.schema, test.args, x.Outcome, x.Result.Text(), test.want)
		}
		noInternals(t, x.Result.Text())
	}
}

// For any number of faults the model gets a few lines.
func TestManyFaultsAreToldInShort(t *testing.T) {
	args := `{"a":[` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 1000), ",") + `]}`
	x := execute(t, takes(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`), args)
	got := x.Result.Text()
	if len(got) > 4096 || strings.Count(got, "\n") != 9 || !strings.HasSuffix(got, "\n- and 992 more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	x = execute(t, takes(`{"type":"object","additionalProperties":false}`), `{"`+strings.Repeat("y", 10000)+`":1}`)
	if len(x.Result.Text()) > 1000 {
		t.Errorf("%d bytes are told", len(x.Result.Text()))
	}
	x = execute(t, takes(`{"type":"object"}`), `{"a":`+strings.Repeat("z", 10000))
	if len(x.Result.Text()) > 1000 {
		t.Errorf("%d bytes are told", len(x.Result.Text()))
	}
}

// FuzzArguments shows that arguments that do not fit never pass, and that no arguments make the
// pipeline panic.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"path":"a","n":1}`, `{"path":"a","n":1.0,"tags":["x"]}`, `{"path":"a","path":1}`, `{`, `[]`, `{"path":"\ud800"}`, `{"path":"a","n":1e400}`} {
		f.Add([]byte(s))
	}
	tool := takes(`{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"type":"string"}}},
		"required":["path"],"additionalProperties":false}`)
	f.Fuzz(func(t *testing.T, args []byte) {
		x := execute(t, tool, string(args))
		if x.Outcome != pawl.OutcomeOK {
			if x.Outcome != pawl.OutcomeInvalid || len(x.Result.Text()) > 8192 {
				t.Fatalf("%q: %s, %q, %q", args, x.Outcome, x.Result.Text(), x.Error)
			}
			return
		}
		var v map[string]any
		d := json.NewDecoder(bytes.NewReader(args))
		d.UseNumber()
		if err := d.Decode(&v); err != nil || !json.Valid(args) {
			t.Fatalf("%q was accepted: %v", args, err)
		}
		if _, ok := v["path"].(string); !ok {
			t.Fatalf("%q was accepted without a path", args)
		}
		if n, ok := v["n"].(json.Number); v["n"] != nil {
			if r, exact := new(big.Rat).SetString(string(n)); !ok || !exact || !r.IsInt() || r.Sign() < 0 {
				t.Fatalf("%q was accepted with n = %v", args, v["n"])
			}
		}
		if len(v) > 3 {
			t.Fatalf("%q was accepted", args)
		}
	})
}
