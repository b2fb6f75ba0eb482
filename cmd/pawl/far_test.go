package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/far"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// notes is a provider whose model calls the tool far_note if it is offered, and answers with its
// result.
func notes(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	_ = json.NewDecoder(r.Body).Decode(&req) // the command writes JSON

	last := req.Messages[len(req.Messages)-1]
	message := map[string]any{"role": "assistant", "content": "no tool"}
	finish := "stop"
	switch {
	case last.Role == "tool":
		message["content"] = last.Content
	case len(req.Tools) > 0:
		finish = "tool_calls"
		message["tool_calls"] = []any{map[string]any{"id": "c1", "type": "function",
			"function": map[string]any{"name": req.Tools[0].Function.Name, "arguments": "{}"}}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"id": "x", "object": "chat.completion",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}})
}

// A server lives with an MCP server whose tokens live for a second and whose sessions end after
// 200 ms, and which is away for a while and back. Every request is answered, and each call that an
// answer reports was made once. The tool returns with the server. TestWeek of package server has
// the same for a week of a fake clock.
func TestServeWithFarServer(t *testing.T) {
	soak.Sequential(t)
	begun := time.Now()
	clock := func() time.Duration { return time.Since(begun) }
	const gone, back = 3 * time.Second, 5 * time.Second
	remote := &far.Server{
		Clock:       clock,
		TokenTime:   time.Second,
		SessionTime: 200 * time.Millisecond,
		Away:        func(now time.Duration) bool { return now >= gone && now < back },
		NoTokens:    func(time.Duration) bool { return false },
	}
	web := httptest.NewServer(remote)
	defer web.Close()
	provider := httptest.NewServer(http.HandlerFunc(notes))
	defer provider.Close()

	file := filepath.Join(t.TempDir(), "notes.yaml")
	ok(t, os.WriteFile(file, fmt.Appendf(nil, `agent: notes
model: {name: "openai-chat:m", base_url: "%s/v1"}
tools: [{mcp: far}]
approve: {else: allow}
flow: off
mcp_servers:
  far: {url: "%s/mcp", oauth: {client_id: week, secret_env: FAR_SECRET}}
`, provider.URL, web.URL), 0o600))
	url, end := servePlays(t, []string{file}, "FAR_SECRET=week-secret")

	noted := 0
	without := 0
	returned := false
	for n := 0; !returned; n++ {
		answer := askNotes(t, url)
		now := clock()
		switch {
		case answer == fmt.Sprintf("noted %d", noted+1):
			noted++
			returned = now > back && n > 10
		case now < gone || now > back+30*time.Second:
			t.Fatalf("after %v: %q, want call %d", now, answer, noted+1)
		case answer == "no tool" || strings.Contains(answer, "was not made"):
			without++
		default:
			t.Fatalf("after %v: %q", now, answer)
		}
		time.Sleep(300 * time.Millisecond) // the user's time between two requests
	}

	seen := remote.Seen()
	if seen.Calls != noted || without == 0 || seen.Tokens < 3 || seen.Sessions < 3 {
		t.Errorf("%d answers with a note and %d without a tool; the server has %+v", noted, without, seen)
	}
	if status := end(); status != 0 {
		t.Errorf("the server ended with status %d", status)
	}
}

// askNotes makes a run, and returns its answer.
func askNotes(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Post(url+"/v1/runs", "application/json", strings.NewReader(`{"agent":"notes","input":"Write a note.","wait":true}`))
	ok(t, err)
	defer res.Body.Close()
	var run struct{ Stop, Answer string }
	if err := json.NewDecoder(res.Body).Decode(&run); err != nil || run.Stop != "answer" {
		t.Fatalf("status %d: stop %q, answer %q, %v", res.StatusCode, run.Stop, run.Answer, err)
	}
	return run.Answer
}
