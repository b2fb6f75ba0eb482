package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
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

// cashier returns an agent whose requests act: "pay", "pay and fail", "pay slowly" and "ask first".
func cashier(w *world) *pawl.Agent {
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		w.paid.Add(1)
		return "paid", nil
	})
	wait := pawl.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-w.gate:
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	wait.Effect = pawl.EffectRead
	turn := func(req *llm.Request) script.Turn {
		task, done := req.Messages[0].Text(), len(script.Results(req)) > 0
		switch {
		case !done && strings.Contains(task, "slowly"):
			return script.Turn{Parts: []llm.Part{llm.Text{Text: "Let me see."},
				llm.ToolCall{ID: "1", Name: "pay", Args: []byte("{}")}, llm.ToolCall{ID: "2", Name: "wait", Args: []byte("{}")}}}
		case !done:
			return script.Turn{Parts: []llm.Part{llm.Text{Text: "Let me see."}, llm.ToolCall{ID: "1", Name: "pay", Args: []byte("{}")}}}
		case strings.Contains(task, "fail"):
			return script.Fail(&llm.ProviderError{Provider: "test", Code: llm.CodeServer, Message: "no"})
		}
		return script.Say("It is paid.")
	}
	return &pawl.Agent{Name: "cashier", Model: &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}},
		Tools: []pawl.Toolset{pay, wait}, Parallel: pawl.Parallel{},
		Middleware: []pawl.Middleware{pawl.Approve(allow)}}
}

func allow(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
	return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
}

func asks(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
	return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
}

// front is a server with a cashier over a journal.
func front(t *testing.T, j store.Journal, w *world, change func(*options)) *serving {
	v := serve(t, func(o *options) {
		o.Agents, o.Journal = []*pawl.Agent{cashier(w)}, j
		if change != nil {
			change(o)
		}
	})
	v.world = w
	return v
}

func chatOf(task, more string) string {
	return `{"model":"cashier","messages":[{"role":"user","content":"` + task + `"}]` + more + `}`
}

func count(t *testing.T, v *serving) int {
	t.Helper()
	var list api.Runs
	v.do("GET", "/v1/runs", "", 200, &list)
	return len(list.Runs)
}

// One request of a client is one run, however often the client sends it.
func TestARepeatedRequestIsOneRun(t *testing.T) {
	const chat, responses, messages = "/v1/chat/completions", "/v1/responses", "/v1/messages"
	type request struct {
		path, body string
		status     int
		headers    []string
	}
	pays, fails := request{chat, chatOf("pay", ""), 200, nil}, request{chat, chatOf("pay and fail", ""), 424, nil}
	response := request{responses, `{"model":"cashier","input":"pay"}`, 200, nil}
	responseFails := request{responses, `{"model":"cashier","input":"pay and fail"}`, 424, nil}
	message := request{messages, `{"model":"cashier","max_tokens":100,"messages":[{"role":"user","content":"pay"}]}`, 200, nil}
	messageFails := request{messages, strings.Replace(message.body, "pay", "pay and fail", 1), 424, nil}
	forgets := request{chat, chatOf("pay", `,"store":false`), 200, nil}
	keyed := request{chat, pays.body, 200, []string{"Idempotency-Key", "k1"}}
	second := request{chat, pays.body, 200, []string{"Idempotency-Key", "k2"}}
	other := request{chat, fails.body, 422, keyed.headers}
	times := func(r request, counts ...string) (all []request) {
		for _, n := range counts {
			r.headers = []string{"X-Stainless-Retry-Count", n}
			all = append(all, r)
		}
		return all
	}
	for _, test := range []struct {
		name       string
		requests   []request
		runs, paid int
		restart    bool // a new process answers each request
	}{
		{"a provider that fails after a write", times(fails, "0", "1", "2"), 1, 1, false},
		{"the same over Responses", times(responseFails, "0", "1", "2"), 1, 1, false},
		{"the same over Messages", times(messageFails, "0", "1", "2"), 1, 1, false},
		{"a lost answer over Messages and a new process", times(message, "0", "1", "2"), 1, 1, true},
		{"a lost answer", append(times(pays, "0", "1"), times(response, "0", "1")...), 2, 2, false},
		{"a lost answer and a new process", times(pays, "0", "1", "2"), 1, 1, true},
		{"not stored", times(forgets, "0", "1"), 0, 1, false},
		{"the same key", []request{keyed, keyed, other}, 1, 1, false},
		{"the same key in a new process", []request{keyed, keyed, other}, 1, 1, true},
		{"control: a question that is asked twice", append(times(pays, "0", "0"), pays, pays), 4, 4, false},
		{"control: a new process, asked twice", times(pays, "0", "0"), 2, 2, true},
		{"control: another key", []request{keyed, second}, 2, 2, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, j := &world{}, new(store.MemoryJournal)
			v := front(t, j, w, nil)
			for _, r := range test.requests {
				var body json.RawMessage
				v.do("POST", r.path, r.body, r.status, &body, r.headers...)
				if r.status == 200 && !strings.Contains(string(body), "It is paid.") {
					t.Errorf("got %s", body)
				}
				if test.restart {
					v = front(t, j, w, nil)
				}
			}
			if got := count(t, v); got != test.runs || w.paid.Load() != int32(test.paid) {
				t.Errorf("got %d runs and %d payments, want %d and %d", got, w.paid.Load(), test.runs, test.paid)
			}
		})
	}
}

