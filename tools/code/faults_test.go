package code_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/code"
)

// A fault of a program is reported with its line and with a remedy. The outcome is one word.
func TestFaults(t *testing.T) {
	soak.Sequential(t)
	for _, tt := range []struct {
		name, code       string
		python, embedded string // outcomes; empty embedded means the same as python
		line             int
		says             []string
	}{
		{"syntax", "x = 1\nx = (1", "syntax", "", -1, []string{"Nothing was run", "send the whole program again"}},
		{"indent", "if True:\nx = 1", "syntax", "", 2, []string{"in line 2"}},
		{"zero byte", "x = '\x00'\ny = (", "syntax", "", -1, []string{"Nothing was run"}},
		{"a line fails", "a = [1]\nb = a[5]\nset_result(b)", "error", "", 2, []string{"failed in line 2", "out of range", "    2 | b = a[5]"}},
		{"a function fails", "def f(x):\n  return 1 // x\n\ndef g():\n  return f(0)\ng()", "error", "", 2, []string{"failed in line 2", "zero", "called from line 6", "called from line 5 in g"}},
		{"no such name", "x = resluts", "error", "syntax", 1, []string{"resluts", "line 1"}},
		{"unknown tool", "x = 1\ncall_tool('wether', {'city': 'Oslo'})", "error", "", 2, []string{`Unknown tool "wether"`, `Did you mean "weather"?`, "line 2"}},
		{"wrong arguments", "call_tool('weather', {'town': 'Oslo'})", "error", "", 1, []string{"do not fit its schema", "city", "1 of its calls had been made, and stay made: weather invalid"}},
		{"a call fails", "call_tool('add', {'a': 1, 'b': 2})\ncall_tool('weather', {'city': 'Atlantis'})", "error", "", 2, []string{"ToolError: there is no weather for Atlantis", "2 of its calls", "add ok, weather error"}},
		{"endless loop", "call_tool('now')\nx = 0\nwhile True:\n  x += 1", "timeout", "steps", -1, []string{"endless loop", "now ok"}},
		{"no result", "x = 1", "no_result", "", 0, []string{"set no result", "set_result(x)"}},
		{"result unset", "set_result(1)\nset_result(None)", "no_result", "", 0, []string{"set_result(x)"}},
		{"no JSON", "x = {1: 2}\nset_result(set([1]))", "error", "", 2, []string{"set_result takes a value with a JSON form", "line 2"}},
		{"no number", "set_result(float('inf'))", "error", "", 1, []string{"set_result takes a value with a JSON form"}},
		{"large result", "x = 'a' * 100000\nset_result(x)", "too_large", "", 2, []string{"100002 bytes as JSON, and at most 65536"}},
		{"large arguments", "call_tool('file_write', {'path': 'x', 'content': 'a' * 2000000})", "too_large", "", 1, []string{"the arguments have", "at most"}},
		{"a name that is none", "call_tool(3)", "error", "", 1, []string{"the tool's name is text"}},
		{"calls of no form", "call_tools_parallel(['weather'])", "error", "", 1, []string{"takes a list of (name, args)"}},
		{"code in code", "call_tool('execute_code', {'code': 'set_result(1)'})", "error", "", 1, []string{"cannot be called from a program"}},
		{"many calls", "for i in range(300):\n  call_tool('now')", "calls", "", 0, []string{"more than 200 calls", "now ok ×200"}},
		{"many calls at once", "call_tools_parallel([('now', {})] * 300)", "calls", "", 0, []string{"more than 200 calls"}},
		{"a result and a fault", "set_result({'half': 1})\n[][0]", "error", "", 2, []string{"It had set this result:", `{"half":1}`}},
		{"a deep recursion", "def f(n):\n  return f(n + 1)\nf(0)", "error", "", -1, []string{"recursion", "called from line"}},
		{"much memory", "x = 'ab'\nwhile True:\n  x = x + x", "memory", "", 3, []string{"Let it hold less at once", "line 3"}},
		{"a fault in a log", "print('here')\n[][0]", "error", "", 2, []string{"--- logs ---\nhere"}},
	} {
		for _, in := range interpreters(t) {
			t.Run(tt.name+"/"+in.Name(), func(t *testing.T) {
				want := tt.python
				if in.Name() == "embedded" && tt.embedded != "" {
					want = tt.embedded
				}
				// programs that end for another reason do so long before, even on a busy machine
				timeout := 60
				if want == "timeout" {
					timeout = 4
				}
				x, d := run(t, newTool(t, in, nil), newWorld(), object{"code": tt.code, "timeout": timeout})
				text := x.Result.Text()
				if d.Outcome != want || x.Result.IsError != (want != "no_result") {
					t.Errorf("outcome %s, error %t, want %s: %s", d.Outcome, x.Result.IsError, want, text)
				}
				if tt.line >= 0 && d.Line != tt.line {
					t.Errorf("line %d, want %d: %s", d.Line, tt.line, text)
				}
				for _, s := range tt.says {
					if !strings.Contains(text, s) {
						t.Errorf("does not say %q: %s", s, text)
					}
				}
				if strings.Contains(text, "/usr/") || strings.Contains(text, ".go:") ||
					strings.Contains(text, "bridge") || strings.Contains(text, "starlark") {
					t.Errorf("reveals the host: %s", text)
				}
			})
		}
	}
}

