package mcp_test

//lint:file-ignore SA1019 clients of older protocols ask for logs

import (
	"context"
	"errors"
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

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/redact"
)

func TestServiceReads(t *testing.T) {
	clients(t, nil, func(t *testing.T, c *sdk.ClientSession, _ *atomic.Int32) {
		ctx := t.Context()
		list, err := c.ListResources(ctx, nil)
		if err != nil || len(list.Resources) != 150 || list.Resources[7].URI != "pawl://doors/d007" {
			t.Errorf("listed: %+v, %v", list, err)
		}
		templates, err := c.ListResourceTemplates(ctx, nil)
		if err != nil || len(templates.ResourceTemplates) != 1 {
			t.Errorf("templates: %+v, %v", templates, err)
		}
		for uri, want := range map[string]string{"pawl://doors/d007": "d007 was opened 0 times", "pawl://doors/front%2Fleft": "front/left was opened 0 times",
			"pawl://doors/none": "", "pawl://doors/front/left": "", "pawl://windows/d007": "", "pawl://doors/%zz": ""} {
			res, err := c.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
			switch {
			case want == "" && err == nil:
				t.Errorf("%s can be read: %v", uri, res)
			case want != "" && (err != nil || res.Contents[0].Text != want || res.Contents[0].URI != uri):
				t.Errorf("%s: %+v, %v", uri, res, err)
			}
		}
		got, err := c.GetPrompt(ctx, &sdk.GetPromptParams{Name: "ask", Arguments: map[string]string{"name": "d001", "name2": "{name}"}})
		if err != nil || len(got.Messages) != 2 {
			t.Fatalf("prompt: %+v, %v", got, err)
		}
		text := got.Messages[0].Content.(*sdk.TextContent).Text
		at := got.Messages[1].Content.(*sdk.EmbeddedResource).Resource
		if text != "Is the door d001 {name}? {other}" || at.Text != "d001 was opened 0 times" || at.URI != "pawl://doors/d001" {
			t.Errorf("prompt: %q, %+v", text, at)
		}
		for _, args := range []map[string]string{nil, {"name": "nowhere"}} {
			if _, err := c.GetPrompt(ctx, &sdk.GetPromptParams{Name: "ask", Arguments: args}); err == nil {
				t.Errorf("a prompt of %v", args)
			}
		}
		complete := func(ref *sdk.CompleteReference, name, prefix string) sdk.CompletionResultDetails {
			res, err := c.Complete(ctx, &sdk.CompleteParams{Ref: ref,
				Argument: sdk.CompleteParamsArgument{Name: name, Value: prefix}})
			if err != nil {
				t.Fatal(err)
			}
			return res.Completion
		}
		door, ask := &sdk.CompleteReference{Type: "ref/resource", URI: "pawl://doors/{name}"}, &sdk.CompleteReference{Type: "ref/prompt", Name: "ask"}
		if d := complete(door, "name", "d"); len(d.Values) != 100 || !d.HasMore || d.Values[99] != "d099" {
			t.Errorf("all doors: %+v", d)
		}
		if d := complete(door, "name", "d14"); len(d.Values) != 10 || d.HasMore {
			t.Errorf("doors d14: %+v", d)
		}
		if d := cmp.Diff(complete(ask, "name", "f").Values, []string{"front", "foot"}); d != "" {
			t.Error(d)
		}
		if d := complete(ask, "name2", ""); len(d.Values) != 0 {
			t.Errorf("any name: %+v", d)
		}
	})
}

// A client is notified of changes of a resource, over each transport and in each protocol version.
// The service looks once a second, so the clients wait at the same time.
func TestServiceTellsOfChanges(t *testing.T) {
	for _, version := range sdk.SupportedProtocolVersions() {
		for _, how := range []string{"stdio", "http"} {
			t.Run(how+" "+version, func(t *testing.T) {
				t.Parallel()
				subscribes(t, how, version)
			})
		}
	}
}

