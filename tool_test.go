package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

type place struct {
	City string   `json:"city" jsonschema:"the city's name"`
	Days int      `json:"days,omitempty"`
	Tags []string `json:"tags,omitempty"`
	At   *float64 `json:"at,omitempty"`
}

func TestFuncInfersTheSchema(t *testing.T) {
	tool := pawl.Func("weather", "Weather in a city.", func(_ context.Context, in place) (string, error) { return "rain in " + in.City, nil })
	if tool.Name != "weather" || tool.Description != "Weather in a city." || tool.Effect != pawl.EffectUnstated ||
		tool.Passive || tool.Output != nil {
		t.Errorf("got %+v", tool)
	}
	var got, want any
	if err := json.Unmarshal(tool.Input, &got); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal([]byte(`{"type":"object","properties":{"city":{"type":"string","description":"the city's name"},"days":{"type":"integer"},
		"tags":{"type":["null","array"],"items":{"type":"string"}},"at":{"type":["null","number"]}},"required":["city"],"additionalProperties":false}`), &want)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if x := execute(t, tool, `{"city":"Oslo"}`); x.Outcome != pawl.OutcomeOK || x.Result.Text() != "rain in Oslo" || x.Result.Data != nil {
		t.Errorf("got %+v", x)
	}
}

func TestFuncOutputs(t *testing.T) {
	type in struct{}
	type out struct {
		N int `json:"n"`
	}
	for name, test := range map[string]struct {
		tool   *pawl.Tool
		text   string
		data   string
		schema bool
		err    bool
	}{
		"string": {pawl.Func("f", "", func(context.Context, in) (string, error) { return "a\nb", nil }), "a\nb", "", false, false},
		"struct": {pawl.Func("f", "", func(context.Context, in) (out, error) { return out{7}, nil }), `{"n":7}`, `{"n":7}`, true, false},
		"number": {pawl.Func("f", "", func(context.Context, in) (float64, error) { return 0.5, nil }), `0.5`, `0.5`, true, false},
		"list":   {pawl.Func("f", "", func(context.Context, in) ([]out, error) { return []out{{1}}, nil }), `[{"n":1}]`, `[{"n":1}]`, true, false},
		"any": {pawl.Func("f", "", func(context.Context, in) (any, error) {
			return map[string]int{"a": 1},
				nil
		}), `{"a":1}`, `{"a":1}`, false, false},
		"result": {pawl.Func("f", "",
			func(context.Context, in) (llm.ToolResult, error) { return llm.ErrorResult("no"), nil }), "no", "", false, true},
		"error": {pawl.Func("f", "", func(context.Context, in) (out, error) { return out{}, errors.New("no such city") }), "no such city", "", true, true},
		"data": {pawl.Func("f", "", func(context.Context, in) (llm.ToolResult, error) {
			return llm.ToolResult{Data: json.RawMessage(`[1]`)}, nil
		}), "[1]", "[1]", false, false},
		"no form": {pawl.Func("f", "", func(context.Context, in) (any, error) { return func() {}, nil }), "", "", false, true},
		"map in": {pawl.Func("f", "", func(_ context.Context, in map[string]int) (string,
			error) {
			return fmt.Sprint(len(in)), nil
		}), "0", "", false, false},
	} {
		x := execute(t, test.tool, `{}`)
		if test.text != "" && x.Result.Text() != test.text || string(x.Result.Data) != test.data ||
			x.Result.IsError != test.err || (test.tool.Output != nil) != test.schema {
			t.Errorf("%s: got %q, data %s, error %t, output schema %s", name, x.Result.Text(), x.Result.Data, x.Result.IsError, test.tool.Output)
		}
	}
}

