package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/test/gotypes"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// A value of a Go type, encoded, fits the inferred schema by the verdict of two validators,
// decodes, and is the same when it is encoded again.
func TestGoTypesFitTheirSchemas(t *testing.T) {
	samples := gotypes.All()
	if len(samples) < 60 {
		t.Errorf("only %d types", len(samples))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range samples {
		judge, err := judge(s.Schema)
		if err != nil {
			t.Errorf("%s: %v: %s", s.Name, err, s.Schema)
			continue
		}
		for range soak.N(100, 2000) {
			doc := s.Random(r)
			if err := s.Echo.Validate(doc); err != nil {
				t.Fatalf("%s: %s\n%v\n%s", s.Name, doc, err, s.Schema)
			}
			var v any
			if err := json.Unmarshal(doc, &v); err != nil {
				t.Fatal(err)
			}
			if err := judge.Validate(v); err != nil {
				t.Fatalf("%s: %s\nanother validator: %v\n%s", s.Name, doc, err, s.Schema)
			}
			res, err := s.Echo.Run(t.Context(), llm.ToolCall{Name: s.Echo.Name, Args: doc})
			if err != nil || !bytes.Equal(res.Data, doc) {
				t.Fatalf("%s: sent %s, got %s, %v", s.Name, doc, res.Data, err)
			}
		}
	}
}

// Each type refuses documents that break its schema or the type itself, before the tool runs.
func TestGoTypesRefuseWrongDocuments(t *testing.T) {
	for _, s := range gotypes.All() {
		strict := s.Echo.Clone()
		strict.NoRepair = true
		for _, wrong := range s.Wrong {
			if err := strict.Validate(json.RawMessage(`{"v":` + wrong + `}`)); err == nil {
				t.Errorf("%s takes %s: %s", s.Name, wrong, s.Schema)
			} else if strings.Contains(err.Error(), "gotypes.") {
				t.Errorf("%s: the model reads names of Go: %v", s.Name, err)
			}
		}
	}
}

// A document that Validate accepts decodes, however it came about.
func TestWhatGoTypesAcceptDecodes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range gotypes.All() {
		strict := s.Echo.Clone()
		strict.NoRepair = true
		accepted := 0
		for range soak.N(200, 5000) {
			v, err := jsonform.Value(s.Random(r))
			if err != nil {
				t.Fatal(err)
			}
			for range 1 + r.IntN(3) {
				v = mutated(r, v)
			}
			doc, err := jsonform.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if strict.Validate(doc) != nil {
				continue
			}
			accepted++
			if _, err := s.Echo.Run(t.Context(), llm.ToolCall{Name: s.Echo.Name, Args: doc}); err != nil {
				t.Fatalf("%s accepts %s and cannot read it: %v\n%s", s.Name, doc, err, s.Schema)
			}
		}
		if accepted == 0 && s.Name != "empty" {
			t.Logf("%s: no mutated document was accepted", s.Name)
		}
	}
}

// mutated changes one value inside v.
func mutated(r *rand.Rand, v any) any {
	pool := []any{nil, true, "", "17", "90s", "\"x\"", json.Number("0"), json.Number("3.0"), json.Number("1e2"),
		json.Number("-1"), json.Number("1e30"), json.Number("9223372036854775808"), json.Number("0.5"), []any{}, map[string]any{}}
	other := func() any { return pool[r.IntN(len(pool))] }
	switch x := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		switch n := r.IntN(10); {
		case len(keys) == 0 || n == 0:
			x["new"] = other()
		case n == 1:
			delete(x, keys[r.IntN(len(keys))])
		default:
			k := keys[r.IntN(len(keys))]
			x[k] = mutated(r, x[k])
		}
		return x
	case []any:
		switch n := r.IntN(6); {
		case len(x) == 0 || n == 0:
			return append(x, other())
		case n == 1:
			return x[1:]
		default:
			i := r.IntN(len(x))
			x[i] = mutated(r, x[i])
			return x
		}
	}
	return other()
}

// Control: the inference of google/jsonschema-go, which pawl used before, fails for many of the
// types: it refuses them, or its schema refuses their values.
func TestOldInferenceFailsTheLaw(t *testing.T) {
	var failed []string
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range gotypes.All() {
		if why := oldFault(s, r); why != "" {
			failed = append(failed, s.Name+": "+why)
		}
	}
	t.Logf("%d types:\n%s", len(failed), strings.Join(failed, "\n"))
	if len(failed) < 11 {
		t.Error("the control shows nothing")
	}
}

// oldFault returns why the old inference breaks the law for a type. "" means that it does not.
func oldFault(s gotypes.Sample, r *rand.Rand) string {
	old, err := jsonschema.ForType(s.Type, nil)
	if err != nil {
		return "no schema: " + err.Error()
	}
	resolved, err := old.Resolve(nil)
	if err != nil {
		return err.Error()
	}
	for range 50 {
		var v any
		doc := s.Random(r)
		if err := json.Unmarshal(doc, &v); err != nil {
			return err.Error()
		}
		if err := resolved.Validate(v); err != nil {
			return "refuses " + string(doc)
		}
	}
	return ""
}

