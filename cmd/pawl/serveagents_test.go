package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// A file is served, and a run waits for an approval. Ctrl-C ends the server, and the next server on
// the same database has the run.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	write := writer(t, dir)
	write("turns.json", `{"turns": [{"message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "file_write", "args": {"path": "a.txt", "content": "hi"}}]}, "finish": "tool_calls"}, {"message": {"role": "assistant", "parts": [{"type": "text", "text": "written"}]}, "finish": "stop"}]}`)
	file := write("clerk.yaml", "agent: clerk\nmodel: script:"+filepath.Join(dir, "turns.json")+
		"\ntools: [file]\nroot: "+dir+"\n")
	tokens := write("tokens.json", `[{"name":"ci","token":"0123456789abcdef","scopes":["all"]}]`)

	begin := func() (url string, end func() int) {
		t.Helper()
		r, w := io.Pipe()
		sys := &cli.System{Out: io.Discard, Err: w, Env: func(string) string { return "" }}
		status := make(chan int, 1)
		go func() {
			status <- execute([]string{"serve", file, "--http", ":0", "--tokens", tokens, "--db",
				filepath.Join(dir, "pawl.db")}, sys)
			w.Close()
		}()
		lines := bufio.NewReader(r)
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, url, ok := strings.Cut(strings.TrimSpace(line), "serving clerk on ")
		if !ok {
			t.Fatalf("got %q", line)
		}
		go io.Copy(io.Discard, lines)
		return url, func() int {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Signal(os.Interrupt)
			}
			if err != nil {
				t.Fatal(err)
			}
			return <-status
		}
	}
	do := func(url, method, path, body string) (status int, run struct {
		State, Answer string
		Pending       []struct{ Key, Digest string }
	}) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer 0123456789abcdef")
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&run); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, run
	}
	defer http.DefaultClient.CloseIdleConnections()

	url, end := begin()
	status, run := do(url, "POST", "/v1/runs", `{"id":"r","input":"write it","wait":true}`)
	if status != 201 || run.State != "waiting" || len(run.Pending) != 1 {
		t.Fatalf("got %d, %+v", status, run)
	}
	res, err := http.Get(url + "/") // the pages ask for a token themselves
	if err != nil {
		t.Fatal(err)
	}
	if page, err := io.ReadAll(res.Body); err != nil || res.Body.Close() != nil || res.StatusCode != 200 ||
		!strings.Contains(string(page), "<title>pawl</title>") ||
		!strings.Contains(res.Header.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Errorf("the pages: %s %v %s", res.Status, res.Header, page)
	}
	for held, want := range map[string]int{"0123456789abcdef": 200, "another-token-here": 401} {
		hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/mcp", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+held)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		named := strings.Contains(string(body), `"serverInfo"`) && !strings.Contains(string(body), `"version":"0"`)
		if err != nil || res.StatusCode != want || want == 200 && !named {
			t.Errorf("an MCP client with %s: %d %s, %v", held, res.StatusCode, body, err)
		}
	}
	if status := end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	url, end = begin()
	status, _ = do(url, "POST", "/v1/runs/r/approve", `{"key":"`+run.Pending[0].Key+`","digest":"`+run.Pending[0].Digest+`"}`)
	if status != 200 {
		t.Errorf("approve: %d", status)
	}
	status, run = do(url, "POST", "/v1/runs", `{"id":"r","wait":true}`)
	if status != 200 || run.State != "over" || run.Answer != "written" {
		t.Errorf("got %d, %+v", status, run)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(b) != "hi" {
		t.Errorf("the file: %q, %v", b, err)
	}
	if status := end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
