package core_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// The texts are a contract: the command, journals, the server and other programs read them.
func TestJSONForms(t *testing.T) {
	sig := &llm.Opaque{Provider: "openai", Data: json.RawMessage(`{"id":"rs_1"}`)}
	for _, test := range []struct {
		value any
		want  string
	}{
		{llm.User("hi"), `{"role":"user","parts":[{"type":"text","text":"hi","label":{"by":"typed"}}]}`},
		{llm.System(""), `{"role":"system","parts":[{"type":"text","text":"","label":{"by":"operator"}}]}`},
		{llm.Message{Role: llm.RoleDeveloper}, `{"role":"developer","parts":[]}`},
		{llm.Assistant(llm.Reasoning{Text: "hm", Opaque: sig}, text("so")),
			`{"role":"assistant","parts":[{"type":"reasoning","text":"hm","opaque":{"provider":"openai","data":{"id":"rs_1"}}},{"type":"text","text":"so"}]}`},
		{llm.Text{Text: "a", Opaque: sig}, `{"type":"text","text":"a","opaque":{"provider":"openai","data":{"id":"rs_1"}}}`},
		{llm.Media{MIME: "image/png", URL: "https://example.org/a.png"}, `{"type":"media","mime":"image/png","url":"https://example.org/a.png"}`},
		{llm.Media{MIME: "image/png", Data: []byte{1, 2, 3}}, `{"type":"media","mime":"image/png","data":"AQID"}`},
		{call("c1", "look", `{"a":1}`), `{"type":"tool_call","id":"c1","name":"look","args":{"a":1}}`},
		{call("c1", "look", `{"a":`), `{"type":"tool_call","id":"c1","name":"look","args_text":"{\"a\":"}`},
		{call("c1", "look", ``), `{"type":"tool_call","id":"c1","name":"look","args_text":""}`},
		{call("c1", "look", `null`), `{"type":"tool_call","id":"c1","name":"look","args":null}`},
		{llm.ToolCall{ID: "c1", Name: "look", Args: json.RawMessage(`[]`), Opaque: sig},
			`{"type":"tool_call","id":"c1","name":"look","args":[],"opaque":{"provider":"openai","data":{"id":"rs_1"}}}`},
		{answer("c1", "rain"), `{"type":"tool_result","call_id":"c1","parts":[{"type":"text","text":"rain"}]}`},
		{llm.ToolResult{CallID: "c1", IsError: true, Data: json.RawMessage(`[1]`), Key: "run/1/0"},
			`{"type":"tool_result","call_id":"c1","parts":[],"is_error":true,"data":[1],"key":"run/1/0"}`},
		{llm.Decision{Key: "run/1/0", Digest: "d", Approve: true, By: "ann"},
			`{"type":"decision","key":"run/1/0","digest":"d","approve":true,"by":"ann","reason":""}`},
		{llm.Decision{Key: "k", Digest: "d", By: "b", Reason: "no", Result: &llm.ToolResult{CallID: "c"}},
			`{"type":"decision","key":"k","digest":"d","approve":false,"by":"b","reason":"no","result":{"type":"tool_result","call_id":"c","parts":[]}}`},
		{llm.ToolChoice{}, `"auto"`},
		{llm.ToolChoice{Mode: llm.ToolNone}, `"none"`},
		{llm.ToolChoice{Mode: llm.ToolRequired}, `"required"`},
		{llm.Named("a", "b"), `{"named":["a","b"]}`},
		{llm.Usage{Input: 1, Output: 2, Reasoning: 3, CacheRead: 4, CacheWrite: 5},
			`{"input":1,"output":2,"reasoning":3,"cache_read":4,"cache_write":5}`},
		{llm.Response{Message: llm.Assistant(text("a")), Finish: llm.FinishReasonStop, Model: "m", ID: "r"},
			`{"message":{"role":"assistant","parts":[{"type":"text","text":"a"}]},"finish":"stop","usage":{"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write":0},"model":"m","id":"r"}`},
		{llm.Request{Key: "run/0/model", Model: "m", Whole: true, Messages: []llm.Message{llm.User("a")}},
			`{"model":"m","messages":[{"role":"user","parts":[{"type":"text","text":"a","label":{"by":"typed"}}]}],"tools":[],"choice":"auto"}`},
		{llm.Request{Tools: []*llm.ToolSpec{{Name: "t", Description: "d",
			Input: json.RawMessage(`{"type":"object"}`)}, {Name: "u"}}, Choice: llm.Named("t"),
			Output: json.RawMessage(`{}`), Settings: llm.Settings{MaxTokens: 5}},
			`{"model":"","messages":[],"tools":[{"name":"t","description":"d","input":{"type":"object"}},` +
				`{"name":"u","description":"","input":{"type":"object","properties":{}}}],"choice":{"named":["t"]},"output":{},"settings":{"max_tokens":5}}`},
	} {
		got, err := json.Marshal(test.value)
		if err != nil || string(got) != test.want {
			t.Errorf("%#v:\n got %s, error %v\nwant %s", test.value, got, err, test.want)
		}
		back := reflect.New(reflect.TypeOf(test.value))
		if into, ok := back.Interface().(json.Unmarshaler); ok {
			if err := json.Unmarshal([]byte(test.want), into); err != nil {
				t.Errorf("%s: %v", test.want, err)
			}
			again, err := json.Marshal(back.Elem().Interface())
			if err != nil || string(again) != test.want {
				t.Errorf("read and written again:\n got %s, error %v\nwant %s", again, err, test.want)
			}
		}
	}
}

