package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the state that the tools of the tests change.
type world struct {
	paid  atomic.Int32
	waits atomic.Int32  // calls of the tool wait that began
	gate  chan struct{} // the tool wait returns when it is closed
}

// clerk returns an agent that pays, looks things up, and waits, as the prompt requests.
func clerk(w *world) *pawl.Agent {
	pay := pawl.Func("pay", "Pays an invoice.", func(_ context.Context, in struct {
		Invoice int `json:"invoice"`
	}) (string, error) {
		w.paid.Add(1)
		return fmt.Sprintf("paid %d", in.Invoice), nil
	})
	look := pawl.Func("look", "Looks something up.", func(_ context.Context, in struct {
		At string `json:"at"`
	}) (string, error) {
		return "found " + in.At, nil
	})
	look.Effect = pawl.EffectRead
	wait := pawl.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		w.waits.Add(1)
		select {
		case <-w.gate:
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	wait.Effect = pawl.EffectRead
	ask := &pawl.Tool{Name: "ask", Description: "Asks the user.", Input: json.RawMessage(`{"type":"object"}`), Passive: true}
	return &pawl.Agent{Name: "clerk", Model: &script.Model{Turns: []script.Turn{script.Loop(script.Func(clerkTurn))}},
		Tools:      []pawl.Toolset{pay, look, wait, ask},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
}

var usage = &llm.Usage{Input: 30, Output: 12}

func clerkTurn(req *llm.Request) script.Turn {
	if res := script.Results(req); res != nil {
		said := res[0].Text()
		if said == "paid 13" {
			return script.Fail(&llm.ProviderError{Provider: "test", Code: llm.CodeServer, Message: "no"})
		}
		for _, r := range res[1:] {
			said += "; " + r.Text()
		}
		turn := script.Say("Done: " + said)
		turn.Usage = usage
		return turn
	}
	word, rest, _ := strings.Cut(req.Messages[len(req.Messages)-1].Text(), " ")
	switch word {
	case "pay":
		return script.Call("pay", `{"invoice":`+rest+`}`)
	case "look":
		return script.Call("look", `{"at":"`+rest+`"}`)
	case "both":
		return script.Together(script.Call("look", `{"at":"`+rest+`"}`), script.Call("look", `{"at":"Rome"}`))
	case "wait":
		return script.Call("wait", `{}`)
	case "locate":
		turn := script.Call("locate", `{}`)
		turn.Usage = usage
		return turn
	case "ask":
		return script.Call("ask", `{}`)
	case "count":
		return script.Say(fmt.Sprint(len(req.Messages)))
	case "fail":
		return script.Fail(&llm.ProviderError{Provider: "test", Code: llm.CodeServer, Message: "no"})
	}
	turn := script.Say("You said: " + word + " " + rest)
	turn.Usage = usage
	return turn
}

// serving is a server under test.
type serving struct {
	t      *testing.T
	s      *server.Server
	url    string
	token  string
	world  *world
	client *http.Client
}

func serve(t *testing.T, change func(*options)) *serving {
	t.Helper()
	w := &world{gate: make(chan struct{})}
	o := options{Agents: []*pawl.Agent{clerk(w)}, Journal: new(store.MemoryJournal)}
	if change != nil {
		change(&o)
	}
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	v := &serving{t: t, s: s, url: h.URL, world: w, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		v.client.CloseIdleConnections()
		h.Close()
	})
	return v
}

// The response to an approval shows the running run, and not its stop before the approval.
func TestAnApprovedRunHasNotStopped(t *testing.T) {
	gate := make(chan struct{})
	pay := pawl.Func("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return "paid", nil
	})
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{{Name: "payer", Model: script.New(script.Call("pay", nil), script.Say("Paid.")),
			Tools: []pawl.Toolset{pay}, Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}}
	})
	var run api.Run
	v.do("POST", "/v1/runs", `{"id":"r","input":"pay","wait":true}`, 201, &run)
	if run.Stop != pawl.StopPending || run.Cause == "" || len(run.Pending) != 1 {
		t.Fatalf("got %+v", run)
	}
	body := `{"key":"run/1/0","digest":"` + run.Pending[0].Digest + `"}`
	run = api.Run{}
	v.do("POST", "/v1/runs/r/approve", body, 200, &run)
	if run.State != "running" || run.Stop != "" || run.Cause != "" {
		t.Errorf("got state %q, stop %q, cause %q", run.State, run.Stop, run.Cause)
	}
	close(gate)
	v.events(v.request("GET", "/v1/runs/r/events", "").Body, nil)
	if v.do("GET", "/v1/runs/r", "", 200, &run); run.State != "over" || run.Stop != pawl.StopAnswer {
		t.Errorf("at its end: got %+v", run)
	}
}

