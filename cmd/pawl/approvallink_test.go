package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/server/api"
)

// visit sends a request for a page as a browser does, and returns its status and text. form is the
// body of a POST; "" means a GET.
func (m *mortal) visit(address, form, origin string) (status int, text string) {
	m.t.Helper()
	method := http.MethodGet
	if form != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(m.ctx, method, address, strings.NewReader(form))
	ok(m.t, err)
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", origin)
	}
	res, err := http.DefaultClient.Do(req)
	ok(m.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(m.t, err)
	return res.StatusCode, string(b)
}

// A mail about a question has an approval link. The link of a server that was killed leads to the
// page of the next one. To open it decides nothing, a foreign page and a forged link neither; the
// button approves the call, once.
func TestApprovalLink(t *testing.T) {
	soak.Sequential(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, dir := listening(t)
	t.Setenv("LINK_KEY", strings.Repeat("k", 32))

	m := &mortal{t: t, ctx: ctx, args: []string{"serve", filepath.Join(dir, "clerk.yaml"), "--http", "127.0.0.1:0",
		"--lease", "1s", "--link-key-env", "LINK_KEY"}}
	m.start()
	defer m.kill(false)
	if status := m.ask("POST", "/v1/runs", `{"id":"r1","agent":"clerk","input":"Write it."}`, nil); status/100 != 2 {
		t.Fatalf("the run does not start: status %d", status)
	}
	l.wait(ctx, "the question", func() bool { return len(l.hooks) > 0 && len(l.mails) > 0 })
	l.mu.Lock()
	mail := l.mails[0]
	hook := fmt.Sprint(l.hooks[0]["answer"])
	l.mu.Unlock()
	body, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(mail)))
	ok(t, err)
	_, link, found := strings.Cut(string(body), "Approve or deny: ")
	link = strings.TrimSpace(link)
	if !found || link == hook || !strings.HasPrefix(link, m.url) {
		t.Fatalf("the mail has the link %q, the webhook %q", link, hook)
	}

	_, path, _ := strings.Cut(link, m.url)
	m.kill(true)
	for range 2 {
		status, page := m.visit(m.url+path, "", "")
		shown := strings.Contains(page, "a.txt") && !strings.Contains(page, "<!channel>")
		if status != http.StatusOK || !shown {
			t.Errorf("the page: %d\n%s", status, page)
		}
	}
	const yes = "answer=approve"
	for name, test := range map[string]struct {
		path, origin string
		status       int
	}{
		"a page of another site": {path, "https://evil.example", http.StatusForbidden},
		"a sandboxed page":       {path, "null", http.StatusForbidden},
		"a forged link":          {path[:len(path)-4] + "AAAA", m.url, http.StatusNotFound},
	} {
		if status, page := m.visit(m.url+test.path, yes, test.origin); status != test.status {
			t.Errorf("%s: %d\n%s", name, status, page)
		}
	}
	if n := len(m.pending()); n != 1 {
		t.Fatalf("without a press %d calls wait; want 1", n)
	}

	if status, page := m.visit(m.url+path, yes, m.url); status != http.StatusOK {
		t.Errorf("the press: %d\n%s", status, page)
	}
	l.wait(ctx, "the end", func() bool { return len(l.hooks) > 1 })
	if text, err := os.ReadFile(filepath.Join(dir, "files", "a.txt")); err != nil || string(text) != "<!channel> hello" {
		t.Errorf("after the approval the file has %q, %v", text, err)
	}
	if status, _ := m.visit(m.url+path, yes, m.url); status != http.StatusGone {
		t.Errorf("a second press: %d", status)
	}
	var effects api.Effects
	m.ask("GET", "/v1/runs/r1/effects", "", &effects)
	if n := len(effects.Effects); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// A streamed reply that is held open shows an approval link as reasoning. Another person presses
// the button, and the reply continues with the answer: one run, one write.
func TestHeldApproval(t *testing.T) {
	soak.Sequential(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	alone, _, _ := strings.Cut(notifyingAgent, "notify:")
	writeClerk(t, dir, alone)
	t.Setenv("LINK_KEY", strings.Repeat("k", 32))
	m := &mortal{t: t, ctx: ctx, args: []string{"serve", filepath.Join(dir, "clerk.yaml"), "--http", "127.0.0.1:0",
		"--hold-approvals", "--link-key-env", "LINK_KEY"}}
	m.start()
	defer m.kill(false)

	// the request of Open WebUI
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/v1/chat/completions", strings.NewReader(
		`{"stream":true,"model":"clerk","messages":[{"role":"user","content":"Write it."}],"stream_options":{"include_usage":true}}`))
	ok(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer res.Body.Close()
	text := ""
	thoughts := ""
	link := ""
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
				}
			}
		}
		if data, isData := strings.CutPrefix(lines.Text(), "data: {"); isData {
			ok(t, json.Unmarshal([]byte("{"+data), &chunk))
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			thoughts += c.Delta.Reasoning
		}
		_, at, found := strings.Cut(thoughts, "Approve or deny: ")
		if !found || link != "" {
			continue
		}
		link = strings.TrimSpace(at)
		if text != "" || len(m.pending()) != 1 {
			t.Errorf("before the answer it says %q", text)
		}
		if status, page := m.visit(link, "answer=approve", m.url); status != http.StatusOK {
			t.Errorf("the press: %d\n%s", status, page)
		}
	}

	written, err := os.ReadFile(filepath.Join(dir, "files", "a.txt"))
	if text != "done" || err != nil || string(written) != "<!channel> hello" {
		t.Errorf("the reply is %q, the file has %q, %v; reasoning:\n%s", text, written, err, thoughts)
	}
	var list api.Runs
	m.ask("GET", "/v1/runs", "", &list)
	if len(list.Runs) != 1 {
		t.Errorf("%d runs", len(list.Runs))
	}
}