// What has no schema is an error of NewFunc that names type, field and remedy.
func TestTypesWithoutSchema(t *testing.T) {
	type hidden struct {
		city string //lint:ignore U1000 the case is a type without exported fields
	}
	type inner struct {
		Do func() `json:"do"`
	}
	type unsayable struct{ Inner []inner }
	for _, c := range []struct {
		err  error
		want []string
	}{
		{noSchema[hidden](), []string{"core_test.hidden", "unexported", `json:"city"`}},
		{noSchema[unsayable](), []string{"core_test.unsayable", "Inner.[].Do", "func", `json:"-"`}},
		{noSchema[struct{ C chan int }](), []string{"field C (chan int)", `json:"-"`}},
		{noSchema[struct{ E error }](), []string{"field E (error)", "interface", "json.RawMessage"}},
		{noSchema[struct{ C complex128 }](), []string{"field C", "complex128"}},
		{noSchema[struct{ D gotypes.Decimal }](), []string{"field D (gotypes.Decimal)", "UnmarshalJSON", "JSONSchema()"}},
		{noSchema[map[[2]int]string](), []string{"[2]int has no text form", "MarshalText"}},
		{noSchema[struct {
			N int `jsonschema:"minimun=1"`
		}](), []string{"field N", "minimun", "minimum"}},
		{noSchema[struct {
			N int `jsonschema:"pattern=a"`
		}](), []string{"field N", "pattern is for string", "integer"}},
		{noSchema[struct {
			N int `jsonschema:"enum=a"`
		}](), []string{"field N", "enum=a", "integer"}},
		{noSchema[struct {
			S string `jsonschema:"pattern=("`
		}](), []string{"field S", "pattern"}},
		{noSchema[struct {
			L []string `jsonschema:"minItems=many"`
		}](), []string{"field L", "whole number"}},
		{noSchema[struct {
			//lint:ignore SA5008 the case is a name that encoding/json does not take
			S string `json:"a'b"`
		}](), []string{"field S", "a'b", "letters"}},
		{noSchema[struct{ L list }](), []string{"field L (core_test.list)", "type object", "type array", "MarshalJSON"}},
		{noSchema[string](), []string{`"object"`}},
	} {
		if c.err == nil {
			t.Errorf("no error; want %q", c.want)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(c.err.Error(), want) {
				t.Errorf("%v\nhas no %q", c.err, want)
			}
		}
	}

	defer func() {
		if v := recover(); v == nil {
			t.Error("Func returned")
		}
	}()
	pawl.Func("f", "", func(context.Context, hidden) (string, error) { return "", nil })
}

// list states the schema of another type than its own.
type list []string

func (list) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":"object"}`) }

func noSchema[In any]() error {
	_, err := pawl.NewFunc("f", "", func(context.Context, In) (string, error) { return "", nil })
	return err
}

// The words of tags reach the schema, and a sentence stays a description.
func TestTags(t *testing.T) {
	type in struct {
		Color string   `json:"color" jsonschema:"enum=red,enum=blue,description=painted, not named"`
		Seats int      `json:"seats,omitempty" jsonschema:"required,minimum=1,maximum=9,default=4"`
		Plate string   `json:"plate" jsonschema:"pattern=^[A-Z]{1,3}$,minLength=1"`
		Doors []string `json:"doors" jsonschema:"minItems=1,enum=front,enum=rear"`
		Class *int     `json:"class" enum:"1,2" description:"the class"`
		Note  string   `json:"note,omitempty" jsonschema:"required, if there is room"`
		Sum   string   `json:"sum" jsonschema:"a, b = c"`
		At    float64  `json:"at" jsonschema:"exclusiveMinimum=0,multipleOf=0.5,title=Place"`
	}
	want := `{"type":"object","properties":{
		"color":{"type":"string","description":"painted, not named","enum":["red","blue"]},
		"seats":{"type":"integer","default":4,"minimum":1,"maximum":9},
		"plate":{"type":"string","minLength":1,"pattern":"^[A-Z]{1,3}$"},
		"doors":{"type":["null","array"],"items":{"type":"string","enum":["front","rear"]},"minItems":1},
		"class":{"type":["null","integer"],"description":"the class","enum":[1,2,null]},
		"note":{"type":"string","description":"required, if there is room"},
		"sum":{"type":"string","description":"a, b = c"},
		"at":{"type":"number","title":"Place","multipleOf":0.5,"exclusiveMinimum":0}},
		"required":["color","seats","plate","doors","class","sum","at"],"additionalProperties":false}`
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(want)); err != nil {
		t.Fatal(err)
	}
	if got := pawl.SchemaFor[in](); string(got) != b.String() {
		t.Errorf("got  %s\nwant %s", got, b.String())
	}
}

// Arguments keep what encoding/json would change: the digits of numbers in values of any type, and
// the unit of a duration.
func TestArgumentsKeepDigitsAndUnits(t *testing.T) {
	type in struct {
		A any            `json:"a"`
		M map[string]any `json:"m"`
		D string         `json:"d"`
	}
	var got in
	tool := pawl.Func("t", "", func(_ context.Context, v in) (string, error) { got = v; return "", nil })
	call := llm.ToolCall{Name: "t", Args: json.RawMessage(`{"a":9007199254740993,"m":{"id":[2512292042121000001,3.0]},"d":"x"}`)}
	if _, err := tool.Run(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	want := in{json.Number("9007199254740993"), map[string]any{"id": []any{json.Number("2512292042121000001"), json.Number("3.0")}}, "x"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
}
