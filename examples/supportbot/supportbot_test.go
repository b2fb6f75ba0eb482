package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/obey"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// TestMain is also the program, for processes that the test kills.
func TestMain(m *testing.M) {
	if os.Getenv("SUPPORTBOT") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// shop is everything outside the bot: the providers, the payment service and the collector.
type shop struct {
	*testing.T
	db                  string
	sim                 *pawltest.Simulator
	payments, collector *httptest.Server

	mu    sync.Mutex
	paid  []string // what was executed, once for each key
	keys  map[string]bool
	spans strings.Builder

	bot *exec.Cmd
	url string
}

var order = regexp.MustCompile(`order (\w+): (\d+)`)

// reply plays the model: it refunds, remembers, and repeats what it was sent.
func reply(req *llm.Request) script.Turn {
	last := req.Messages[len(req.Messages)-1]
	if rs := script.Results(req); last.Role == llm.RoleTool {
		return script.Say("I see: " + rs[len(rs)-1].Text())
	}
	text := last.Text()
	if m := order.FindStringSubmatch(text); m != nil {
		return script.Call("refund", fmt.Sprintf(`{"order":%q,"euros":%s}`, m[1], m[2]))
	}
	switch {
	case strings.HasPrefix(text, "Remember"):
		return script.Call("remember", map[string]any{"content": text})
	case strings.HasPrefix(text, "What do you remember"):
		return script.Call("memory_list", `{}`)
	}
	var said []string
	for _, m := range req.Messages {
		if m.Role == llm.RoleUser {
			said = append(said, m.Text())
		}
	}
	return script.Say("You said: " + strings.Join(said, " "))
}

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, db: filepath.Join(t.TempDir(), "support.db"), keys: map[string]bool{}}
	outOfQuota := &pawltest.Fault{Status: http.StatusTooManyRequests, Code: "insufficient_quota"}
	var err error
	s.sim, err = pawltest.NewSimulator(obey.Model(script.New(script.Loop(script.Func(reply)))),
		&pawltest.SimulatorOptions{Fault: pawltest.Faults(outOfQuota)})
	if err != nil {
		t.Fatal(err)
	}
	s.payments = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if key := r.Header.Get("Idempotency-Key"); key == "" || !s.keys[key] {
			s.keys[key] = true
			s.paid = append(s.paid, string(body))
		}
	}))
	s.collector = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, _ = io.Copy(&s.spans, r.Body)
	}))
	t.Cleanup(func() {
		s.kill()
		_ = s.sim.Close()
		s.payments.Close()
		s.collector.Close()
	})
	return s
}

// start starts the program over the database and waits for its address.
func (s *shop) start() {
	s.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	s.bot = exec.Command(exe, "-addr", "127.0.0.1:0", "-db", s.db, "-payments", s.payments.URL, "-people", `{
		"alice": {"Tenant": "acme", "User": "alice"}, "bob": {"Tenant": "acme", "User": "bob"},
		"carol": {"Tenant": "acme", "User": "carol"}, "tom": {"Tenant": "acme", "User": "tom", "Approver": true},
		"eve": {"Tenant": "globex", "User": "alice", "Approver": true}}`)
	s.bot.Env = append(os.Environ(), "SUPPORTBOT=1", "OPENAI_BASE_URL="+s.sim.URL, "OPENAI_API_KEY=k",
		"ANTHROPIC_BASE_URL="+s.sim.Root, "ANTHROPIC_API_KEY=k", "OTEL_EXPORTER_OTLP_ENDPOINT="+s.collector.URL,
		"GORACE=atexit_sleep_ms=0")
	s.bot.Stderr = s.Output()
	out, err := s.bot.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := s.bot.Start(); err != nil {
		s.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	if !found {
		s.Fatalf("%q, %v", line, err)
	}
	s.url = url
}

// kill ends the program with SIGKILL.
func (s *shop) kill() {
	if s.bot != nil {
		_ = s.bot.Process.Kill()
		_ = s.bot.Wait()
		s.bot = nil
	}
}

// send sends a request as who and returns its status and its body.
func (s *shop) send(who, method, path, body string) (int, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+who)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp.StatusCode, s.joined(string(got))
	}
	return resp.StatusCode, strings.TrimSpace(string(got))
}

// joined returns the text of a stream, and then its last event.
func (s *shop) joined(stream string) string {
	var all string
	for e := range strings.SplitSeq(strings.TrimSpace(stream), "\n\n") {
		head, data, _ := strings.Cut(e, "\ndata: ")
		var text string
		if err := json.Unmarshal([]byte(data), &text); err != nil {
			s.Fatalf("%v in %q", err, e)
		}
		if head != "event: text" {
			all += "\n" + head + " "
		}
		all += text
	}
	return all
}