// A client that repeats a stream as a whole request sends the same question: after a stream that
// failed, it gets the failure of the same run. Claude Code states that each request is the first.
func TestAStreamIsRepeatedWhole(t *testing.T) {
	const stream, whole = `,"stream":true`, ``
	body := func(task, more string) string {
		return `{"model":"cashier","max_tokens":100,"messages":[{"role":"user","content":"` + task + `"}]` + more + `}`
	}
	for _, test := range []struct {
		name, agent string
		bodies      []string
		paid        int
	}{
		{"Claude Code", "claude-cli/2.1 (external, cli)", []string{body("pay and fail", stream), body("pay and fail", whole)}, 1},
		{"control: another task", "claude-cli/2.1", []string{body("pay and fail", stream), body("pay and fail now", whole)}, 2},
		{"control: after an answer", "claude-cli/2.1", []string{body("pay", stream), body("pay", whole)}, 2},
		{"control: a client that counts", "anthropic-sdk", []string{body("pay and fail", stream), body("pay and fail", whole)}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := new(world)
			v := front(t, new(store.MemoryJournal), w, nil)
			for _, b := range test.bodies {
				v.postJSONText("/v1/messages", b, "User-Agent", test.agent, "X-Stainless-Retry-Count", "0")
			}
			if got := int(w.paid.Load()); got != test.paid || count(t, v) != test.paid {
				t.Errorf("%d payments in %d runs, want %d", got, count(t, v), test.paid)
			}
		})
	}
}

// Statuses are ones that no client of OpenAI's API repeats where a repetition would act again.
func TestStatusesAreNotRepeated(t *testing.T) {
	v := serve(t, nil)
	for _, test := range []struct {
		body, code string
		status     int
	}{
		{`{"model":"clerk","messages":[{"role":"user","content":"pay 7"}]}`, "needs_decision", 423},
		{`{"model":"clerk","messages":[{"role":"user","content":"fail"}]}`, "model_failed", 424},
	} {
		res := v.request("POST", "/v1/chat/completions", test.body)
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != test.status || res.Header.Get("X-Should-Retry") != "false" ||
			!strings.Contains(string(b), test.code) {
			t.Errorf("%s: got %d, %v, %s, %v", test.body, res.StatusCode, res.Header, b, err)
		}
		res.Body.Close()
	}
	for path, status := range map[string]int{"/v1/embeddings": 404, "/v1/completions": 404} {
		var e struct{ Error struct{ Message string } }
		if v.do("POST", path, `{}`, status, &e); e.Error.Message == "" {
			t.Errorf("%s: no message", path)
		}
	}
}

// A client whose connection breaks while tools run sends its request again, and gets the answer.
func TestAClientThatReturns(t *testing.T) {
	w := &world{gate: make(chan struct{})}
	v := front(t, new(store.MemoryJournal), w, func(o *options) { o.Times.Beat = 5 * time.Millisecond })
	body := chatOf("pay slowly", `,"stream":true`)
	lose(t, v, body)
	close(w.gate)
	res := v.request("POST", "/v1/chat/completions", body)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(b), "It is pa") || !strings.Contains(string(b), "[DONE]") {
		t.Errorf("got %v, %s", err, b)
	}
	if count(t, v) != 1 || w.paid.Load() != 1 {
		t.Errorf("got %d runs and %d payments", count(t, v), w.paid.Load())
	}
}

