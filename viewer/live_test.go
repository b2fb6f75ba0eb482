package viewer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/browser"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
)

// line is a connection to a server that can be broken.
type line struct {
	http.Handler

	mu      sync.Mutex
	down    bool
	streams map[string][]context.CancelFunc // by path
	active  int                             // streams
	resumed []string                        // Last-Event-IDs received
}

func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	down := l.down
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if strings.Contains(r.Header.Get("Accept"), "event-stream") {
		l.active++
		defer func() {
			l.mu.Lock()
			l.active--
			l.mu.Unlock()
		}()
		l.streams[r.URL.Path] = append(l.streams[r.URL.Path], cancel)
		if id := r.Header.Get("Last-Event-ID"); id != "" {
			l.resumed = append(l.resumed, id)
		}
	}
	l.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	l.Handler.ServeHTTP(w, r.WithContext(ctx))
}

// cut breaks the streams of a path. An empty path means all streams.
func (l *line) cut(path string, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for p, all := range l.streams {
		if path == "" || p == path {
			for _, cancel := range all {
				cancel()
			}
			delete(l.streams, p)
		}
	}
}

func broken(w *shop) *line {
	l := &line{Handler: w.Config.Handler, streams: map[string][]context.CancelFunc{}}
	w.Config.Handler = l
	return l
}

// A broken stream is reopened after the last event: no event is repeated and none is missing.
// Missed fragments are counted. An unreachable server is reported and found again.
func TestReconnect(t *testing.T) {
	ctx, p := page(t)
	w := open(t, func(o *options) { o.Limits.Fragments = 1 })
	l := broken(w)
	must(t, p.Open(ctx, w.URL+"/"))
	until(ctx, t, p, `document.querySelector(".link.open")`)
	w.post("/v1/runs", `{"id":"r","agent":"support","input":"Refund it."}`)
	visit(ctx, t, p, "#/run/r", `[...document.querySelectorAll(".trow")].some((r) => r.getAttribute("aria-label").startsWith("call, read_policy, running"))`)
	until(ctx, t, p, `document.querySelector(".banner")?.textContent.includes("Missed on the way")`)
	l.cut("/v1/runs/r/events", false)
	soon(ctx, t, p, "the stream is gone on with", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.resumed) > 0 && strings.Contains(l.resumed[0], "-")
	})
	streams := func(n int) func() bool {
		return func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.active == n }
	}
	hide := `Object.defineProperty(document, "hidden", { value: %v, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`
	must(t, p.Eval(ctx, fmt.Sprintf(hide, true), nil))
	soon(ctx, t, p, "a page that nobody sees has no streams", streams(0))
	must(t, p.Eval(ctx, fmt.Sprintf(hide, false), nil))
	soon(ctx, t, p, "a page that is seen again has its streams", streams(2))
	close(w.gate)
	until(ctx, t, p, `document.querySelector(".question")`)
	must(t, p.Press(ctx, "v"))
	var said []string
	must(t, p.Eval(ctx, `[...document.querySelectorAll(".msg.assistant .said")].map((e) => e.innerText.trim())`, &said))
	if len(said) != 1 || said[0] != "I look at the order and the rules." {
		t.Errorf("the transcript has %q", said)
	}

	l.cut("", true)
	until(ctx, t, p, `document.querySelector(".away")?.textContent.includes("does not answer")`)
	shoot(ctx, t, p, "away")
	l.cut("", false)
	until(ctx, t, p, `!document.querySelector(".away") && document.querySelector(".link.open")`)
}

// Below a prefix, behind a proxy or in an application, the page asked the API at the root.
func TestPrefix(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	var outside atomic.Int32
	mux := http.NewServeMux()
	mux.Handle("/agents/", http.StripPrefix("/agents", w.s))
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		outside.Add(1)
		http.NotFound(rw, r)
	})
	h := httptest.NewServer(mux)
	defer h.Close()
	defer h.CloseClientConnections() // the page has streams
	must(t, p.Open(ctx, h.URL+"/agents/"))
	until(ctx, t, p, `document.querySelector(".empty")?.textContent.includes("No runs yet")`)
	must(t, p.Press(ctx, "g", "t"))
	until(ctx, t, p, `document.querySelector("#input")`)
	must(t, p.Eval(ctx, `document.querySelector("#input").focus()`, nil))
	must(t, p.Type(ctx, "hello"))
	must(t, p.Press(ctx, "Ctrl+Enter"))
	until(ctx, t, p, `location.hash.startsWith("#/run/")`)
	if n := outside.Load(); n > 0 {
		t.Errorf("%d requests left the prefix", n)
	}
}

