package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/parts"
)

const slowFile = `agent: clerk
model: script:turns.json
tools:
  - http: {name: wait, description: Waits., url: "BANK/wait", effect: read}
  - http: {name: pay, description: Pays an invoice., method: POST, url: "BANK/pay", input: {type: object, properties: {invoice: {type: integer}}, required: [invoice]}}
`

const slowTurns = `{"turns": [
  {"message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "wait", "args": {}}]}, "finish": "tool_calls"},
  {"message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "c2", "name": "pay", "args": {"invoice": 7}}]}, "finish": "tool_calls"},
  {"message": {"role": "assistant", "parts": [{"type": "text", "text": "done"}]}, "finish": "stop"}]}`

const (
	withTasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	noTasks   = `{"elicitation":{}}`
)

// reply is the response to a request of MCP.
type reply struct {
	Result struct {
		ResultType, TaskID, Status, StatusMessage string
		TTL                                       *json.RawMessage `json:"ttlMs"`
		Poll                                      int              `json:"pollIntervalMs"`
		CreatedAt, LastUpdatedAt                  time.Time
		InputRequests                             map[string]json.RawMessage
		Result                                    *struct {
			Content []struct{ Text string }
			IsError bool
		}
		Content []struct{ Text string }
	}
	Error json.RawMessage
}

// mcp sends a request of the protocol without sessions, in raw JSON.
func (m *mortal) mcp(token, caps, method, name, params string) reply {
	m.t.Helper()
	got, err := m.rpc(m.ctx, token, caps, method, name, params)
	ok(m.t, err)
	return got
}

