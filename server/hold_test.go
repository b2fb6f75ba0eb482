package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// patient returns an agent that pays after a yes, and counts payments.
func patient(paid *atomic.Int32) *pawl.Agent {
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{ Amount int }) (string, error) {
		paid.Add(1)
		return "paid", nil
	})
	turn := script.Func(func(req *llm.Request) script.Turn {
		if results := script.Results(req); len(results) > 0 {
			return script.Say("It says: " + results[0].Text())
		}
		return script.Together(script.Say("I pay."), script.Call("pay", `{"Amount":5}`))
	})
	return &pawl.Agent{
		Name:       "payer",
		Model:      script.New(script.Loop(turn)),
		Tools:      []pawl.Toolset{pay},
		Middleware: []pawl.Middleware{pawl.Approve(asks)},
	}
}

// holding starts a server that holds replies open.
func holding(t *testing.T, journal store.Journal, paid *atomic.Int32) *serving {
	return serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{patient(paid)}
		o.Journal = journal
		o.Times.Beat = 20 * time.Millisecond
		o.Times.Reconnect = 20 * time.Millisecond
		o.Front.HoldApprovals = true
		o.Front.ApprovalLink = func(owner store.Scope, agent, run string, call pawl.PendingCall) string {
			return fmt.Sprint("/page/", agent, "/", call.Digest != "", "/", run)
		}
	})
}

// readHeld reads a stream until it shows the link of a question and a heartbeat after it, and
// returns what it has shown.
func readHeld(t *testing.T, body *bufio.Reader) (said string) {
	t.Helper()
	for {
		line, err := body.ReadString('\n')
		said += line
		if err != nil {
			t.Fatalf("the stream ends with %v:\n%s", err, said)
		}
		_, after, linked := strings.Cut(said, "/page/payer/true/")
		if linked && strings.Contains(after, ": still here") {
			return said
		}
	}
}

// A streamed reply stays open while a call waits, says where it is answered, and continues after
// the answer of another person in the same reply. A client whose connection broke waits for the
// same answer with the same request: there is one run, one question and one write.
func TestHeldReply(t *testing.T) {
	for _, door := range []struct{ path, body, end, field string }{
		{"/v1/chat/completions", `{"model":"payer","stream":true,"messages":[{"role":"user","content":"pay"}]}`, "[DONE]", "content"},
		{"/v1/responses", `{"model":"payer","stream":true,"input":"pay"}`, "response.completed", "delta"},
		{"/v1/messages", `{"model":"payer","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"pay"}]}`, "message_stop", "text"},
	} {
		for _, verdict := range []struct {
			word, says string
			paid       int32
		}{{"approve", "It says: paid", 1}, {"deny", "It says: ", 0}} {
			for _, breaks := range []bool{false, true} {
				t.Run(fmt.Sprint(door.path, " ", verdict.word, " breaks=", breaks), func(t *testing.T) {
					var paid atomic.Int32
					v := holding(t, new(store.MemoryJournal), &paid)
					ask := func() (body *bufio.Reader, leave func()) {
						ctx, cancel := context.WithCancel(t.Context())
						res, err := v.client.Do(request(t, "POST", v.url+door.path, door.body).WithContext(ctx))
						if err != nil {
							t.Fatal(err)
						}
						return bufio.NewReader(res.Body), func() { cancel(); res.Body.Close() }
					}

					body, leave := ask()
					readHeld(t, body)
					if breaks {
						leave()
						body, leave = ask()
						readHeld(t, body)
					}
					defer leave()
					var list api.Runs
					v.do("GET", "/v1/runs", "", 200, &list)
					if len(list.Runs) != 1 || list.Runs[0].State != store.JournalWaiting {
						t.Fatalf("runs: %+v", list.Runs)
					}
					var run api.Run
					v.do("GET", "/v1/runs/"+list.Runs[0].ID, "", 200, &run)
					q := run.Pending[0]
					v.do("POST", "/v1/runs/"+run.ID+"/"+verdict.word, fmt.Sprintf(`{"key":%q,"digest":%q}`, q.Key, q.Digest), 200, nil)

					rest := ""
					for {
						line, err := body.ReadString('\n')
						rest += line
						if err != nil {
							break
						}
					}
					said := textOf(rest, door.field)
					if !strings.HasPrefix(said, "\n\n"+verdict.says) || !strings.Contains(rest, door.end) {
						t.Errorf("after the answer it says %q:\n%s", said, rest)
					}
					if paid.Load() != verdict.paid {
						t.Errorf("paid %d times", paid.Load())
					}
				})
			}
		}
	}
}

