package agentfile

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/team"
	"github.com/pawl-go/pawl/tools/outside"
)

// Some keys are copied by hand into the options of other packages. Each option has a key of the
// same name, or a renamed key here; "" means that no key sets it. A field that is added on either
// side must be copied or listed.
func TestKeysHaveEveryOption(t *testing.T) {
	for _, tt := range []struct {
		keys, options reflect.Type
		renamed       map[string]string // option: key; "" means that no key sets it
		apart         []string          // keys that set something else
	}{
		{reflect.TypeFor[Limits](), reflect.TypeFor[pawl.Limits](), map[string]string{"LoopThreshold": "Repeats"}, []string{"Parallel"}},
		{reflect.TypeFor[Settings](), reflect.TypeFor[llm.Settings](), map[string]string{"StopSequences": "Stop"}, nil},
		{reflect.TypeFor[Approve](), reflect.TypeFor[policy.Rules](), map[string]string{"AskByDefault": "", "Flow": "", "Default": "Else",
			"ValidFor": "Within"}, nil},
		{reflect.TypeFor[Rate](), reflect.TypeFor[policy.Rate](), map[string]string{"Key": ""}, nil},
		{reflect.TypeFor[Breaker](), reflect.TypeFor[policy.Breaker](), nil, nil},
		{reflect.TypeFor[Cache](), reflect.TypeFor[policy.Cache](), nil, nil},
		{reflect.TypeFor[React](), reflect.TypeFor[react.Options](), map[string]string{"MaxRetries": "Retries", "Enforce": "", "Prompt": "", "Decision": "",
			"FinalViaInference": "", "FinalModel": "", "FinalSettings": ""}, nil},
		{reflect.TypeFor[Team](), reflect.TypeFor[team.Options](), nil, []string{"Manager", "Workers", "Rules", "Default"}},
		{reflect.TypeFor[Team](), reflect.TypeFor[team.RouterOptions](), nil, []string{"Manager", "Workers", "OnFailure", "Tries", "MaxPhases"}},
		{reflect.TypeFor[Worker](), reflect.TypeFor[team.Worker](), map[string]string{"Agent": ""}, []string{"Name", "File"}},
		{reflect.TypeFor[Tool](), reflect.TypeFor[outside.Definition](), nil, []string{"Set", "MCP"}},
	} {
		set := map[string]bool{}
		for _, option := range reflect.VisibleFields(tt.options) {
			key, renamed := tt.renamed[option.Name]
			if !renamed {
				key = option.Name
			}
			set[key] = true
			if _, ok := tt.keys.FieldByName(key); !ok && key != "" && option.IsExported() {
				t.Errorf("%s.%s has no key in %s", tt.options, option.Name, tt.keys)
			}
		}
		for _, key := range reflect.VisibleFields(tt.keys) {
			if key.IsExported() && !set[key.Name] && !slices.Contains(tt.apart, key.Name) {
				t.Errorf("%s.%s sets nothing in %s", tt.keys, key.Name, tt.options)
			}
		}
	}
}

// filled returns a struct with a value in every field.
func filled(t *testing.T, of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	for i := range of.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		switch x := f.Addr().Interface().(type) {
		case *int:
			*x = 1
		case *bool:
			*x = true
		case *float64:
			*x = 0.5
		case *string:
			*x = "return"
			if of == reflect.TypeFor[Approve]() {
				*x = "deny"
			}
		case *outside.Duration:
			*x = outside.Duration(time.Minute)
		case *[]string:
			*x = []string{"x"}
		case *map[string]outside.JSON:
			*x = map[string]outside.JSON{"x": outside.JSON(`{}`)}
		default:
			t.Fatalf("the test knows no value for %s.%s", of, of.Field(i).Name)
		}
	}
	return v
}

// Every key of limits, settings and approve reaches the agent.
func TestKeysReachTheAgent(t *testing.T) {
	a := &Agent{Model: Models{{Name: "openai:gpt-6.1-terra"}}}
	a.Limits = filled(t, reflect.TypeFor[Limits]()).Interface().(Limits)
	a.Settings = filled(t, reflect.TypeFor[Settings]()).Interface().(Settings)
	a.Approve = filled(t, reflect.TypeFor[Approve]()).Interface().(Approve)
	b := &builder{agent: a}
	limits, err := b.limits(priced{})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []any{limits, a.settings(), a.Rules()} {
		v := reflect.ValueOf(got)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Field(i).IsZero() {
				t.Errorf("no key reaches %s.%s", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}

// priced is a model whose price is known.
type priced struct{ llm.Model }

func (priced) MaxCost(*llm.Request) (float64, bool) { return 1, true }

// An agent that will not run is built with some of the options. A field that is added to Options
// must be taken over by dry, or be named here.
func TestDryHasEveryOption(t *testing.T) {
	taken := []string{"Getenv", "Connect", "Notice", "Catalog", "Now", "Own"}
	own := []string{"Dry"}
	left := []string{"Tools", "Bare", "ForAll", "HTTP", "Offline", "Commands", "Ask", "Approve", "Inner", "Warned", "flow"}
	of := reflect.TypeFor[Options]()
	for i := range of.NumField() {
		if name := of.Field(i).Name; !slices.Contains(slices.Concat(taken, own, left), name) {
			t.Errorf("Options.%s is new: does dry take it over?", name)
		}
	}
	o := &Options{Getenv: func(string) string { return "" }, Connect: true, Notice: func(string) {},
		Catalog: catalog.Default(), Now: time.Now, Own: []string{"tokens.json"}}
	for _, name := range append(taken, own...) {
		if reflect.ValueOf(*o.dry()).FieldByName(name).IsZero() {
			t.Errorf("dry does not take over Options.%s", name)
		}
	}
}
