package code_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/code"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the state that the programs of the tests change.
type world struct {
	mu     sync.Mutex
	Files  map[string]string
	Orders map[int]string
	Mails  []string
	calls  []string // in order of execution
}

func newWorld() *world {
	return &world{Files: map[string]string{"index": "see a\nsee b\n", "a": "text\nsee c\n", "b": "text\n", "c": "end\n", "table": "name,n\nkiwi,1\nfig,2\npear,3\n"},
		Orders: map[int]string{1: "paid", 2: "late", 3: "paid", 4: "paid", 5: "late", 6: "paid"}}
}

// state returns everything that calls have changed.
func (w *world) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (w *world) ran() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}

type object = map[string]any

// tools returns the world's tools. Tools that change it have the effect EffectWrite.
func (w *world) tools() pawl.Toolsets {
	var all pawl.Toolsets
	add := func(name string, effect pawl.Effect, required string, run func(a object) (any, error)) {
		t := &pawl.Tool{Name: name, Effect: effect, Input: json.RawMessage(`{"type":"object","properties":{` + required + `},"required":[` + names(required) + `],"additionalProperties":false}`)}
		t.Run = func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			var a object
			if err := json.Unmarshal(c.Args, &a); err != nil {
				return llm.ToolResult{}, err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls = append(w.calls, name+" "+string(c.Args))
			v, err := run(a)
			if err != nil {
				return llm.ErrorResult(err.Error()), nil
			}
			if s, ok := v.(string); ok {
				return llm.TextResult(s), nil
			}
			b, err := json.Marshal(v)
			return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: string(b)}}, Data: b}, err
		}
		all = append(all, t)
	}
	add("web_search", pawl.EffectRead, `"query":{"type":"string"}`, func(a object) (any, error) {
		var list []object
		for i, score := range []float64{0.95, 0.85, 0.4} {
			list = append(list, object{"title": fmt.Sprint(a["query"], " ", i+1), "score": score, "url": fmt.Sprintf("https://example.com/%d", i+1)})
		}
		return list, nil
	})
	add("weather", pawl.EffectRead, `"city":{"type":"string"}`, func(a object) (any, error) {
		c, ok := map[any]int{"Oslo": 4, "Lima": 19, "Cairo": 31}[a["city"]]
		if !ok {
			return nil, fmt.Errorf("there is no weather for %v", a["city"])
		}
		return object{"city": a["city"], "celsius": c}, nil
	})
	add("add", pawl.EffectPure, `"a":{"type":"number"},"b":{"type":"number"}`, func(a object) (any, error) { return a["a"].(float64) + a["b"].(float64), nil })
	add("now", pawl.EffectRead, ``, func(object) (any, error) { return "2026-01-02", nil })
	add("flaky", pawl.EffectRead, `"n":{"type":"integer"}`, func(a object) (any, error) {
		if int(a["n"].(float64))%2 == 1 {
			return nil, fmt.Errorf("the line is busy")
		}
		return "done", nil
	})
	add("orders_list", pawl.EffectRead, `"page":{"type":"integer","minimum":1}`, func(a object) (any, error) {
		page := int(a["page"].(float64))
		items := []object{}
		for _, id := range slices.Sorted(maps.Keys(w.Orders)) {
			if (id-1)/2+1 == page {
				items = append(items, object{"id": id, "total": id * 10, "status": w.Orders[id]})
			}
		}
		var next any
		if page < 3 {
			next = page + 1
		}
		return object{"items": items, "next": next}, nil
	})
	add("order_update", pawl.EffectWrite, `"id":{"type":"integer"},"status":{"type":"string"}`, func(a object) (any, error) {
		w.Orders[int(a["id"].(float64))] = a["status"].(string)
		return "updated", nil
	})
	add("file_read", pawl.EffectRead, `"path":{"type":"string"}`, func(a object) (any, error) {
		text, ok := w.Files[a["path"].(string)]
		if !ok {
			return nil, fmt.Errorf("there is no file %v", a["path"])
		}
		return text, nil
	})
	add("file_write", pawl.EffectWrite, `"path":{"type":"string"},"content":{"type":"string"}`, func(a object) (any, error) {
		w.Files[a["path"].(string)] = a["content"].(string)
		return "written", nil
	})
	add("mail_send", pawl.EffectWrite, `"to":{"type":"string"},"text":{"type":"string"}`, func(a object) (any, error) {
		w.Mails = append(w.Mails, fmt.Sprint(a["to"], ": ", a["text"]))
		return "sent", nil
	})
	return all
}

// names returns the property names of a schema with one level.
func names(properties string) string {
	var list []string
	for _, p := range strings.Split(properties, "},") {
		if name, _, ok := strings.Cut(p, ":"); ok {
			list = append(list, name)
		}
	}
	return strings.Join(list, ",")
}

// data is the Data of a result.
type data struct {
	Outcome string          `json:"outcome"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Line    int             `json:"line"`
	Logs    string          `json:"logs"`
	Bytes   int64           `json:"logs_bytes"`
	Calls   []struct {
		Tool    string `json:"tool"`
		Outcome string `json:"outcome"`
	} `json:"calls"`
}

// interpreters returns the interpreters available here. A missing Python is logged, because half of
// a test then proves nothing.
func interpreters(t *testing.T) []code.Interpreter {
	t.Helper()
	list := []code.Interpreter{code.Embedded(nil)}
	py := code.Python(nil)
	t.Cleanup(func() { py.Close() })
	if err := py.Check(); err != nil {
		t.Logf("WITHOUT PYTHON: %v", err)
		return list
	}
	return append(list, py)
}

// python returns the interpreter of Python, and skips the test where there is none.
func python(t *testing.T, opts *code.PythonOptions) *code.PythonInterpreter {
	t.Helper()
	py := code.Python(opts)
	t.Cleanup(func() { py.Close() })
	if err := py.Check(); err != nil {
		t.Skip(err)
	}
	return py
}

func newTool(t *testing.T, in code.Interpreter, opts *code.Options) *pawl.Tool {
	t.Helper()
	tool, err := code.New(in, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// run executes a program over w.
func run(t *testing.T, tool *pawl.Tool, w *world, args object) (pawl.Execution, data) {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	x := pawl.Toolsets{append(w.tools(), tool)}.Execute(t.Context(), llm.ToolCall{Name: "execute_code", Args: b})
	var d data
	if x.Result.Data != nil {
		if err := json.Unmarshal(x.Result.Data, &d); err != nil {
			t.Fatalf("%v: %s", err, x.Result.Data)
		}
	}
	return x, d
}
