package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/server/api"
)

const notifyingAgent = `agent: clerk
model: script:turns.json
tools: [file]
root: files
store: {db: clerk.db}
approve: {ask: [file_write]}
notify:
  - {webhook: {url: "%[1]s/webhook", secret_env: WEBHOOK_KEY}, on: [waits, ended]}
  - slack: {webhook_env: SLACK_URL, signing_env: SLACK_SECRET, approvers: [U1]}
  - email: {to: [ops@example.com], from: pawl@example.com, smtp: "%[2]s"}
  - email: {to: [ops@example.com], from: pawl@example.com, command: [sh, -c, "cat >> %[3]s/piped.txt"]}
`

const notifyingTurns = `{"turns": [
  {"message": {"role": "assistant", "parts": [
    {"type": "tool_call", "id": "c1", "name": "file_write", "args": {"path": "a.txt", "content": "<!channel> hello"}}]}, "finish": "tool_calls"},
  {"message": {"role": "assistant", "parts": [{"type": "text", "text": "done"}]}, "finish": "stop"}]}`

// listeners receives notifications: webhooks, messages of Slack, and mails.
type listeners struct {
	t       *testing.T
	url     string // of the webhooks and Slack
	mu      sync.Mutex
	hooks   []map[string]any
	slack   []string
	answers []string
	mails   []string
	changed chan struct{}
}

// listening starts listeners, and writes an agent that notifies them as clerk.yaml into a folder.
func listening(t *testing.T) (l *listeners, dir string) {
	t.Helper()
	l = &listeners{t: t, changed: make(chan struct{}, 1)}
	web := httptest.NewServer(l)
	t.Cleanup(web.Close)
	l.url = web.URL
	dir = t.TempDir()
	writeClerk(t, dir, fmt.Sprintf(notifyingAgent, l.url, l.mailServer(), dir))
	t.Setenv("WEBHOOK_KEY", "webhook-key")
	t.Setenv("SLACK_URL", l.url+"/slack")
	t.Setenv("SLACK_SECRET", "slack-secret")
	return l, dir
}

// writeClerk writes the agent as clerk.yaml into a folder, with its model and its root.
func writeClerk(t *testing.T, dir, agent string) {
	t.Helper()
	ok(t, os.Mkdir(filepath.Join(dir, "files"), 0o755))
	ok(t, os.WriteFile(filepath.Join(dir, "clerk.yaml"), []byte(agent), 0o600))
	ok(t, os.WriteFile(filepath.Join(dir, "turns.json"), []byte(notifyingTurns), 0o600))
}

func (l *listeners) add(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// ServeHTTP receives webhooks and messages of Slack. It checks the signature of webhooks.
func (l *listeners) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/webhook":
		mac := hmac.New(sha256.New, []byte("webhook-key"))
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("Webhook-Signature") != want {
			l.t.Errorf("the signature is %q; want %q", r.Header.Get("Webhook-Signature"), want)
		}
		var event map[string]any
		ok(l.t, json.Unmarshal(body, &event))
		l.add(func() { l.hooks = append(l.hooks, event) })
	case "/slack":
		l.add(func() { l.slack = append(l.slack, string(body)) })
	case "/answer":
		l.add(func() { l.answers = append(l.answers, string(body)) })
	}
}

// mailServer accepts mails on loopback.
func (l *listeners) mailServer() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(l.t, err)
	l.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.converse(conn)
		}
	}()
	return listener.Addr().String()
}

// converse speaks SMTP with one client.
func (l *listeners) converse(conn net.Conn) {
	defer conn.Close()
	fmt.Fprint(conn, "220 test\r\n")
	var mail strings.Builder
	body := false
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		switch line := lines.Text(); {
		case body && line == ".":
			body = false
			l.add(func() { l.mails = append(l.mails, mail.String()) })
			fmt.Fprint(conn, "250 stored\r\n")
		case body:
			mail.WriteString(line + "\n")
		case line == "DATA":
			body = true
			fmt.Fprint(conn, "354 go on\r\n")
		case line == "QUIT":
			fmt.Fprint(conn, "221 bye\r\n")
			return
		default:
			fmt.Fprint(conn, "250 ok\r\n")
		}
	}
}

// wait waits until the counts fulfil a condition.
func (l *listeners) wait(ctx context.Context, what string, fulfilled func() bool) {
	for {
		l.mu.Lock()
		done := fulfilled()
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-l.changed:
		case <-ctx.Done():
			l.t.Fatalf("%s: nothing more arrives: %d webhooks, %d messages of Slack, %d mails", what, len(l.hooks),
				len(l.slack), len(l.mails))
		}
	}
}

// press sends the press of a button to the server, signed with the secret, and returns the status.
func (m *mortal) press(value, user, secret, answer string, at time.Time) int {
	payload, err := json.Marshal(map[string]any{
		"user":         map[string]string{"id": user},
		"response_url": answer,
		"actions":      []map[string]string{{"value": value}},
	})
	ok(m.t, err)
	body := url.Values{"payload": {string(payload)}}.Encode()
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)

	req, err := http.NewRequestWithContext(m.ctx, http.MethodPost, m.url+"/hooks/slack", strings.NewReader(body))
	ok(m.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Slack-Request-Timestamp", stamp)
	req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	ok(m.t, err)
	res.Body.Close()
	return res.StatusCode
}