// What is not a stream, and a server that holds nothing, has the error as before. A client that has
// left while its call waits cancels nothing.
func TestReplyIsNotHeld(t *testing.T) {
	const whole = `{"model":"payer","messages":[{"role":"user","content":"pay"}]}`
	var paid atomic.Int32
	v := holding(t, new(store.MemoryJournal), &paid)
	if status, reply := v.postJSONText("/v1/chat/completions", whole); status != http.StatusLocked {
		t.Errorf("whole: %d: %s", status, reply)
	}
	silent := serve(t, func(o *options) { o.Agents = []*pawl.Agent{patient(&paid)} })
	_, reply := silent.postJSONText("/v1/chat/completions", strings.Replace(whole, "{", `{"stream":true,`, 1))
	if !strings.Contains(reply, "needs_decision") {
		t.Errorf("without the option: %s", reply)
	}

	ctx, cancel := context.WithCancel(t.Context())
	res, err := v.client.Do(request(t, "POST", v.url+"/v1/chat/completions",
		`{"model":"payer","stream":true,"messages":[{"role":"user","content":"pay again"}]}`).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	readHeld(t, bufio.NewReader(res.Body))
	cancel()
	res.Body.Close()
	var list api.Runs
	v.do("GET", "/v1/runs?state=waiting", "", 200, &list)
	if len(list.Runs) != 2 {
		t.Fatalf("%d runs wait", len(list.Runs))
	}
	for _, r := range list.Runs {
		var run api.Run
		v.do("GET", "/v1/runs/"+r.ID, "", 200, &run)
		q := run.Pending[0]
		v.do("POST", "/v1/runs/"+run.ID+"/approve", fmt.Sprintf(`{"key":%q,"digest":%q}`, q.Key, q.Digest), 200, nil)
		v.do("POST", "/v1/runs", fmt.Sprintf(`{"id":%q,"wait":true}`, run.ID), 200, &run)
		if run.Stop.Class() != pawl.ClassAnswered {
			t.Errorf("the run ends as %s", run.Stop)
		}
	}
	if paid.Load() != 2 {
		t.Errorf("%d payments", paid.Load())
	}
}

// A client that may not decide sees what waits, and no link: the page needs no token.
func TestHeldReplyWithoutRights(t *testing.T) {
	const body = `{"model":"payer","stream":true,"messages":[{"role":"user","content":"pay"}]}`
	for scope, linked := range map[api.Scope]bool{api.ScopeRun: false, api.ScopeAll: true} {
		var paid atomic.Int32
		v := serve(t, func(o *options) {
			o.Agents = []*pawl.Agent{patient(&paid)}
			o.Access.Tokens = []api.Token{{Name: "ann", Token: "the-token-of-ann", Scopes: []api.Scope{scope}}}
			o.Front.HoldApprovals = true
			o.Front.ApprovalLink = func(store.Scope, string, string, pawl.PendingCall) string { return "https://example.com/page" }
			o.Times.Beat = 20 * time.Millisecond
		})
		v.token = "the-token-of-ann"
		res := v.request("POST", "/v1/chat/completions", body)
		said := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			said += lines.Text()
			if strings.Contains(said, "Waits for a person") && strings.HasSuffix(said, ": still here") {
				break
			}
		}
		res.Body.Close()
		if got := strings.Contains(said, "https://example.com/page"); got != linked {
			t.Errorf("%s: the reply has a link: %t, want %t", scope, got, linked)
		}
	}
}

