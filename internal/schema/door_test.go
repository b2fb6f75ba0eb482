package schema

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/bombs"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// Each bomb is refused, by the door or for its arguments, within one second of CPU and 64 MiB.
func TestBombs(t *testing.T) {
	soak.Sequential(t)
	for _, b := range bombs.All() {
		t.Run(b.Name, func(t *testing.T) {
			var err error
			refusal := ""
			cpu, mem := bombs.Spent(func() {
				var s *Schema
				if s, err = Compile(json.RawMessage(b.Schema)); err == nil {
					_, _, refusal = s.Arguments(t.Context(), "f", json.RawMessage(b.Args), true)
				}
			})
			switch {
			case err == nil && (b.Args == "" || refusal == ""):
				t.Error("it was accepted")
			case err != nil && len(err.Error()) > 600:
				t.Errorf("the reason has %d bytes", len(err.Error()))
			}
			if cpu > bombs.MaxCPU || mem > bombs.MaxMemory {
				t.Errorf("it took %v of CPU and %d MiB", cpu, mem>>20)
			}
		})
	}
}

// A schema of the same kinds, but of usual size, is admitted, and its arguments are accepted.
func TestTheDoorIsWide(t *testing.T) {
	for name, tt := range map[string][2]string{
		"numbers":   {`{"properties":{"x":{"type":"number","multipleOf":0.01,"maximum":1.7976931348623157e+308}}}`, `{"x":12.25}`},
		"patterns":  {`{"properties":{"x":{"type":"string","pattern":"^.{1,1000}$"}},"patternProperties":{"^x-":{"type":"string"}}}`, `{"x":"` + strings.Repeat("a", 1000) + `"}`},
		"enum":      {`{"properties":{"x":{"type":"array","items":{"enum":["NO","SE",1]}}}}`, `{"x":["NO","SE",1,"NO"]}`},
		"recursion": {`{"properties":{"x":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/n"}}]}}}`, `{"x":[["a",["b"]],"c"]}`},
		"uneval":    {`{"allOf":[{"properties":{"x":{}}}],"unevaluatedProperties":false}`, `{"x":1}`},
		"schemas":   {`{"properties":{"x":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"x":{"type":"object","properties":{"a":{"type":"string","pattern":"^a"}}}}`},
	} {
		s, err := Compile(json.RawMessage(tt[0]))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, _, refusal := s.Arguments(t.Context(), "f", json.RawMessage(tt[1]), false); refusal != "" {
			t.Errorf("%s: %s", name, refusal)
		}
	}
}

// A check ends with the context of the run. The control is the same check in a living context.
func TestACheckEndsWithItsRun(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"properties":{"x":{"type":"array","items":{"type":"string","pattern":"^(a|b)*$"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	args := json.RawMessage(`{"x":["` + strings.Repeat(`ab","`, 2000) + `a"]}`)
	if _, _, refusal := s.Arguments(t.Context(), "f", args, true); refusal != "" {
		t.Fatal(refusal)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, refusal := s.Arguments(ended, "f", args, true); !strings.Contains(refusal, "the run ended") {
		t.Errorf("refusal: %q", refusal)
	}
}

// A panic of the validator is an error, for the one check.
func TestAPanicOfTheValidatorIsAnError(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"properties":{"x":{"type":"number","multipleOf":3}},"minProperties":1}`))
	if err != nil {
		t.Fatal(err)
	}
	s.full.Properties["x"].MultipleOf.SetInt64(0) // a division by zero
	if _, _, refusal := s.Arguments(t.Context(), "f", json.RawMessage(`{"x":4}`), true); !strings.Contains(refusal, "has a fault") {
		t.Errorf("refusal: %q", refusal)
	}
	if _, _, refusal := s.Arguments(t.Context(), "f", json.RawMessage(`{"y":4}`), true); refusal != "" {
		t.Errorf("the next check: %s", refusal)
	}
}

// FuzzDoor compiles any bytes, and checks any arguments against what was admitted. Neither panics.
func FuzzDoor(f *testing.F) {
	for _, b := range bombs.All() {
		if len(b.Schema)+len(b.Args) < 4096 {
			f.Add([]byte(b.Schema), []byte(b.Args))
		}
	}
	for _, keyword := range strings.Fields("minimum maximum exclusiveMinimum multipleOf minLength maxItems minProperties minContains const enum required type format pattern $ref $id $anchor $dynamicRef $recursiveRef $schema $vocabulary uniqueItems dependencies dependentRequired propertyNames contains prefixItems additionalItems unevaluatedItems unevaluatedProperties if contentSchema") {
		for _, v := range []string{`1e5`, `"#"`, `{}`, `[1,{"type":"string"}]`, `false`} {
			f.Add([]byte(`{"properties":{"x":{"`+keyword+`":`+v+`}}}`), []byte(`{"x":[1,"a",{"b":2}]}`))
		}
	}
	f.Fuzz(func(t *testing.T, src, args []byte) {
		output := func(src json.RawMessage) (*Schema, error) {
			s, _, err := CompileOutput(src)
			return s, err
		}
		for _, compile := range []func(json.RawMessage) (*Schema, error){Compile, output} {
			s, err := compile(src)
			if err != nil {
				continue
			}
			fixed, _, refusal := s.Arguments(t.Context(), "f", args, true)
			if refusal == "" && !json.Valid(fixed) {
				t.Errorf("%q accepts %q", src, fixed)
			}
			if strings.Contains(refusal, "has a fault") {
				t.Errorf("%q was admitted, and the validator panics at %q", src, args)
			}
		}
	})
}
