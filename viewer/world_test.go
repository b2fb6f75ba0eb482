package viewer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/browser"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/viewer"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if shared.b != nil {
			if err := shared.b.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "closing the browser:", err)
			}
		}
		os.Exit(code)
	}), goleak.IgnoreAnyFunction("github.com/pawl-go/pawl/internal/test/browser.(*Browser).receive"))
}

// shared is the browser of all tests, because starting one takes a second.
var shared struct {
	once sync.Once
	b    *browser.Browser
	err  error
}

// page opens a page of a browser. It skips the test if there is no browser.
func page(t *testing.T) (context.Context, *browser.Page) {
	t.Helper()
	path := browser.Need(t)
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	t.Cleanup(cancel)
	shared.once.Do(func() { shared.b, shared.err = browser.Start(ctx, path) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	p, err := shared.b.Page(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return ctx, p
}

// shop is a served support agent of a shop, whose model is a script behind a simulator of OpenAI's
// API.
type shop struct {
	*httptest.Server
	t       *testing.T
	s       *server.Server
	gate    chan struct{} // read_policy returns when it is closed
	hostile []hostile     // results of the tool surprise, by number

	failed atomic.Int32 // requests that the model failed

	mu       sync.Mutex
	refunded []string
}

// options are the arguments of server.New.
type options struct {
	Agents  []*pawl.Agent
	Journal store.Journal
	server.Options
}

func open(t *testing.T, change func(*options)) *shop {
	t.Helper()
	w := &shop{t: t, gate: make(chan struct{})}
	var worlds []*pawltest.Simulator
	model := func(f func(*llm.Request) script.Turn) llm.Model {
		sim, err := pawltest.NewSimulator(&script.Model{Turns: []script.Turn{script.Loop(script.Func(f))},
			Quiet: true}, &pawltest.SimulatorOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, sim)
		return openai.NewChat("gpt-sim", &openai.Options{BaseURL: sim.URL, Key: "none-needed"})
	}
	auditor := &pawl.Agent{Name: "auditor", Model: model(audit), Tools: []pawl.Toolset{w.tool("add_up", pawl.EffectPure, `{"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number"}}},"required":["numbers"]}`)}}
	object := `{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`
	support := &pawl.Agent{Name: "support", Model: model(w.help),
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}, Tools: []pawl.Toolset{
			w.tool("lookup_order", pawl.EffectRead, fmt.Sprintf(object, `"number":{"type":"integer","description":"The number of the order."}`, `"number"`)),
			w.tool("read_policy", pawl.EffectRead, fmt.Sprintf(object, `"subject":{"type":"string","enum":["returns","shipping"]}`, `"subject"`)),
			w.tool("refund", pawl.EffectWrite, fmt.Sprintf(object, `"order":{"type":"integer"},"amount":{"type":"number"},"reason":{"type":"string"},"notify":{"type":"boolean"}`, `"order","amount","reason"`)),
			w.tool("surprise", pawl.EffectRead, fmt.Sprintf(object, `"n":{"type":"integer"}`, `"n"`)),
			&pawl.Tool{Name: "ask_customer", Description: "Asks the customer.", Input: json.RawMessage(fmt.Sprintf(object, `"question":{"type":"string"}`, `"question"`)), Passive: true},
			auditor.Tool("Checks figures."),
		}}
	o := options{Agents: []*pawl.Agent{support, auditor}, Journal: new(store.MemoryJournal)}
	o.Pages = viewer.Handler()
	if change != nil {
		change(&o)
	}
	s, err := server.New(o.Agents, o.Journal, &o.Options)
	if err != nil {
		t.Fatal(err)
	}
	w.s, w.Server = s, httptest.NewServer(s)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		w.CloseClientConnections()
		w.Close()
		for _, sim := range worlds {
			sim.Close()
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return w
}

func (w *shop) tool(name string, effect pawl.Effect, schema string) *pawl.Tool {
	return &pawl.Tool{Name: name, Description: "Does " + name + ".", Effect: effect, Input: json.RawMessage(schema),
		Run: func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			switch name {
			case "lookup_order":
				return llm.TextResult(`{"order":1042,"state":"delivered","price":49.9,"account":12345678901234567890}`), nil
			case "read_policy":
				select {
				case <-w.gate:
					return llm.TextResult("Damaged goods are refunded at once."), nil
				case <-ctx.Done():
					return llm.ToolResult{}, ctx.Err()
				}
			case "refund":
				w.mu.Lock()
				w.refunded = append(w.refunded, string(call.Args))
				w.mu.Unlock()
				return llm.TextResult("refunded"), nil
			case "surprise":
				var in struct{ N int }
				if err := json.Unmarshal(call.Args, &in); err != nil {
					return llm.ToolResult{}, err
				}
				return llm.TextResult(w.hostile[in.N].text), nil
			}
			return llm.TextResult("49.9"), nil
		}}
}

// refunds returns the arguments of the refunds made.
func (w *shop) refunds() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.refunded...)
}

func used(t script.Turn, in, cached int) script.Turn {
	t.Usage = &llm.Usage{Input: in, Output: 40, CacheRead: cached}
	return t
}