func (m *mortal) rpc(ctx context.Context, token, caps, method, name, params string) (got reply, err error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}}}`, method, params, caps)
	req, err := http.NewRequestWithContext(ctx, "POST", m.url+"/mcp", strings.NewReader(body))
	if err != nil {
		return got, err
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name, "Authorization": "Bearer " + token} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return got, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return got, err
	}
	if _, data, found := strings.Cut(string(b), "data: {"); found {
		b = []byte("{" + data)
	}
	return got, json.NewDecoder(bytes.NewReader(b)).Decode(&got)
}

func (m *mortal) task(token, method, id, more string) reply {
	m.t.Helper()
	return m.mcp(token, withTasks, "tasks/"+method, id, fmt.Sprintf(`"taskId":%q,%s`, id, more))
}

// as sends a request to the API.
func (m *mortal) as(token, method, path, body string) string {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.ctx, method, m.url+path, strings.NewReader(body))
	ok(m.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	ok(m.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ok(m.t, err)
	return string(b)
}

// until asks for a task until it has the status.
func (m *mortal) until(token, id, status string) (got reply) {
	m.t.Helper()
	for tick := time.Tick(20 * time.Millisecond); m.ctx.Err() == nil; <-tick {
		if got = m.task(token, "get", id, ""); got.Result.Status == status {
			return got
		}
	}
	m.t.Fatalf("the task is %+v, want %s", got, status)
	return got
}

const callClerk = `"name":"clerk","arguments":{"task":"Wait, then pay."},`

const ann, bob, eve = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"

// slow is a server of an agent that waits and then pays, with tokens of three users.
type slow struct {
	*mortal
	bank string
	paid atomic.Int64
	open func() // ends the waiting
}

func serveSlow(t *testing.T) *slow {
	gate := make(chan struct{})
	s := &slow{open: sync.OnceFunc(func() { close(gate) })}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/pay":
			s.paid.Add(1)
		case "/open":
			s.open()
		default:
			select {
			case <-gate:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, "ok")
	}))
	t.Cleanup(web.Close)
	dir := t.TempDir()
	file, tokens := filepath.Join(dir, "clerk.yaml"), filepath.Join(dir, "tokens.json")
	ok(t, os.WriteFile(file, []byte(strings.ReplaceAll(slowFile, "BANK", web.URL)), 0o600))
	ok(t, os.WriteFile(filepath.Join(dir, "turns.json"), []byte(slowTurns), 0o600))
	ok(t, os.WriteFile(tokens, fmt.Appendf(nil, `[{"name":"ann's","token":%q,"scopes":["all"],"tenant":"t","user":"ann"},
		{"name":"bob's","token":%q,"scopes":["all"],"tenant":"t","user":"bob"}, {"name":"eve's","token":%q,"scopes":["all"],"tenant":"e","user":"ann"}]`, ann, bob, eve), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	s.bank, s.mortal = web.URL, &mortal{t: t, ctx: ctx, args: []string{"serve", file, "--http", "127.0.0.1:0", "--db",
		filepath.Join(dir, "runs.db"), "--lease", "1s", "--tokens", tokens}}
	s.start()
	t.Cleanup(func() { s.kill(false) })
	return s
}

// The official client of the extension calls a tool, waits for its task, and answers its question.
func TestMCPTasksClient(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "mcp", "testdata", "npm")
	parts.Packages(t, dir, "@modelcontextprotocol/ext-tasks")
	m := serveSlow(t)
	var all sync.WaitGroup
	for action, text := range map[string]string{"accept": "done", "decline": "done"} {
		all.Go(func() {
			cmd := exec.CommandContext(m.ctx, "node", "tasks.mjs", m.url, ann, m.bank, action)
			cmd.Dir = dir
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			want := `{"kind":"task","asked":1,"text":"` + text + `","error":false,"methods":["tools/call","tasks/get","tasks/update"]}`
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%s: %v: got %s, want %s\n%s", action, err, got, want, stderr.String())
			}
		})
	}
	if all.Wait(); m.paid.Load() != 1 {
		t.Errorf("one yes and one no paid %d times", m.paid.Load())
	}
}

// A call that takes over 5 s is a task for a client that declares the extension. The task is a
// stored run, which survives SIGKILL, asks the client, and belongs to the client's user. Each
// approval is one payment.
func TestMCPTasks(t *testing.T) {
	t.Parallel()
	m := serveSlow(t)
	ctx, paid := m.ctx, &m.paid

	// The client without the extension waits for the whole call, as the negative control.
	plain := make(chan error, 1)
	waiting, patience := context.WithCancel(ctx)
	defer patience()
	go func() {
		_, err := m.rpc(waiting, bob, noTasks, "tools/call", "clerk", callClerk)
		plain <- err
	}()
	other := make(chan reply, 1)
	go func() { other <- m.mcp(ann, withTasks, "tools/call", "clerk", callClerk) }()
	begun := time.Now()
	made := m.mcp(ann, withTasks, "tools/call", "clerk", callClerk).Result
	id := made.TaskID
	if d := time.Since(begun); made.ResultType != "task" || made.Status != "working" ||
		!strings.HasPrefix(id, "mcp_") || d < 5*time.Second ||
		made.CreatedAt.IsZero() || made.LastUpdatedAt.IsZero() || made.Poll <= 0 {
		t.Fatalf("after %v: %+v", d, made)
	}
	if patience(); !errors.Is(<-plain, context.Canceled) {
		t.Error("the client without the extension got an answer")
	}
	if got := m.task(ann, "get", id, "").Result; got.ResultType != "complete" || got.Status != "working" {
		t.Errorf("get: %+v", got)
	}

	// A task of another user or tenant is "there is no such task", as for an unknown ID.
	approve := func(key string) string {
		return fmt.Sprintf(`"inputResponses":{%q:{"action":"accept","content":{"approve":true}}},`, key)
	}
	unknown := string(m.task(ann, "get", "mcp_aaaaaaaaaaaaaaaaaaaa", "").Error)
	if want := `{"code":-32602,"message":"there is no such task"}`; unknown != want {
		t.Errorf("unknown: %s, want %s", unknown, want)
	}
	strangers := func(key string) {
		for _, who := range []string{bob, eve} {
			for method, more := range map[string]string{"get": "", "update": approve(key), "cancel": ""} {
				if got := m.task(who, method, id, more); string(got.Error) != unknown {
					t.Errorf("%s by a stranger: %+v %s", method, got.Result, got.Error)
				}
			}
		}
	}
	strangers("x")
	if got := m.as(ann, "POST", "/v1/runs", `{"id":"r1","input":"x"}`); !strings.Contains(got, `"id":"r1"`) {
		t.Errorf("a run that is no task: %s", got)
	}
	for _, id := range []string{"", "r1", "../x", "mcp_" + strings.Repeat("a", 300)} {
		if got := string(m.task(ann, "get", id, "").Error); got != unknown {
			t.Errorf("%q: %s", id, got)
		}
	}
	const missing = `{"code":-32021,"message":"the request does not declare the extension io.modelcontextprotocol/tasks","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`
	for _, method := range []string{"get", "update", "cancel"} {
		if got := string(m.mcp(ann, noTasks, "tasks/"+method, id, fmt.Sprintf(`"taskId":%q,`, id)).Error); got != missing {
			t.Errorf("%s without the extension: %s", method, got)
		}
	}

	// Cancelling a task cancels its run.
	id2 := (<-other).Result.TaskID
	if got := m.task(ann, "cancel", id2, ""); got.Error != nil || got.Result.ResultType != "complete" {
		t.Errorf("cancel: %+v %s", got.Result, got.Error)
	}
	m.until(ann, id2, "cancelled")

	// A killed server takes the task up again.
	m.kill(true)
	if got := m.until(ann, id, "working").Result; got.CreatedAt != made.CreatedAt {
		t.Errorf("created %v, want %v", got.CreatedAt, made.CreatedAt)
	}
	m.open()
	question := m.until(ann, id, "input_required").Result
	if len(question.InputRequests) != 1 {
		t.Fatalf("%+v", question)
	}
	var key, asks string
	for k, q := range question.InputRequests {
		key, asks = k, string(q)
	}
	if !strings.Contains(asks, `"method":"elicitation/create"`) || !strings.Contains(asks, `May pay run with {\"invoice\":7}?`) {
		t.Errorf("the question is %s", asks)
	}
	strangers(key)
	if got := m.mcp(ann, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, "tasks/get", id, fmt.Sprintf(`"taskId":%q,`, id)).Result; got.Status != "working" ||
		len(got.InputRequests) > 0 || !strings.Contains(got.StatusMessage, "needs a person's approval") {
		t.Errorf("without elicitation: %+v", got)
	}
	m.task(ann, "update", id, approve("of no question"))
	m.kill(true)
	if n := paid.Load(); n != 0 {
		t.Fatalf("paid %d times without an approval", n)
	}
	for range 3 { // once, and twice too often
		if got := m.task(ann, "update", id, approve(key)); got.Error != nil || got.Result.ResultType != "complete" {
			t.Errorf("update: %+v %s", got.Result, got.Error)
		}
	}
	end := m.until(ann, id, "completed").Result
	if end.Result == nil || end.Result.IsError || len(end.Result.Content) != 1 || end.Result.Content[0].Text != "done" {
		t.Errorf("the end is %+v", end.Result)
	}
	if n := paid.Load(); n != 1 {
		t.Errorf("paid %d times, want once", n)
	}
	m.task(ann, "cancel", id, "")
	m.until(ann, id, "completed")
	stored := m.as(ann, "GET", "/v1/runs/"+id+"/export", "")
	if !strings.Contains(stored, `"by":"ann's"`) || !strings.Contains(stored, `"identity":"token ann's of ann"`) {
		t.Errorf("the decision does not name the client: %s", stored)
	}
}
