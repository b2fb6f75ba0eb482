package server_test

import (
	"encoding/base64"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// responseEvents returns the types of the events of a response, with repetitions left out, its text
// and the response of the last event.
func responseEvents(t *testing.T, stream string) (kinds, text string, last openAIResponse) {
	t.Helper()
	var all []string
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type     string
			Delta    string
			Response *openAIResponse
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimPrefix(e.Type, "response.")
		if len(all) == 0 || all[len(all)-1] != kind {
			all = append(all, kind)
		}
		if e.Type == "response.output_text.delta" {
			text += e.Delta
		}
		if e.Response != nil {
			last = *e.Response
		}
	}
	return strings.Join(all, " "), text, last
}

// A stored response can be streamed: OpenAI's client read no event from the JSON that came.
func TestStreamOfAStoredResponse(t *testing.T) {
	journal := new(store.MemoryJournal)
	v := serve(t, func(o *options) { o.Journal = journal })
	const tools = `,"tools":[{"type":"function","name":"locate"}]`
	ask := func(body string, status int) (r openAIResponse) {
		t.Helper()
		v.do("POST", "/v1/responses", `{"model":"clerk",`+body+`}`, status, &r)
		return r
	}
	text := ask(`"input":"look Oslo"`, 200)
	call := ask(`"input":"locate me"`+tools, 200)
	rest := ask(`"input":[{"type":"function_call_output","call_id":"`+call.Output[0].CallID+`","output":"Rome"}]`+tools, 200)

	const begin, said = "created in_progress ", "output_item.added content_part.added output_text.delta " +
		"output_text.done content_part.done output_item.done "
	const called = "output_item.added function_call_arguments.delta function_call_arguments.done output_item.done "
	next := serve(t, func(o *options) { o.Journal = journal })
	for name, test := range map[string]struct {
		want        openAIResponse
		kinds, text string
	}{
		"text":             {text, begin + said + "completed", "Done: found Oslo"},
		"call":             {call, begin + called + "completed", ""},
		"after the result": {rest, begin + said + "completed", "Done: Rome"},
	} {
		res := next.request("GET", "/v1/responses/"+test.want.ID+"?stream=true", "")
		var b strings.Builder
		_ = res.Write(&b)
		res.Body.Close()
		kinds, said, last := responseEvents(t, b.String())
		if kinds != test.kinds || said != test.text {
			t.Errorf("%s: got %q and the text %q, want %q and %q", name, kinds, said, test.kinds, test.text)
		}
		if diff := cmp.Diff(last, test.want); diff != "" {
			t.Errorf("%s: got -, want +\n%s", name, diff)
		}
	}
	next.code("GET", "/v1/responses/"+text.ID+"?stream=true&starting_after=3", "", 400, "bad_request")
	next.code("GET", "/v1/responses/resp_nobody?stream=true", "", 404, "not_found")
	next.code("GET", "/v1/responses/input_tokens", "", 404, "not_found")
	next.code("POST", "/v1/responses/input_tokens", `{"input":"x"}`, 404, "not_found")
}

// A response in progress can be streamed by a second reader, and cancelled.
func TestCancelOfAResponse(t *testing.T) {
	v := serve(t, nil)
	first := make(chan string, 1)
	go func() {
		res, err := v.client.Do(request(t, "POST", v.url+"/v1/responses", `{"model":"clerk","input":"wait","stream":true}`))
		if err != nil {
			first <- err.Error()
			return
		}
		defer res.Body.Close()
		var b strings.Builder
		_ = res.Write(&b)
		first <- b.String()
	}()
	for v.world.waits.Load() == 0 {
		runtime.Gosched()
	}
	var runs struct{ Runs []struct{ ID string } }
	v.do("GET", "/v1/runs", "", 200, &runs)
	id := runs.Runs[0].ID

	second := v.request("GET", "/v1/responses/"+id+"?stream=true", "")
	defer second.Body.Close()
	var got openAIResponse
	v.do("POST", "/v1/responses/"+id+"/cancel", "", 200, &got)
	if got.Status != "cancelled" || got.ID != id {
		t.Errorf("got %+v", got)
	}
	v.do("POST", "/v1/responses/"+id+"/cancel", "", 200, &got)
	if got.Status != "cancelled" {
		t.Errorf("again: got %+v", got)
	}
	var b strings.Builder
	_ = second.Write(&b)
	for name, stream := range map[string]string{"first": <-first, "second": b.String()} {
		if kinds, _, _ := responseEvents(t, stream); kinds != "created in_progress failed error" {
			t.Errorf("the %s reader: got %q", name, kinds)
		}
	}
	v.code("POST", "/v1/responses/resp_nobody/cancel", "", 404, "not_found")
}