// request returns a request.
func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body = nil
	}
	return req
}

func (v *serving) request(method, path, body string, headers ...string) *http.Response {
	v.t.Helper()
	req := request(v.t, method, v.url+path, body)
	if v.token != "" {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	return res
}

// do sends a request, checks the status and decodes the response into out.
func (v *serving) do(method, path, body string, want int, out any, headers ...string) {
	v.t.Helper()
	res := v.request(method, path, body, headers...)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if res.StatusCode != want {
		v.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, res.StatusCode, b, want)
	}
	if got := res.Header.Get("X-Content-Type-Options"); got != "nosniff" {
		v.t.Errorf("%s: X-Content-Type-Options %q", path, got)
	}
	if kind := res.Header.Get("Content-Type"); res.StatusCode != 204 && kind != "application/json" {
		v.t.Errorf("%s: Content-Type %q", path, kind)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			v.t.Fatalf("%s: %v: %s", path, err, b)
		}
	}
}

func (v *serving) code(method, path, body string, want int, code string, headers ...string) {
	v.t.Helper()
	var e struct{ Error api.Error }
	v.do(method, path, body, want, &e, headers...)
	if e.Error.Code != code || e.Error.Message == "" {
		v.t.Errorf("%s %s %s: got %+v, want the code %s", method, path, body, e.Error, code)
	}
}

// sent is a received event.
type sent struct {
	id, name string
	event    pawl.Event
	data     string
}

// events reads a stream until it ends, or until stop returns true.
func (v *serving) events(body io.ReadCloser, stop func(sent) bool) (all []sent) {
	v.t.Helper()
	defer body.Close()
	r := bufio.NewReader(body)
	var e sent
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return all
		}
		line = strings.TrimSuffix(line, "\n")
		switch field, value, _ := strings.Cut(line, ": "); {
		case line == "" && e.data != "":
			if e.name != "error" {
				if err := json.Unmarshal([]byte(e.data), &e.event); err != nil {
					v.t.Errorf("%v: %s", err, e.data)
				}
			}
			all = append(all, e)
			if stop != nil && stop(e) {
				return all
			}
			e = sent{}
		case field == "id":
			e.id = value
		case field == "event":
			e.name = value
		case field == "data":
			e.data = value
		}
	}
}

func names(all []sent) string {
	var b bytes.Buffer
	for _, e := range all {
		fmt.Fprintf(&b, "%s ", e.name)
	}
	return strings.TrimSpace(b.String())
}

func TestARunIsBegunWatchedAndShown(t *testing.T) {
	v := serve(t, nil)
	var run api.Run
	v.do("POST", "/v1/runs", `{"id":"one","input":"look Oslo","wait":true}`, 201, &run)
	if run.ID != "one" || run.Agent != "clerk" || run.State != "over" || run.Stop != pawl.StopAnswer ||
		run.Answer != "Done: found Oslo" || run.Spent.Calls != 1 {
		t.Errorf("got %+v", run)
	}
	var again api.Run
	v.do("POST", "/v1/runs", `{"id":"one","input":"look Oslo"}`, 200, &again)
	if again.Answer != run.Answer || !again.Created.Equal(run.Created) {
		t.Errorf("the same request again: got %+v", again)
	}
	v.code("POST", "/v1/runs", `{"id":"one","input":"look Rome"}`, 409, "conflict")
	v.code("POST", "/v1/runs", `{"id":"one","agent":"other","input":"look Oslo"}`, 409, "conflict")

	res := v.request("GET", "/v1/runs/one/events", "")
	all := v.events(res.Body, nil)
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	if !strings.HasPrefix(names(all), "run_started step_started request_started") || !strings.HasSuffix(names(all), "run_ended") {
		t.Errorf("events: %s", names(all))
	}
	var list api.Runs
	v.do("GET", "/v1/runs?state=over", "", 200, &list)
	if len(list.Runs) != 1 || list.Runs[0].ID != "one" || list.After != "" {
		t.Errorf("list: %+v", list)
	}
	v.do("GET", "/v1/runs?state=waiting", "", 200, &list)
	if len(list.Runs) != 0 {
		t.Errorf("list: %+v", list)
	}
	v.do("POST", "/v1/runs", `{"input":"hello","wait":true}`, 201, &run)
	if !strings.HasPrefix(run.ID, "run_") || run.Answer != "You said: hello " {
		t.Errorf("got %+v", run)
	}
	v.do("POST", "/v1/runs", `{"input":"hello"}`, 200, &again, "Idempotency-Key", run.ID)
	v.do("POST", "/v1/runs", `{"id":"bad","input":"fail","wait":true}`, 201, &run)
	if run.State != "failed" || run.Stop != pawl.StopFailed {
		t.Errorf("got %+v", run)
	}
}

