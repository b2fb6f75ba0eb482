package notify_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/notify"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

const linkHost = "https://pawl.example.com"

// desk has a question, the links about it, and the decisions that they made.
type desk struct {
	t     *testing.T
	links *notify.Links
	open  []pawl.PendingCall

	mu      sync.Mutex
	decided []llm.Decision
	by      []string
	fails   error
}

// newDesk returns a desk whose question is open, over a journal.
func newDesk(t *testing.T, journal store.Journal) *desk {
	t.Helper()
	secrets := new(redact.Redactor)
	if err := secrets.Add("hunter2hunter2"); err != nil {
		t.Fatal(err)
	}
	call := llm.ToolCall{ID: "c1", Name: "pay", Args: []byte(`{"to":"<b>\u202eeve</b>","key":"hunter2hunter2"}`)}
	d := &desk{t: t, open: []pawl.PendingCall{{Key: "run/1/0", Call: call, Digest: "d", Why: "a rule"}}}
	d.links = &notify.Links{
		Key:     bytes.Repeat([]byte("k"), notify.MinLinkKey),
		Time:    time.Hour,
		Secrets: secrets,
		Journal: journal,
		Pending: func(context.Context, string) ([]pawl.PendingCall, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.open, nil
		},
		Decide: d.decide,
	}
	return d
}

// decide records a decision.
func (d *desk) decide(_ context.Context, scope store.Scope, run, by string, made llm.Decision) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return d.fails
	}
	d.decided = append(d.decided, made)
	d.by = append(d.by, scope.User+" "+run+" "+by)
	return nil
}

// sent returns the path of the link that a Watcher sends about the question.
func (d *desk) sent(journal store.Journal) (path string) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	w := notify.New(journal, d.links.Pending, map[string][]notify.Channel{"clerk": {{
		Name:  "0 test",
		Kinds: []notify.Kind{notify.Waits},
		Send: func(_ context.Context, e *notify.Event) error {
			if !strings.Contains(e.Body(), e.Answer) {
				d.t.Errorf("the message has no %q:\n%s", e.Answer, e.Body())
			}
			path = strings.TrimPrefix(e.Answer, linkHost)
			cancel()
			return nil
		},
	}}})
	w.Address = linkHost
	w.Links = d.links
	w.Run(ctx)
	return path
}

// request sends a request for a path; form is the body of a POST.
func (d *desk) request(method, path, form string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, linkHost+path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	d.links.ServeHTTP(w, r)
	return w
}

const approve, deny = "answer=approve", "answer=deny&reason=too+much"

// A preview of a link decides nothing. The page shows the call without secrets and without markup
// of a model. A button answers the question once, on each server.
func TestLinkIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, _ := waiting(t)
		d := newDesk(t, journal)
		path := d.sent(journal)
		for _, method := range []string{"GET", "HEAD", "GET"} {
			page := d.request(method, path, "")
			text := page.Body.String()
			for _, part := range []string{"pay", "&lt;b&gt;[U&#43;202E]eve", "a rule", "r1"} {
				if page.Code != http.StatusOK || !strings.Contains(text, part) {
					t.Errorf("%s: %d, without %s:\n%s", method, page.Code, part, text)
				}
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("a secret is shown:\n%s", text)
			}
			if page.Header().Get("Referrer-Policy") != "same-origin" || page.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("headers: %v", page.Header())
			}
		}
		if len(d.decided) != 0 {
			t.Fatalf("a preview decided: %+v", d.decided)
		}

		other := newDesk(t, journal) // a second server of the database
		for i, test := range []struct {
			desk   *desk
			form   string
			status int
		}{
			{d, "", http.StatusConflict},
			{d, "answer=perhaps", http.StatusConflict},
			{d, deny, http.StatusOK},
			{d, approve, http.StatusGone},
			{other, approve, http.StatusGone},
		} {
			if got := test.desk.request("POST", path, test.form); got.Code != test.status {
				t.Errorf("%d: %d, want %d:\n%s", i, got.Code, test.status, got.Body)
			}
		}
		want := llm.Decision{Key: "run/1/0", Digest: "d", Reason: "too much"}
		once := len(d.decided) == 1 && len(other.decided) == 0
		if !once || d.decided[0].Reason != want.Reason || d.decided[0].Approve {
			t.Errorf("decided: %+v and %+v", d.decided, other.decided)
		}
		if len(d.by) == 1 && d.by[0] != "ann r1 link 0 test" {
			t.Errorf("recorded: %v", d.by)
		}
		if page := d.request("GET", path, ""); page.Code != http.StatusGone {
			t.Errorf("the page of a used link: %d", page.Code)
		}
	})
}