// A reply that is held open at one server continues when the question is answered at another.
func TestHeldReplyAndAnotherServer(t *testing.T) {
	var paid atomic.Int32
	journal := new(store.MemoryJournal)
	first := holding(t, journal, &paid)
	second := holding(t, journal, &paid)
	res := first.request("POST", "/v1/chat/completions",
		`{"model":"payer","stream":true,"messages":[{"role":"user","content":"pay"}]}`)
	defer res.Body.Close()
	body := bufio.NewReader(res.Body)
	readHeld(t, body)

	var list api.Runs
	second.do("GET", "/v1/runs", "", 200, &list)
	var run api.Run
	second.do("GET", "/v1/runs/"+list.Runs[0].ID, "", 200, &run)
	q := run.Pending[0]
	second.do("POST", "/v1/runs/"+run.ID+"/approve", fmt.Sprintf(`{"key":%q,"digest":%q}`, q.Key, q.Digest), 200, nil)
	rest, err := io.ReadAll(body)
	said := textOf(string(rest), "content")
	if err != nil || said != "\n\nIt says: paid" || paid.Load() != 1 {
		t.Errorf("it says %q after %d payments, %v", said, paid.Load(), err)
	}
}

// askServer sends a request to a server without a connection, as synctest needs, and decodes its
// answer into a value; nil means that the answer is not read.
func askServer(t *testing.T, s *server.Server, method, path, body string, into any) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, request(t, method, "http://127.0.0.1"+path, body))
	if w.Code >= http.StatusBadRequest || into != nil && json.Unmarshal(w.Body.Bytes(), into) != nil {
		t.Fatalf("%s %s: %d: %s", method, path, w.Code, w.Body)
	}
}

// A client that leaves a held reply after the answer holds the attempt that it read last: its call
// in progress may end, and no request begins.
func TestHeldReplyIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
		look := pawl.Func("look", "Looks.", func(context.Context, struct{}) (string, error) {
			<-gate
			return "seen", nil
		})
		model := script.New(
			script.Call("pay", "{}"),
			script.Together(script.Say("I look."), script.Call("look", "{}")),
			script.Say("Done."),
		)
		asksToPay := func(_ context.Context, call llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
			if call.Name == "pay" {
				return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
			}
			return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
		}
		agent := &pawl.Agent{
			Name:       "payer",
			Model:      model,
			Tools:      []pawl.Toolset{pay, look},
			Middleware: []pawl.Middleware{pawl.Approve(asksToPay)},
		}
		s, err := server.New([]*pawl.Agent{agent}, new(store.MemoryJournal),
			&server.Options{Front: server.Front{HoldApprovals: true}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := &quitter{*httptest.NewRecorder(), "I look.", cancel}
		body := `{"model":"payer","stream":true,"messages":[{"role":"user","content":"pay"}]}`
		left := make(chan struct{})
		go func() {
			defer close(left)
			s.ServeHTTP(client, request(t, "POST", "http://127.0.0.1/v1/chat/completions", body).WithContext(ctx))
		}()
		synctest.Wait()

		var list api.Runs
		askServer(t, s, "GET", "/v1/runs", "", &list)
		var run api.Run
		askServer(t, s, "GET", "/v1/runs/"+list.Runs[0].ID, "", &run)
		q := run.Pending[0]
		askServer(t, s, "POST", "/v1/runs/"+run.ID+"/approve", fmt.Sprintf(`{"key":%q,"digest":%q}`, q.Key, q.Digest), nil)
		<-left
		close(gate)
		synctest.Wait()
		if n := len(model.Requests()); n != 2 {
			t.Errorf("%d requests, want 2: the client has left", n)
		}
	})
}

// The stream of the events of a run that waits goes on at once when its question is answered, and
// not with the next heartbeat.
func TestEventsGoOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paid atomic.Int32
		s, err := server.New([]*pawl.Agent{patient(&paid)}, new(store.MemoryJournal), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		var run api.Run
		askServer(t, s, "POST", "/v1/runs", `{"id":"payment","agent":"payer","input":"pay","wait":true}`, &run)

		watcher := httptest.NewRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			s.ServeHTTP(watcher, request(t, "GET", "http://127.0.0.1/v1/runs/payment/events", "").WithContext(ctx))
		}()
		synctest.Wait()

		began := time.Now()
		q := run.Pending[0]
		askServer(t, s, "POST", "/v1/runs/payment/approve", fmt.Sprintf(`{"key":%q,"digest":%q}`, q.Key, q.Digest), nil)
		synctest.Wait()
		if waited := time.Since(began); waited > 0 || !strings.Contains(watcher.Body.String(), "It says: paid") {
			t.Errorf("after %v the watcher has read\n%s", waited, watcher.Body)
		}
		cancel()
		<-left
	})
}
