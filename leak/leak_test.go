package leak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/leak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func offered(names ...string) []*llm.ToolSpec {
	var tools []*llm.ToolSpec
	for _, n := range names {
		tools = append(tools, &llm.ToolSpec{Name: n, Input: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`)})
	}
	return tools
}

// oslo is the call that each form below writes.
const oslo = `weather {"city":"Oslo","days":3}`

func formOf(calls []llm.ToolCall) string {
	var out []string
	for _, c := range calls {
		var v any
		if err := json.Unmarshal(c.Args, &v); err != nil {
			return "broken: " + string(c.Args)
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		out = append(out, c.Name+" "+string(b))
	}
	return strings.Join(out, "; ")
}

// forms are the ways in which models write calls. n is how many calls; 0 stands for one.
var forms = []struct {
	name, text string
	n          int
}{
	{"hermes", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_call>", 0},
	{"hermes, two", "<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\",\"days\":3}}</tool_call>\n<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\",\"days\":3}}</tool_call>", 2},
	{"hermes, not closed", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}", 0},
	{"hermes, python quotes", "<tool_call>\n{'name': 'weather', 'arguments': {'city': 'Oslo', 'days': 3}}\n</tool_call>", 0},
	{"hermes, arguments first", "<tool_call>{\"arguments\": {\"city\": \"Oslo\", \"days\": 3}, \"name\": \"weather\"}</tool_call>", 0},
	{"arguments as text", `<tool_call>{"name":"weather","arguments":"{\"city\":\"Oslo\",\"days\":3}"}</tool_call>`, 0},
	{"qwen coder", "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>", 0},
	{"qwen coder, no outer tag", "<function=weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>", 0},
	{"llama 3.1", `<function=weather>{"city": "Oslo", "days": 3}</function>`, 0},
	{"llama 3 python tag", `<|python_tag|>{"name": "weather", "parameters": {"city": "Oslo", "days": 3}}<|eom_id|>`, 0},
	{"llama 3 python tag, call", `<|python_tag|>weather.call(city="Oslo", days=3)`, 0},
	{"llama 3.2, the whole reply", `{"type": "function", "name": "weather", "parameters": {"city": "Oslo", "days": 3}}`, 0},
	{"llama 3.2, several", `{"name": "weather", "parameters": {"city": "Oslo", "days": 3}}; {"name": "weather", "parameters": {"city": "Oslo", "days": 3}}`, 2},
	{"llama 4", `[weather(city="Oslo", days=3)]`, 0},
	{"llama 4, two", `[weather(city="Oslo", days=3), weather(days=3, city='Oslo')]`, 2},
	{"mistral", `[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]`, 0},
	{"mistral, end mark", `[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Oslo", "days": 3}, "id": "abc123def"}]</s>`, 0},
	{"mistral, new", `[TOOL_CALLS]weather[ARGS]{"city": "Oslo", "days": 3}`, 0},
	{"mistral, new, with id", `[TOOL_CALLS]weather[CALL_ID]abc123[ARGS]{"city": "Oslo", "days": 3}`, 0},
	{"mistral, new, bare", `[TOOL_CALLS]weather{"city": "Oslo", "days": 3}`, 0},
	{"deepseek v3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Oslo\", \"days\": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", 0},
	{"deepseek v3.1", `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Oslo", "days": 3}<｜tool▁call▁end｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Oslo", "days": 3}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`, 2},
	{"deepseek v3.1, outer mark lost", `<｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Oslo", "days": 3}<｜tool▁call▁end｜>`, 0},
	{"deepseek v3.2", `<｜DSML｜function_calls><｜DSML｜invoke name="weather"><｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter><｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`, 0},
	{"glm", "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", 0},
	{"kimi", `<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{"city": "Oslo", "days": 3}<|tool_call_end|><|tool_calls_section_end|>`, 0},
	{"gpt-oss", `<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city":"Oslo","days":3}<|call|>`, 0},
	{"claude-like", "<function_calls>\n<invoke name=\"weather\">\n<parameter name=\"city\">Oslo</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n</function_calls>", 0},
	{"claude-like, no outer tag", `<invoke name="weather"><parameter name="city">Oslo</parameter><parameter name="days">3</parameter></invoke>`, 0},
	{"minimax", `<minimax:tool_call><invoke name="weather"><parameter name="city">Oslo</parameter><parameter name="days">3</parameter></invoke></minimax:tool_call>`, 0},
	{"seed", `<seed:tool_call><function=weather><parameter=city>Oslo</parameter><parameter=days>3</parameter></function></seed:tool_call>`, 0},
	{"olmo", "<function_calls>\nweather(city=\"Oslo\", days=3)\n</function_calls>", 0},
	{"granite", `<|tool_call|>[{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]`, 0},
	{"phi", `<|tool_call|>[{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]<|/tool_call|>`, 0},
	{"phi, functools", `functools[{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]`, 0},
	{"jamba", `<tool_calls>[{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]</tool_calls>`, 0},
	{"cohere", `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "weather", "parameters": {"city": "Oslo", "days": 3}}]<|END_ACTION|>`, 0},
	{"internlm", `<|action_start|><|plugin|>{"name": "weather", "parameters": {"city": "Oslo", "days": 3}}<|action_end|>`, 0},
	{"nemotron", `<TOOLCALL>[{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]</TOOLCALL>`, 0},
	{"lfm", `<|tool_call_start|>[weather(city="Oslo", days=3)]<|tool_call_end|>`, 0},
	{"lm studio", `[TOOL_REQUEST]{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}[END_TOOL_REQUEST]`, 0},
	{"glaive", `<functioncall> {"name": "weather", "arguments": '{"city": "Oslo", "days": 3}'} <|endoftext|>`, 0},
	{"tool_use", `<tool_use>{"name": "weather", "input": {"city": "Oslo", "days": 3}}</tool_use>`, 0},
	{"function_call", `<function_call>{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}</function_call>`, 0},
	{"fenced", "```json\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n```", 0},
	{"fenced tool_call", "```tool_call\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n```", 0},
	{"gemma", "```tool_code\nprint(default_api.weather(city=\"Oslo\", days=3))\n```", 0},
	{"xlam", `[{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]`, 0},
	{"openai's own", `[{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\",\"days\":3}"}}]`, 0},
}

// Each form is recognised alone and, unless it must be the whole reply, between words, which
// remain. No form is read as a call of a tool that was not offered.
func TestForms(t *testing.T) {
	found := 0
	for _, f := range forms {
		want := strings.Repeat("; "+oslo, max(1, f.n))[2:]
		rest, calls := leak.Find(f.text, offered("other", "weather"))
		if got := formOf(calls); got != want || rest != "" {
			t.Errorf("%s: %s\ngot  %q and %q\nwant %q", f.name, f.text, got, rest, want)
			continue
		}
		found++
		if rest, calls := leak.Find(f.text, offered("other")); len(calls) > 0 || rest != f.text {
			t.Errorf("%s: a call of a tool that is not offered: %v", f.name, calls)
		}
		if f.text[0] == '{' || f.text[0] == '[' && f.text[1] != 'T' {
			continue
		}
		if rest, calls := leak.Find("Let me look.\n"+f.text, offered("weather")); formOf(calls) != want || rest != "Let me look." {
			t.Errorf("%s after words: got %q and %q", f.name, formOf(calls), rest)
		}
	}
	t.Logf("recall: %d of %d forms", found, len(forms))
	if len(forms) < 30 {
		t.Error("too few forms")
	}
}

// Text that only looks like a call stays unchanged.
func TestNoCalls(t *testing.T) {
	for _, text := range []string{
		"", "Hello.", `{"city":"Oslo"}`, `{"name":"weather"}`, `{"name":"weather","arguments":{"city":"Oslo"},"why":"shown as an example"}`,
		"Use <tool_call> tags to call tools.", "<tool_call>not a call</tool_call>", "`weather(city=\"Oslo\")` is how it is called",
		"```python\nweather(city=\"Oslo\")\n```", "```json\n{\"city\": \"Oslo\"}\n```", "```json\n{\"name\": \"weather\", \"arguments\": {\"city\":",
		"[weather](https://example.com)", "[1, 2, 3]", "<function=weather>see below</function>", `[{"name":"weather","arguments":{}}, {"name":"Bob"}]`,
		"<tool_call>{\"name\":\"weather\",\"arguments\":[1]}</tool_call>",
	} {
		if rest, calls := leak.Find(text, offered("weather")); len(calls) > 0 || rest != text {
			t.Errorf("%q: got %v, %q", text, formOf(calls), rest)
		}
	}
}

// The assistant texts of recorded traffic without calls: none is read as a call, with all tools of
// the whole traffic on offer.
func TestPrecision(t *testing.T) {
	names := map[string]bool{}
	var texts []string
	for _, api := range []string{"openai-chat", "openai-responses", "anthropic-messages", "gemini"} {
		traffic := corpora.Read(t, "provider-traffic/dev/"+api+".jsonl.gz")
		for lines := json.NewDecoder(bytes.NewReader(traffic)); lines.More(); {
			var e struct {
				Request  struct{ Body json.RawMessage }
				Response struct{ Body string }
				Info     struct {
					Calls []json.RawMessage `json:"tool_calls"`
				}
			}
			if err := lines.Decode(&e); err != nil {
				t.Fatal(err)
			}
			var body any
			if json.Unmarshal(e.Request.Body, &body) == nil {
				toolNames(body, names)
				texts = append(texts, said(body)...)
			}
			if len(e.Info.Calls) == 0 {
				texts = append(texts, replied([]byte(e.Response.Body))...)
			}
		}
	}
	var all []string
	for n := range names {
		all = append(all, n)
	}
	slices.Sort(all)
	tools := offered(all...)
	slices.Sort(texts)
	texts = slices.Compact(texts)
	for _, text := range texts {
		if _, calls := leak.Find(text, tools); len(calls) > 0 {
			t.Errorf("%s taken out of %q", formOf(calls), text)
		}
	}
	t.Logf("%d texts, %d tools offered", len(texts), len(tools))
	if len(texts) < 1000 || len(tools) < 50 {
		t.Error("the corpus is smaller than expected")
	}
}

// toolNames collects the names under "tools".
func toolNames(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if n, ok := v["name"].(string); ok && (v["parameters"] != nil || v["input_schema"] != nil) {
			into[n] = true
		}
		for _, e := range v {
			toolNames(e, into)
		}
	case []any:
		for _, e := range v {
			toolNames(e, into)
		}
	}
}

// said collects the texts of assistant messages in a request.
func said(v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		if r := v["role"]; (r == "assistant" || r == "model") && v["tool_calls"] == nil {
			return textsIn(v)
		}
		for _, e := range v {
			out = append(out, said(e)...)
		}
	case []any:
		for _, e := range v {
			out = append(out, said(e)...)
		}
	}
	return out
}

// textsIn collects the strings under "text" and "content".
func textsIn(v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if s, ok := e.(string); ok && (k == "text" || k == "content") && strings.TrimSpace(s) != "" {
				out = append(out, s)
			} else {
				out = append(out, textsIn(e)...)
			}
		}
	case []any:
		for _, e := range v {
			out = append(out, textsIn(e)...)
		}
	}
	return out
}