// A link that is forged, foreign or late, and a link whose question is not open any more, decide
// nothing. The control is the link itself.
func TestLinkRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(d *desk, path string) string
		status int
		count  int
	}{
		{"control", func(_ *desk, path string) string { return path }, http.StatusOK, 1},
		{"another text", func(_ *desk, path string) string {
			return strings.Replace(path, "/approve/ey", "/approve/eY", 1)
		}, http.StatusNotFound, 0},
		{"another signature", func(_ *desk, path string) string { return path[:len(path)-4] + "AAAA" }, http.StatusNotFound, 0},
		{"no signature", func(_ *desk, path string) string { return path[:strings.LastIndexByte(path, '.')] },
			http.StatusNotFound, 0},
		{"more behind it", func(_ *desk, path string) string { return path + "/x" }, http.StatusNotFound, 0},
		{"no token", func(*desk, string) string { return notify.LinkPath }, http.StatusNotFound, 0},
		{"the key of another server", func(d *desk, path string) string {
			d.links.Key = bytes.Repeat([]byte("j"), notify.MinLinkKey)
			return path
		}, http.StatusNotFound, 0},
		{"late", func(_ *desk, path string) string { time.Sleep(time.Hour); return path }, http.StatusNotFound, 0},
		{"in time", func(_ *desk, path string) string { time.Sleep(time.Hour - time.Second); return path }, http.StatusOK, 1},
		{"answered elsewhere", func(d *desk, path string) string { d.open = nil; return path }, http.StatusGone, 0},
		{"other arguments", func(d *desk, path string) string {
			d.open = []pawl.PendingCall{{Key: "run/1/0", Call: d.open[0].Call, Digest: "e"}}
			return path
		}, http.StatusGone, 0},
		{"another call", func(d *desk, path string) string {
			d.open = []pawl.PendingCall{{Key: "run/1/1", Call: d.open[0].Call, Digest: "d"}}
			return path
		}, http.StatusGone, 0},
		{"a decision that fails", func(d *desk, path string) string { d.fails = errors.New("it fails"); return path },
			http.StatusConflict, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				journal, _ := waiting(t)
				d := newDesk(t, journal)
				path := test.change(d, d.sent(journal))
				got := d.request("POST", path, approve)
				if got.Code != test.status || len(d.decided) != test.count {
					t.Errorf("%d with %d decisions, want %d with %d:\n%s", got.Code, len(d.decided), test.status,
						test.count, got.Body)
				}
			})
		})
	}
}

// Of many presses at once, on two servers, one decides.
func TestLinkIsPressedAtOnce(t *testing.T) {
	journal, _ := waiting(t)
	first := newDesk(t, journal)
	second := newDesk(t, journal)
	path := first.sent(journal)
	var all sync.WaitGroup
	for i := range 20 {
		d := []*desk{first, second}[i%2]
		form := url.Values{"answer": {[]string{"approve", "deny"}[i%2]}}.Encode()
		all.Go(func() { d.request("POST", path, form) })
	}
	all.Wait()
	if n := len(first.decided) + len(second.decided); n != 1 {
		t.Errorf("%d decisions, want 1", n)
	}
}

// Enter in the field for the reason of a denial presses the first button of the form: it denies.
func TestLinkReasonDenies(t *testing.T) {
	journal, _ := waiting(t)
	d := newDesk(t, journal)
	text := d.request("GET", d.sent(journal), "").Body.String()
	presses := func(field string) string {
		before, after, found := strings.Cut(text, field)
		form := before[max(strings.LastIndex(before, "<form"), 0):] + after
		_, button, pressed := strings.Cut(form, `<button name="answer" value="`)
		if !found || !pressed {
			t.Fatalf("no button follows %s:\n%s", field, text)
		}
		answer, _, _ := strings.Cut(button, `"`)
		return answer
	}
	if got := presses(`name="reason"`); got != "deny" {
		t.Errorf("Enter in the reason presses %s, want deny", got)
	}
	if !strings.Contains(text, `value="approve"`) {
		t.Error("control: the page has no button that approves")
	}
}

// Arguments that are too long for the page are not approved there.
func TestLinkOfLongArguments(t *testing.T) {
	journal, _ := waiting(t)
	d := newDesk(t, journal)
	d.open[0].Call.Args = []byte(`{"text":"` + strings.Repeat("x", 100_000) + `"}`)
	path := d.sent(journal)
	text := d.request("GET", path, "").Body.String()
	if strings.Contains(text, `value="approve"`) || !strings.Contains(text, `value="deny"`) {
		t.Errorf("the page has the wrong buttons:\n%.300s", text)
	}
	if got := d.request("POST", path, approve); got.Code != http.StatusConflict || len(d.decided) != 0 {
		t.Errorf("%d, and decided: %+v", got.Code, d.decided)
	}
	if got := d.request("POST", path, deny); got.Code != http.StatusOK || len(d.decided) != 1 {
		t.Errorf("%d, and decided: %+v", got.Code, d.decided)
	}
}