func TestAStreamIsGoneOnWith(t *testing.T) {
	v := serve(t, nil)
	res := v.request("POST", "/v1/runs", `{"id":"s","input":"wait"}`, "Accept", "text/event-stream")
	first := v.events(res.Body, func(e sent) bool { return e.name == "call_started" })
	close(v.world.gate)
	last := first[len(first)-1].id
	rest := v.events(v.request("GET", "/v1/runs/s/events", "", "Last-Event-ID", last).Body, nil)
	whole := v.events(v.request("GET", "/v1/runs/s/events", "").Body, nil)
	if got, want := names(append(first, rest...)), names(whole); got != want {
		t.Errorf("in two parts: %s\nat once:      %s", got, want)
	}
	end := whole[len(whole)-1]
	if end.name != "run_ended" || end.event.Result == nil || end.event.Result.Stop != pawl.StopAnswer {
		t.Errorf("the end: %+v", end)
	}
	if res := v.request("GET", "/v1/runs/s/events", "", "Last-Event-ID", end.id); res.StatusCode != 204 {
		t.Errorf("after the end: %d", res.StatusCode)
	}
	for _, unknown := range []string{"", "x", "x-1", end.id + "0", "-1", strings.Replace(end.id, "-", "-+", 1) + "99", "\xff-1"} {
		all := v.events(v.request("GET", "/v1/runs/s/events", "", "Last-Event-ID", unknown).Body, nil)
		if len(all) != len(whole) {
			t.Errorf("after %q: %d events, want all %d", unknown, len(all), len(whole))
		}
	}
}