func subscribes(t *testing.T, how, version string) {
	news := make(chan string, 100)
	o := &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
		news <- r.Params.URI
	}}
	c, opened := connected(t, how, version, o)
	p := &sdk.SubscribeParams{URI: "pawl://doors/d001"}
	if c.InitializeResult().ProtocolVersion >= "2026-07-28" {
		// a subscription is a request that lasts
		done := make(chan error)
		go func() { done <- c.Subscribe(t.Context(), p) }()
		for tick := time.Tick(10 * time.Millisecond); ; opened.Add(1) {
			select {
			case uri := <-news:
				err := c.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: p.URI})
				if uri != p.URI || err != nil {
					t.Error(uri, err)
				}
				<-done
				return
			case <-tick:
			}
		}
	}
	if err := c.Subscribe(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{"pawl://doors/none", "pawl://windows/d001"} {
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil {
			t.Errorf("subscribed to %s", uri)
		}
	}
	began := time.Now()
	for range 2 {
		opened.Add(5) // one change for who looks once a second
		if uri := <-news; uri != p.URI {
			t.Errorf("news of %s", uri)
		}
	}
	if d := time.Since(began); d < time.Second {
		t.Errorf("two changes were told within %v", d)
	}
	if err := c.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: p.URI}); err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "pawl://doors/d1" + strconv.Itoa(i)}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := c.Subscribe(t.Context(), p); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("one more: %v", err)
	}
	opened.Add(1)
	for range 64 { // nothing comes of the ended subscription
		if uri := <-news; uri == p.URI {
			t.Errorf("news of %s", uri)
		}
	}
}

type userKey struct{}

// forUsers serves s to users by the header User.
func forUsers(t *testing.T, s *mcp.Service, poll time.Duration,
	seen func(*http.Request)) (connect func(user string, o *sdk.ClientOptions) *sdk.ClientSession) {
	user := func(r *http.Request) string { return r.Header.Get("User") }
	h, err := s.Handler(t.Context(), &mcp.HTTPOptions{Poll: poll, User: user})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, r.Header.Get("User"))))
	}))
	t.Cleanup(web.Close)
	return func(user string, o *sdk.ClientOptions) *sdk.ClientSession {
		client := &http.Client{Transport: as{user, web.Client().Transport}}
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: client},
			&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}

// as sends the requests of a user.
type as struct {
	user string
	next http.RoundTripper
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User", a.user)
	return a.next.RoundTrip(r)
}

// The same URI has other data for another user, who is notified only of changes of the own data.
func TestNewsIsForOneUser(t *testing.T) {
	var versions sync.Map
	of := func(ctx context.Context) (string, error) {
		v, ok := versions.Load(ctx.Value(userKey{}))
		if !ok {
			return "", pawl.ErrNotFound
		}
		return v.(string), nil
	}
	s := &mcp.Service{Resources: []mcp.Resource{{URI: "pawl://note", Name: "note",
		Version: func(ctx context.Context, _ string) (string, error) { return of(ctx) },
		Read: func(ctx context.Context, _ string) (llm.Media, error) {
			v, err := of(ctx)
			return llm.Media{Data: []byte(v)}, err
		}}}}
	connect := forUsers(t, s, 0, func(*http.Request) {})
	news := map[string]chan string{}
	for _, user := range []string{"ada", "bob", "eve"} {
		n := make(chan string, 10)
		news[user] = n
		updated := func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { n <- r.Params.URI }
		c := connect(user, &sdk.ClientOptions{ResourceUpdatedHandler: updated})
		if user == "eve" {
			_, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "pawl://note"})
			if err2 := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "pawl://note"}); err == nil || err2 == nil {
				t.Errorf("eve reads %v and subscribes %v", err, err2)
			}
			continue
		}
		versions.Store(user, "of "+user)
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "pawl://note"}); err != nil {
			t.Fatal(err)
		}
		res, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "pawl://note"})
		if err != nil || res.Contents[0].Text != "of "+user {
			t.Errorf("%s reads %+v, %v", user, res, err)
		}
	}
	versions.Store("ada", "new")
	<-news["ada"]
	if n := len(news["bob"]); n != 0 {
		t.Errorf("bob hears of ada's note %d times", n)
	}
	versions.Store("bob", "new")
	<-news["bob"]
	if a, e := len(news["ada"]), len(news["eve"]); a+e != 0 {
		t.Errorf("ada and eve hear of bob's note %d and %d times", a, e)
	}
}