// The member conversation of a request was ignored: the second request of a conversation reached
// the model without the first.
func TestConversationOfResponses(t *testing.T) {
	v := serve(t, nil)
	var made struct{ ID string }
	v.do("POST", "/v1/conversations", `{"metadata":{"a":"b"}}`, 200, &made)
	type answer struct {
		openAIResponse
		Conversation struct{ ID string }
	}
	ask := func(conversation, input string) (r answer) {
		t.Helper()
		v.do("POST", "/v1/responses", `{"model":"clerk","conversation":`+conversation+`,"input":`+input+`}`, 200, &r)
		return r
	}
	name := `"` + made.ID + `"`
	for i, want := range []string{"1", "3", "5", "7"} { // equal requests, each a new question
		if i == 2 {
			name = `{"id":` + name + `}`
		}
		got := ask(name, `"count"`)
		if got.Output[0].Content[0].Text != want || got.Conversation.ID != made.ID {
			t.Errorf("request %d: got %+v, want %s messages", i, got, want)
		}
		var stored answer
		v.do("GET", "/v1/responses/"+got.ID, "", 200, &stored)
		if diff := cmp.Diff(stored.openAIResponse, got.openAIResponse); diff != "" {
			t.Errorf("stored: got -, want +\n%s", diff)
		}
		if stored.Conversation != got.Conversation {
			t.Errorf("stored: got the conversation %q", stored.Conversation)
		}
	}
	if got := ask(`"another"`, `"count"`); got.Output[0].Content[0].Text != "1" {
		t.Errorf("another conversation: got %+v", got)
	}

	// A call of the client keeps the conversation from going on until it has its result.
	var call answer
	const tools = `,"tools":[{"type":"function","name":"locate"}]`
	v.do("POST", "/v1/responses", `{"model":"clerk","conversation":"another","input":"locate me"`+tools+`}`, 200, &call)
	v.code("POST", "/v1/responses", `{"model":"clerk","conversation":"another","input":"count"}`, 422, "conflict")
	result := `[{"type":"function_call_output","call_id":"` + call.Output[0].CallID + `","output":"Rome"}]`
	if got := ask(`"another"`, result); got.Output[0].Content[0].Text != "Done: Rome" {
		t.Errorf("after the result: got %+v", got)
	}
	if got := ask(`"another"`, `"count"`); got.Output[0].Content[0].Text != "7" {
		t.Errorf("after the call: got %+v", got)
	}

	for _, body := range []string{
		`"conversation":"a","previous_response_id":"resp_x"`,
		`"conversation":"a","store":false`,
		`"conversation":"a\u0000"`,
		`"conversation":7`,
	} {
		v.code("POST", "/v1/responses", `{"model":"clerk","input":"count",`+body+`}`, 400, "bad_request")
	}
	v.code("POST", "/v1/conversations", `{"items":[{"role":"user","content":"x"}]}`, 400, "bad_request")
}