// asked returns the first user message, and the number of replies since.
func asked(req *llm.Request) (text string, replies int) {
	for _, m := range req.Messages {
		switch {
		case m.Role == llm.RoleUser && text == "":
			text = m.Text()
		case m.Role == llm.RoleAssistant:
			replies++
		}
	}
	return text, replies
}

// help returns the reply of the support agent's model.
func (w *shop) help(req *llm.Request) script.Turn {
	text, n := asked(req)
	if rest, ok := strings.CutPrefix(text, "surprise "); ok {
		if n == 0 {
			return script.Call("surprise", `{"n":`+rest+`}`)
		}
		return script.Say(script.Results(req)[0].Text())
	}
	if strings.HasPrefix(text, "ask") {
		if n == 0 {
			return script.Call("ask_customer", `{"question":"Do you still have it?"}`)
		}
		return script.Say("He said: " + script.Results(req)[0].Text())
	}
	if text == "fail" {
		w.failed.Add(1)
		return script.Fail(&llm.ProviderError{Code: llm.CodeAuthentication, Status: 401, Message: "the key is not known"})
	}
	if text == "refuse" {
		return script.Fail(&llm.ProviderError{Code: llm.CodeServer, Status: 503, Message: "overloaded"})
	}
	if text == "break" || text == "away" {
		code, status := llm.CodeInvalidRequest, 400
		if text == "away" {
			code, status = llm.CodeServer, 500
		}
		turn := script.Together(script.Say("The order is on its"),
			script.Fail(&llm.ProviderError{Code: code, Status: status, Message: "the stream broke off"}))
		turn.Hold = w.gate
		return turn
	}
	if strings.HasPrefix(text, "say ") {
		return script.Say(text[4:])
	}
	switch n {
	case 0:
		return used(script.Together(script.Say("I look at the order and the rules."), script.Call("lookup_order", `{"number":1042}`), script.Call("read_policy", "{\"subject\":\"returns\",}")), 1200, 0)
	case 1:
		return used(script.Call("auditor", `{"task":"Add up order 1042."}`), 1500, 1200)
	case 2:
		return used(script.Call("refund", `{"order":1042,"amount":49.9,"reason":"arrived damaged"}`), 1700, 1500)
	}
	return used(script.Say("## Done\n\nOrder **1042** is refunded."), 1800, 1700)
}

func audit(req *llm.Request) script.Turn {
	if _, n := asked(req); n == 0 {
		return used(script.Call("add_up", `{"numbers":[49.9]}`), 300, 0)
	}
	return used(script.Say("49.9 is right."), 340, 300)
}

// post sends a request without the pages.
func (w *shop) post(path, body string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		w.t.Fatal(path, res.Status, string(b), err)
	}
	return string(b)
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition in the page, and reports the content of the page if it does not
// occur.
func until(ctx context.Context, t *testing.T, p *browser.Page, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := p.Until(ctx, expression); err != nil {
		var text string
		_ = p.Eval(context.Background(), `location.href + "\n" + document.body.innerText`, &text)
		for _, e := range p.Events("Runtime.exceptionThrown") {
			t.Logf("the page threw: %s", cut(e.Params))
		}
		t.Fatalf("%v\nthe page: %s", err, text)
	}
}

// visit navigates to another address of the page and waits for it. Chromium ignores changes of the
// address after 200 of them in ten seconds, so visit repeats the change.
func visit(ctx context.Context, t *testing.T, p *browser.Page, hash, ready string) {
	t.Helper()
	h := strconv.Quote(hash)
	until(ctx, t, p, `(location.hash === new URL(`+h+`, location.href).hash || (location.hash = `+h+`, false)) && (`+ready+`)`)
}

// quiet fails the test if the page threw an error, violated its policy, opened a dialog, or sent a
// request to another server.
func quiet(t *testing.T, p *browser.Page, base string) {
	t.Helper()
	for _, e := range p.Events("Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Page.windowOpen", "Page.downloadWillBegin") {
		t.Errorf("%s: %s", e.Method, cut(e.Params))
	}
	for _, e := range p.Events("Log.entryAdded", "Runtime.consoleAPICalled") {
		if s := string(e.Params); strings.Contains(s, "Content Security Policy") || strings.Contains(s, "Trusted") || strings.Contains(s, `"type":"error"`) {
			t.Errorf("%s: %s", e.Method, cut(e.Params))
		}
	}
	for _, e := range p.Events("Network.requestWillBeSent") {
		var r struct{ Request struct{ URL string } }
		must(t, json.Unmarshal(e.Params, &r))
		if !strings.HasPrefix(r.Request.URL, base+"/") && !strings.HasPrefix(r.Request.URL, "data:image/") {
			t.Errorf("a request left: %s", r.Request.URL)
		}
	}
}

func cut(b []byte) string {
	if len(b) > 900 {
		return string(b[:900]) + "…"
	}
	return string(b)
}

// shoot stores a screenshot of the page in shots/, which is not part of the repository. It does so
// only if the variable PAWL_SHOTS is set, because screenshots take half of the browser's time.
func shoot(ctx context.Context, t *testing.T, p *browser.Page, name string) {
	t.Helper()
	if os.Getenv("PAWL_SHOTS") == "" {
		return
	}
	png, err := p.Screenshot(ctx)
	must(t, err)
	dir, err := filepath.Abs("shots")
	must(t, err)
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
	t.Logf("picture: %s", filepath.Join(dir, name+".png"))
}