// A server with tokens is not accessible without one. The token is in the tab's storage and in a
// header, and nowhere else. Deleting it logs the person out.
func TestLogin(t *testing.T) {
	ctx, p := page(t)
	const token = "correct-horse-battery"
	w := open(t, func(o *options) {
		o.Access.Tokens = []api.Token{{Name: "ann", Token: token, Scopes: []api.Scope{api.ScopeAll}},
			{Name: "bob", Token: "only-reading-here", Scopes: []api.Scope{api.ScopeRead}}}
	})
	must(t, p.Look(ctx, 1280, 860, "light"))
	must(t, p.Open(ctx, w.URL+"/"))
	until(ctx, t, p, `document.activeElement?.name === "token"`)
	shoot(ctx, t, p, "login")
	must(t, p.Type(ctx, "wrong-wrong-wrong"))
	must(t, p.Press(ctx, "Enter"))
	until(ctx, t, p, `document.querySelector(".login .wrong")`)
	must(t, p.Eval(ctx, `document.querySelector("[name=token]").select()`, nil))
	must(t, p.Type(ctx, token))
	must(t, p.Press(ctx, "Enter"))
	until(ctx, t, p, `document.querySelector(".empty")?.textContent.includes("No runs yet")`)
	var places []bool
	must(t, p.Eval(ctx, fmt.Sprintf(`[sessionStorage["pawl.token"] === %[1]q, JSON.stringify(localStorage).includes(%[1]q), document.cookie.includes(%[1]q), location.href.includes(%[1]q), document.documentElement.outerHTML.includes(%[1]q)]`, token), &places))
	if fmt.Sprint(places) != "[true false false false false]" {
		t.Errorf("the token is in the tab's storage, all storage, a cookie, the address, the page: %v", places)
	}
	for _, e := range p.Events("Network.requestWillBeSent") {
		var r struct{ Request struct{ URL string } }
		must(t, json.Unmarshal(e.Params, &r))
		if strings.Contains(r.Request.URL, token) {
			t.Errorf("the token is in an address: %s", r.Request.URL)
		}
	}
	must(t, p.Eval(ctx, `document.querySelector('[aria-label="Forget the token"]').click()`, nil))
	until(ctx, t, p, `document.activeElement?.name === "token" && !sessionStorage["pawl.token"]`)
	must(t, p.Type(ctx, "only-reading-here"))
	must(t, p.Press(ctx, "Enter"))
	until(ctx, t, p, `document.querySelector(".empty")?.textContent.includes("No runs yet")`)
	must(t, p.Press(ctx, "g", "t"))
	until(ctx, t, p, `document.querySelector("#input")`)
	must(t, p.Eval(ctx, `document.querySelector("#input").focus()`, nil))
	must(t, p.Type(ctx, "hello"))
	must(t, p.Press(ctx, "Ctrl+Enter"))
	until(ctx, t, p, `document.querySelector(".trouble")?.textContent.includes("may not do this")`)
}