// lose starts a request and closes its connection when the tool has acted. It returns when the
// server has noticed.
func lose(t *testing.T, v *serving, body string, headers ...string) {
	t.Helper()
	s := httptest.NewServer(v.s) // Close waits for its handlers
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := request(t, "POST", s.URL+"/v1/chat/completions", body).WithContext(ctx)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := v.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); v.world.paid.Load() == 0 && lines.Scan(); {
	}
}

// A run whose client does not return is cancelled, unless it is to go on.
func TestAClientThatDoesNotReturn(t *testing.T) {
	for _, test := range []struct {
		name, agent string
		headers     []string
		want        pawl.StopReason
	}{
		{"default", "", nil, pawl.StopCancelled},
		{"the agent goes on", "continue", nil, pawl.StopAnswer},
		{"the request goes on", "", []string{"X-Pawl-Disconnect", "continue"}, pawl.StopAnswer},
		{"the request does not", "continue", []string{"X-Pawl-Disconnect", "cancel"}, pawl.StopCancelled},
		{"a durable request", "", []string{"Idempotency-Key", "k"}, pawl.StopAnswer},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{gate: make(chan struct{})}
			v := front(t, new(store.MemoryJournal), w, func(o *options) {
				o.Times.Reconnect, o.Times.Beat = 20*time.Millisecond, 5*time.Millisecond
				o.Front.OnDisconnect = map[string]string{"cashier": test.agent}
			})
			lose(t, v, chatOf("pay slowly", `,"stream":true`), test.headers...)
			if test.want == pawl.StopAnswer {
				close(w.gate)
			}
			var list api.Runs
			v.do("GET", "/v1/runs", "", 200, &list)
			v.events(v.request("GET", "/v1/runs/"+list.Runs[0].ID+"/events", "").Body, nil)
			v.do("GET", "/v1/runs", "", 200, &list)
			if len(list.Runs) != 1 || list.Runs[0].Stop != test.want || w.paid.Load() != 1 {
				t.Errorf("got %+v and %d payments", list.Runs, w.paid.Load())
			}
		})
	}
}

// quitter is the connection of a client that disconnects at the first piece that contains text.
type quitter struct {
	httptest.ResponseRecorder
	text string
	quit func()
}

func (q *quitter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), q.text) {
		q.quit()
	}
	return q.ResponseRecorder.Write(b)
}

// A run that has stopped keeps its state when its client has disconnected: clients disconnect at an
// error in a stream, and send the request again.
func TestAStoppedRunIsNotCancelled(t *testing.T) {
	for _, test := range []struct{ task, text, want string }{
		{"pay and fail", `"error"`, "failed"},
		{"ask first", `"error"`, "waiting"},
		{"pay slowly", "Let me", "over"}, // control: it works, and is cancelled
	} {
		t.Run(test.task, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent, journal := cashier(&world{}), new(store.MemoryJournal)
				if test.task == "ask first" {
					agent.Middleware = []pawl.Middleware{pawl.Approve(asks)}
				}
				s, err := server.New([]*pawl.Agent{agent}, journal, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(t.Context())
				ctx, cancel := context.WithCancel(t.Context())
				w := &quitter{*httptest.NewRecorder(), test.text, cancel}
				s.ServeHTTP(w,
					request(t, "POST", "http://127.0.0.1/v1/chat/completions", chatOf(test.task, `,"stream":true`)).WithContext(ctx))
				if ctx.Err() == nil {
					t.Fatalf("the client did not disconnect: %s", w.Body)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				runs, err := journal.JournalRuns(t.Context(), store.Scope{}, "", store.Page{})
				if err != nil || len(runs) != 1 || runs[0].State != test.want {
					t.Errorf("got %+v, %v", runs, err)
				}
			})
		})
	}
}

