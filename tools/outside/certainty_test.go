package outside_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// behaviours are what may become of a request, and the certainty of the call.
var behaviours = []struct {
	name string
	want delivery.Certainty
	do   http.HandlerFunc // nil means that the server is not reached
}{
	{"nothing listens", delivery.NotSent, nil},
	{"401", delivery.Refused, status(401, "who are you")},
	{"403", delivery.Refused, status(403, "")},
	{"429", delivery.Refused, status(429, "slow down")},
	{"503 without a body", delivery.Refused, status(503, "")},
	{"502", delivery.Unknown, status(502, "bad gateway")},
	{"504", delivery.Unknown, status(504, "")},
	{"400", "", status(400, `{"error":"no such wall"}`)},
	{"500", "", status(500, `{"error":"no paint"}`)},
	{"the connection breaks", delivery.Unknown, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	{"the answer breaks off", delivery.Unknown, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("short"))
	}},
	{"the answer is late", delivery.Unknown, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the client is not noticed
		<-r.Context().Done()
	}},
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// Each transport states the same certainty for the same behaviour, and only what is unknown may
// have happened. A read has none.
func TestCertaintyOfTransports(t *testing.T) {
	for _, b := range behaviours {
		// The card of the agent is read in any case.
		mux := http.NewServeMux()
		web := httptest.NewServer(mux)
		mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"name":"painter","version":"1","supportedInterfaces":[{"url":"%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{}}`, web.URL)
		})
		if b.do != nil {
			mux.HandleFunc("/", b.do)
		}
		host := strings.TrimPrefix(web.URL, "http://")
		if b.do == nil {
			web.Close()
		}
		dir := t.TempDir()
		spec := fmt.Sprintf(`{"openapi":"3.0.3","info":{"title":"t","version":"1"},"servers":[{"url":"http://%s"}],"paths":{"/x":{"post":{"operationId":"act","responses":{"200":{"description":"ok"}}}}}}`, host)
		if err := os.WriteFile(filepath.Join(dir, "spec.json"), []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
		o := options()
		o.Dir = dir
		for kind, def := range map[string]string{
			"http":    `[{http: {name: act, description: d, method: POST, url: "http://` + host + `/x", timeout: 300ms}}]`,
			"openapi": `[{openapi: {spec: spec.json, timeout: 300ms, allow: ["` + host + `"]}}]`,
			"a2a":     `[{a2a: {name: act, description: d, url: "http://` + host + `", timeout: 1s}}]`,
			"read":    `[{http: {name: act, description: d, url: "http://` + host + `/x", timeout: 300ms}}]`,
		} {
			args := `{}`
			if kind == "a2a" {
				args = `{"message":"paint"}`
			}
			x := call(t, set(t, o, def), "act", args)
			want := b.want
			switch {
			case kind == "read":
				want = ""
			case kind == "a2a" && b.name == "the answer breaks off":
				continue // for the SDK it is an answer that is no JSON
			}
			text := x.Result.Text()
			said := strings.Contains(text, "may have happened")
			if x.Certainty != want || x.Outcome == pawl.OutcomeOK || said != (want == delivery.Unknown) {
				t.Errorf("%s, %s: %s, certainty %q, %q; want %q", kind, b.name, x.Outcome, x.Certainty, text, want)
			}
		}
		web.CloseClientConnections()
		web.Close()
	}
}

// A name that does not resolve, and a name of a private network, are not reached.
func TestCertaintyOfNames(t *testing.T) {
	for name, lookup := range map[string]func(context.Context, string) ([]netip.Addr, error){
		"no address": func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "shop.example", IsNotFound: true}
		},
		"a private address": loopback,
	} {
		o := options()
		o.Lookup = lookup
		x := call(t, set(t, o, `[{http: {name: act, description: d, method: POST, url: "http://shop.example/"}}]`), "act", `{}`)
		if x.Certainty != delivery.NotSent || strings.Contains(x.Result.Text(), "may have happened") {
			t.Errorf("%s: %q, %q", name, x.Certainty, x.Result.Text())
		}
	}
}

// A program that does not start has done nothing. A program that ended says itself what it did, and
// a program that was stopped may have done something.
func TestCertaintyOfCommands(t *testing.T) {
	for _, c := range []struct {
		name string
		run  outside.Runner
		want delivery.Certainty
	}{
		{"does not start", func(context.Context, outside.Process) (outside.Exit, error) {
			return outside.Exit{}, errors.New("exec format error")
		}, delivery.NotSent},
		{"fails", func(context.Context, outside.Process) (outside.Exit, error) { return outside.Exit{Code: 1}, nil }, ""},
		{"is stopped", func(ctx context.Context, _ outside.Process) (outside.Exit, error) {
			<-ctx.Done()
			return outside.Exit{Code: -1}, nil
		}, delivery.Unknown},
		{"does not start in time", func(ctx context.Context, _ outside.Process) (outside.Exit, error) {
			<-ctx.Done()
			return outside.Exit{}, ctx.Err()
		}, delivery.NotSent},
	} {
		o := options()
		o.Run = c.run
		s := set(t, o, `[{command: {name: act, description: d, run: [prog], timeout: 300ms}}]`)
		x := call(t, s, "act", `{}`)
		if x.Certainty != c.want || strings.Contains(x.Result.Text(), "may have happened") != (c.want == delivery.Unknown) {
			t.Errorf("%s: %s, %q, %q; want %q", c.name, x.Outcome, x.Certainty, x.Result.Text(), c.want)
		}

		// Cancelling says the same as a timeout.
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, pawl.ErrCancelled)
		x = pawl.Toolsets{s}.Execute(ctx, llm.ToolCall{ID: "1", Name: "act", Args: json.RawMessage(`{}`)})
		cancel()
		if x.Certainty != c.want {
			t.Errorf("%s, cancelled: %s, %q; want %q", c.name, x.Outcome, x.Certainty, c.want)
		}
	}
}