func TestJSONRefusesWhatIsNotOnTheList(t *testing.T) {
	for _, test := range []struct {
		into any
		text string
		want string
	}{
		{new(llm.Message), `{"role":"user","parts":[],"name":"x"}`, "name"},
		{new(llm.Message), `{"role":"human","parts":[]}`, `unknown role "human"; known: system, developer, user, assistant, tool`},
		{new(llm.Message), `{"parts":[]}`, "unknown role"},
		{new(llm.Message), `{"role":"user","role":"tool","parts":[]}`, "role"},
		{new(llm.Message), `{"Role":"user","parts":[]}`, "Role"},
		{new(llm.Message), `{"role":"user","parts":[{"type":"txt","text":"a"}]}`, `part 0: unknown part type "txt"`},
		{new(llm.Message), `{"role":"user","parts":[{"text":"a"}]}`, `part 0: a part needs a "type"`},
		{new(llm.Message), `{"role":"user","parts":[{"type":"text","text":"a","bold":true}]}`, "bold"},
		{new(llm.Message), `{"role":"user","parts":[{"type":"text","text":"a","text":"b"}]}`, "text"},
		{new(llm.Message), `{"role":"user","parts":["a"]}`, "part 0"},
		{new(llm.Message), `{"role":"user","parts":[{"type":"media","mime":"a/b"}]}`, "exactly one of url and data"},
		{new(llm.Message), `{"role":"user","parts":[{"type":"media","url":"u","data":"AQID"}]}`, "exactly one of url and data"},
		{new(llm.Message), `{"role":"user","parts":[{"type":"reasoning","text":"a","signature":"b"}]}`, "signature"},
		{new(llm.Message), `{"role":"user","parts":[{"type":"text","text":"a","opaque":{"provider":"p","data":1,"more":2}}]}`, "more"},
		{new(llm.ToolCall), `{"id":"a","name":"b","args":{},"args_text":"{"}`, "both args and args_text"},
		{new(llm.ToolCall), `{"id":"a","name":"b","arguments":{}}`, "arguments"},
		{new(llm.ToolCall), `{"id":"a","id":"b","name":"b","args":{}}`, "id"},
		{new(llm.ToolCall), `{"type":"text","id":"a"}`, "want tool_call"},
		{new(llm.ToolResult), `{"type":"text"}`, "want tool_result"},
		{new(llm.ToolResult), `{"call_id":"a","parts":[],"error":true}`, "error"},
		{new(llm.Decision), `{"type":"text"}`, "want decision"},
		{new(llm.Decision), `{"key":"a","approved":true}`, "approved"},
		{new(llm.ToolChoice), `"any"`, `unknown tool choice "any"; known: auto, none, required`},
		{new(llm.ToolChoice), `"named"`, "unknown tool choice"},
		{new(llm.ToolChoice), `{"named":[]}`, "at least one name"},
		{new(llm.ToolChoice), `{"name":"a"}`, "want"},
		{new(llm.Request), `{"model":"m","stream":true}`, "stream"},
		{new(llm.Request), `{"model":"m","tools":[{"name":"a","parameters":{}}]}`, "parameters"},
		{new(llm.Request), `{"model":"m","settings":{"temp":1}}`, "temp"},
		{new(llm.Response), `{"message":{"role":"assistant","parts":[]},"finish_reason":"stop"}`, "finish_reason"},
		{new(llm.Response), `{"message":{"role":"assistant","parts":[]},"finish":"stop","usage":{"inputs":1}}`, "inputs"},
		{new(pawl.Event), `{"event":"began","run":"run","step":1,"seq":1}`, `unknown event kind "began"`},
		{new(pawl.Event), `{"event":"text","run":"run","step":1,"seq":1,"words":"a"}`, "words"},
		{new(pawl.Event), `{"event":"text","run":"run","step":1,"seq":1,"index":0,"text":"a","agent":"x"}`, "agent"},
		{new(pawl.Event), `{"event":"step_started","run":"run","step":1,"seq":1,"text":"a"}`, "text"},
		{new(pawl.Effect), `"reads"`, `unknown effect "reads"; known: unstated, write, idempotent, read, pure, compose`},
	} {
		err := json.Unmarshal([]byte(test.text), test.into)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T from %s:\n got %v, want an error with %q", test.into, test.text, err, test.want)
		}
	}
}

