package openai_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// quirks are behaviours of servers of the two APIs beyond or against the documentation, under the
// numbers in the names of the test cases: "quirk 7: …".
var quirks = []struct{ servers, pawl string }{
	{"stream a call without index or type, with finish and usage in the same chunk", "one call, one finish, its usage"},
	{"number the first call of a stream 1", "the number identifies the call and is not its position"},
	{`continue a call with "id":""`, "the id stays"},
	{`continue a call with "name":""`, "the name stays"},
	{"repeat role and content in every fragment of a call", "only the arguments are appended"},
	{"give null, or nothing, for arguments", "empty arguments, which the pipeline reads as {} where the schema allows it"},
	{"send a whole call in one delta", "one fragment, like many"},
	{"send parallel calls without an end mark of their own", "a call ends when the next one begins, or with the reply"},
	{"give an index, or no type, to calls of a whole reply", "both are ignored"},
	{"use ids of any form, and some require theirs back", "ids are opaque; if a server accepts only some forms, they are mapped both ways"},
	{"use an id again, in a later reply or in the same", "results belong to the reply before them; within one reply equal calls with one id are one call, and different calls are an error"},
	{"send an empty tool_calls or null with text", "no calls"},
	{"leave content out, empty or null for calls, or send text with them", "text, if there is any"},
	{"send finish reason stop with calls", "calls decide: finish is tool_calls"},
	{"send an empty finish reason and empty optional objects", "finish other; an empty function_call is no call"},
	{"send the older function_call, without an id", "a call with an id of our own"},
	{"send {} to call tools without arguments", "the bytes unchanged"},
	{"mix raw and escaped characters in arguments, and cut inside an escape", "fragments are joined as text before decoding"},
	{"send usage in a chunk of its own, in the last, in each, or twice", "the last one counts; they are not added"},
	{"repeat the finish reason", "one finish"},
	{"send comments to keep the connection open", "skipped"},
	{"send white space before a whole body", "skipped"},
	{"begin a stream with a chunk without choices, id and model", "it is ignored"},
	{"change the id from chunk to chunk", "the id of a chunk is ignored"},
	{"repeat the role, or never send it", "every reply has the role assistant"},
	{"leave out [DONE]", "a finish reason also ends the reply"},
	{"end lines with CRLF, and send message and delta", "both line endings; a stream uses the delta"},
	{"report an error inside a chunk", "the run gets the error, and no reply"},
	{"report an error as a field of the event stream, then close the connection", "the stream has no end: a retryable error"},
	{"end a stream without a finish reason", "a retryable error; after [DONE], finish other, and an error if there are calls"},
	{"pad chunks with random text", "skipped"},
	{"send content as a list of typed parts", "thinking becomes Reasoning, text becomes Text, and both are sent back in this form"},
	{"send reasoning under three names, one of them with signatures", "Reasoning; it is sent back under the same name, to the same host"},
	{"put reasoning in the text between think tags", "the text unchanged: the adapter does not separate it from the answer"},
	{"put a refusal into its own member, with finish stop", "Text, with finish content_filter"},
	{"interleave several choices", "the first one"},
	{"answer 400 with the text that the model wrote instead of a call", "a reply with this text and finish error, which a run sends back once; outside of a model's request, an error that quotes it"},
	{"write error bodies in many forms", "the message is found in each"},
	{"report an exhausted quota as 400 or 429", "code quota, not retried"},
	{"send Retry-After with any status", "it applies to 429 and 5xx, in milliseconds, seconds, or as a date"},
	{"reject parameters that others require", "the error names them"},
	{"add undocumented members, and leave out documented ones", "both are ignored"},
	{"require encrypted reasoning before its call, and reject it without the call", "items are sent back in order; reasoning without the item that follows it is left out"},
	{"give a call two ids, or put the item's index into the item", "results answer call_id; the index is read in both places"},
	{"change item ids between the events of one item", "output_index identifies an item"},
	{"send no event lines, but comments and [DONE]", "the type is read from the data"},
	{"pad deltas, and do not number events", "padding is skipped, and numbers are optional"},
	{"answer that a response is queued, or resume a stream in its middle", "polled by its id if it was asked for in the background, otherwise an error; event numbers may begin anywhere"},
	{"complete a response with a call in progress, made by a program", "a call; its caller is sent back with it"},
	{"put calls into a namespace, and load tools by searching", "the namespace is sent back with the call, and the items of the search in their place"},
	{"make calls that are not functions: free text, shell commands, patches", "calls with the item in Opaque; results are sent in the matching form"},
	{"report their own searches as custom calls", "stored and sent back, never executed"},
	{"wrap parallel calls in a call of a pseudo tool", "the calls in it, unless a tool of that name is offered"},
	{"send several messages with phases in one reply", "texts; each is sent back with its phase"},
	{"answer with other objects on the same path", "objects with items are read; others are an error"},
	{"send the reasoning itself instead of a summary", "Reasoning"},
	{"mix items of their own tools with calls", "stored in their place and sent back, never executed"},
}