// Arguments that fit the schema but not the Go type are repaired, or rejected in words without Go
// terms. For example, JSON Schema accepts 3.0 for an integer and has no bounds for it.
func TestFuncArgumentsThatDoNotFitTheGoType(t *testing.T) {
	type in struct {
		N     int8            `json:"n,omitempty"`
		Big   int             `json:"big,omitempty"`
		Deep  map[string]uint `json:"deep,omitempty"`
		Bytes []byte          `json:"bytes,omitempty"`
		At    time.Time       `json:"at,omitzero"`
	}
	tool := pawl.Func("f", "", func(_ context.Context, in in) (string, error) { return fmt.Sprint(in.N), nil })
	for _, test := range []struct{ args, field string }{{`{"n":300}`, "n"}, {`{"n":1e3}`, "n"}, {`{"deep":{"x":-1}}`, "deep"}, {`{"n":123456789012345678901}`, "n"}, {`{"big":123456789012345678901}`, "big"},
		{`{"big":1e30}`, "big"}} {
		x := execute(t, tool, test.args)
		got := x.Result.Text()
		if x.Outcome != pawl.OutcomeInvalid || !strings.Contains(got, "field "+test.field) {
			t.Errorf("%s: got %s, %q; want invalid, with the field", test.args, x.Outcome, got)
		}
		for _, word := range []string{"Go ", "unmarshal", "int8", "uint", "struct", "pawl_test"} {
			if strings.Contains(got, word) {
				t.Errorf("%s: the model is told %q, which says %q", test.args, got, word)
			}
		}
	}
	for _, args := range []string{`{"n":3}`, `{"n":3.0}`, `{"n":3e0}`, `{"n":0.3e1,"big":-20.00}`} {
		if x := execute(t, tool, args); x.Result.Text() != "3" {
			t.Errorf("%s: got %s, %q", args, x.Outcome, x.Result.Text())
		}
	}
}

func TestFuncPanicsOnMistakesInTheProgram(t *testing.T) {
	for name, f := range map[string]func(){
		"no schema":   func() { pawl.Func("f", "", func(context.Context, func()) (string, error) { return "", nil }) },
		"not object":  func() { pawl.Func("f", "", func(context.Context, string) (string, error) { return "", nil }) },
		"no output":   func() { pawl.Func("f", "", func(context.Context, struct{}) (chan int, error) { return nil, nil }) },
		"list":        func() { pawl.Func("f", "", func(context.Context, []int) (string, error) { return "", nil }) },
		"has no name": func() { pawl.Func("", "", func(context.Context, struct{}) (string, error) { return "", nil }) },
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.HasPrefix(v, "pawl.Func") {
					t.Errorf("%s: got panic %q", name, v)
				}
			}()
			f()
		}()
	}
}

