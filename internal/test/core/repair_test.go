package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// probe is a tool with the schema input that records the arguments of its calls.
func probe(input string, ran *[]string) *pawl.Tool {
	return &pawl.Tool{Name: "probe", Input: json.RawMessage(input),
		Run: func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			*ran = append(*ran, string(c.Args))
			return llm.TextResult("done"), nil
		}}
}

const trip = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1},"units":{"enum":["metric","imperial"]},
	"tags":{"type":"array","items":{"type":"string"}}},"required":["city","days"],"additionalProperties":false}`

func TestArgumentsAreRepaired(t *testing.T) {
	for args, want := range map[string]string{
		`{"city":"Oslo","days":3}`:                 `{"city":"Oslo","days":3}`,
		"```json\n{city: 'Oslo', \"days\": 3,}```": `{"city":"Oslo","days":3} | removed a code fence | quoted the name city | replaced single quotes | removed a trailing comma`,
		`{"City":"Oslo","days":"3","tags":"sea"}`:  `{"city":"Oslo","days":3,"tags":["sea"]} | City: read as city | days: read the text "3" as the number 3 | tags: put the lone value in a list`,
		`{"city":"Oslo \ud83d","days":3}`:          `{"city":"Oslo \ufffd","days":3} | replaced half of a UTF-16 pair by U+FFFD`,
		`{"city":"\ud83d\ude00","days":3}`:         `{"city":"\ud83d\ude00","days":3}`,
		`"{'city':'Oslo','days':'3'}"`:             `{"city":"Oslo","days":3} | read the text as the JSON that it is | replaced single quotes | days: read the text "3" as the number 3`,
	} {
		var ran []string
		x := execute(t, probe(trip, &ran), args)
		if x.Outcome != pawl.OutcomeOK || len(ran) != 1 || ran[0] != string(x.Call.Args) {
			t.Errorf("%s: %s %q, ran with %q", args, x.Outcome, x.Result.Text(), ran)
			continue
		}
		if diff := cmp.Diff(strings.Join(append(ran, x.Repairs...), " | "), want); diff != "" {
			t.Errorf("%s: got -, want +\n%s", args, diff)
		}
	}
}

// A schema that is not closed accepts any field: arguments that fit are passed unchanged.
func TestArgumentsThatFitAreNotRepaired(t *testing.T) {
	const open = `{"type":"object","properties":{"city":{"type":"string"},"max_days":{"type":"integer"}},"required":["city"]}`
	for _, args := range []string{`{"city":"Oslo","maxDays":3}`, `{"city":"Oslo","other":3}`} {
		var ran []string
		x := execute(t, probe(open, &ran), args)
		if got := strings.Join(append(ran, x.Repairs...), " | "); x.Outcome != pawl.OutcomeOK || got != args {
			t.Errorf("%s: %s, got %s, want it as it is", args, x.Outcome, got)
		}
	}
}

func TestNoRepair(t *testing.T) {
	for _, args := range []string{`{"city":"Oslo","days":3,}`, `{"city":"Oslo","days":"3"}`} {
		var ran []string
		tool := probe(trip, &ran)
		tool.NoRepair = true
		for _, tool := range []*pawl.Tool{tool, tool.Clone()} {
			if x := execute(t, tool, args); x.Outcome != pawl.OutcomeInvalid || len(ran) > 0 ||
				len(x.Repairs) > 0 || string(x.Call.Args) != args {
				t.Errorf("%s: %s, ran with %q, repairs %q", args, x.Outcome, ran, x.Repairs)
			}
		}
	}
}

