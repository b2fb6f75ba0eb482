package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// with returns a tool that is complete but for what change does.
func with(name string, change func(*pawl.Tool)) *pawl.Tool {
	t := says(name, "x")
	change(t)
	return t
}

func input(schema string) func(*pawl.Tool) {
	return func(t *pawl.Tool) { t.Input = json.RawMessage(schema) }
}

// Each fault of an agent names its field and says what would be right. A run does not start.
func TestCheckNamesTheField(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	m := script.New(script.Say("hi"))
	var none *pawl.Tool
	var empty *pawl.Registry
	var noModel *openai.Model
	f, g := says("f", ""), says("g", "")
	reconcile := func(context.Context, llm.ToolCall) (*llm.ToolResult, error) { return nil, nil }
	for want, a := range map[string]*pawl.Agent{
		`Model: the agent has no model; set one, such as openai.New("gpt-6.1-terra", nil)`: {},
		"Tools[1]: the entry is nil; remove it":                                            {Model: m, Tools: []pawl.Toolset{f, nil}},
		"Tools[0]: the entry is nil; remove":                                               {Model: m, Tools: []pawl.Toolset{none}},
		"Tools[0]: the entry is nil; ":                                                     {Model: m, Tools: []pawl.Toolset{empty}},
		"Tools[0]: the entry is nil":                                                       {Model: m, Tools: []pawl.Toolset{pawl.Toolsets{nil}}},
		"Tools[0]: pawl_test.nilTool returned a nil tool":                                  {Model: m, Tools: []pawl.Toolset{nilTool{}}},
		`Tools[2]: two tools are named "f", and the first is in Tools[0]; rename one, or put a Prefix`: {
			Model: m, Tools: []pawl.Toolset{f, g, pawl.Toolsets{f}}},
		"Tools[0]: a tool has no name":                 {Model: m, Tools: []pawl.Toolset{says("", "")}},
		"Tools[0]: tool f has neither Run nor Passive": {Model: m, Tools: []pawl.Toolset{&pawl.Tool{Name: "f"}}},
		"Tools[0]: tool f has Reconcile, which is for calls with EffectWrite": {Model: m, Tools: []pawl.Toolset{
			with("f", func(t *pawl.Tool) { t.Effect, t.Reconcile = pawl.EffectRead, reconcile })}},
		"Tools[0]: tool f has Inline, which is for EffectCompose": {Model: m, Tools: []pawl.Toolset{
			with("f", func(t *pawl.Tool) { t.Inline = true })}},
		"Tools[0]: tool f: input schema: no JSON": {Model: m, Tools: []pawl.Toolset{with("f", input("{"))}},
		`Tools[0]: tool f: input schema: "type" must be "object"`: {Model: m, Tools: []pawl.Toolset{
			with("f", input(`{"type":"string"}`))}},
		`"required" names "city", which "properties" does not have, and "additionalProperties" is false`: {
			Model: m, Tools: []pawl.Toolset{
				with("f", input(`{"type":"object","required":["city"],"additionalProperties":false}`))}},
		`"city" is no keyword, and "additionalProperties" is false; if it is an argument, put it into "properties"`: {
			Model: m, Tools: []pawl.Toolset{
				with("f", input(`{"type":"object","city":{"type":"string"},"additionalProperties":false}`))}},
		"Choice: tool choice: no tool \"h\" is offered; offered: f": {Model: m, Tools: []pawl.Toolset{f},
			Choice: llm.ToolChoice{Mode: llm.ToolNamed, Names: []string{"h"}}},
		"Choice: tool choice: no tool \"h\" is offered": {Model: m,
			Choice: llm.ToolChoice{Mode: llm.ToolNamed, Names: []string{"h"}}},
		"Output: schema: ": {Model: m, Output: json.RawMessage(`{"type":`)},
		"Output: schema: at '/type': value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'": {
			Model: m, Output: json.RawMessage(`{"type":"objekt"}`)},
		"Output: tool final_answer: an agent with an Output needs the name": {Model: m,
			Output: json.RawMessage(`{"type":"object"}`), Tools: []pawl.Toolset{says("final_answer", "")}},
		"Artifacts: the tool result_read reads them; rename the other": {Model: m, Artifacts: &artifact.Memory{},
			Tools: []pawl.Toolset{says("result_read", "")}},
		"Limits.Rounds: it is negative; NoRounds": {Model: m, Limits: pawl.Limits{Rounds: -2}},
		"Limits.Calls: it is negative; 0 means":   {Model: m, Limits: pawl.Limits{Calls: -1}},
		"Limits.CallsPerStep: it is negative":     {Model: m, Limits: pawl.Limits{CallsPerStep: -1}},
		"Limits.Tokens: it is negative":           {Model: m, Limits: pawl.Limits{Tokens: -1}},
		"Limits.Cost: it is negative":             {Model: m, Limits: pawl.Limits{Cost: -1}},
		"Limits.Cost: it is negative or no":       {Model: m, Limits: pawl.Limits{Cost: math.NaN()}},
		"Limits.Time: it is negative":             {Model: m, Limits: pawl.Limits{Time: -time.Second}},
		"Limits.LoopThreshold: it is more":        {Model: m, Limits: pawl.Limits{LoopThreshold: 51}},
		"Limits.AtLimit: want AtLimitAnswer":      {Model: m, Limits: pawl.Limits{AtLimit: 7}},
		"Limits.Cost: the price of the model openai:my-own, or of a model that may answer for it, is not known": {
			Model: openai.New("my-own", nil), Limits: pawl.Limits{Cost: 1}},
		"Model: the model, or the model that it wraps, is nil; set one": {Model: noModel},
		"Model: the model, or the model that it wraps, is nil":          {Model: catalog.Price{Input: 1}.Of(nil)},
		"Model: the model, or the model that it wraps, is":              {Model: catalog.Price{Input: 1}.Of(noModel)},
		"Middleware[1]: its Model returned nil": {Model: m, Middleware: []pawl.Middleware{{},
			{Model: func(llm.Model) llm.Model { return nil }}}},
		"Middleware[0]: its Model returned nil, or a model that wraps nil": {Model: m, Limits: pawl.Limits{Cost: 1},
			Middleware: []pawl.Middleware{{Model: func(llm.Model) llm.Model { return catalog.Price{}.Of(noModel) }}}},
		"Tools[0]: the entry is nil; remove it, or put": {Model: m, Tools: []pawl.Toolset{pawl.Prefix("p_", nil)}},
		"Tools[1]: the entry is nil; remove it, or put": {Model: m, Tools: []pawl.Toolset{f, pawl.Filter(empty, nil)}},
		`Tools[0]: tool f: input schema: "zip" is no keyword; an argument stands in "properties": {"type":"object","properties":{"zip":…}}`: {
			Model: m, Tools: []pawl.Toolset{with("f", input(`{"title":"f","city":{"type":"string"},"zip":{"type":"string"}}`))}},
		`Output: schema: "required" names "a", which "properties" does not have, and "additionalProperties" is false, so no object fits`: {
			Model: m, Output: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["a"]}`)},
		`Choice: tool choice: Names need the mode ToolNamed, as in llm.Named("h")`: {Model: m, Tools: []pawl.Toolset{f},
			Choice: llm.ToolChoice{Names: []string{"h"}}},
		`Settings.Options[openai]: not a JSON object, such as {"seed":7}`: {Model: m,
			Settings: llm.Settings{Options: map[string]json.RawMessage{"a": nil, "openai": json.RawMessage(`{"seed"`)}}},
		"Settings.MaxTokens: it is negative":              {Model: m, Settings: llm.Settings{MaxTokens: -1}},
		"Middleware[1]: Before has no function":           {Model: m, Middleware: []pawl.Middleware{{}, pawl.Before(nil)}},
		"Middleware[0]: After has no function":            {Model: m, Middleware: []pawl.Middleware{pawl.After(nil)}},
		"Middleware[0]: pawl.Approve was given no policy": {Model: m, Middleware: []pawl.Middleware{pawl.Approve(nil)}},
	} {
		err := a.Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		res, err := a.Run(t.Context(), llm.User("go"))
		if res != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run: got %+v, %v\nwant %s", res, err, want)
		}
	}
	if n := len(m.Requests()); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// nilTool is a Toolset that returns a nil tool.
type nilTool struct{}

func (nilTool) Tools(context.Context) ([]*pawl.Tool, error) { return []*pawl.Tool{nil}, nil }

// All faults are in one error, one in a line, with the agents among the tools.
func TestCheckFindsAllFaults(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	boom := errors.New("boom")
	child := &pawl.Agent{Name: "child", Model: script.New(script.Say("x")), Limits: pawl.Limits{Calls: -1}}
	a := &pawl.Agent{Model: catalog.Price{Input: 1}.Of(openai.New("gpt-6.1-terra", nil)),
		Tools:  []pawl.Toolset{nil, child.Tool("c"), brokenSet{boom}},
		Limits: pawl.Limits{Cost: 1, Tokens: -1}}
	child.Tools = []pawl.Toolset{a.Tool("a")} // in a circle
	err := a.Check(t.Context())
	if !errors.Is(err, boom) {
		t.Errorf("the cause is not found in %v", err)
	}
	var got []string
	for l := range strings.Lines(err.Error()) {
		got = append(got, l[:min(len(l), 44)])
	}
	want := []string{
		"Limits.Tokens: it is negative; 0 means no li",
		"Tools[0]: the entry is nil; remove it, or pu",
		"Tools[1]: agent child: Limits.Calls: it is n",
		"Tools[1]: agent child: Limits.Cost: the pric",
		"Tools[2]: boom\n",
		"Model: openai: authentication: no API key: O",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("%v\ngot -, want +\n%s", err, diff)
	}
}

// What looks like a fault and is none.
func TestCheckAccepts(t *testing.T) {
	m := script.New(script.Say("hi"))
	for name, a := range map[string]*pawl.Agent{
		"a tool without arguments": {Model: m, Tools: []pawl.Toolset{with("f", input(`{"type":"object","additionalProperties":false}`))}},
		"a required property":      {Model: m, Tools: []pawl.Toolset{with("f", input(`{"required":["a"],"properties":{"a":true},"additionalProperties":false}`))}},
		"a pattern":                {Model: m, Tools: []pawl.Toolset{with("f", input(`{"required":["a"],"patternProperties":{"a":true},"additionalProperties":false}`))}},
		"keywords that have schemas": {Model: m, Tools: []pawl.Toolset{with("f", input(
			`{"not":{"type":"object","required":["b"]},"x-note":{"type":"t"},"additionalProperties":false}`))}},
		"no limits": {Model: m,
			Limits: pawl.Limits{Rounds: pawl.NoRounds, Corrections: -1, LoopThreshold: -1}},
		"a middleware without a part":   {Model: m, Middleware: []pawl.Middleware{{}}},
		"a limit on cost and a price":   {Model: catalog.Price{}.Of(m), Limits: pawl.Limits{Cost: 1}},
		"no tools and a choice of none": {Model: m, Choice: llm.ToolChoice{Mode: llm.ToolNone}},
	} {
		if err := a.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In Go, a call with EffectWrite runs without a question unless the agent has an approver.
func TestWritesWithoutAnApprover(t *testing.T) {
	for _, test := range []struct {
		middleware []pawl.Middleware
		want       pawl.Outcome
	}{
		{nil, pawl.OutcomeOK},
		{[]pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}, pawl.OutcomePending},
	} {
		write := with("f", func(t *pawl.Tool) { t.Effect = pawl.EffectWrite })
		a := &pawl.Agent{Model: script.New(script.Call("f", "{}"), script.Say("done")), Tools: []pawl.Toolset{write},
			Middleware: test.middleware}
		res, _ := a.Run(t.Context(), llm.User("go")) // the outcome says whether it waits
		if got := res.Steps[0].Executions[0].Outcome; got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// Check asks each toolset for its tools once, with the context of its caller.
func TestCheckAsksToolsetsOnce(t *testing.T) {
	var asked []error
	set := listing(func(ctx context.Context) ([]*pawl.Tool, error) {
		asked = append(asked, context.Cause(ctx))
		return []*pawl.Tool{says("f", "")}, context.Cause(ctx)
	})
	child := &pawl.Agent{Model: script.New(), Tools: []pawl.Toolset{set}}
	a := &pawl.Agent{Model: script.New(), Tools: []pawl.Toolset{set, child.Tool("c")}}
	if err := a.Check(t.Context()); err != nil || len(asked) != 2 {
		t.Errorf("the toolset of two agents was asked %d times: %v", len(asked), err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if err := a.Check(ended); !errors.Is(err, gone) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

// Check finds what the model would return as the error of its first request.
func TestCheckAsksTheModel(t *testing.T) {
	negative := -1.0
	for want, m := range map[string]llm.Model{
		"Model: openai-chat: invalid_request: model: no model is named": openai.NewChat("", &openai.Options{Key: "k",
			BaseURL: "http://127.0.0.1:1/v1"}),
		"Model: openai-chat: invalid_request: model: no model": catalog.Price{Input: 1}.Of(openai.NewChat("", &openai.Options{
			Key: "k", BaseURL: "http://127.0.0.1:1/v1"})),
		"Model: catalog.Price: a price is less than 0": catalog.Price{Cached: &negative}.Of(script.New()),
		"Model: catalog.Price: a price is less":        catalog.Price{Input: math.NaN()}.Of(script.New()),
	} {
		a := &pawl.Agent{Model: m}
		if err := a.Check(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		res, err := a.Run(t.Context(), llm.User("go"))
		if why := strings.TrimPrefix(want, "Model: "); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("Run: got %v, want %s", err, why)
		}
		if res.Spent.Requests > 0 {
			t.Errorf("%s: a request was sent", want)
		}
	}
}

// A schema of keywords and annotations describes the arguments, even without a type.
func TestCheckAcceptsSchemasWithoutAType(t *testing.T) {
	for _, schema := range []string{`{}`, `{"title":"t"}`, `{"properties":{"city":{"type":"string"}}}`,
		`{"$defs":{"a":{"type":"string"}}}`, `{"x-city":{"type":"string"}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`,
		`{"anyOf":[{"required":["a"]}],"own":{"type":"string"}}`, `{"not":{"type":"string"}}`} {
		a := &pawl.Agent{Model: script.New(), Tools: []pawl.Toolset{with("f", input(schema))}}
		if err := a.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// A nil tool is an error of a Registry.
func TestRegistryRefusesANilTool(t *testing.T) {
	if err := new(pawl.Registry).Add(nil); err == nil || err.Error() != "the tool is nil" {
		t.Errorf("got %v", err)
	}
}

// listing is a Toolset by a function.
type listing func(context.Context) ([]*pawl.Tool, error)

func (l listing) Tools(ctx context.Context) ([]*pawl.Tool, error) { return l(ctx) }

// A mistake in a field of an agent is found by its field.
func TestFieldError(t *testing.T) {
	agent := &pawl.Agent{Model: script.New(script.Say("x")), Limits: pawl.Limits{Tokens: -1}}
	fault, ok := errors.AsType[*pawl.FieldError](agent.Check(t.Context()))
	if !ok || fault.Field != "Limits.Tokens" {
		t.Errorf("Check returns %v", fault)
	}
}