func TestCheck(t *testing.T) {
	run := says("f", "").Run
	for name, test := range map[string]struct {
		tool *pawl.Tool
		want string
	}{
		"good":         {&pawl.Tool{Name: "f", Run: run}, ""},
		"passive":      {&pawl.Tool{Name: "f", Passive: true}, ""},
		"no name":      {&pawl.Tool{Run: run}, "a tool has no name"},
		"nothing":      {&pawl.Tool{Name: "f"}, "tool f has neither Run nor Passive"},
		"no JSON":      {&pawl.Tool{Name: "f", Run: run, Input: json.RawMessage(`{`)}, "tool f: input schema: no JSON"},
		"not a schema": {&pawl.Tool{Name: "f", Run: run, Input: json.RawMessage(`true`)}, "want a JSON object, got boolean"},
		"not object":   {&pawl.Tool{Name: "f", Run: run, Input: json.RawMessage(`{"type":"string"}`)}, `"type" must be "object"`},
		"bad keyword":  {&pawl.Tool{Name: "f", Run: run, Input: json.RawMessage(`{"type":"object","properties":[]}`)}, "tool f: input schema"},
		"remote":       {&pawl.Tool{Name: "f", Run: run, Input: json.RawMessage(`{"$ref":"https://example.org/s.json"}`)}, "example.org/s.json is not loaded"},
		"file":         {&pawl.Tool{Name: "f", Run: run, Input: json.RawMessage(`{"$ref":"file:///etc/passwd"}`)}, "is not loaded"},
		"bad draft":    {&pawl.Tool{Name: "f", Run: run, Input: json.RawMessage(`{"$schema":"https://example.org/mine","type":"object"}`)}, "example.org/mine"},
		"bad pattern":  {&pawl.Tool{Name: "f", Run: run, Input: json.RawMessage(`{"type":"object","properties":{"a":{"pattern":"("}}}`)}, "tool f: input schema"},
	} {
		err := test.tool.Check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestCloneMayBeChanged(t *testing.T) {
	a := says("a", "x")
	a.Timeout, a.MaxResult, a.Effect, a.Serial = time.Second, 5, pawl.EffectRead,
		func(json.RawMessage) string { return "k" }
	if err := a.Check(); err != nil { // compiles the schema
		t.Fatal(err)
	}
	b := a.Clone()
	b.Name, b.Input = "b", json.RawMessage(`{"type":"object","required":["x"]}`)
	if b.Timeout != a.Timeout || b.MaxResult != a.MaxResult || b.Effect != a.Effect || b.Serial == nil {
		t.Errorf("got %+v", b)
	}
	if x := execute(t, b, `{}`); x.Outcome != pawl.OutcomeInvalid {
		t.Errorf("the copy's own schema is not used: got %s", x.Outcome)
	}
	if x := execute(t, a, `{}`); x.Outcome != pawl.OutcomeOK {
		t.Errorf("the original has changed: got %s", x.Outcome)
	}
}

func TestEffectText(t *testing.T) {
	for e := pawl.EffectWrite; e <= pawl.EffectCompose; e++ {
		b, err := e.MarshalText()
		var back pawl.Effect
		if err != nil || back.UnmarshalText(b) != nil || back != e {
			t.Errorf("%v came back as %v", e, back)
		}
	}
	if got := pawl.Effect(9).String(); got != "Effect(9)" {
		t.Errorf("got %s", got)
	}
}

func ExampleFunc() {
	type City struct {
		Name string `json:"name" jsonschema:"the city, in English"`
	}
	weather := pawl.Func("weather", "Current weather in a city.",
		func(ctx context.Context, c City) (string, error) { return "rain in " + c.Name, nil })
	weather.Effect = pawl.EffectRead // it may be retried and needs no approval

	var input struct{ Properties json.RawMessage }
	if err := json.Unmarshal(weather.Input, &input); err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(input.Properties))
	good := pawl.Toolsets{weather}.Execute(context.Background(), llm.ToolCall{Name: "weather", Args: json.RawMessage(`{"name":"Oslo"}`)})
	fmt.Println(good.Outcome, good.Result.Text())
	bad := pawl.Toolsets{weather}.Execute(context.Background(), llm.ToolCall{Name: "weather", Args: json.RawMessage(`{"city":"Oslo"}`)})
	fmt.Println(bad.Outcome, bad.Result.Text())
	// Output:
	// {"name":{"type":"string","description":"the city, in English"}}
	// ok rain in Oslo
	// invalid The arguments of weather do not fit its schema:
	// - missing required field "name"
	// - unknown field "city"; the only field here is "name"
	// Arguments of the right form, with your own values: {"name":"text"}
}

// Clone copies every exported field, and the agent of Agent.Tool.
func TestCloneCopiesEveryField(t *testing.T) {
	tool := (&pawl.Agent{Model: script.New()}).Tool("Asks.")
	v := reflect.ValueOf(tool).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case !v.Type().Field(i).IsExported() || !f.IsZero():
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.CanInt():
			f.SetInt(1)
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.Type() == reflect.TypeFor[json.RawMessage]():
			f.SetBytes([]byte(`{}`))
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case f.Kind() == reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { panic("not called") }))
		default:
			t.Fatalf("%s: a kind of field that is new to this test", v.Type().Field(i).Name)
		}
	}
	clone := tool.Clone()
	c := reflect.ValueOf(clone).Elem()
	for i := range c.NumField() {
		if f := c.Type().Field(i); f.IsExported() && c.Field(i).IsZero() {
			t.Errorf("Clone does not copy %s", f.Name)
		}
	}
	if clone.Agent() != tool.Agent() {
		t.Error("Clone does not copy the agent")
	}
}