// Arguments of a model survive the JSON form: valid JSON as JSON, invalid text byte for byte.
func TestArgumentsSurviveTheJSONForm(t *testing.T) {
	for _, in := range []string{`{}`, `{"a":1}`, ` { "a" : [ 1 , 2 ] } `, ``, ` `, `null`, `"text"`, `12`, `1e400`, `{"a":`, `{"a":1}}`, `{'a':1}`,
		"\xef\xbb\xbf{}", `{"a":1,"a":2}`, `{"n":123456789012345678901234567890}`, `{"s":"\ud800"}`, "{\"s\":\"\x01\"}", `{"s":"<&>"}`, "{\"s\":\"\u2028\"}"} {
		m := llm.Assistant(call("c", "f", in))
		b, err := json.Marshal(m)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		var back llm.Message
		if err := json.Unmarshal(b, &back); err != nil {
			t.Errorf("%q, written as %s: %v", in, b, err)
			continue
		}
		got := back.Calls()[0].Args
		if !json.Valid([]byte(in)) {
			if string(got) != in {
				t.Errorf("%q, which is no JSON, came back as %q", in, got)
			}
			continue
		}
		if !sameJSON([]byte(in), got) {
			t.Errorf("%q came back as %q", in, got)
		}
	}
}

// sameJSON compares token by token, so that repeated names and the spelling of numbers count.
func sameJSON(a, b []byte) bool {
	da, db := json.NewDecoder(bytes.NewReader(a)), json.NewDecoder(bytes.NewReader(b))
	da.UseNumber()
	db.UseNumber()
	for {
		ta, ea := da.Token()
		tb, eb := db.Token()
		if ta != tb || (ea == nil) != (eb == nil) {
			return false
		}
		if ea != nil {
			return true
		}
	}
}

