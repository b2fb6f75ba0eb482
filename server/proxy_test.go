package server_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// The headers of a trusted proxy decide about the addresses in a card. The headers of other
// clients, and what a client has written before the proxy's, decide nothing.
func TestForwardedLinks(t *testing.T) {
	for _, test := range []struct {
		name    string
		proxies []string
		headers []string
		want    string
	}{
		{"no headers", []string{"127.0.0.1/32"}, nil, "http://HOST"},
		{"a proxy", []string{"127.0.0.1/32"}, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "agents.example.com",
			"X-Forwarded-Prefix", "/agents"}, "https://agents.example.com/agents"},
		{"two proxies", []string{"127.0.0.0/8"}, []string{"X-Forwarded-Proto", "http, HTTPS", "X-Forwarded-Host", "evil.example, agents.example.com"},
			"https://agents.example.com"},
		{"the control: no proxy is named", nil, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "agents.example.com",
			"X-Forwarded-Prefix", "/agents"}, "http://HOST"},
		{"the control: another machine is named", []string{"10.0.0.0/8"}, []string{"X-Forwarded-Proto", "https"}, "http://HOST"},
		{"a scheme that is none", []string{"127.0.0.1/32"}, []string{"X-Forwarded-Proto", "javascript"}, "http://HOST"},
		{"a prefix that is an address", []string{"127.0.0.1/32"}, []string{"X-Forwarded-Prefix", "//evil.example"}, "http://HOST"},
		{"a prefix with a quote", []string{"127.0.0.1/32"}, []string{"X-Forwarded-Prefix", `/a"b`}, "http://HOST"},
		{"a prefix that goes up", []string{"127.0.0.1/32"}, []string{"X-Forwarded-Prefix", `/../a`}, "http://HOST"},
		{"a host that is not named", []string{"127.0.0.1/32"}, []string{"X-Forwarded-Host", "evil.example"}, ""},
	} {
		v := serve(t, func(o *options) {
			o.A2A = &server.A2A{}
			o.Access.Hosts = []string{"agents.example.com"}
			for _, p := range test.proxies {
				o.Access.Proxies = append(o.Access.Proxies, netip.MustParsePrefix(p))
			}
		})
		var card struct {
			Interfaces []struct{ URL string } `json:"supportedInterfaces"`
		}
		const path = "/a2a/clerk/.well-known/agent-card.json"
		if test.want == "" {
			v.code("GET", path, "", http.StatusForbidden, "wrong_host", test.headers...)
			continue
		}
		v.do("GET", path, "", http.StatusOK, &card, test.headers...)
		want := strings.Replace(test.want, "HOST", strings.TrimPrefix(v.url, "http://"), 1) + "/a2a/clerk"
		if len(card.Interfaces) == 0 || card.Interfaces[0].URL != want {
			t.Errorf("%s: got %+v, want %s", test.name, card, want)
		}
	}
}

// broken is a journal that cannot be read.
type broken struct{ store.Journal }

func (broken) JournalRuns(context.Context, store.Scope, string, store.Page) ([]store.JournalRun, error) {
	return nil, errors.New("made to fail")
}

// The log has the client of the proxies: the last address that is no proxy's.
func TestForwardedClient(t *testing.T) {
	for _, test := range []struct{ name, header, want string }{
		{"a client", "203.0.113.7", "client=203.0.113.7:0"},
		{"what a client has written", "198.51.100.1, 203.0.113.7", "client=203.0.113.7:0"},
		{"a second proxy", "198.51.100.1, 203.0.113.7, 10.1.2.3", "client=203.0.113.7:0"},
		{"with a port", "203.0.113.7:4711", "client=203.0.113.7:0"},
		{"IPv6", "2001:db8::1", "client=[2001:db8::1]:0"},
		{"no address", "203.0.113.7, unknown", "client=127.0.0.1:"},
		{"none", "", "client=127.0.0.1:"},
	} {
		var logged bytes.Buffer
		v := serve(t, func(o *options) {
			o.Journal = broken{new(store.MemoryJournal)}
			o.Log = slog.New(slog.NewTextHandler(&logged, nil))
			o.Access.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
		})
		v.code("GET", "/v1/runs", "", http.StatusInternalServerError, "failed", "X-Forwarded-For", test.header)
		if !strings.Contains(logged.String(), test.want) {
			t.Errorf("%s: the log has no %s:\n%s", test.name, test.want, &logged)
		}
	}
}

// A client behind a proxy has a limit of requests at once. Others behind the same proxy do not
// notice it.
func TestForwardedLimit(t *testing.T) {
	held := make(chan struct{})
	began := make(chan struct{}, 2)
	wait := pawl.Func("wait", "Waits.", func(context.Context, struct{}) (string, error) {
		began <- struct{}{}
		<-held
		return "waited", nil
	})
	wait.Effect = pawl.EffectRead
	turn := script.Func(func(req *llm.Request) script.Turn {
		if len(script.Results(req)) > 0 {
			return script.Say("Done.")
		}
		return script.Call("wait", "{}")
	})
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: script.New(script.Loop(turn)), Tools: []pawl.Toolset{wait}}}
		o.Access.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		o.Limits.AddressConns = 2
	})
	to, err := url.Parse(v.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Set("X-Forwarded-For", r.In.Header.Get("X-Test-Client"))
	}})
	defer proxy.Close()
	health := func(client string) int {
		req := request(t, "GET", proxy.URL+"/v1/health", "")
		req.Header.Set("X-Test-Client", client)
		res, err := proxy.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}

	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			req := request(t, "POST", proxy.URL+"/v1/runs", `{"agent":"clerk","input":"x","wait":true}`)
			req.Header.Set("X-Test-Client", "203.0.113.7")
			if res, err := proxy.Client().Do(req); err == nil {
				res.Body.Close()
			}
		})
		<-began
	}
	if busy, other := health("203.0.113.7"), health("203.0.113.8"); busy != 429 || other != 200 {
		t.Errorf("the client with two requests gets %d, another %d", busy, other)
	}
	close(held)
	waiting.Wait()
	if got := health("203.0.113.7"); got != 200 {
		t.Errorf("after its requests the client gets %d", got)
	}
}
