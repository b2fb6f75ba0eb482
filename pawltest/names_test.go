package pawltest_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// nameForms are the names that each API documents, without the names that its servers refuse.
var nameForms = map[string]*regexp.Regexp{
	pawltest.Responses: regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`),
	pawltest.Chat:      regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`),
	pawltest.Anthropic: regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`),
	pawltest.Gemini:    regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`),
}

// manyNames returns 200 names of tools.
func manyNames() []string {
	names := []string{"look", "with-dash", "with.dot", "with:colon", "with space", "with/slash", "_x", "-x", ".x", "9lives", "1", "_", "-",
		"größe", "世界", "emoji😀", "a\x00b", "a\nb", `quote"`, `back\slash`, "Look", "LOOK", "look ", " look", "a.b", "a_b", "a-b", "a b", "a:b", "a/b",
		"functions.look", "namespace__look", "t_", "parallel-look", "é", "e\u0301", "<tool>", "$ref", "a%20b", "tool()"}
	for _, n := range []int{63, 64, 65, 66, 127, 128, 129, 200} {
		for _, s := range []string{"x", "y-", "z.", "ü", "9"} {
			names = append(names, strings.Repeat(s, n)[:n])
		}
	}
	long := strings.Repeat("long_name_", 7) // the same first 64 bytes
	for i := 0; len(names) < 200; i++ {
		names = append(names, fmt.Sprintf("%s%d", long, i), fmt.Sprintf("same.name.%d", i), fmt.Sprintf("same name %d", i), fmt.Sprintf("same-name-%d", i))
	}
	return names[:200]
}

// A name that an API accepts is sent unchanged. Another name gets a form of its own that the API
// accepts. Both are the same in the tools, the tool choice, the calls and the results of a request,
// and a call in the reply has the name of the tool.
func TestNamesOfTools(t *testing.T) {
	soak.Sequential(t)
	names := manyNames()
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			req := &llm.Request{Model: "m", Messages: []llm.Message{llm.User("Go.")}}
			var calls []llm.Part
			var results []llm.ToolResult
			for i, n := range names {
				id := fmt.Sprintf("call%05d", i)
				req.Tools = append(req.Tools, &llm.ToolSpec{Name: n, Description: "Looks.", Input: lookAt})
				calls = append(calls, llm.ToolCall{ID: id, Name: n, Args: []byte(`{"at":"x"}`)})
				r := llm.TextResult("seen")
				r.CallID = id
				results = append(results, r)
			}
			req.Messages = append(req.Messages, llm.Assistant(calls...), llm.Results(results...))
			sent := sentNames(t, w, req)
			unchanged := 0
			for i, n := range names {
				form := nameForms[w.api]
				switch {
				case !form.MatchString(sent[i]):
					t.Errorf("%q is sent as %q, which the API refuses", n, sent[i])
				case form.MatchString(n) != (sent[i] == n):
					t.Errorf("%q is sent as %q", n, sent[i])
				case slices.Index(sent, sent[i]) != i:
					t.Errorf("%q and %q are both sent as %q", names[slices.Index(sent, sent[i])], n, sent[i])
				case sent[i] == n:
					unchanged++
				}
			}
			t.Logf("%d of %d names are sent unchanged", unchanged, len(names))
			for i := 0; i < len(names); i += 7 {
				req.Choice = llm.ToolChoice{Mode: llm.ToolNamed, Names: names[i : i+1]}
				body, err := w.encode(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := pawltest.ReadRequest(w.api, body)
				if err != nil || got.Choice.Mode != llm.ToolNamed || !slices.Equal(got.Choice.Names, sent[i:i+1]) {
					t.Errorf("the choice of %q is sent as %+v, %v; want %q", names[i], got.Choice, err, sent[i])
				}
			}
			req.Choice = llm.ToolChoice{}
			called(t, w, req, names)
		})
	}
}

// sentNames returns the names of the tools in the body of req. The calls of the history have the
// same names, also without tools.
func sentNames(t *testing.T, w wire, req *llm.Request) (sent []string) {
	t.Helper()
	bare := *req
	bare.Tools = nil
	for i, r := range []*llm.Request{req, &bare} {
		body, err := w.encode(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range pawltest.Check(w.api, body) {
			t.Errorf("the checker: %v", v)
		}
		got, err := pawltest.ReadRequest(w.api, body)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			for _, tool := range got.Tools {
				sent = append(sent, tool.Name)
			}
		}
		var inCalls []string
		for _, m := range got.Messages {
			for _, c := range m.Calls() {
				inCalls = append(inCalls, c.Name)
			}
		}
		if diff := cmp.Diff(inCalls, sent); diff != "" {
			t.Errorf("calls of the history: got -, names of the tools +\n%s", diff)
		}
	}
	return sent
}

// called checks the names of the calls of a reply that calls each offered tool.
func called(t *testing.T, w wire, req *llm.Request, names []string) {
	t.Helper()
	behind := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		var turns []script.Turn
		for _, tool := range req.Tools {
			turns = append(turns, script.Call(tool.Name, `{"at":"x"}`))
		}
		return script.Together(turns...)
	})))
	model, _ := w.on(t, behind, pawltest.SimulatorOptions{})
	for _, whole := range []bool{false, true} {
		req.Whole = whole
		res, err := llm.Complete(t.Context(), model, req)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range res.Message.Calls() {
			got = append(got, c.Name)
		}
		if diff := cmp.Diff(got, names); diff != "" {
			t.Errorf("whole %t: calls of the reply: got -, want +\n%s", whole, diff)
		}
	}
}

// The wire name of one tool is the name of another tool: both stay apart.
func TestNamesThatCollide(t *testing.T) {
	for _, w := range wires {
		req := &llm.Request{Model: "m", Messages: []llm.Message{llm.User("Go.")},
			Tools: []*llm.ToolSpec{{Name: "a b", Description: "Looks.", Input: lookAt}}}
		first := sentNames(t, w, call(req, "a b"))[0]
		names := []string{"a b", first}
		req.Tools = append(req.Tools, &llm.ToolSpec{Name: first, Description: "Finds.", Input: lookAt})
		body, err := w.encode(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pawltest.ReadRequest(w.api, body)
		if err != nil || len(got.Tools) != 2 || got.Tools[1].Name != first || got.Tools[0].Name == first {
			t.Errorf("%s: got %s, %v", w.name, body, err)
		}
		called(t, w, req, names)
		req.Tools = append(req.Tools, req.Tools[0])
		if _, err := w.encode(req); err == nil {
			t.Errorf("%s: two tools with one name are encoded", w.name)
		}
	}
}

// call returns req with a call of name and its result.
func call(req *llm.Request, name string) *llm.Request {
	r := llm.TextResult("seen")
	r.CallID = "call1"
	with := *req
	reply := llm.Assistant(llm.ToolCall{ID: "call1", Name: name, Args: []byte(`{"at":"x"}`)})
	with.Messages = append(slices.Clone(req.Messages), reply, llm.Results(r))
	return &with
}