// replied collects the texts of a reply, whole or in fragments.
func replied(body []byte) []string {
	var v any
	if json.Unmarshal(body, &v) == nil {
		return textsIn(v)
	}
	var joined strings.Builder
	var out []string
	for line := range strings.Lines(string(body)) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		var e map[string]any
		if !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		if s, ok := e["delta"].(string); ok && strings.HasSuffix(fmt.Sprint(e["type"]), "output_text.delta") {
			joined.WriteString(s)
			continue
		}
		for _, s := range textsIn(e) {
			joined.WriteString(s)
		}
	}
	if joined.Len() > 0 {
		out = append(out, joined.String())
	}
	return out
}

// The middleware changes the stream by the calls alone, and does not delay text that begins no
// call.
func TestMiddleware(t *testing.T) {
	weather := pawl.Func("weather", "Weather.", func(_ context.Context, in struct {
		City string `json:"city"`
		Days int    `json:"days"`
	}) (string, error) {
		return "rain in " + in.City, nil
	})
	for _, f := range forms {
		for _, stream := range []bool{false, true} {
			m := script.New(script.Say(f.text), script.Say("It <b>rains</b> [for days], `really`."))
			a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{weather}, Middleware: []pawl.Middleware{leak.Calls()}}
			var res *pawl.Result
			var err error
			told := ""
			if stream {
				for e, serr := range a.Stream(t.Context(), llm.User("go")) {
					if err = serr; err != nil {
						break
					}
					if told += e.Text; e.Kind != pawl.EventText {
						told = strings.TrimSuffix(told, e.Text)
					}
					if e.Kind == pawl.EventRunEnded {
						res = e.Result
					}
				}
			} else {
				res, err = a.Run(t.Context(), llm.User("go"))
			}
			if err != nil || res.Spent.Calls != max(1, f.n) || res.Text() != "It <b>rains</b> [for days], `really`." {
				t.Errorf("%s, streamed %t: %d calls, answer %q, %v", f.name, stream, res.Spent.Calls, res.Text(), err)
				continue
			}
			if stream && told != res.Text() {
				t.Errorf("%s: the user was told %q", f.name, told)
			}
		}
	}
}