func TestACallIsApprovedDeniedAnsweredAndSteered(t *testing.T) {
	v := serve(t, nil)
	var run api.Run
	begin := func(id, input string) pawl.PendingCall {
		t.Helper()
		v.do("POST", "/v1/runs", `{"id":"`+id+`","input":"`+input+`","wait":true}`, 201, &run)
		if run.State != "waiting" || len(run.Pending) != 1 {
			t.Fatalf("got %+v", run)
		}
		return run.Pending[0]
	}
	until := func(id, state string) {
		t.Helper()
		v.events(v.request("GET", "/v1/runs/"+id+"/events", "").Body, nil)
		if v.do("GET", "/v1/runs/"+id, "", 200, &run); run.State != state {
			t.Errorf("%s: got %+v, want it %s", id, run, state)
		}
	}
	w := begin("yes", "pay 7")
	var inbox api.Inbox
	v.do("GET", "/v1/pending", "", 200, &inbox)
	if len(inbox.Waiting) != 1 || inbox.Waiting[0].Run.ID != "yes" || inbox.Waiting[0].Pending[0].Digest != w.Digest {
		t.Errorf("inbox: %+v", inbox)
	}
	v.code("POST", "/v1/runs/yes/approve", `{"key":"run/1/0","digest":"another"}`, 409, "conflict")
	v.code("POST", "/v1/runs/yes/approve", `{"key":"run/9/0","digest":"another"}`, 409, "conflict")
	v.do("POST", "/v1/runs/yes/approve", `{"key":"run/1/0","digest":"`+w.Digest+`"}`, 200, nil)
	until("yes", "over")
	// no call is pending any more
	v.do("POST", "/v1/runs/yes/approve", `{"key":"run/1/0","digest":"`+w.Digest+`"}`, 409, nil)
	if v.world.paid.Load() != 1 || run.Answer != "Done: paid 7" {
		t.Errorf("paid %d times; %+v", v.world.paid.Load(), run)
	}
	w = begin("edit", "pay 8")
	v.code("POST", "/v1/runs/edit/approve", `{"key":"run/1/0","digest":"`+w.Digest+`","args":{"invoice":"nine"}}`, 422, "misfit")
	v.do("POST", "/v1/runs/edit/approve", `{"key":"run/1/0","digest":"`+w.Digest+`","args":{"invoice":9}}`, 200, nil)
	until("edit", "over")
	if !strings.HasPrefix(run.Answer, "Done: ") || !strings.Contains(run.Answer, "paid 9") {
		t.Errorf("edited: %q", run.Answer)
	}
	w = begin("no", "pay 1")
	v.do("POST", "/v1/runs/no/deny", `{"key":"run/1/0","digest":"`+w.Digest+`","reason":"too dear"}`, 200, nil)
	until("no", "over")
	if v.world.paid.Load() != 2 || !strings.Contains(run.Answer, "too dear") {
		t.Errorf("paid %d times; %+v", v.world.paid.Load(), run)
	}
	w = begin("given", "ask")
	v.code("POST", "/v1/runs/given/approve", `{"key":"run/1/0","digest":"`+w.Digest+`"}`, 409, "conflict")
	v.do("POST", "/v1/runs/given/answer", `{"key":"run/1/0","digest":"`+w.Digest+`","text":"blue"}`, 200, nil)
	until("given", "over")
	if run.Answer != "Done: blue" {
		t.Errorf("answered: %+v", run)
	}
	var effects api.Effects
	v.do("GET", "/v1/runs/yes/effects", "", 200, &effects)
	if len(effects.Effects) != 1 || effects.Effects[0].State != "completed" {
		t.Errorf("effects: %+v", effects)
	}
	v.do("POST", "/v1/runs/yes/fork", `{"id":"fork","steps":1}`, 201, &run)
	v.do("GET", "/v1/runs/yes/diff/fork", "", 200, nil)
	v.do("GET", "/v1/runs/yes/export", "", 200, nil)

	v.do("POST", "/v1/runs", `{"id":"steered","input":"wait"}`, 201, nil)
	v.do("POST", "/v1/runs/steered/steer", `{"input":"look here"}`, 200, nil)
	close(v.world.gate)
	until("steered", "over")
	if run.Answer != "Done: found here" && !strings.Contains(run.Answer, "waited") {
		t.Errorf("steered: %+v", run)
	}
	v.code("POST", "/v1/runs/steered/steer", `{"input":"too late"}`, 409, "conflict")
}

func TestARunIsDeleted(t *testing.T) {
	v := serve(t, nil)
	v.do("POST", "/v1/runs", `{"id":"c","input":"wait"}`, 201, nil)
	v.events(v.request("GET", "/v1/runs/c/events", "").Body, func(e sent) bool { return e.name == "call_started" })
	v.code("DELETE", "/v1/runs/c", "", 409, "conflict")
	v.do("POST", "/v1/runs/c/cancel", "", 200, nil)
	var gone api.Deleted
	v.do("DELETE", "/v1/runs/c", "", 200, &gone)
	if gone != (api.Deleted{ID: "c", Deleted: true}) {
		t.Errorf("got %+v", gone)
	}
	v.code("GET", "/v1/runs/c", "", 404, "not_found")
	v.code("DELETE", "/v1/runs/c", "", 404, "not_found")
}

func TestARunIsCancelled(t *testing.T) {
	v := serve(t, nil)
	v.do("POST", "/v1/runs", `{"id":"c","input":"wait"}`, 201, nil)
	v.events(v.request("GET", "/v1/runs/c/events", "").Body, func(e sent) bool { return e.name == "call_started" })
	var run api.Run
	v.do("POST", "/v1/runs/c/cancel", "", 200, &run)
	if run.State != "over" || run.Stop != pawl.StopCancelled {
		t.Errorf("got %+v", run)
	}
	v.do("POST", "/v1/runs/c/cancel", "", 200, &run)
	v.do("POST", "/v1/runs", `{"id":"p","input":"pay 3","wait":true}`, 201, &run)
	v.do("POST", "/v1/runs/p/cancel", "", 200, &run)
	if run.State != "over" || run.Stop != pawl.StopCancelled || v.world.paid.Load() != 0 {
		t.Errorf("got %+v", run)
	}
	v.code("POST", "/v1/runs/nobody/cancel", "", 404, "not_found")
}

