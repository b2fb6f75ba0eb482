package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// twoServers serves one database by two servers. The run of the agent looks, waits and answers.
func twoServers(t *testing.T) (near, far *serving, w *world) {
	t.Helper()
	w = &world{gate: make(chan struct{})}
	agent := func() *pawl.Agent {
		a := clerk(w)
		a.Model = script.New(script.Call("look", `{"at":"Oslo"}`), script.Call("wait", `{}`),
			script.Func(func(req *llm.Request) script.Turn { return script.Say("Done: " + script.Results(req)[0].Text()) }))
		return a
	}
	journal := new(store.MemoryJournal)
	change := func(o *options) {
		o.Journal = journal
		o.Agents = []*pawl.Agent{agent()}
		o.A2A = &server.A2A{}
	}
	near = serve(t, change)
	far = serve(t, change)
	return near, far, w
}

// A run of one server is watched at another one: each step when it is stored, and the end, by each
// protocol. It is executed once.
func TestARunIsWatchedAtAnotherServer(t *testing.T) {
	const page = `{"id":"c","trigger":"submit-message","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"go"}]}]}`
	const agui = `{"threadId":"t","runId":"r","protocolVersion":"1.0","messages":[{"id":"m","role":"user","content":"go"}],` +
		`"tools":[],"context":[],"state":{},"forwardedProps":{}}`
	for name, c := range map[string]struct {
		path, body  string // begins the run
		again, post string // watches it at the other server; no post means GET
		step, end   string // what the stream shows of the first step, and of the end
	}{
		"/v1/runs": {"/v1/runs", `{"id":"w","input":"go"}`, "/v1/runs/w/events", "", "found Oslo", "Done: waited"},
		"wait":     {"/v1/runs", `{"id":"w","input":"go"}`, "/v1/runs", `{"id":"w","input":"go","wait":true}`, "", "Done: waited"},
		"useChat":  {"/v1/ui/clerk", page, "/v1/ui/clerk/c/stream", "", "found Oslo", "Done: "},
		"AG-UI":    {"/v1/agui/clerk", agui, "/v1/agui/clerk", agui, "found Oslo", "Done: "},
		"chat completions": {"/v1/chat/completions", chatBody(t, "go", nil), "/v1/chat/completions",
			chatBody(t, "go", nil), "", "Done: waited"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far, w := twoServers(t)
			go func() { // its answer is not read
				res := near.request("POST", c.path, c.body, "Idempotency-Key", "k")
				defer res.Body.Close()
				_, _ = io.Copy(io.Discard, res.Body)
			}()
			waitUntil(t, func() bool { return w.waits.Load() == 1 })

			method := http.MethodPost
			if c.post == "" {
				method = http.MethodGet
			}
			answer := make(chan *http.Response, 1)
			go func() { answer <- far.request(method, c.again, c.post, "Idempotency-Key", "k") }()
			var seen string
			if c.step != "" {
				res := <-answer
				seen = readUntil(t, res.Body, c.step)
				answer <- res
			}
			close(w.gate)
			res := <-answer
			defer res.Body.Close()
			rest, err := io.ReadAll(res.Body)
			seen += string(rest)
			if err != nil || res.StatusCode/100 != 2 || !strings.Contains(seen, c.end) {
				t.Errorf("%d, %v: %s", res.StatusCode, err, seen)
			}
			if n := w.waits.Load(); n != 1 {
				t.Errorf("the tool was called %d times", n)
			}
		})
	}
}

// A run of another server is watched from its beginning, before its first step has ended, also at a
// server that has no room for one more run.
func TestARunIsWatchedAtAFullServer(t *testing.T) {
	w := &world{gate: make(chan struct{})}
	journal := new(store.MemoryJournal)
	change := func(o *options) {
		o.Journal = journal
		o.Agents = []*pawl.Agent{clerk(w)}
		o.Limits.Runs = 1
	}
	near := serve(t, change)
	far := serve(t, change)
	near.do("POST", "/v1/runs", `{"id":"n","input":"wait"}`, 201, nil)
	far.do("POST", "/v1/runs", `{"id":"f","input":"wait"}`, 201, nil)
	waitUntil(t, func() bool { return w.waits.Load() == 2 })

	answer := make(chan *http.Response, 1)
	go func() { answer <- far.request("GET", "/v1/runs/n/events", "") }()
	select {
	case res := <-answer:
		defer res.Body.Close()
		seen := readUntil(t, res.Body, `"attempt"`)
		close(w.gate)
		rest, err := io.ReadAll(res.Body)
		if seen += string(rest); err != nil || !strings.Contains(seen, "Done: waited") {
			t.Errorf("%v: %s", err, seen)
		}
	case <-time.After(20 * time.Second):
		close(w.gate)
		t.Error("the stream does not begin while the run works")
	}
}

// waitUntil returns when is is true.
func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it does not happen")
		}
	}
}

// readUntil reads a body until it has a text.
func readUntil(t *testing.T, body io.Reader, text string) (seen string) {
	t.Helper()
	part := make([]byte, 4096)
	for !strings.Contains(seen, text) {
		n, err := body.Read(part)
		seen += string(part[:n])
		if err != nil {
			t.Fatalf("%v: %s", err, seen)
		}
	}
	return seen
}

// A run is cancelled at another server within two seconds, and no further call begins.
func TestARunIsCancelledAtAnotherServer(t *testing.T) {
	near, far, w := twoServers(t)
	near.do("POST", "/v1/runs", `{"id":"w","input":"go"}`, 201, nil)
	waitUntil(t, func() bool { return w.waits.Load() == 1 })

	began := time.Now()
	var run api.Run
	far.do("POST", "/v1/runs/w/cancel", `{}`, 200, &run)
	waitUntil(t, func() bool {
		near.do("GET", "/v1/runs/w", "", 200, &run)
		return run.State == "over"
	})
	if took := time.Since(began); run.Stop != pawl.StopCancelled || took > 3*time.Second {
		t.Errorf("stopped by %s after %v", run.Stop, took)
	}
}