// A person tries a tool through a form, with a number that JavaScript cannot represent. A tool with
// effects asks first, and it receives exactly the approved arguments.
func TestTryATool(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	must(t, p.Look(ctx, 1280, 860, "light"))
	must(t, p.Open(ctx, w.URL+"/#/try/tool/support%2Frefund"))
	until(ctx, t, p, `document.querySelector(".toolform .fields")`)
	fill := func(name, text string) {
		t.Helper()
		must(t, p.Eval(ctx, fmt.Sprintf(`[...document.querySelectorAll(".toolform .field")].find((f) => f.textContent.startsWith(%q)).querySelector("input, textarea").focus()`, name), nil))
		must(t, p.Type(ctx, text))
	}
	fill("order", "12345678901234567890")
	fill("amount", "-1.50")
	fill("reason", "a test")
	must(t, p.Press(ctx, "Enter"))
	until(ctx, t, p, `document.querySelector(".toolform .question pre")?.textContent.includes("12345678901234567890")`)
	if got := w.refunds(); len(got) > 0 {
		t.Fatalf("it was done unasked: %s", got)
	}
	must(t, p.Press(ctx, "Escape"))
	must(t, p.Eval(ctx, `document.querySelector('.question [data-do="approve"]').click()`, nil))
	until(ctx, t, p, `document.querySelector(".resultview")?.textContent.includes("refunded")`)
	if got := w.refunds(); len(got) != 1 || !strings.Contains(got[0], "12345678901234567890") || !strings.Contains(got[0], "-1.5") {
		t.Errorf("refunded %s", got)
	}
	shoot(ctx, t, p, "try-a-tool")
}

// A call whose arguments are shown in part cannot be approved before all of them were shown.
func TestLongQuestion(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	must(t, p.Look(ctx, 1280, 860, "light"))
	must(t, p.Open(ctx, w.URL+"/#/try/tool/support%2Frefund"))
	until(ctx, t, p, `document.querySelector(".toolform .fields")`)
	for _, f := range [][2]string{{"order", "1"}, {"amount", "2"}, {"reason", strings.Repeat("harmless ", 1000) + "evil"}} {
		must(t, p.Eval(ctx, fmt.Sprintf(`[...document.querySelectorAll(".toolform .field")].find((f) => f.textContent.startsWith(%q)).querySelector("input, textarea").focus()`, f[0]), nil))
		must(t, p.Type(ctx, f[1]))
	}
	until(ctx, t, p, `document.querySelector("#call") && !document.querySelector("#call").disabled`)
	must(t, p.Eval(ctx, `document.querySelector("#call").click()`, nil))
	until(ctx, t, p, `document.querySelector(".question .cutline button")`)
	until(ctx, t, p, `document.querySelector('.question [data-do="approve"]').disabled`)
	must(t, p.Eval(ctx, `document.querySelector('.question [data-do="approve"]').click()`, nil))
	must(t, p.Eval(ctx, `document.querySelector(".question .cutline button").click()`, nil))
	until(ctx, t, p, `document.querySelector(".question pre").textContent.includes("evil")`)
	if got := w.refunds(); len(got) > 0 {
		t.Fatalf("it was done unread: %s", got)
	}
	until(ctx, t, p, `!document.querySelector('.question [data-do="approve"]').disabled`)
	must(t, p.Eval(ctx, `document.querySelector('.question [data-do="approve"]').click()`, nil))
	until(ctx, t, p, `document.querySelector(".resultview")?.textContent.includes("refunded")`)
}

// Megabytes of text do not block the page: the beginning is shown, and more on request.
func TestBigResult(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	w.hostile = []hostile{{"", strings.Repeat("A line of a long result, as programs write them.\n", 30_000)}}
	body := struct {
		ID, Agent string
		Messages  []llm.Message
	}{"big", "support", []llm.Message{llm.User("say " + w.hostile[0].text)}}
	b, err := json.Marshal(map[string]any{"id": body.ID, "agent": body.Agent, "messages": body.Messages, "wait": true})
	must(t, err)
	w.post("/v1/runs", string(b))
	must(t, p.Open(ctx, w.URL+"/#/run/big?tab=transcript"))
	until(ctx, t, p, `document.querySelector(".cutline button")`)
	var shown int
	must(t, p.Eval(ctx, `document.querySelector("main").textContent.length`, &shown))
	if shown > 30_000 {
		t.Errorf("%d characters are shown unasked", shown)
	}
	began := time.Now()
	must(t, p.Eval(ctx, `document.querySelector(".cutline button").click()`, nil))
	until(ctx, t, p, `document.querySelector("main").textContent.length > 1000000`)
	must(t, p.Eval(ctx, `new Promise((ok) => requestAnimationFrame(() => setTimeout(ok)))`, nil))
	t.Logf("a megabyte more took %s", time.Since(began))
	if time.Since(began) > 10*time.Second {
		t.Errorf("a megabyte more took %s", time.Since(began))
	}
}