func TestAToolIsCalled(t *testing.T) {
	v := serve(t, nil)
	var tools api.Tools
	v.do("GET", "/v1/tools", "", 200, &tools)
	if len(tools.Tools) != 4 || tools.Tools[0].Name != "pay" || tools.Tools[0].Agent != "clerk" {
		t.Errorf("tools: %+v", tools)
	}
	var got api.ToolCalled
	v.do("POST", "/v1/tools/look/call", `{"id":"l","args":{"at":"Oslo"}}`, 200, &got)
	if got.Outcome != pawl.OutcomeOK || got.Result.Text() != "found Oslo" {
		t.Errorf("got %+v", got)
	}
	v.do("POST", "/v1/tools/look/call", `{"args":{"at":[5]}}`, 200, &got)
	if got.Outcome != pawl.OutcomeInvalid || got.Result == nil || !got.Result.IsError {
		t.Errorf("got %+v", got)
	}
	got = api.ToolCalled{}
	v.do("POST", "/v1/tools/pay/call", `{"id":"p","args":{"invoice":4}}`, 202, &got)
	if got.Outcome != pawl.OutcomePending || len(got.Pending) != 1 || v.world.paid.Load() != 0 {
		t.Fatalf("got %+v", got)
	}
	v.do("POST", "/v1/runs/p/approve", `{"key":"`+string(got.Pending[0].Key)+`","digest":"`+got.Pending[0].Digest+`"}`, 200, nil)
	v.events(v.request("GET", "/v1/runs/p/events", "").Body, nil)
	v.do("POST", "/v1/tools/pay/call", `{"id":"p","args":{"invoice":4}}`, 200, &got)
	if got.Outcome != pawl.OutcomeOK || v.world.paid.Load() != 1 {
		t.Errorf("got %+v, paid %d times", got, v.world.paid.Load())
	}
	v.code("POST", "/v1/tools/nothing/call", `{}`, 404, "not_found")
	v.code("POST", "/v1/tools/ask/call", `{}`, 404, "not_found")
}

// A server that stops parks its runs, and the next one resumes them.
func TestRunsOutliveTheServer(t *testing.T) {
	journal := new(store.MemoryJournal)
	v := serve(t, func(o *options) { o.Journal = journal })
	v.do("POST", "/v1/runs", `{"id":"long","input":"wait"}`, 201, nil)
	stream := v.request("GET", "/v1/runs/long/events", "")
	started := make(chan struct{})
	all := make(chan []sent, 1)
	go func() {
		all <- v.events(stream.Body, func(e sent) bool {
			if e.name == "call_started" {
				close(started)
			}
			return false
		})
	}()
	<-started
	if err := v.s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := names(<-all); strings.Contains(got, "run_ended") || strings.Contains(got, "error") {
		t.Errorf("the watcher received the end of the run: %s", got)
	}
	v.code("POST", "/v1/runs", `{"input":"hello"}`, 503, "busy")

	next := serve(t, func(o *options) { o.Journal = journal })
	close(next.world.gate)
	seen := next.events(next.request("GET", "/v1/runs/long/events", "", "Last-Event-ID", "old-5").Body, nil)
	if got := names(seen); !strings.HasPrefix(got, "notice run_started") || !strings.HasSuffix(got, "run_ended") {
		t.Errorf("the next server sends: %s", got)
	}
	var run api.Run
	next.do("GET", "/v1/runs/long", "", 200, &run)
	if run.Answer != "Done: waited" {
		t.Errorf("got %+v", run)
	}
}

// An agent without a Model is refused before its first run.
func TestNewRefusesAnAgentWithoutAModel(t *testing.T) {
	_, err := server.New([]*pawl.Agent{{Name: "x"}}, new(store.MemoryJournal), nil)
	if want := `agent "x": Model: the agent has no model; set one`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// options are the arguments of server.New.
type options struct {
	Agents  []*pawl.Agent
	Journal store.Journal
	server.Options
}

func newServer(o options) (*server.Server, error) { return server.New(o.Agents, o.Journal, &o.Options) }