func TestPassesOn(t *testing.T) {
	tools := offered("weather")
	call := forms[0].text
	for name, tt := range map[string]struct {
		turn script.Turn
		want []llm.Part
	}{
		"prose": {script.Say("Ten < twelve [sic] `x`"), []llm.Part{llm.Text{Text: "Ten < twelve [sic] `x`"}}},
		"beside real calls": {script.Together(script.Say("<tool_call>"), script.Call("weather", "{}")),
			[]llm.Part{llm.Text{Text: "<tool_call>"}, llm.ToolCall{ID: "call_1_0", Name: "weather", Args: json.RawMessage("{}")}}},
		"cut": {script.Cut(script.Say(call)), []llm.Part{llm.Text{Text: call}}},
		"reasoning, a call": {script.Together(script.Think("hm"), script.Say(call)),
			[]llm.Part{llm.Reasoning{Text: "hm"}, llm.ToolCall{ID: "call_1", Name: "weather", Args: json.RawMessage(`{"city": "Oslo", "days": 3}`)}}},
		"words, then a call": {script.Say("I look. " + call), []llm.Part{llm.Text{Text: "I look. "}, llm.ToolCall{ID: "call_1", Name: "weather", Args: json.RawMessage(`{"city": "Oslo", "days": 3}`)}}},
	} {
		for _, whole := range []bool{false, true} {
			m := leak.Calls().Model(script.New(tt.turn))
			resp := new(llm.Response)
			for d, err := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("go")},
				Tools: tools, Whole: whole}) {
				if err == nil {
					err = resp.Add(d)
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if diff := cmp.Diff(resp.Message.Parts, tt.want); diff != "" {
				t.Errorf("%s, whole %t: got -, want +\n%s", name, whole, diff)
			}
		}
	}
}

func Example() {
	m := script.New(script.Say("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"), script.Say("It rains."))
	weather := pawl.Func("weather", "Current weather in a city.", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "rain in " + in.City, nil
	})
	agent := &pawl.Agent{Model: m, Tools: []pawl.Toolset{weather}, Middleware: []pawl.Middleware{leak.Calls()}}
	res, err := agent.Run(context.Background(), llm.User("How is the weather in Oslo?"))
	fmt.Println(res.Spent.Calls, res.Text(), err)
	// Output: 1 It rains. <nil>
}

func FuzzFind(f *testing.F) {
	for _, form := range forms {
		f.Add(form.text)
	}
	tools := offered("weather")
	f.Fuzz(func(t *testing.T, text string) {
		rest, calls := leak.Find(text, tools)
		if len(calls) == 0 && rest != text {
			t.Errorf("%q: without calls the text became %q", text, rest)
		}
		for _, c := range calls {
			if c.Name != "weather" || !json.Valid(c.Args) {
				t.Errorf("%q: call %s %q", text, c.Name, c.Args)
			}
		}
	})
}
