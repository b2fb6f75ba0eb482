package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
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

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// twice is an agent that asks for two payments at once.
const twice = `agent: clerk
model: script:turns.json
tools:
  - http:
      name: pay
      description: Pays.
      method: POST
      url: %s/pay
      body: {n: "{n}"}
      input: {type: object, properties: {n: {type: integer}}, required: [n]}
`

const twiceTurns = `{"turns": [
  {"message": {"role": "assistant", "parts": [
    {"type": "tool_call", "id": "c1", "name": "pay", "args": {"n": 1}},
    {"type": "tool_call", "id": "c2", "name": "pay", "args": {"n": 2}}]}, "finish": "tool_calls"},
  {"message": {"role": "assistant", "parts": [{"type": "text", "text": "done"}]}, "finish": "stop"}]}`

// mortal is a server that is killed with SIGKILL and started again.
type mortal struct {
	t    *testing.T
	ctx  context.Context
	args []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	url  string
}

// start starts the server, and returns when it serves. The caller holds mu.
func (m *mortal) start() {
	m.cmd, m.done = exec.Command("pawl", m.args...), make(chan struct{})
	out, err := m.cmd.StderrPipe()
	ok(m.t, err)
	ok(m.t, m.cmd.Start())
	first := make(chan string, 1)
	go func(cmd *exec.Cmd, done chan struct{}) {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, url, found := strings.Cut(lines.Text(), " on http://"); found {
				first <- "http://" + url
			}
		}
		_ = cmd.Wait() // it was killed
		close(first)
	}(m.cmd, m.done)
	if m.url = <-first; m.url == "" {
		m.t.Error("the server does not start")
	}
}

// kill kills the server. With again it starts another one.
func (m *mortal) kill(again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.cmd.Process.Kill()
	<-m.done
	if again {
		m.start()
	}
}

// ask sends a request until a server answers it, and returns the status.
func (m *mortal) ask(method, path, body string, into any) int {
	for m.ctx.Err() == nil {
		m.mu.Lock()
		url := m.url
		m.mu.Unlock()
		req, err := http.NewRequestWithContext(m.ctx, method, url+path, strings.NewReader(body))
		ok(m.t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // it was killed
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			continue
		}
		if into != nil && resp.StatusCode < 300 {
			if err := json.Unmarshal(b, into); err != nil {
				m.t.Errorf("%s %s: %v", method, path, err)
			}
		}
		return resp.StatusCode
	}
	return 0
}

// asked is a pending call and its run.
type asked struct {
	run string
	pawl.PendingCall
}

// pending returns all pending calls.
func (m *mortal) pending() (all []asked) {
	for after := ""; ; {
		var page struct {
			Waiting []struct {
				Run     struct{ ID string }
				Pending []pawl.PendingCall
			}
			After string
		}
		m.ask("GET", "/v1/pending?limit=1000&after="+after, "", &page)
		for _, w := range page.Waiting {
			for _, q := range w.Pending {
				all = append(all, asked{w.Run.ID, q})
			}
		}
		if after = page.After; after == "" {
			return all
		}
	}
}

// cashier counts the payments by their idempotency keys.
type cashier struct {
	mu   sync.Mutex
	keys map[string]int
}

func (b *cashier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the client may have been killed
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys[r.Header.Get("Idempotency-Key")]++
	fmt.Fprint(w, "paid")
}

func (b *cashier) paid(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keys[key]
}

// settle answers the question whether an interrupted payment happened, as the cashier knows it.
func (m *mortal) settle(b *cashier, q asked) {
	var x struct {
		Effects []struct {
			Key            string
			IdempotencyKey string `json:"idempotency_key"`
		}
	}
	m.ask("GET", "/v1/runs/"+q.run+"/effects", "", &x)
	body, _ := json.Marshal(map[string]any{"key": q.Key, "digest": q.Digest, "text": "paid"})
	for _, e := range x.Effects {
		if e.Key == string(q.Key) && b.paid(e.IdempotencyKey) > 0 {
			m.ask("POST", "/v1/runs/"+q.run+"/answer", string(body), nil)
			return
		}
	}
	m.approve(q)
}

func (m *mortal) approve(q asked) {
	body, _ := json.Marshal(map[string]any{"key": q.Key, "digest": q.Digest})
	m.ask("POST", "/v1/runs/"+q.run+"/approve", string(body), nil)
}

// Runs with two questions get their answers in separate requests, while the server is killed with
// SIGKILL. Each run ends, and each payment happens once.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	soak.Sequential(t)
	runs, kills := soak.N(16, 240), soak.N(2, 12)
	for round := range soak.N(1, 3) {
		r := rand.New(rand.NewPCG(uint64(round), 3))
		b := &cashier{keys: map[string]int{}}
		web := httptest.NewServer(b)
		dir := t.TempDir()
		file, db := filepath.Join(dir, "clerk.yaml"), filepath.Join(dir, "runs.db")
		ok(t, os.WriteFile(file, fmt.Appendf(nil, twice, web.URL), 0o600))
		ok(t, os.WriteFile(filepath.Join(dir, "turns.json"), []byte(twiceTurns), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		m := &mortal{t: t, ctx: ctx, args: []string{"serve", file, "--http", "127.0.0.1:0", "--db", db, "--lease", "1s"}}
		m.start()
		for i := range runs {
			m.ask("POST", "/v1/runs", fmt.Sprintf(`{"id":"r%d","input":"Pay twice.","wait":true}`, i), nil)
		}
		questions := m.pending()
		if len(questions) != 2*runs {
			t.Fatalf("%d questions, want %d", len(questions), 2*runs)
		}
		dies := map[int64]bool{}
		for len(dies) < kills {
			dies[1+r.Int64N(int64(len(questions))-1)] = true
		}
		var next, sent atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(questions)); i = next.Add(1) - 1 {
					m.approve(questions[i])
					if dies[sent.Add(1)] {
						m.kill(true)
					}
				}
			})
		}
		wg.Wait()
		unknown, over := 0, struct{ Runs []struct{ ID string } }{}
		for tick := time.Tick(50 * time.Millisecond); len(over.Runs) < runs && ctx.Err() == nil; <-tick {
			for _, q := range m.pending() {
				unknown++
				m.settle(b, q)
			}
			m.ask("GET", "/v1/runs?state=over&limit=1000", "", &over)
		}
		if n := runs - len(over.Runs); n > 0 {
			t.Errorf("round %d: %d of %d runs do not end", round, n, runs)
		}
		m.kill(false)
		cancel()
		http.DefaultClient.CloseIdleConnections()
		web.Close()
		for key, n := range b.keys {
			if n != 1 {
				t.Errorf("round %d: payment %s happened %d times", round, key, n)
			}
		}
		if len(b.keys) != 2*runs {
			t.Errorf("round %d: %d payments, want %d", round, len(b.keys), 2*runs)
		}
		var out bytes.Buffer
		sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
		if status := execute([]string{"doctor", "runs", "--db", db}, sys); status != 0 {
			t.Errorf("round %d: status %d: %s", round, status, out.String())
		}
		t.Logf("round %d: %d runs, %d kills, %d questions about interrupted payments", round, runs, kills, unknown)
	}
}