// An agent with structured output answers with that output alone, also with text before its calls.
func TestStructuredOutputAlone(t *testing.T) {
	schema := `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`
	prose := llm.Text{Text: "Let me look first."}
	look := pawl.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "Oslo", nil })
	look.Effect = pawl.EffectRead
	v := serve(t, func(o *options) {
		o.Times.Beat = 2 * time.Millisecond
		turn := func(req *llm.Request) script.Turn {
			if len(script.Results(req)) == 0 {
				return script.Turn{Parts: []llm.Part{prose, llm.ToolCall{ID: "1", Name: "look", Args: []byte("{}")}}}
			}
			return script.Turn{Parts: []llm.Part{llm.Text{Text: "Here it is."}, llm.ToolCall{ID: "2", Name: "final_answer", Args: []byte(`{"city":"Oslo"}`)}}}
		}
		model := &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}}
		o.Agents = []*pawl.Agent{{Name: "own", Model: model, Tools: []pawl.Toolset{look}, Output: json.RawMessage(schema)},
			{Name: "asked", Model: model, Tools: []pawl.Toolset{look}}}
	})
	format := `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}`
	text := `,"text":{"format":{"type":"json_schema","name":"x","schema":` + schema + `}}`
	for _, r := range [][2]string{
		{"/v1/chat/completions", `{"model":"own","messages":[{"role":"user","content":"where?"}]`},
		{"/v1/chat/completions", `{"model":"asked","messages":[{"role":"user","content":"where?"}]` + format},
		{"/v1/responses", `{"model":"own","input":"where?"`}, {"/v1/responses", `{"model":"asked","input":"where?"` + text},
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			res := v.request("POST", r[0], r[1]+stream+"}")
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if got := string(b); err != nil || res.StatusCode != http.StatusOK || strings.Contains(got, "Let me") ||
				strings.Contains(got, "Here it is") || !strings.Contains(got, `{\"city\":\"Oslo\"}`) {
				t.Errorf("%s%s: got %d, %s", r[1], stream, res.StatusCode, got)
			}
		}
	}
	var free json.RawMessage
	if v.do("POST", "/v1/chat/completions", `{"model":"asked","messages":[{"role":"user","content":"where?"}]}`, 424, &free); free == nil {
		t.Error("control: without a schema there is no final_answer")
	}
}

// Equal requests that arrive at the same time with one key are one run, and each gets its end.
func TestEqualRequestsAtOnce(t *testing.T) {
	w := &world{}
	v := front(t, new(store.MemoryJournal), w, nil)
	body := chatOf("pay and fail", `,"stream":true`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			res := v.request("POST", "/v1/chat/completions", body, "Idempotency-Key", "k")
			defer res.Body.Close()
			if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), "model_failed") {
				t.Errorf("got %s, %v", b, err)
			}
		})
	}
	all.Wait()
	if count(t, v) != 1 || w.paid.Load() != 1 {
		t.Errorf("got %d runs and %d payments", count(t, v), w.paid.Load())
	}
}

// contested reports the first look at a run that another process has.
type contested struct {
	store.Journal
	once sync.Once
	met  chan struct{}
}

func (j *contested) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	head, err := j.Journal.JournalRun(ctx, s, id)
	if head.Owner != "" {
		j.once.Do(func() { close(j.met) })
	}
	return head, err
}

// A client repeats its request at a second server while the first one still has the run, as after a
// crash: it gets the answer of the run.
func TestARepetitionWaitsForTheRun(t *testing.T) {
	w, j := &world{gate: make(chan struct{})}, new(store.MemoryJournal)
	first := front(t, j, w, nil)
	body := chatOf("pay slowly", "")
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		if res, err := first.client.Do(request(t, "POST", first.url+"/v1/chat/completions", body)); err == nil {
			res.Body.Close()
		}
	}()
	held := &contested{Journal: j, met: make(chan struct{})}
	second := front(t, held, w, nil)
	for w.paid.Load() == 0 {
		runtime.Gosched()
	}
	go func() { <-held.met; close(w.gate) }()
	var got json.RawMessage
	second.do("POST", "/v1/chat/completions", body, 200, &got, "X-Stainless-Retry-Count", "1")
	if <-begun; !strings.Contains(string(got), "It is paid.") || w.paid.Load() != 1 || count(t, second) != 1 {
		t.Errorf("got %s, %d payments, %d runs", got, w.paid.Load(), count(t, second))
	}
}
