package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/test/soak"
)

// The fast path may accept only what the full validator accepts. The test is in this package
// because the fast path must not be visible from outside.
func TestFastSchemaNeverAcceptsWhatTheFullValidatorRefuses(t *testing.T) {
	soak.Sequential(t)
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		doc := genSchema(t, 3)
		doc["type"] = "object"
		src, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Compile(src)
		if err != nil || s.fast == nil {
			return
		}
		args := json.RawMessage(genFor(t, doc, 3))
		fast := s.fast.accepts(args)
		if !fast {
			return
		}
		accepted++
		s.fast = nil
		faults, err := s.check(newEffort(t.Context(), 1<<20), args)
		if err != nil || len(faults) > 0 {
			t.Fatalf("schema %s\naccepts %s\nbut the full validator says %v %v", src, args, faults, err)
		}
	})
	if accepted == 0 {
		t.Fatal("the fast path accepted nothing, so the test showed nothing")
	}
}

func TestFastSchemaTakesThePlainCases(t *testing.T) {
	const src = `{"type":"object","properties":{"path":{"type":"string","description":"p"},"limit":{"type":"integer","minimum":1},
		"mode":{"type":"string","enum":["a","b"]},"tags":{"type":"array","items":{"type":"string"}},"deep":{"type":["object","null"],
		"properties":{"x":{"type":"number"}},"required":["x"]}},"required":["path","limit"],"additionalProperties":false}`
	s, err := Compile(json.RawMessage(src))
	if err != nil || s.fast == nil {
		t.Fatal("not compiled", err)
	}
	for args, want := range map[string]bool{
		`{"path":"a","limit":10}`: true,
		` { "limit" : 1 , "path" : "\u0041", "mode":"b","tags":["x","y"],"deep":{"x":1.5e3} } `: true,
		`{"path":"a","limit":10,"deep":null}`:                                                   true,
		`{"path":"a","limit":0}`:                                                                false,
		`{"path":"a"}`:                                                                          false,
		`{"path":"a","limit":10,"mode":"c"}`:                                                    false,
		`{"path":"a","limit":10,"other":1}`:                                                     false,
		`{"path":"a","limit":"10"}`:                                                             false,
		`{"path":"a","limit":10,"tags":[1]}`:                                                    false,
		`{"path":"a","limit":10,"deep":{}}`:                                                     false,
		`{"path":"a","limit":10,"limit":"x"}`:                                                   false,
		`{"path":"a","limit":10}x`:                                                              false,
		`{"path":"a","limit":10`:                                                                false,
		`[]`:                                                                                    false,
		// For the full validator.
		`{"path":"a","limit":99999999999999999999}`: false,
	} {
		if got := s.fast.accepts(json.RawMessage(args)); got != want {
			t.Errorf("accepts(%s) = %v, want %v", args, got, want)
		}
	}
}

func genSchema(t *rapid.T, depth int) map[string]any {
	s := map[string]any{}
	kinds := []string{"string", "integer", "number", "boolean", "null"}
	if depth > 0 {
		kinds = append(kinds, "object", "array", "object", "array")
	}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	if depth == 3 {
		kind = "object"
	}
	switch kind {
	case "object":
		props := map[string]any{}
		var required []string
		for i := range rapid.IntRange(0, 4).Draw(t, "props") {
			name := fmt.Sprintf("p%d", i)
			props[name] = genSchema(t, depth-1)
			if rapid.Bool().Draw(t, "required") {
				required = append(required, name)
			}
		}
		s["properties"] = props
		if required != nil {
			s["required"] = required
		}
		switch rapid.IntRange(0, 2).Draw(t, "additional") {
		case 0:
			s["additionalProperties"] = false
		case 1:
			s["additionalProperties"] = genSchema(t, 0)
		}
	case "array":
		s["items"] = genSchema(t, depth-1)
	case "string":
		if rapid.Bool().Draw(t, "enum") {
			s["enum"] = []string{"a", "b", "\u00e9\""}
		}
	case "integer":
		if rapid.Bool().Draw(t, "min") {
			s["minimum"] = rapid.IntRange(-5, 5).Draw(t, "minimum")
		}
		if rapid.Bool().Draw(t, "max") {
			s["maximum"] = rapid.IntRange(-5, 5).Draw(t, "maximum")
		}
	}
	s["type"] = kind
	if rapid.IntRange(0, 5).Draw(t, "nullable") == 0 {
		s["type"] = []string{kind, "null"}
	}
	return s
}

// genFor writes JSON that usually fits s.
func genFor(t *rapid.T, s map[string]any, depth int) string {
	if rapid.IntRange(0, 15).Draw(t, "wild") == 0 || depth < 0 {
		return rapid.SampledFrom([]string{`null`, `1`, `1.0`, `1e2`, `-3`, `"a"`, `"b"`, `"\u0061"`, `true`, `{}`, `[]`, `[1]`, `{"p0":1}`, `1.5`}).Draw(t, "value")
	}
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]string); ok {
		kind = list[0]
	}
	switch kind {
	case "object":
		var parts []string
		props, _ := s["properties"].(map[string]any)
		for i := range 5 {
			name := fmt.Sprintf("p%d", i)
			p, ok := props[name].(map[string]any)
			if !ok && rapid.IntRange(0, 9).Draw(t, "extra") > 0 || rapid.IntRange(0, 9).Draw(t, "leave") == 0 {
				continue
			}
			if p == nil {
				p = map[string]any{}
			}
			parts = append(parts, fmt.Sprintf("%q: %s", name, genFor(t, p, depth-1)))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case "array":
		var parts []string
		item, _ := s["items"].(map[string]any)
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			parts = append(parts, genFor(t, item, depth-1))
		}
		return "[" + strings.Join(parts, " , ") + "]"
	case "string":
		return rapid.SampledFrom([]string{`"a"`, `"b"`, `"é\""`, `"\u00e9\u0022"`, `"zz"`}).Draw(t, "s")
	case "integer":
		return rapid.SampledFrom([]string{`0`, `1`, `-2`, `4`, `5`, `6`, `1.0`, `12345678901234567890`, `-0`}).Draw(t, "i")
	case "number":
		return rapid.SampledFrom([]string{`0`, `1.5`, `-2e9`, `1e400`}).Draw(t, "n")
	case "boolean":
		return rapid.SampledFrom([]string{`true`, `false`}).Draw(t, "b")
	case "null":
		return "null"
	}
	return `"any"`
}
