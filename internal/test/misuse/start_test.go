package misuse_test

// start_test.go: mistakes in messages, agents, types and tools.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

var messages = []row{
	{"nil context", func(*testing.T) error {
		var ctx context.Context
		return failed((&pawl.Agent{Model: says("x")}).Run(ctx, ask))
	}, "the context is nil; use context.Background()"},
	{"no messages", func(t *testing.T) error {
		return failed((&pawl.Agent{Model: says("x")}).Run(t.Context()))
	}, "there is no message to answer"},
	{"empty text of the user", func(t *testing.T) error {
		return failed((&pawl.Agent{Model: says("x")}).Run(t.Context(), llm.User("")))
	}, "the message of the user is empty"},
	{"zero Message", func(t *testing.T) error {
		return failed((&pawl.Agent{Model: says("x")}).Run(t.Context(), llm.Message{}))
	}, `unknown role ""; known: system, developer, user, assistant, tool`},
	{"nil agent", func(t *testing.T) error {
		var a *pawl.Agent
		return failed(a.Run(t.Context(), ask))
	}, "an agent needs at least a Model"},
	{"nil pointer as a model", func(t *testing.T) error {
		var m *script.Model
		return failed((&pawl.Agent{Model: m}).Run(t.Context(), ask))
	}, "Model: the model, or the model that it wraps, is nil; set one"},
	{"model without a name", func(t *testing.T) error {
		m := openai.New("", &openai.Options{Key: "k1234567", BaseURL: "http://127.0.0.1:1/v1"})
		return (&pawl.Agent{Model: m}).Check(t.Context())
	}, "Model: openai: invalid_request: model: no model is named"},
	{"panic in a model", func(t *testing.T) error {
		m := script.New(script.Func(func(*llm.Request) script.Turn { panic("boom") }))
		_, err := (&pawl.Agent{Model: m}).Run(t.Context(), ask)
		panicked, ok := errors.AsType[*pawl.PanicError](err)
		if !ok || !strings.Contains(string(panicked.Stack), "start_test.go") {
			t.Errorf("the error has no stack: %v", err)
		}
		return err
	}, "run/0/model: the model panicked: boom"},
	{"middleware that returns no model", func(t *testing.T) error {
		w := pawl.Middleware{Model: func(llm.Model) llm.Model { return nil }}
		return failed((&pawl.Agent{Model: says("x"), Middleware: []pawl.Middleware{w}}).Run(t.Context(), ask))
	}, "Middleware[0]: its Model returned nil"},
	{"output that is no schema", func(t *testing.T) error {
		return failed((&pawl.Agent{Model: says("{}"), Output: json.RawMessage(`"City"`)}).Run(t.Context(), ask))
	}, "Output: schema: want a JSON object, got string"},
	{"nil stream", func(*testing.T) error {
		return failed(pawl.Collect(nil, nil))
	}, "the stream is nil; pass what Stream returned"},
	{"Into with a Runner without output", func(*testing.T) error {
		var r any = observe.RunnerFunc(nil)
		if _, ok := r.(pawl.OutputRunner); ok {
			return nil
		}
		return errors.New("it does not compile: missing method WithOutput")
	}, "it does not compile"},
	{"Into a string", func(t *testing.T) error {
		m := says("Oslo", `{"value":"Oslo"}`)
		v, _, err := pawl.Into[string](t.Context(), &pawl.Agent{Model: m}, ask)
		if v != "Oslo" {
			return fmt.Errorf("got %q, %v", v, err)
		}
		return err
	}, ""}, // an answer that is no JSON is sent back
	{"Into a type with a function", func(t *testing.T) error {
		return panicOf(func() {
			_, _, _ = pawl.Into[struct{ F func() }](t.Context(), &pawl.Agent{Model: says(`{}`)}, ask)
		})
	}, `field F (func()): a func has no JSON form; remove it, or leave the field out with json:"-"`},
	{"Into a recursive type", func(t *testing.T) error {
		type node struct{ Kids []node }
		_, res, err := pawl.Into[node](t.Context(), &pawl.Agent{Model: says(`{"Kids":[]}`)}, ask)
		return answered(res, err)
	}, ""}, // its schema has $defs
	{"tool that ends the run of Into", func(t *testing.T) error {
		end := pawl.Func("end", "Ends.", func(context.Context, none) (string, error) {
			return "", pawl.FinishError(llm.TextResult("done"))
		})
		_, _, err := pawl.Into[city](t.Context(), &pawl.Agent{Model: calls("end"), Tools: []pawl.Toolset{end}}, ask)
		return err
	}, "the run ended without a whole answer"},
}

// redefined gives a used tool another schema, and returns an error if the next run does not send
// and check it.
func redefined(t *testing.T, tool *pawl.Tool) error {
	tool.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	m := calls(tool.Name)
	res, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}}).Run(t.Context(), ask)
	if err != nil {
		return err
	}
	sent := m.Requests()[0].Tools[0]
	x := res.Steps[0].Executions[0]
	if sent.Name != tool.Name || string(sent.Input) != string(tool.Input) || x.Outcome != pawl.OutcomeInvalid {
		return fmt.Errorf("sent %s %s, and the call without n is %s", sent.Name, sent.Input, x.Outcome)
	}
	return nil
}