func genPart(t *rapid.T, kinds string, depth int) llm.Part {
	word := func(label string) string { return rapid.StringN(0, 12, -1).Draw(t, label) }
	anyJSON := func() json.RawMessage {
		return json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"a":[1,null,"x"]}`, `"s"`, `0.5`, `[]`, `true`}).Draw(t, "json"))
	}
	var opaque *llm.Opaque
	if rapid.IntRange(0, 3).Draw(t, "opaque") == 0 {
		opaque = &llm.Opaque{Provider: word("provider"), Data: anyJSON()}
	}
	switch rapid.SampledFrom([]byte(kinds)).Draw(t, "kind") {
	case 't':
		return llm.Text{Text: word("text"), Opaque: opaque}
	case 'r':
		return llm.Reasoning{Text: word("text"), Opaque: opaque}
	case 'm':
		if rapid.Bool().Draw(t, "by value") {
			return llm.Media{MIME: word("mime"), Data: rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "data")}
		}
		return llm.Media{MIME: word("mime"), URL: "u" + word("url")}
	case 'c':
		args := anyJSON()
		if rapid.Bool().Draw(t, "broken") {
			args = json.RawMessage("{" + word("args"))
		}
		return llm.ToolCall{ID: word("id"), Name: word("name"), Args: args, Opaque: opaque}
	case 'd':
		d := llm.Decision{Key: llm.Key(word("key")), Digest: word("digest"), Approve: rapid.Bool().Draw(t, "yes"),
			By: word("by"), Reason: word("why")}
		if rapid.Bool().Draw(t, "with result") {
			r := genPart(t, "R", 0).(llm.ToolResult)
			d.Result = &r
		}
		return d
	}
	r := llm.ToolResult{CallID: word("id"), IsError: rapid.Bool().Draw(t, "error"), Key: llm.Key(word("key"))}
	if rapid.Bool().Draw(t, "with data") {
		r.Data = anyJSON()
	}
	for range rapid.IntRange(0, 2).Draw(t, "parts") {
		r.Parts = append(r.Parts, genPart(t, "tm", 0))
	}
	return r
}

func TestMessagesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := llm.Message{Role: rapid.SampledFrom([]llm.Role{llm.RoleSystem, llm.RoleDeveloper, llm.RoleUser,
			llm.RoleAssistant, llm.RoleTool}).Draw(t, "role")}
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			m.Parts = append(m.Parts, genPart(t, "trmcdR", 1))
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back llm.Message
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(back, m, sameData); diff != "" {
			t.Fatalf("%s: got -, want +\n%s", b, diff)
		}
	})
}

func TestRequestsRoundTrip(t *testing.T) {
	half, yes := 0.5, true
	want := llm.Request{Model: "m", Messages: []llm.Message{llm.User("a")}, Choice: llm.Named("t"), Output: json.RawMessage(`{"type":"object"}`),
		Tools: []*llm.ToolSpec{{Name: "t", Description: "d", Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{}`)}},
		Settings: llm.Settings{MaxTokens: 1, Temperature: &half, TopP: &half, StopSequences: []string{"x"},
			Effort: "low", Parallel: &yes,
			Options: map[string]json.RawMessage{"openai": json.RawMessage(`{"a":1}`)}}}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got llm.Request
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Tools[0].Source != nil || got.Tools[0].Validate(nil) != nil {
		t.Errorf("a tool that was read has no source and is usable: %+v, %v", got.Tools[0], got.Tools[0].Validate(nil))
	}
	if diff := cmp.Diff(got, want, sameData); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	b, _ = json.Marshal(llm.Request{Tools: []*llm.ToolSpec{{Name: "bare"}}})
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if err := got.Tools[0].Validate(nil); err != nil {
		t.Errorf("a tool without arguments, written and read: %v", err)
	}
}

func TestNumbersWithoutJSONFormAreErrors(t *testing.T) {
	nan := math.NaN()
	if b, err := json.Marshal(llm.Request{Settings: llm.Settings{Temperature: &nan}}); err == nil {
		t.Errorf("got %s, want an error", b)
	}
	if _, err := json.Marshal(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{nil}}); err == nil {
		t.Error("a nil part was written; it could not be read again")
	}
}

// Reading a message from any bytes fails or returns a message whose JSON form reads as the same
// message.
func FuzzMessageJSON(f *testing.F) {
	for _, s := range []string{`{"role":"user","parts":[{"type":"text","text":"hi"}]}`, `{"role":"assistant","parts":[{"type":"tool_call","id":"a","name":"b","args":{"a":1,"a":2}}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"a","parts":[{"type":"media","mime":"","data":"AQ=="}],"data":null}]}`,
		`{"role":"assistant","parts":[{"type":"tool_call","id":"a","name":"b","args_text":"{"}]}`, `{"role":"user","parts":[{"type":"decision","key":"","digest":"","approve":false,"by":"","reason":""}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m llm.Message
		if json.Unmarshal(b, &m) != nil {
			return
		}
		once, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("%s was read, but cannot be written: %v", b, err)
		}
		var back llm.Message
		if err := json.Unmarshal(once, &back); err != nil {
			t.Fatalf("%s was written as %s, but cannot be read: %v", b, once, err)
		}
		twice, err := json.Marshal(back)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s was written as %s, then as %s, error %v", b, once, twice, err)
		}
	})
}

// The JSON form of a call with any bytes as arguments reads as the same call.
func FuzzCallJSON(f *testing.F) {
	f.Add("a", "b", []byte(`{"a":1}`))
	f.Add("", "", []byte(`{"a":1,"a":`))
	f.Add("", "", []byte("\"\xff\""))
	f.Fuzz(func(t *testing.T, id, name string, args []byte) {
		b, err := json.Marshal(llm.ToolCall{ID: id, Name: name, Args: args})
		if err != nil {
			t.Fatal(err)
		}
		var c llm.ToolCall
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !utf8.Valid(args) {
			return // written with replacement characters
		}
		if json.Valid(args) != json.Valid(c.Args) || !json.Valid(args) && !bytes.Equal(c.Args, args) ||
			json.Valid(args) && !sameJSON(c.Args, args) {
			t.Fatalf("%q came back as %q", args, c.Args)
		}
	})
}