// A question is sent once by each way, through kill -9 and restarts. Only a press of a button that
// Slack signed now, by an approver, answers it. The end is sent, too.
func TestNotifiedOnce(t *testing.T) {
	soak.Sequential(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, dir := listening(t)

	m := &mortal{t: t, ctx: ctx, args: []string{"serve", filepath.Join(dir, "clerk.yaml"), "--http", "127.0.0.1:0", "--lease", "1s"}}
	m.start()
	defer m.kill(false)
	if status := m.ask("POST", "/v1/runs", `{"id":"r1","agent":"clerk","input":"Write it."}`, nil); status/100 != 2 {
		t.Fatalf("the run does not start: status %d", status)
	}
	l.wait(ctx, "the question", func() bool { return len(l.hooks) > 0 && len(l.slack) > 0 && len(l.mails) > 0 })

	// A mail is not sent again if its program was killed.
	written(ctx, filepath.Join(dir, "piped.txt"))
	for range 3 {
		m.kill(true) // at once: the last mark may be missing
		m.pending()
	}

	l.mu.Lock()
	slack := l.slack[0]
	mail := l.mails[0]
	question := l.hooks[0]
	l.mu.Unlock()
	if question["kind"] != "waits" || !strings.HasSuffix(fmt.Sprint(question["link"]), "/#/run/r1") {
		t.Errorf("the webhook says %v", question)
	}
	if !strings.Contains(mail, "To: ops@example.com") || !strings.Contains(mail, "file_write") {
		t.Errorf("the mail is %q", mail)
	}
	if strings.Contains(slack, "mrkdwn") {
		t.Errorf("a text of the model is markup in Slack: %s", slack)
	}

	// The question has a preview of the file, for any client.
	var inbox api.Inbox
	m.ask("GET", "/v1/pending", "", &inbox)
	want := api.Preview{Kind: "file", Path: "a.txt", After: "<!channel> hello"}
	if len(inbox.Waiting) != 1 || inbox.Waiting[0].Previews["run/1/0"] != want {
		t.Errorf("the pending call is %+v; want the preview %+v", inbox.Waiting, want)
	}

	value := buttonOf(t, slack, "approve")
	answer := l.url + "/answer"
	for what, status := range map[string]int{
		"a forged signature": m.press(value, "U1", "guess", answer, time.Now()),
		"an old press":       m.press(value, "U1", "slack-secret", answer, time.Now().Add(-time.Hour)),
	} {
		if status != http.StatusUnauthorized {
			t.Errorf("%s: status %d; want 401", what, status)
		}
	}
	if status := m.press(value, "U2", "slack-secret", answer, time.Now()); status != http.StatusOK {
		t.Errorf("a press of another person: status %d; want 200", status)
	}
	if n := len(m.pending()); n != 1 {
		t.Fatalf("after forged presses %d calls wait; want 1", n)
	}

	// A message of Slack that a server elsewhere received gets no answer.
	m.press(value, "U1", "slack-secret", "http://127.0.0.1:1/elsewhere", time.Now())
	l.wait(ctx, "the end", func() bool { return len(l.hooks) > 1 })
	if text, err := os.ReadFile(filepath.Join(dir, "files", "a.txt")); err != nil || string(text) != "<!channel> hello" {
		t.Errorf("after the approval the file has %q, %v", text, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "piped.txt"))
	ok(t, err)
	piped := string(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.hooks) != 2 || l.hooks[1]["kind"] != "ended" || l.hooks[1]["text"] != "done" {
		t.Errorf("webhooks: %v; want the question and the end", l.hooks)
	}
	if len(l.slack) != 1 || len(l.mails) != 1 || strings.Count(piped, "Message-ID:") != 1 {
		t.Errorf("%d messages of Slack, %d mails, %d piped; want 1 of each", len(l.slack), len(l.mails),
			strings.Count(piped, "Message-ID:"))
	}
	if len(l.answers) != 1 || !strings.Contains(l.answers[0], "U2 is no approver") {
		t.Errorf("answers in Slack: %v; want one, to U2", l.answers)
	}
}

// written waits until a program has written the text of a mail to a file.
func written(ctx context.Context, name string) {
	for {
		b, _ := os.ReadFile(name)
		if strings.Contains(string(b), "file_write") || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// buttonOf returns the value of a button in a message.
func buttonOf(t *testing.T, message, action string) string {
	t.Helper()
	var m struct {
		Blocks []struct {
			Elements []struct {
				ActionID string `json:"action_id"`
				Value    string
			}
		}
	}
	ok(t, json.Unmarshal([]byte(message), &m))
	for _, b := range m.Blocks {
		for _, e := range b.Elements {
			if e.ActionID == action {
				return e.Value
			}
		}
	}
	t.Fatalf("the message has no button %s: %s", action, message)
	return ""
}