// cases finds the test cases that name a quirk in the sources of this package: number to "TestX:
// case".
func cases(t *testing.T) map[int][]string {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`^quirk (\d+): (.+)$`)
	found := map[int][]string{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				s, err := strconv.Unquote(lit.Value)
				if m := named.FindStringSubmatch(s); err == nil && m != nil {
					i, _ := strconv.Atoi(m[1])
					found[i] = append(found[i], fn.Name.Name+": "+m[2])
				}
				return true
			})
		}
	}
	return found
}

// Every quirk has a test case that names it, and docs/openai-quirks.md lists them.
func TestQuirks(t *testing.T) {
	found := cases(t)
	var b strings.Builder
	b.WriteString(`# What servers do

This page lists the behaviour of servers of OpenAI's two APIs, including its own, beyond the documentation, as seen in recorded traffic.
Each row has the adapter's answer to it, and the test cases of package ` + "`provider/openai`" + ` that show it. TestQuirks writes this page
(` + "`go test ./provider/openai -run TestQuirks -update`" + `) and fails if a row has no case. Rows 1 to 42 are about Chat Completions
and compatible servers, rows 43 to 57 about Responses.

| | servers | pawl | shown by |
|---|---|---|---|
`)
	for i, q := range quirks {
		list := found[i+1]
		if len(list) == 0 {
			t.Errorf("no test case is named \"quirk %d: …\" (servers %s)", i+1, q.servers)
		}
		delete(found, i+1)
		slices.Sort(list)
		// One line for each test, with its cases.
		var shown []string
		for len(list) > 0 {
			test, _, _ := strings.Cut(list[0], ": ")
			var names []string
			for len(list) > 0 && strings.HasPrefix(list[0], test+": ") {
				names = append(names, strings.TrimPrefix(list[0], test+": "))
				list = list[1:]
			}
			shown = append(shown, test+" ("+strings.Join(names, "; ")+")")
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", i+1, cell(q.servers), cell(q.pawl), cell(strings.Join(shown, ", ")))
	}
	for i, list := range found {
		t.Errorf("quirk %d is not on the list, but %v name it", i, list)
	}
	wiretest.Page(t, "openai-quirks.md", b.String())
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// Parts of a reply are sent back in their place: each reply is decoded, its calls are answered,
// and the next request must have the members that the server expects, and pass the checker.
func TestQuirksGoBack(t *testing.T) {
	const item = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA="}`
	const call = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"`
	for _, c := range []struct {
		name, api, reply string
		want             []string
	}{
		{"quirk 10: ids go back as they came", pawltest.Chat, whole("tool_calls", `{"tool_calls":[{"id":"functions.f:0","function":{"name":"f","arguments":"{}"}}]}`),
			[]string{`"tool_calls":[{"id":"functions.f:0",`, `"tool_call_id":"functions.f:0"`}},
		{"quirk 16: a call without an id is answered all the same", pawltest.Chat, whole("function_call", `{"function_call":{"name":"f","arguments":"{}"}}`),
			[]string{`"tool_calls":[{"id":"call_0",`, `"tool_call_id":"call_0"`}},
		{"quirk 32: thinking goes back as a part", pawltest.Chat, whole("stop", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}`),
			[]string{`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]`}},
		{"quirk 33: reasoning goes back under its name", pawltest.Chat, whole("tool_calls", `{"reasoning":"hm","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`),
			[]string{`"reasoning":"hm"`}},
		{"quirk 33: signatures go back with the results", pawltest.Chat, whole("tool_calls", `{"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}],"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`),
			[]string{`"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}]`}},
		{"quirk 43: reasoning goes back before its calls", pawltest.Responses, response(item, call+`}`),
			[]string{item + `,{"type":"function_call","call_id":"call_1",`, `{"type":"function_call_output","call_id":"call_1"`}},
		{"quirk 44: results answer call_id, not the item's id", pawltest.Responses, response(call + `}`),
			[]string{`{"type":"function_call_output","call_id":"call_1"`}},
		{"quirk 49: the caller goes back with the call", pawltest.Responses, response(call + `,"caller":{"type":"program"},"status":"in_progress"}`),
			[]string{`"caller":{"type":"program"}`}},
		{"quirk 50: the namespace goes back with the call", pawltest.Responses, response(`{"type":"tool_search_call","id":"ts","execution":"server"}`, `{"type":"tool_search_output","id":"to","execution":"server","tools":[]}`, call+`,"namespace":"n"}`),
			[]string{`{"type":"tool_search_call","id":"ts","execution":"server"},{"type":"tool_search_output"`, `"namespace":"n"`}},
		{"quirk 51: a custom call is answered in its own form", pawltest.Responses, response(`{"type":"custom_tool_call","id":"c","call_id":"call_2","name":"sql","input":"SELECT 1"}`),
			[]string{`"input":"SELECT 1"`, `{"type":"custom_tool_call_output","call_id":"call_2"`}},
		{"quirk 52: a search of the server's own goes back unanswered", pawltest.Responses, response(`{"type":"custom_tool_call","id":"c","call_id":"xs_call_1","name":"x_search","input":"{}","status":"completed"}`, `{"type":"message","content":[{"type":"output_text","text":"hi"}]}`),
			[]string{`"call_id":"xs_call_1"`}},
		{"quirk 53: the calls inside a wrapper are answered one by one", pawltest.Responses, response(`{"type":"function_call","call_id":"p","name":"parallel","arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.f\",\"parameters\":{}},{\"recipient_name\":\"functions.f\",\"parameters\":{}}]}"}`),
			[]string{`{"type":"function_call_output","call_id":"p_0"`, `{"type":"function_call_output","call_id":"p_1"`}},
		{"quirk 54: a phase goes back with its text", pawltest.Responses, response(`{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"wait"}]}`, `{"type":"message","phase":"final_answer","content":[{"type":"output_text","text":"hi"}]}`),
			[]string{`"content":"wait","phase":"commentary"`, `"content":"hi","phase":"final_answer"`}},
		{"quirk 57: the server's own items go back in their place", pawltest.Responses, response(item, `{"type":"web_search_call","id":"ws","status":"completed"}`, item, call+`}`),
			[]string{item + `,{"type":"web_search_call","id":"ws","status":"completed"},` + item + `,{"type":"function_call"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			decode, encode := openai.DecodeChat, openai.EncodeChat
			if c.api == pawltest.Responses {
				decode, encode = openai.DecodeResponses, openai.EncodeResponses
			}
			resp, err := decode(200, false, []byte(c.reply))
			if err != nil {
				t.Fatal(err)
			}
			req := &llm.Request{Model: "m", Messages: []llm.Message{llm.User("go"), resp.Message}}
			var results []llm.ToolResult
			for _, call := range resp.Message.Calls() {
				results = append(results, llm.ToolResult{CallID: call.ID, Parts: []llm.Part{llm.Text{Text: "42"}}})
			}
			if results != nil {
				req.Messages = append(req.Messages, llm.Results(results...))
			}
			req.Messages = append(req.Messages, llm.User("and then?"))
			body, err := encode(req)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(body), want) {
					t.Errorf("no %s in %s", want, body)
				}
			}
			if v := pawltest.Check(c.api, body); len(v) > 0 {
				t.Errorf("the checker refuses %s: %v", body, v)
			}
		})
	}
}

// An ID that is repeated in a later reply belongs to that reply.
func TestQuirkIDsComeAgain(t *testing.T) {
	turn := func(args string) script.Turn {
		return script.Turn{Parts: []llm.Part{llm.ToolCall{ID: "call_0", Name: "f", Args: []byte(args)}}}
	}
	for name, open := range map[string]func(string, *openai.Options) *openai.Model{
		"quirk 11: an id that comes again in a later reply, Chat Completions": openai.NewChat,
		"quirk 11: an id that comes again in a later reply, Responses":        openai.New,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := pawltest.NewSimulator(script.New(turn(`{"x":1}`), turn(`{"x":2}`), script.Say("done")), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			f := pawl.Func("f", "Echoes x.", func(_ context.Context, in struct {
				X int `json:"x"`
			}) (string, error) {
				return fmt.Sprint("x is ", in.X), nil
			})
			agent := &pawl.Agent{Model: open("m", &openai.Options{BaseURL: s.URL, Key: "k", HTTP: tr}),
				Tools: []pawl.Toolset{f}}
			res, err := agent.Run(t.Context(), llm.User("go"))
			if err != nil || res.Text() != "done" {
				t.Fatalf("got %v, %v", res, err)
			}
			var results []string
			for _, m := range s.Received()[2].Request.Messages {
				for _, p := range m.Parts {
					if r, ok := p.(llm.ToolResult); ok {
						results = append(results, r.CallID+" "+r.Text())
					}
				}
			}
			if want := []string{"call_0 x is 1", "call_0 x is 2"}; !slices.Equal(results, want) {
				t.Errorf("the last request has the results %q, want %q", results, want)
			}
		})
	}
}