// want sends a request and compares its status and a part of its body.
func (s *shop) want(who, method, path, body string, status int, part string) string {
	s.Helper()
	got, text := s.send(who, method, path, body)
	if got != status || !strings.Contains(text, part) {
		s.Errorf("%s %s %s %s: got %d %s, want %d %s", who, method, path, body, got, text, status, part)
	}
	return text
}

func (s *shop) wantPaid(want ...string) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if fmt.Sprint(s.paid) != fmt.Sprint(want) {
		s.Errorf("paid %v, want %v", s.paid, want)
	}
}

const (
	paid40  = "customer=alice&euros=40.00&order=a1"
	paid900 = "customer=alice&euros=900.00&order=a2"
)

// A small refund is paid at once. A large one waits for a person, also over a kill, and is paid
// once.
func TestRefunds(t *testing.T) {
	s := open(t)
	s.start()
	s.want("alice", "POST", "/threads/small", "Refund order a1: 40", 200, "event: answer")
	s.wantPaid(paid40)
	if api := s.sim.Received()[1].API; api != pawltest.Anthropic {
		t.Errorf("the provider out of quota was followed by %s", api)
	}
	s.want("alice", "POST", "/threads/large", "Refund order a2: 900", 200, "event: pending")
	s.want("alice", "POST", "/threads/large", "Anything new?", 200, "event: error")
	s.wantPaid(paid40)

	s.kill()
	s.start()
	var calls map[string][]pawl.PendingCall
	if err := json.Unmarshal([]byte(s.want("tom", "GET", "/pending", "", 200, "not up to 100 euros")), &calls); err != nil {
		t.Fatal(err)
	}
	if len(calls["alice/large/0"]) != 1 {
		t.Fatalf("pending: %v", calls)
	}
	q := calls["alice/large/0"][0]
	yes := fmt.Sprintf(`{"run":"alice/large/0","key":%q,"digest":%q,"approve":true}`, q.Key, q.Digest)
	s.want("alice", "GET", "/pending", "", 403, "")
	s.want("alice", "POST", "/decisions", yes, 403, "")
	s.want("eve", "GET", "/pending", "", 200, "{}")
	s.want("eve", "POST", "/decisions", yes, 404, "not found")
	s.want("", "POST", "/decisions", yes, 403, "")
	s.want("tom", "POST", "/decisions", strings.Replace(yes, q.Digest, "x"+q.Digest[1:], 1), 409, "another question")
	s.wantPaid(paid40)
	var wg sync.WaitGroup
	for range 3 { // an approver who clicks several times; a later click may find the run at work
		wg.Go(func() {
			if status, text := s.send("tom", "POST", "/decisions", yes); status != 200 && status != 409 {
				t.Errorf("a yes: %d %s", status, text)
			}
		})
	}
	wg.Wait()
	s.wantPaid(paid40, paid900)
	s.want("tom", "POST", "/decisions", yes, 409, "does not wait")
	s.wantPaid(paid40, paid900)
	s.want("alice", "GET", "/threads/large", "", 200, "refunded 900.00 euros")
	s.want("alice", "POST", "/threads/large", "Thanks.", 200, "You said: Refund order a2: 900 Thanks.")

	if err := s.bot.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.bot.Wait(); err != nil {
		t.Error(err)
	}
	s.bot = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range []string{"invoke_agent support", "chat gpt-6.1-terra", "execute_tool refund"} {
		// The name is field 5 of a span in OTLP: tag, length, text.
		if !strings.Contains(s.spans.String(), "\x2a"+string(rune(len(span)))+span) {
			t.Errorf("no span %q", span)
		}
	}
}

// Customers have threads and memories of their own, also under equal names.
func TestCustomersAreApart(t *testing.T) {
	s := open(t)
	s.start()
	var wg sync.WaitGroup
	people := []string{"alice", "bob", "carol"}
	for _, who := range people {
		wg.Go(func() {
			s.want(who, "POST", "/threads/main", "I am "+who+".", 200, "event: answer")
			s.want(who, "POST", "/threads/main", "Remember the tea of "+who+".", 200, "Remembered")
		})
	}
	wg.Wait()
	for _, who := range people {
		said := s.want(who, "POST", "/threads/main", "Hello.", 200, "")
		knows := s.want(who, "POST", "/threads/other", "What do you remember?", 200, "tea of "+who)
		for _, other := range people {
			if mine := other == who; strings.Contains(said, "I am "+other) != mine ||
				strings.Contains(knows, "tea of "+other) != mine {
				t.Errorf("%s reads of %s:\n%s\n%s", who, other, said, knows)
			}
		}
	}
	s.want("eve", "GET", "/threads/main", "", 404, "not found") // alice of another tenant
}