var tools = []row{
	{"input with unexported fields only", func(*testing.T) error {
		return panicOf(func() {
			pawl.Func("t", "Does it.", func(context.Context, struct{ city string }) (string, error) { return "", nil })
		})
	}, "all of its fields are unexported, so that its JSON is always {}; export them"},
	{"pointer as input", func(t *testing.T) error {
		tool := pawl.Func("t", "Does it.", func(_ context.Context, c *city) (string, error) { return c.City, nil })
		m := script.New(script.Call("t", `{"City":"Oslo"}`), script.Say("Done."))
		return executed(t, &pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}}, pawl.OutcomeOK)
	}, ""}, // it is never nil
	{"string as input", func(*testing.T) error {
		return panicOf(func() {
			pawl.Func("t", "Does it.", func(context.Context, string) (string, error) { return "", nil })
		})
	}, `"type" must be "object", since arguments are an object; got string`},
	{"error as output", func(*testing.T) error {
		return panicOf(func() {
			pawl.Func("t", "Does it.", func(context.Context, none) (error, error) { return nil, nil })
		})
	}, "return it as the second result"},
	{"two tools of one name", func(t *testing.T) error {
		sets := []pawl.Toolset{does("a"), pawl.Toolsets{does("a")}}
		return failed((&pawl.Agent{Model: says("x"), Tools: sets}).Run(t.Context(), ask))
	}, "Tools[1]: two tools are named \"a\", and the first is in Tools[0]; rename one"},
	{"name of a tool with a space", func(t *testing.T) error {
		m := says("x")
		err := answered((&pawl.Agent{Model: m, Tools: []pawl.Toolset{does("get weather")}}).Run(t.Context(), ask))
		if name := m.Requests()[0].Tools[0].Name; name != "get weather" {
			return fmt.Errorf("the model gets %q", name)
		}
		return err
	}, ""}, // adapters send names that their providers accept
	{"tool without a description", func(t *testing.T) error {
		tool := pawl.Func("get_weather", "", func(context.Context, city) (string, error) { return "sunny", nil })
		m := says("x")
		err := answered((&pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}}).Run(t.Context(), ask))
		if spec := m.Requests()[0].Tools[0]; spec.Name == "" || len(spec.Input) == 0 {
			return fmt.Errorf("the model gets %+v", spec)
		}
		return err
	}, ""}, // the model has its name and its schema: Tool.Description
	{"copy of a used tool is changed", func(t *testing.T) error {
		tool := does("a")
		if err := executed(t, &pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{tool}}, pawl.OutcomeOK); err != nil {
			return err
		}
		renamed := new(pawl.Tool) // vet reports *renamed = *tool
		reflect.ValueOf(renamed).Elem().Set(reflect.ValueOf(tool).Elem())
		renamed.Name = "b"
		return redefined(t, renamed)
	}, ""}, // it is a new tool
	{"used tool is changed", func(t *testing.T) error {
		tool := does("a")
		if err := executed(t, &pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{tool}}, pawl.OutcomeOK); err != nil {
			return err
		}
		return redefined(t, tool)
	}, ""}, // it is a new tool
	{"panic in a tool", func(t *testing.T) error {
		tool := pawl.Func("t", "Does it.", func(context.Context, none) (string, error) { panic("boom") })
		return executed(t, &pawl.Agent{Model: calls("t"), Tools: []pawl.Toolset{tool}}, pawl.OutcomePanicked)
	}, "panic: boom; the model reads: The tool failed unexpectedly and gave no result."},
	{"tool that ignores its timeout", func(t *testing.T) error {
		tool := does("a")
		tool.Timeout = 50 * time.Millisecond
		tool.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			<-t.Context().Done()
			return llm.TextResult("late"), nil
		}
		return executed(t, &pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{tool}}, pawl.OutcomeTimeout)
	}, "a did not end within 50ms and still runs"},
	{"very large result", func(t *testing.T) error {
		tool := does("a")
		tool.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult(strings.Repeat("x", 20<<20)), nil
		}
		res, err := (&pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{tool}}).Run(t.Context(), ask)
		if err != nil {
			return err
		}
		if n := len(res.Steps[0].Executions[0].Result.Text()); n > 32<<10 {
			return fmt.Errorf("%d bytes are kept", n)
		}
		return nil
	}, ""}, // Tool.MaxResult
	{"agent as its own tool", func(t *testing.T) error {
		a := &pawl.Agent{Name: "a", Model: script.New(script.Loop(script.Call("a", `{"task":"again"}`)))}
		a.Tools = []pawl.Toolset{a.Tool("Itself.")}
		return failed(a.Run(t.Context(), ask))
	}, "the model repeats the call of a although its result does not change; change the instructions"},
}
