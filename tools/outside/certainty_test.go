package outside_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/test/machine"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
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
			if kind == "read" {
				want = ""
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

// An answer of another agent that breaks off, or that cannot be read, hides what the agent did: the
// message may have happened. An error of the protocol is an answer.
func TestCertaintyOfAgentsThatBreakOff(t *testing.T) {
	const event = `{"jsonrpc":"2.0","id":"%s","result":{"message":{"messageId":"1","role":"ROLE_AGENT","parts":[{"text":"painted"}]}}}`
	const fault = `{"jsonrpc":"2.0","id":"%s","error":{"code":-32602,"message":"no such wall"}}`
	for name, c := range map[string]struct {
		streams bool
		body    string
		aborts  bool
		want    delivery.Certainty
		outcome pawl.Outcome
	}{
		"whole":                            {false, event, false, "", pawl.OutcomeOK},
		"whole, streamed":                  {true, "data: " + event + "\n\n", false, "", pawl.OutcomeOK},
		"within its text":                  {false, event[:len(event)-20], true, delivery.Unknown, pawl.OutcomeError},
		"within its text, with a good end": {false, event[:len(event)-20], false, delivery.Unknown, pawl.OutcomeError},
		"within an event":                  {true, "data: " + event[:len(event)-20], true, delivery.Unknown, pawl.OutcomeError},
		"within an event, with a good end": {true, "data: " + event[:len(event)-20] + "\n\n", false, delivery.Unknown, pawl.OutcomeError},
		"before the first event":           {true, ": waiting\n\n", true, delivery.Unknown, pawl.OutcomeError},
		"without an event":                 {true, ": waiting\n\n", false, delivery.Unknown, pawl.OutcomeError},
		"it is a page":                     {false, "<html>Welcome</html>", false, delivery.Unknown, pawl.OutcomeError},
		"it is empty":                      {false, "", false, delivery.Unknown, pawl.OutcomeError},
		"a result of no kind":              {false, `{"jsonrpc":"2.0","id":"%s","result":{"x":1}}`, false, delivery.Unknown, pawl.OutcomeError},
		"an error of the protocol":         {false, fault, false, "", pawl.OutcomeError},
		"an error of the protocol in one":  {true, "data: " + fault + "\n\n", false, "", pawl.OutcomeError},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			web := httptest.NewServer(mux)
			defer web.Close()
			mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"name":"painter","version":"1","supportedInterfaces":[{"url":"%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{"streaming":%v}}`, web.URL, c.streams)
			})
			mux.HandleFunc("/rpc", func(w http.ResponseWriter, r *http.Request) {
				var q struct{ ID string }
				_ = json.NewDecoder(r.Body).Decode(&q)
				w.Header().Set("Content-Type", "application/json")
				if c.streams {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				_, _ = io.WriteString(w, strings.ReplaceAll(c.body, "%s", q.ID))
				if c.aborts {
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			})

			def := `[{a2a: {name: act, description: d, url: "` + web.URL + `", timeout: 5s}}]`
			x := call(t, set(t, options(), def), "act", `{"message":"paint"}`)
			said := strings.Contains(x.Result.Text(), "may have happened")
			if x.Outcome != c.outcome || x.Certainty != c.want || said != (c.want == delivery.Unknown) {
				t.Errorf("%s, certainty %q, %q; want %s, %q", x.Outcome, x.Certainty, x.Result.Text(), c.outcome, c.want)
			}
		})
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
		run  outside.Program
		want delivery.Certainty
	}{
		{"does not start", func(context.Context) (outside.Exit, error) {
			return outside.Exit{}, syscall.ENOEXEC
		}, delivery.NotSent},
		{"fails", func(context.Context) (outside.Exit, error) { return outside.Exit{Code: 1}, nil }, ""},
		{"is stopped", func(ctx context.Context) (outside.Exit, error) {
			<-ctx.Done()
			return outside.Exit{Code: -1}, nil
		}, delivery.Unknown},
		{"does not start in time", func(ctx context.Context) (outside.Exit, error) {
			<-ctx.Done()
			return outside.Exit{}, delivery.NewError(delivery.NotSent, "not started", ctx.Err())
		}, delivery.NotSent},
		{"is stopped, and the Runner does not say whether it started", func(ctx context.Context) (outside.Exit, error) {
			<-ctx.Done()
			return outside.Exit{}, ctx.Err()
		}, delivery.Unknown},
	} {
		o := options()
		o.Run = starts(c.run)
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

// starts is the Runner of a program.
func starts(p outside.Program) outside.Runner {
	return func(context.Context, outside.Process) (outside.Program, error) { return p, nil }
}

// runners are the Runners of this machine.
func runners() map[string]outside.Runner {
	all := map[string]outside.Runner{"exec": outside.Exec}
	for _, level := range []sandbox.Level{sandbox.None, sandbox.Strict} {
		if sandbox.Check(level) == nil {
			all["sandbox "+level.String()] = outside.Sandboxed(sandbox.Spec{Level: level})
		}
	}
	return all
}

// A program that cannot be started is not sent, with every Runner: it is refused before the call is
// stored as sent.
func TestProgramsThatDoNotStart(t *testing.T) {
	for name, run := range runners() {
		for what, def := range map[string]string{
			"is not there":           "run: [./gone]",
			"is in no folder":        "run: [no-such-program-anywhere]",
			"is not executable":      "run: [./plain]",
			"is a folder":            "run: [./sub]",
			"is a broken ELF":        "run: [./garbage]",
			"is text":                "run: [./text]",
			"is for Windows":         "run: [./crlf]",
			"has no interpreter":     "run: [./lost]",
			"has no folder to be in": "run: [./good], dir: gone",
			"is below a file":        "run: [./plain/good]",
		} {
			o := options()
			o.Dir = t.TempDir()
			const good = "#!/bin/sh\necho good\n"
			for file, text := range map[string]string{
				"plain":   good,
				"good":    good,
				"garbage": "\x7fELF that is none",
				"text":    "echo good\n",
				"crlf":    "#!/bin/sh\r\necho good\r\n",
				"lost":    "#!/no/such/sh\n",
			} {
				mode := os.FileMode(0o755)
				if file == "plain" {
					mode = 0o644
				}
				if err := os.WriteFile(filepath.Join(o.Dir, file), []byte(text), mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(o.Dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			wasPrepared := false
			o.Run = func(ctx context.Context, p outside.Process) (outside.Program, error) {
				program, err := run(ctx, p)
				wasPrepared = err == nil
				return program, err
			}
			x := call(t, set(t, o, "[{command: {name: act, description: d, effect: write, "+def+"}}]"), "act", `{}`)
			if x.Outcome != pawl.OutcomeError || x.Certainty != delivery.NotSent || wasPrepared {
				t.Errorf("%s: a program that %s: %s, %q, prepared %t, %s",
					name, what, x.Outcome, x.Certainty, wasPrepared, x.Result.Text())
			}
		}
	}
}

// A program that was started and stopped may have done what it does, with every Runner: it has
// written into a pipe when it is stopped.
func TestProgramsThatAreStopped(t *testing.T) {
	for name, run := range runners() {
		def, o := program(t, "echo paid > out/pipe; sleep 60", ", effect: write, dir: ., write: [out]")
		o.Run = run
		out := filepath.Join(o.Dir, "out")
		pipe := filepath.Join(out, "pipe")
		if err := os.Mkdir(out, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := machine.Fifo(pipe); err != nil {
			t.Skip(err)
		}
		for _, path := range []string{out, pipe} { // a sandbox of root changes the user
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
		}

		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			written, err := os.ReadFile(pipe)
			if err != nil || string(written) != "paid\n" {
				t.Errorf("%s: the pipe has %q, %v", name, written, err)
			}
			cancel(pawl.ErrCancelled)
		})
		x := pawl.Toolsets{set(t, o, def)}.Execute(ctx, llm.ToolCall{ID: "1", Name: "a", Args: json.RawMessage(`{}`)})
		wg.Wait()
		if x.Certainty != delivery.Unknown || !strings.Contains(x.Result.Text(), "may have happened") {
			t.Errorf("%s: %s, %q, %s", name, x.Outcome, x.Certainty, x.Result.Text())
		}
	}
}
