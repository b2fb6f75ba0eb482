package server_test

import (
	"encoding/json"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

type openAIResponse struct {
	ID     string
	Status string
	Model  string
	Store  bool
	Output []struct {
		Type      string
		CallID    string `json:"call_id"`
		Name      string
		Arguments string
		Content   []struct{ Text string }
	}
	Error *struct{ Code string }
	Usage struct {
		Total int `json:"total_tokens"`
	}
}

// A response can be retrieved again unchanged, also from another server. Each part of a run that
// ends with calls for the client is a response.
func TestAResponseIsShownAgain(t *testing.T) {
	journal := new(store.MemoryJournal)
	v := serve(t, func(o *options) { o.Journal = journal })
	tools := `,"tools":[{"type":"function","name":"locate"}]`
	ask := func(body string) (r openAIResponse) {
		t.Helper()
		v.do("POST", "/v1/responses", `{"model":"clerk",`+body+`}`, 200, &r)
		return r
	}
	text := ask(`"input":"look Oslo"`)
	call := ask(`"input":"locate me"` + tools)
	rest := ask(`"input":[{"type":"function_call_output","call_id":"` + call.Output[0].CallID + `","output":"Rome"}]` + tools)
	if rest.ID == call.ID || rest.Usage.Total == 0 {
		t.Errorf("got %+v", rest)
	}
	next := serve(t, func(o *options) { o.Journal = journal })
	for _, want := range []openAIResponse{text, call, rest} {
		var got openAIResponse
		next.do("GET", "/v1/responses/"+want.ID, "", 200, &got)
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("got -, want +\n%s", diff)
		}
	}
	for _, id := range []string{"resp_nobody", "nobody", rest.ID + "0", text.ID + ".x", text.ID + ".1", "resp_%2e%2e"} {
		next.do("GET", "/v1/responses/"+id, "", 404, nil)
	}
	// A client can refer to the items of a response instead of sending them again.
	type items struct{ ID, Type string }
	var parts struct{ Output []items }
	next.do("GET", "/v1/responses/"+rest.ID, "", 200, &parts)
	message := parts.Output[0].ID
	next.do("GET", "/v1/responses/"+call.ID, "", 200, &parts)
	locate := parts.Output[0].ID
	refer := func(status int, ids ...string) (r openAIResponse) {
		t.Helper()
		input := `{"role":"user","content":"locate me"}`
		for _, id := range ids {
			input += `,{"type":"item_reference","id":"` + id + `"}`
			if id == locate {
				input += `,{"type":"function_call_output","call_id":"` + call.Output[0].CallID + `","output":"Rome"}`
			}
		}
		next.do("POST", "/v1/responses", `{"model":"clerk","input":[`+input+`,{"role":"user","content":"hello"}]}`, status, &r)
		return r
	}
	if r := refer(200, locate, message); r.Output[0].Content[0].Text != "You said: hello " {
		t.Errorf("got %+v", r)
	}
	for _, id := range []string{"msg_nobody", "fc_nobody", message + ".7", locate + "0", "rs_1", "fc_resp_x_1-0", "msg_.."} {
		refer(404, id)
	}
	var gone struct{ Deleted bool }
	next.do("DELETE", "/v1/responses/"+text.ID, "", 200, &gone)
	next.do("GET", "/v1/responses/"+text.ID, "", 404, nil)
	next.do("GET", "/v1/runs/"+text.ID+"/events", "", 404, nil)
	next.do("DELETE", "/v1/responses/"+text.ID, "", 404, nil)
	if !gone.Deleted {
		t.Error("it is not said to be deleted")
	}
	v.do("POST", "/v1/responses", `{"model":"clerk","input":"fail"}`, 424, nil)
	var runs api.Runs
	v.do("GET", "/v1/runs?state=failed", "", 200, &runs)
	var failed openAIResponse
	v.do("GET", "/v1/responses/"+runs.Runs[0].ID, "", 200, &failed)
	if failed.Status != "failed" || failed.Error == nil || failed.Error.Code != "model_failed" {
		t.Errorf("got %+v", failed)
	}
}

// With store false, a run is stored while it waits for the client, and deleted when it has ended.
func TestAResponseThatIsNotStored(t *testing.T) {
	v := serve(t, nil)
	count := func() int {
		t.Helper()
		var runs api.Runs
		v.do("GET", "/v1/runs", "", 200, &runs)
		return len(runs.Runs)
	}
	gone := func(what string) {
		t.Helper()
		// the response is sent before the run is deleted
		for deadline := time.Now().Add(20 * time.Second); count() > 0; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d runs are kept", what, count())
			}
		}
	}
	var r openAIResponse
	v.do("POST", "/v1/responses", `{"model":"clerk","input":"hello","store":false}`, 200, &r)
	gone("responses")
	if r.Store || r.Status != "completed" {
		t.Errorf("got %+v", r)
	}
	v.do("POST", "/v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"hello"}],"store":false}`, 200, nil)
	gone("chat")
	v.do("POST", "/v1/responses", `{"model":"clerk","input":"locate me","store":false,"tools":[{"type":"function","name":"locate"}]}`, 200, &r)
	if n := count(); n != 1 {
		t.Fatalf("%d runs are kept while one waits", n)
	}
	v.do("POST", "/v1/responses", `{"model":"clerk","store":false,"input":[{"type":"function_call_output","call_id":"`+r.Output[0].CallID+`","output":"Rome"}]}`, 200, &r)
	gone("with a call")
	v.do("POST", "/v1/responses", `{"model":"clerk","input":"hello","store":true}`, 200, &r)
	if n := count(); n != 1 || !r.Store {
		t.Errorf("%d runs are kept with store true", n)
	}
}

// Streams beyond the limit for all clients are refused. Connections beyond their limit wait.
func TestStreamsAndConnectionsAreBounded(t *testing.T) {
	s := listen(t, func(o *options) { o.Limits.Streams, o.Limits.Conns = 1, 3 })
	post := func(c *http.Client, body string) *http.Response {
		t.Helper()
		res, err := c.Do(request(t, "POST", "http://"+s.addr+"/v1/chat/completions", body))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	one, two := &http.Client{Transport: &http.Transport{}}, &http.Client{Transport: &http.Transport{}}
	defer one.CloseIdleConnections()
	defer two.CloseIdleConnections()
	stream := post(one, `{"model":"clerk","stream":true,"messages":[{"role":"user","content":"wait"}]}`)
	refused := post(two, `{"model":"clerk","stream":true,"messages":[{"role":"user","content":"hello"}]}`)
	var said struct{ Error api.Error }
	if err := json.NewDecoder(refused.Body).Decode(&said); err != nil || refused.StatusCode != 503 ||
		said.Error.Code != "busy" || refused.Header.Get("Retry-After") == "" {
		t.Errorf("a second stream: %d %+v, %v", refused.StatusCode, said, err)
	}
	refused.Body.Close()
	whole := make(chan *http.Response, 2)
	for range 2 { // the second and the third, whose requests are under way, too
		go func() {
			whole <- post(two, `{"model":"clerk","messages":[{"role":"user","content":"wait"}]}`)
		}()
	}
	for s.world.waits.Load() < 3 {
		runtime.Gosched()
	}
	done := make(chan error, 1)
	go func() { // it is the fourth
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Do(request(t, "GET", "http://"+s.addr+"/v1/health", ""))
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("it was let in: %v", err)
	case <-time.After(200 * time.Millisecond): // the test must wait to see that nothing happens
	}
	close(s.world.gate)
	for range 2 {
		(<-whole).Body.Close()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	stream.Body.Close()
}