// The result for the model names the field, the expected type, the actual value and the nearest
// allowed value, and shows arguments that fit.
func TestCorrection(t *testing.T) {
	for args, want := range map[string]string{
		`{"city":"Oslo","days":0,"units":"metrics","town":1}`: `The arguments of probe do not fit its schema:
- unknown field "town"; the fields here are "city", "days", "tags", "units"
- field days: expected at least 1, got number 0
- field units: expected one of "metric", "imperial", got string "metrics" (did you mean "metric"?)
Arguments of the right form, with your own values: {"city":"text","days":1}`,
		``: `The call of probe has no arguments, but it needs them:
- missing required fields "city", "days"
Arguments of the right form, with your own values: {"city":"text","days":1}`,
		`{"city":"Oslo","days":`: `The arguments of probe are not valid JSON: it ends too early: an object or a list is not closed. Send one JSON object that fits the tool's schema, for example: {"city":"text","days":1}. You sent: {"city":"Oslo","days":`,
		`{"city":Oslo,"days":1}`: `The arguments of probe are not valid JSON: there is text without quotes: Oslo,"days":1}, at byte 8. Send one JSON object that fits the tool's schema, for example: {"city":"text","days":1}. You sent: {"city":Oslo,"days":1}`,
	} {
		var ran []string
		x := execute(t, probe(trip, &ran), args)
		if diff := cmp.Diff(x.Result.Text(), want); diff != "" || x.Outcome != pawl.OutcomeInvalid ||
			len(ran) > 0 || len(x.Repairs) > 0 {
			t.Errorf("%s: %s, got -, want +\n%s", args, x.Outcome, diff)
		}
	}
}

// The record and the event list the repairs, and the transcript keeps the model's text. Calls of a
// truncated reply are not repaired.
func TestRepairedCallsInARun(t *testing.T) {
	const wrote = `{"city":"Oslo","days":"3"}`
	var ran, told []string
	cut := script.Call("probe", wrote)
	cut.Finish = llm.FinishReasonLength
	a := &pawl.Agent{Model: script.New(script.Call("probe", wrote), cut, script.Say("ok")),
		Tools: []pawl.Toolset{probe(trip, &ran)}}
	var res *pawl.Result
	for e, err := range a.Stream(t.Context(), llm.User("go")) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case pawl.EventCallCompleted:
			told = append(told, fmt.Sprint(e.Execution.Outcome, e.Execution.Repairs))
		case pawl.EventRunEnded:
			res = e.Result
		}
	}
	if want := []string{`{"city":"Oslo","days":3}`}; !slices.Equal(ran, want) {
		t.Errorf("ran with %q, want %q", ran, want)
	}
	if want := []string{`ok[days: read the text "3" as the number 3]`, "skipped[]"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if got := string(res.Messages[1].Calls()[0].Args); got != wrote {
		t.Errorf("the transcript has %s, want what the model wrote: %s", got, wrote)
	}
}

// Arguments from a middleware are validated and not repaired, because a hook decides on the
// arguments that run.
func TestArgumentsOfAMiddlewareAreNotRepaired(t *testing.T) {
	var ran []string
	change := pawl.Middleware{Tool: func(next pawl.ToolFunc) pawl.ToolFunc {
		return func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			c.Args = json.RawMessage(`{"city":"Oslo","days":"4"}`)
			return next(ctx, c)
		}
	}}
	a := &pawl.Agent{Model: script.New(script.Call("probe", `{"city":"Oslo","days":"3"}`), script.Say("ok")), Tools: []pawl.Toolset{probe(trip, &ran)},
		Middleware: []pawl.Middleware{change}}
	res, err := a.Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	if x := res.Steps[0].Executions[0]; x.Outcome != pawl.OutcomeInvalid || len(ran) > 0 {
		t.Errorf("%s, ran with %q", x.Outcome, ran)
	}
}

// The Serial key of a call is made from the arguments that run, and not from the written text.
func TestSerialSeesRepairedArguments(t *testing.T) {
	var ran, keys []string
	tool := probe(trip, &ran)
	tool.Serial = func(args json.RawMessage) string {
		keys = append(keys, string(args))
		return ""
	}
	together := script.Together(script.Call("probe", `{"city":"Oslo","days":"3"}`), script.Call("probe", `{"city":"Oslo","days":4}`))
	a := &pawl.Agent{Model: script.New(together, script.Say("ok")), Tools: []pawl.Toolset{tool},
		Parallel: pawl.Parallel{Limit: 1}}
	if _, err := a.Run(t.Context(), llm.User("go")); err != nil {
		t.Fatal(err)
	}
	if want := []string{`{"city":"Oslo","days":3}`, `{"city":"Oslo","days":4}`}; !slices.Equal(keys, want) {
		t.Errorf("keys were made from %q, want %q", keys, want)
	}
}