// The input of a stored response, which OpenAI's client lists.
func TestInputItemsOfAResponse(t *testing.T) {
	v := serve(t, nil)
	const tools = `,"tools":[{"type":"function","name":"locate"}]`
	var call, rest openAIResponse
	v.do("POST", "/v1/responses", `{"model":"clerk","input":[{"role":"user","content":[{"type":"input_text","text":"look"},`+
		`{"type":"input_image","image_url":"https://example.com/a.png"}]},{"role":"assistant","content":"Where?"},`+
		`{"role":"user","content":"locate me"}]`+tools+`}`, 200, &call)
	v.do("POST", "/v1/responses", `{"model":"clerk","input":[{"type":"function_call_output","call_id":"`+
		call.Output[0].CallID+`","output":"Rome"}]`+tools+`}`, 200, &rest)

	type item struct {
		ID, Type, Role, Name, Output string
		Content                      []map[string]any
	}
	type page struct {
		Data    []item
		HasMore bool   `json:"has_more"`
		LastID  string `json:"last_id"`
	}
	list := func(id, query string) (kinds string, p page) {
		t.Helper()
		v.do("GET", "/v1/responses/"+id+"/input_items"+query, "", 200, &p)
		for _, i := range p.Data {
			kinds += strings.TrimSpace(i.Type+" "+i.Role+i.Name+i.Output) + "|"
		}
		return kinds, p
	}
	const first = "message user|message assistant|message user|"
	kinds, p := list(call.ID, "?order=asc")
	if kinds != first || p.HasMore || len(p.Data[0].Content) != 2 || p.Data[0].Content[1]["image_url"] != "https://example.com/a.png" {
		t.Errorf("got %q, %+v", kinds, p)
	}
	if kinds, _ := list(rest.ID, "?order=asc"); kinds != first+"function_call locate|function_call_output Rome|" {
		t.Errorf("after the result: got %q", kinds)
	}
	kinds, p = list(rest.ID, "?limit=2")
	if kinds != "function_call_output Rome|function_call locate|" || !p.HasMore {
		t.Errorf("the newest two: got %q, %+v", kinds, p)
	}
	if kinds, p = list(rest.ID, "?after="+p.LastID); kinds != "message user|message assistant|message user|" || p.HasMore {
		t.Errorf("after them: got %q, %+v", kinds, p)
	}
	v.code("GET", "/v1/responses/"+rest.ID+"/input_items?limit=0", "", 400, "bad_request")
	v.code("GET", "/v1/responses/"+rest.ID+"/input_items?after=x", "", 404, "not_found")
	v.code("GET", "/v1/responses/resp_nobody/input_items", "", 404, "not_found")
}

// Files in the forms of both APIs reach the model. A PDF of a chat program was a 400.
func TestFilesOfOpenAIsClients(t *testing.T) {
	var read llm.Media
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: &script.Model{Turns: []script.Turn{
			script.Loop(script.Func(func(req *llm.Request) script.Turn {
				read = llm.Media{}
				for _, p := range req.Messages[len(req.Messages)-1].Parts {
					if m, ok := p.(llm.Media); ok {
						read = m
					}
				}
				return script.Say("read")
			})),
		}}}}
	})
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 x"))
	csv := base64.StdEncoding.EncodeToString([]byte("a,b\n1,2\n"))
	for name, test := range map[string]struct {
		chat bool
		part string
		want llm.Media
	}{
		"chat, data URL": {true, `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}`,
			llm.Media{MIME: "application/pdf", Data: []byte("%PDF-1.7 x")}},
		"chat, of Responses": {true, `{"type":"input_file","filename":"a.pdf","file_data":"` + pdf + `"}`,
			llm.Media{MIME: "application/pdf", Data: []byte("%PDF-1.7 x")}},
		"data URL": {false, `{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}`,
			llm.Media{MIME: "application/pdf", Data: []byte("%PDF-1.7 x")}},
		"without a name": {false, `{"type":"input_file","file_data":"` + pdf + `"}`,
			llm.Media{MIME: "application/pdf", Data: []byte("%PDF-1.7 x")}},
		"a URL": {false, `{"type":"input_file","file_url":"https://example.com/a.pdf"}`,
			llm.Media{MIME: "application/pdf", URL: "https://example.com/a.pdf"}},
		"text": {false, `{"type":"input_file","filename":"a.csv","file_data":"` + csv + `"}`,
			llm.Media{MIME: "text/csv", Data: []byte("a,b\n1,2\n")}},
	} {
		path, body := "/v1/responses", `{"model":"clerk","input":[{"role":"user","content":[`+test.part+`]}]}`
		if test.chat {
			path = "/v1/chat/completions"
			body = `{"model":"clerk","messages":[{"role":"user","content":[` + test.part + `]}]}`
		}
		v.do("POST", path, body, 200, nil)
		read.Label = nil
		if diff := cmp.Diff(read, test.want); diff != "" {
			t.Errorf("%s: got -, want +\n%s", name, diff)
		}
	}
	for _, part := range []string{`{"type":"input_file","file_id":"file-1"}`, `{"type":"input_file"}`, `{"type":"file"}`,
		`{"type":"input_file","file_data":"data:application/pdf;base64,?"}`, `{"type":"input_file","file_url":"file:///etc/passwd"}`} {
		v.code("POST", "/v1/responses", `{"model":"clerk","input":[{"role":"user","content":[`+part+`]}]}`, 400, "bad_request")
	}
}