// The response of a long call ends, and the client gets the rest.
func TestServicePolls(t *testing.T) {
	again, let := make(chan struct{}, 10), make(chan struct{})
	slow := pawl.Func("slow", "Is slow.", func(context.Context, struct{}) (string, error) {
		<-let
		return "at last", nil
	})
	slow.Effect = pawl.EffectRead
	c := forUsers(t, &mcp.Service{Tools: []pawl.Toolset{slow}}, 10*time.Millisecond, func(r *http.Request) {
		if r.Header.Get("Last-Event-Id") != "" {
			again <- struct{}{}
		}
	})("ada", nil)
	go func() {
		<-again
		close(let)
	}()
	if text, res := ask(t, c, "slow", map[string]any{}); text != "at last" || res.IsError {
		t.Errorf("%q %v", text, res.IsError)
	}
	select {
	case <-let:
	default:
		t.Error("the client got the answer in the first response")
	}
}

func TestServiceLogs(t *testing.T) {
	hidden := new(redact.Redactor)
	if err := hidden.Add("half done"); err != nil {
		t.Fatal(err)
	}
	logs := make(chan any, 10)
	o := &sdk.ClientOptions{
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) { logs <- r.Params.Data }}
	s := service(new(atomic.Int32))
	s.Secrets = hidden
	c := forUsers(t, s, 0, func(*http.Request) {})("ada", o)
	for _, level := range []sdk.LoggingLevel{"", "error", "info"} {
		if level != "" {
			if err := c.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: level}); err != nil {
				t.Fatal(err)
			}
		}
		if text, _ := ask(t, c, "work", map[string]any{"name": "x"}); text != "done" {
			t.Fatal(text)
		}
	}
	if got := <-logs; got != "[redacted]" || len(logs) != 0 {
		t.Errorf("logged %v and %d more", got, len(logs))
	}
}

func TestAskWithoutClient(t *testing.T) {
	if _, err := mcp.Ask(t.Context(), "Really?", nil); err == nil {
		t.Error("nobody was asked, and there is no error")
	}
}

func TestFiles(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(out, "secret.txt", "secret")
	for _, name := range []string{"a.txt", ".env", "docs/b c.txt", "docs/.git/x.txt", "docs/deep/d.txt", ".ok/e.txt"} {
		write(dir, name, name)
	}
	write(dir, "large.txt", strings.Repeat("x", 4<<20+1))
	for name, to := range map[string]string{"link.txt": filepath.Join(out, "secret.txt"), "docs/up": out, "in.txt": "a.txt"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := mcp.Files("pawl://files", root.FS(), "*.txt", "*", "docs/*", "./docs/*.txt", "docs/*/*.txt", ".ok/*", "../*", "/etc/passwd", "link.txt", "docs/up/secret.txt")
	list, err := f.Values(t.Context(), "")
	if d := cmp.Diff(list, []string{".ok/e.txt", "a.txt", "docs/b c.txt", "docs/deep/d.txt", "in.txt"}); d != "" || err != nil {
		t.Error(d, err)
	}
	for name, ok := range map[string]bool{"a.txt": true, "docs/b c.txt": true, ".env": false, "link.txt": false, "docs/up/secret.txt": false, "docs": false,
		"docs/../a.txt": false, "../" + filepath.Base(out) + "/secret.txt": false, filepath.Join(out, "secret.txt"): false, "large.txt": false, "": false} {
		m, err := f.Read(t.Context(), name)
		if ok && (err != nil || string(m.Data) != name) || !ok && !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("%q: %q, %v", name, m.Data, err)
		}
	}
	bad := mcp.Files("pawl://files", root.FS(), "[")
	if _, err := bad.Values(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "[") {
		t.Errorf("a bad pattern: %v", err)
	}
}