// Features of Python that the embedded dialect lacks are reported with their replacement.
func TestForeign(t *testing.T) {
	tool := newTool(t, code.Embedded(nil), nil)
	for text, want := range map[string]string{
		"import json": "json and math are there without it", "from x import y": "no import", "try:\n  x = 1\nexcept Exception:\n  pass": "try_call", "raise ValueError('x')": "fail(text)",
		"x = 1\ny = f'{x}'": "no f-strings", "x = 2 ** 3": "pow(a, b)", "x = None\ny = x is None": "==", "class A:\n  pass": "not of this part", "with open('x') as f:\n  pass": "not of this part",
		"x = 1 < 2 < 3": "cannot be chained", "y = [1]\nx = open('f')": "open is not defined",
	} {
		w := newWorld()
		if _, d := run(t, tool, w, object{"code": text}); d.Outcome != "syntax" || !strings.Contains(d.Error, want) {
			t.Errorf("%s: got %s %s", text, d.Outcome, d.Error)
		}
	}
}

// Invalid arguments are refused before anything starts, and so is a program outside a run.
func TestArguments(t *testing.T) {
	tool := newTool(t, code.Embedded(nil), nil)
	for _, args := range []object{{}, {"code": ""}, {"code": "x=1", "timeout": 301}, {"code": "x=1", "timeout": 0}, {"code": strings.Repeat("#", 70000)}, {"code": "x=1", "language": "python"}} {
		if x, _ := run(t, tool, newWorld(), args); x.Outcome != pawl.OutcomeInvalid {
			t.Errorf("%.60v: got %s", args, x.Outcome)
		}
	}
	res, err := tool.Run(t.Context(), llm.ToolCall{Name: "execute_code", Args: []byte(`{"code":"x=1"}`)})
	if err != nil || !res.IsError || !strings.Contains(res.Text(), "only be called in a run") {
		t.Errorf("got %q, %v", res.Text(), err)
	}
	for _, opts := range []*code.Options{{Time: -1}, {Time: 400e9}, {Output: 10}, {Output: 1 << 30}, {Calls: -1}} {
		if _, err := code.New(code.Embedded(nil), opts); err == nil {
			t.Errorf("%+v is taken", opts)
		}
	}
	if _, err := code.New(nil, nil); err == nil {
		t.Error("no interpreter is taken")
	}
}

// Of long logs the beginning and the end are reported. The result is always whole.
func TestLongLogs(t *testing.T) {
	for _, in := range interpreters(t) {
		x, d := run(t, newTool(t, in, nil), newWorld(), object{"code": "print('first')\nfor i in range(20000):\n  print('line %d' % i)\nprint('last')\nset_result('r' * 60000)"})
		text := x.Result.Text()
		if d.Outcome != "ok" || len(text) > 66<<10 || !strings.HasPrefix(text, `"rrr`) ||
			!strings.Contains(text, "--- logs ---\nfirst\nline 0") || !strings.HasSuffix(text, "line 19999\nlast") ||
			!strings.Contains(text, "bytes left out") || d.Bytes != 6+5+20000*6+10+90*2+900*3+9000*4+10000*5 {
			t.Errorf("%s: %s, %d bytes, %d of logs: %.100s … %s", in.Name(), d.Outcome, len(text), d.Bytes, text, text[max(0, len(text)-100):])
		}
	}
}
