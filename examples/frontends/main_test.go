package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/browser"
	"github.com/pawl-go/pawl/internal/test/parts"
)

var update = flag.Bool("update", false, "write the screenshots of docs/ui.md")

// payments are what the tool pay has done.
type payments struct {
	mu   sync.Mutex
	list []int
}

func (p *payments) paid(invoice int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, invoice)
}

func (p *payments) check(t *testing.T, want ...int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.list, want) {
		t.Errorf("paid %v, want %v", p.list, want)
	}
}

// start makes the pages as npm run build does, with the packages of the tests, and serves them.
func start(t *testing.T, paid func(int)) (url string) {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join("..", "..", "server", "testdata", "ui", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	browser.Need(t)
	node := parts.Packages(t, filepath.Dir(modules), "esbuild")
	pages := t.TempDir()
	if err := os.CopyFS(pages, os.DirFS("pages")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), node, filepath.Join(modules, "esbuild", "bin", "esbuild"), "useChat.jsx", "agui.js",
		"--bundle", "--minify", "--format=esm", "--jsx=automatic", "--allow-overwrite", "--log-level=warning", "--outdir="+filepath.Join(pages, "dist"))
	build.Env = append(os.Environ(), "NODE_PATH="+modules)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, err := site(pages, demo(), paid)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return h.URL
}

// walker is a person at a page.
type walker struct {
	t   *testing.T
	ctx context.Context
	*browser.Page
}

func walk(t *testing.T) *walker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	b, err := browser.Start(ctx, browser.Need(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	p, err := b.Page(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := &walker{t, ctx, p}
	w.check(p.Look(ctx, 640, 560, "light"))
	return w
}

func (w *walker) check(err error) {
	w.t.Helper()
	if err != nil {
		var text string
		w.Eval(context.WithoutCancel(w.ctx), `document.body.innerText`, &text)
		w.t.Fatalf("%v, at the page:\n%s", err, text)
	}
}

// shows waits until the page has a text.
func (w *walker) shows(text string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	w.check(w.Until(ctx, fmt.Sprintf(`document.body.innerText.includes(%q)`, text)))
}

func (w *walker) say(text string) {
	w.t.Helper()
	w.check(w.Until(w.ctx, `document.querySelector('form input') && document.querySelector('form button').innerText === 'Send'`))
	w.check(w.Eval(w.ctx, `document.querySelector('form input').focus()`, nil))
	w.check(w.Type(w.ctx, text))
	w.check(w.Press(w.ctx, "Enter"))
}

// press clicks the last button of a class when it is enabled.
func (w *walker) press(class string) {
	w.t.Helper()
	w.check(w.Until(w.ctx, fmt.Sprintf(`(b => b && (b.click(), true))([...document.querySelectorAll('button.%s:enabled')].at(-1))`, class)))
}

// edit replaces the arguments of the question.
func (w *walker) edit(args string) {
	w.t.Helper()
	w.check(w.Until(w.ctx, `document.querySelector('textarea') !== null`))
	w.check(w.Eval(w.ctx, `document.querySelector('textarea').select(), document.querySelector('textarea').focus()`, nil))
	w.check(w.Type(w.ctx, args))
}

func (w *walker) picture(name string) {
	w.t.Helper()
	if *update {
		b, err := w.Screenshot(w.ctx)
		w.check(err)
		w.check(os.WriteFile(filepath.Join("..", "..", "docs", name), b, 0o644))
	}
}

// The pages are made with the versions that the tests of the server walk.
func TestVersions(t *testing.T) {
	read := func(path ...string) map[string]string {
		b, err := os.ReadFile(filepath.Join(append(path, "package.json")...))
		var p struct{ Dependencies map[string]string }
		if err = errors.Join(err, json.Unmarshal(b, &p)); err != nil {
			t.Fatal(err)
		}
		return p.Dependencies
	}
	tested := read("..", "..", "server", "testdata", "ui")
	for name, version := range read() {
		if tested[name] != version {
			t.Errorf("%s is %s here, and %s in the tests", name, version, tested[name])
		}
	}
}

// A person approves, changes the arguments, denies, and loads the page again while it asks.
func TestUseChat(t *testing.T) {
	p := new(payments)
	url := start(t, p.paid)
	w := walk(t)
	w.check(w.Open(w.ctx, url+"/useChat.html"))
	w.say("Pay invoice 7")
	w.shows("approval requested")
	w.shows("Look before paying.")
	w.shows("invoice 7: 240.00 EUR")
	w.picture("ui-usechat.png")
	p.check(t)
	w.press("yes")
	w.shows("Done. (paid invoice 7)")
	w.say("Pay invoice 8")
	w.edit(`{"invoice": 9}`)
	w.press("yes")
	w.shows("paid invoice 9)")
	w.say("Pay invoice 10")
	w.press("no")
	w.shows("Denied: not now")
	p.check(t, 7, 9)

	w.say("Pay invoice 11")
	w.shows("Approve")
	w.check(w.Call(w.ctx, "Page.reload", nil, nil))
	w.shows("Done. (paid invoice 7)") // the history
	w.shows("Approve")
	w.press("yes")
	w.shows("Done. (paid invoice 11)")
	p.check(t, 7, 9, 11)
}

// The same at the page without a framework, and a tool of the page.
func TestAGUI(t *testing.T) {
	p := new(payments)
	url := start(t, p.paid)
	w := walk(t)
	w.check(w.Open(w.ctx, url+"/agui.html"))
	w.say("Pay invoice 7")
	w.shows("approval requested")
	w.shows("Look before paying.")
	w.shows("invoice 7: 240.00 EUR")
	w.picture("ui-agui.png")
	p.check(t)
	w.press("yes")
	w.shows("Done. (paid invoice 7)")
	w.say("Pay invoice 8")
	w.edit(`{"invoice": 9}`)
	w.press("yes")
	w.shows("paid invoice 9)")
	w.say("Pay invoice 10")
	w.press("no")
	w.shows("Denied: not now")
	w.say("Which language?")
	w.shows("(en-US)")
	p.check(t, 7, 9)
}