// Viewing a run that an error stopped sends no request to a model. Resuming it does.
func TestLookingIsNotDoing(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	w.post("/v1/runs", `{"id":"f","agent":"support","input":"fail","wait":true}`)
	before := w.failed.Load()
	must(t, p.Open(ctx, w.URL+"/#/run/f"))
	until(ctx, t, p, `document.querySelector(".ending")?.textContent.includes("failed")`)
	for _, tab := range []string{"transcript", "events", "effects"} {
		must(t, p.Press(ctx, "v"))
		until(ctx, t, p, `document.querySelector("#tab-`+tab+`").ariaSelected === "true"`)
	}
	if got := w.failed.Load(); got != before {
		t.Errorf("looking asked the model %d times", got-before)
	}
	must(t, p.Eval(ctx, `[...document.querySelectorAll("button")].find((b) => b.textContent.includes("Go on")).click()`, nil))
	soon(ctx, t, p, "going on asks the model", func() bool { return w.failed.Load() > before })
}

// A request that fails within its reply shows the part that arrived and its error, in the
// transcript and in its details.
func TestBrokenReply(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	must(t, p.Open(ctx, w.URL+"/"))
	w.post("/v1/runs", `{"id":"b","agent":"support","input":"break"}`)
	visit(ctx, t, p, "#/run/b", `document.querySelector(".trow.request.running")`)
	close(w.gate)
	until(ctx, t, p, `document.querySelector(".ending")?.textContent.includes("failed")`)
	until(ctx, t, p, `document.querySelector(".trow.request.failed")`)
	must(t, p.Eval(ctx, `document.querySelector(".trow.request.failed").click()`, nil))
	until(ctx, t, p, `document.querySelector("#detail .wrong")?.textContent.includes("broke off")`)
	must(t, p.Eval(ctx, `document.querySelector("#tab-transcript").click()`, nil))
	until(ctx, t, p, `document.querySelector(".msg.assistant .said")?.textContent.includes("The reply is incomplete: ")`)
	var said string
	must(t, p.Eval(ctx, `document.querySelector(".msg.assistant .said").innerText`, &said))
	if !strings.Contains(said, "The order is") || !strings.Contains(said, "broke off") {
		t.Errorf("the transcript has %q", said)
	}
}

// A run whose provider is away is open, and the page says for what it waits.
func TestAway(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	close(w.gate)
	must(t, p.Open(ctx, w.URL+"/"))
	w.post("/v1/runs", `{"id":"b","agent":"support","input":"away"}`)
	visit(ctx, t, p, "#/run/b", `document.body.innerText.includes("waiting for openai-chat since ")`)
	until(ctx, t, p, `document.body.innerText.includes(", next try ")`)
	until(ctx, t, p, `!document.querySelector(".trow.request.failed")`)

	// The provider was away before it replied at all.
	w.post("/v1/runs", `{"id":"c","agent":"support","input":"refuse"}`)
	visit(ctx, t, p, "#/run/c", `document.querySelector(".panel").innerText.includes("waiting for openai-chat since ")`)
	until(ctx, t, p, `document.querySelector(".panel").innerText.includes("The model's provider is away")`)
	until(ctx, t, p, `!document.body.innerText.includes("It has not begun")`)

	// The list does not count them as failed.
	visit(ctx, t, p, "#/runs", `[...document.querySelectorAll(".pill")].some((b) => /^All\s*2$/.test(b.innerText))`)
	until(ctx, t, p, `[...document.querySelectorAll(".pill")].some((b) => /^Failed\s*0$/.test(b.innerText))`)
}

// soon waits until a condition outside the page holds.
func soon(ctx context.Context, t *testing.T, p *browser.Page, what string, is func() bool) {
	t.Helper()
	for range 600 {
		if is() {
			return
		}
		// the page's time continues as well
		must(t, p.Eval(ctx, `new Promise((ok) => setTimeout(ok, 25))`, nil))
	}
	t.Fatalf("not so: %s", what)
}
