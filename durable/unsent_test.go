package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/outside"
)

// shop is a server whose doors all have one tool, act, that writes. It counts the calls that
// arrive.
type shop struct {
	addr    string // the same each time that it is up
	breaks  atomic.Bool
	arrived atomic.Int32

	mu  sync.Mutex
	web *http.Server // nil means down
	l   net.Listener
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := new(shop)
	s.up(t)
	t.Cleanup(s.down)
	return s
}

func (s *shop) up(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.web != nil {
		return
	}
	addr := s.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s.l = l
	s.addr = l.Addr().String()
	s.web = &http.Server{Handler: s}
	go s.web.Serve(l)
}

func (s *shop) down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.web != nil {
		_ = s.l.Close() // Serve may not have begun
		_ = s.web.Close()
		s.web = nil
	}
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID     json.RawMessage
		Method string
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &q)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close") // a later request needs a connection of its own
	answers := map[string]string{
		"initialize":           `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
		"tools/list":           `{"tools":[{"name":"act","description":"Acts.","inputSchema":{"type":"object"}}]}`,
		"tools/call":           `{"content":[{"type":"text","text":"acted"}]}`,
		"SendStreamingMessage": `{"message":{"messageId":"1","role":"ROLE_AGENT","parts":[{"text":"acted"}]}}`,
		"SendMessage":          `{"message":{"messageId":"1","role":"ROLE_AGENT","parts":[{"text":"acted"}]}}`,
	}
	isCall := r.URL.Path == "/x" || q.Method == "tools/call" || strings.HasPrefix(q.Method, "Send")
	if isCall {
		s.arrived.Add(1)
	}
	switch {
	case r.URL.Path == "/.well-known/agent-card.json":
		fmt.Fprintf(w, `{"name":"painter","version":"1","supportedInterfaces":[{"url":"http://%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{}}`, s.addr)
	case isCall && s.breaks.Load():
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/x":
		io.WriteString(w, `{"acted":true}`)
	case answers[q.Method] != "":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answers[q.Method])
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case len(q.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// doors are the ways to the shop. Each returns new tools, as another process has them. lookup
// resolves the name shop.test; nil means that the shop is called by its address.
var doors = map[string]func(t *testing.T, s *shop, lookup lookups) pawl.Toolset{
	"http": func(t *testing.T, s *shop, lookup lookups) pawl.Toolset {
		return outsideTools(t, s, lookup, `[{http: {name: act, description: d, method: POST, url: "http://%[1]s/x", allow: ["%[1]s"]}}]`)
	},
	"openapi": func(t *testing.T, s *shop, lookup lookups) pawl.Toolset {
		return outsideTools(t, s, lookup, `[{openapi: {spec: spec.json, allow: ["%[1]s"]}}]`)
	},
	"a2a": func(t *testing.T, s *shop, lookup lookups) pawl.Toolset {
		return outsideTools(t, s, lookup, `[{a2a: {name: act, description: d, url: "http://%[1]s", allow: ["%[1]s"]}}]`)
	},
	"mcp": func(t *testing.T, s *shop, _ lookups) pawl.Toolset {
		c, err := mcp.New(mcp.Server{Name: "shop", URL: "http://" + s.addr + "/mcp"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	},
	// A tool that states the certainty and not the moment of sending.
	"go": func(t *testing.T, s *shop, _ lookups) pawl.Toolset {
		return pawl.Func("act", "d", func(ctx context.Context, _ none) (string, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
			if err != nil {
				return "", delivery.NewError(delivery.NotSent, "there is no connection", err)
			}
			_ = c.Close()
			res, err := http.Post("http://"+s.addr+"/x", "application/json", strings.NewReader("{}"))
			if err != nil {
				return "", delivery.NewError(delivery.Unknown, "there is no answer", err)
			}
			return "acted", res.Body.Close()
		})
	},
}

type lookups = func(context.Context, string) ([]netip.Addr, error)

func outsideTools(t *testing.T, s *shop, lookup lookups, form string) pawl.Toolset {
	t.Helper()
	dir := t.TempDir()
	host := s.addr
	if lookup != nil {
		_, port, _ := net.SplitHostPort(s.addr)
		host = "shop.test:" + port
	}
	spec := fmt.Sprintf(`{"openapi":"3.0.3","info":{"title":"t","version":"1"},"servers":[{"url":"http://%s"}],`+
		`"paths":{"/x":{"post":{"operationId":"act","responses":{"200":{"description":"ok"}}}}}}`, host)
	if err := os.WriteFile(filepath.Join(dir, "spec.json"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	defs, err := outside.Parse([]byte(fmt.Sprintf(form, host)))
	if err != nil {
		t.Fatal(err)
	}
	set, err := outside.New(defs, &outside.Options{Dir: dir, Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func loopback(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// acting is an agent that calls act once. around wraps the call; nil means nothing.
func acting(door string, tools pawl.Toolset, around func(next func())) *pawl.Agent {
	name, args := "act", `{}`
	switch door {
	case "mcp":
		name = "shop_act"
	case "a2a":
		args = `{"message":"paint"}`
	}
	a := &pawl.Agent{Model: script.New(script.Call(name, args), script.Say("done")), Tools: []pawl.Toolset{tools}}
	if around != nil {
		a.Middleware = []pawl.Middleware{{Tool: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, call llm.ToolCall) (res llm.ToolResult, err error) {
				around(func() { res, err = next(ctx, call) })
				return res, err
			}
		}}}
	}
	return a
}

// A write that was certainly not sent is executed again after its process was killed between the
// failure and its record, without a question, and arrives once. Control: a write whose connection
// broke asks, and does not arrive again.
func TestUnsentWritesDoNotAsk(t *testing.T) {
	for door, tools := range doors {
		for _, c := range []struct {
			name   string
			down   bool    // nothing listens during the call
			breaks bool    // the connection breaks when the call has arrived
			lookup lookups // of the first process; nil means none
			asks   bool
		}{
			{name: "nothing listens", down: true, asks: door == "go"},
			{name: "the name does not resolve", lookup: func(context.Context, string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "no such host", Name: "shop.test", IsNotFound: true}
			}},
			{name: "the connection breaks", breaks: true, asks: true},
		} {
			if c.lookup != nil && (door == "mcp" || door == "go" || door == "a2a") {
				continue // no lookup of their own, or the card of the agent is away too
			}
			t.Run(door+", "+c.name, func(t *testing.T) {
				s := newShop(t)
				s.breaks.Store(c.breaks)
				ctx, crash := context.WithCancel(t.Context())
				around := func(next func()) {
					if c.down {
						s.down()
					}
					next()
					crash()
				}
				memory := new(store.MemoryJournal)
				eng := &durable.Engine{Journal: &severed{Journal: memory, ctx: ctx}}
				first := eng.Runner("r", acting(door, tools(t, s, c.lookup), around))
				_, err := runtest.Ended(first.Run(ctx, llm.User("go")))
				if err == nil {
					t.Fatal("the first process did not crash")
				}

				s.up(t)
				s.breaks.Store(false)
				var lookup lookups
				if c.lookup != nil {
					lookup = loopback
				}
				after := &durable.Engine{Journal: memory}
				second := after.Runner("r", acting(door, tools(t, s, lookup), nil))
				res, err := runtest.Ended(second.Run(t.Context(), llm.User("go")))
				if err != nil {
					t.Fatal(err)
				}
				asked := len(res.Pending) == 1 && res.Pending[0].Outcome == pawl.OutcomeUnknown
				wanted := int32(1)
				if door == "go" && c.asks && c.down {
					wanted = 0 // it was not sent, and waits for the answer
				}
				if asked != c.asks || s.arrived.Load() != wanted {
					t.Errorf("it is asked about: %v, want %v; it arrived %d times, want %d; %+v",
						asked, c.asks, s.arrived.Load(), wanted, res)
				}
			})
		}
	}
}

// A command that cannot start is executed again after its process was killed between the failure
// and its record, without a question, and runs once. Control: a command that ran asks, and does not
// run again.
func TestCommandsThatDoNotStartDoNotAsk(t *testing.T) {
	const good = "#!/bin/sh\necho ran >> \"$1\"\n"
	runners := map[string]outside.Runner{"exec": outside.Exec}
	for _, level := range []sandbox.Level{sandbox.None, sandbox.Strict} {
		if sandbox.Check(level) == nil {
			runners["sandbox "+level.String()] = outside.Sandboxed(sandbox.Spec{Level: level})
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "interpreter")
	if err := os.Symlink("/bin/sh", elsewhere); err != nil {
		t.Fatal(err)
	}
	for runner, run := range runners {
		for name, c := range map[string]struct {
			text string
			mode os.FileMode // 0 means that there is no file
			asks bool
		}{
			"is not there":                           {"", 0, false},
			"is not executable":                      {good, 0o644, false},
			"is a broken ELF":                        {"\x7fELF that is none", 0o755, false},
			"is text":                                {"echo ran", 0o755, false},
			"is empty":                               {" ", 0o755, false},
			"is for Windows":                         {strings.ReplaceAll(good, "\n", "\r\n"), 0o755, false},
			"has no interpreter":                     {"#!/no/such/sh\n", 0o755, false},
			"has an interpreter outside the sandbox": {"#!" + elsewhere + "\n", 0o755, false},
			"runs":                                   {good, 0o755, true},
		} {
			if strings.HasSuffix(name, "the sandbox") && runner != "sandbox strict" {
				continue // it runs there
			}
			t.Run(runner+", it "+name, func(t *testing.T) {
				dir := t.TempDir()
				_ = os.Chmod(dir, 0o777) // a sandbox of root changes the user
				program := filepath.Join(dir, "act")
				write := func(text string, mode os.FileMode) {
					_ = os.Remove(program)
					if err := os.WriteFile(program, []byte(text), mode); err != nil {
						t.Fatal(err)
					}
				}
				if c.mode != 0 {
					write(c.text, c.mode)
				}
				defs, err := outside.Parse([]byte("[{command: {name: act, description: d, run: [./act, ran], dir: ., write: [.]}}]"))
				if err != nil {
					t.Fatal(err)
				}
				tools, err := outside.New(defs, &outside.Options{Dir: dir, Run: run})
				if err != nil {
					t.Fatal(err)
				}

				ctx, crash := context.WithCancel(t.Context())
				around := func(next func()) {
					next()
					crash()
				}
				memory := new(store.MemoryJournal)
				eng := &durable.Engine{Journal: &severed{Journal: memory, ctx: ctx}}
				if _, err := runtest.Ended(eng.Runner("r", acting("command", tools, around)).Run(ctx, llm.User("go"))); err == nil {
					t.Fatal("the first process did not crash")
				}

				write(good, 0o755)
				after := &durable.Engine{Journal: memory}
				res, err := runtest.Ended(after.Runner("r", acting("command", tools, nil)).Run(t.Context(), llm.User("go")))
				if err != nil {
					t.Fatal(err)
				}
				ran, _ := os.ReadFile(filepath.Join(dir, "ran"))
				if asked := len(res.Pending) > 0; asked != c.asks || strings.Count(string(ran), "ran") != 1 {
					t.Errorf("it is asked about: %v, want %v; it wrote %q; %+v", asked, c.asks, ran, res)
				}
			})
		}
	}
}

// A write that is interrupted or cancelled before it was sent asks nothing. After an interruption
// the run executes it, or the model reads that it was not sent. Control: a write that waits for its
// answer when it is interrupted asks.
func TestInterruptedBeforeSending(t *testing.T) {
	for name, cause := range map[string]error{"interrupted": errors.New("the machine stops"), "cancelled": pawl.ErrCancelled} {
		for _, door := range []string{"http", "openapi", "go"} {
			t.Run(name+", "+door, func(t *testing.T) {
				s := newShop(t)
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				waits := func(ctx context.Context) error {
					stop(cause)
					<-ctx.Done()
					return context.Cause(ctx)
				}
				first := func() pawl.Toolset {
					if door == "go" {
						return pawl.Func("act", "d", func(ctx context.Context, _ none) (string, error) {
							return "", delivery.NewError(delivery.NotSent, "there is no connection", waits(ctx))
						})
					}
					return doors[door](t, s, func(context.Context, string) ([]netip.Addr, error) {
						return nil, waits(ctx) // net/http connects in a context of its own
					})
				}
				memory := new(store.MemoryJournal)
				eng := &durable.Engine{Journal: memory}
				res, _ := runtest.Ended(eng.Runner("r", acting(door, first(), nil)).Run(ctx, llm.User("go")))
				if len(res.Pending) > 0 {
					t.Errorf("it is asked about: %+v", res.Pending)
				}

				res, err := runtest.Ended(eng.Runner("r", acting(door, doors[door](t, s, loopback), nil)).Run(t.Context()))
				if err != nil || len(res.Pending) > 0 {
					t.Fatalf("%v, pending %+v", err, res.Pending)
				}
				all, err := eng.Effects(t.Context(), "r")
				if err != nil || len(all) != 1 {
					t.Fatalf("the ledger has %+v, %v", all, err)
				}
				want := journal.EffectFailed
				arrives := name == "interrupted" && door != "go"
				if arrives {
					want = journal.EffectCompleted
				}
				got := all[0]
				certain := arrives || got.Certainty == delivery.NotSent
				if got.State != want || !certain || (s.arrived.Load() == 1) != arrives {
					t.Errorf("%+v, arrived %d times; want %s", got, s.arrived.Load(), want)
				}
			})
		}
	}
}

// sendingVariable has the definition of a tool, for the child that kills itself with SIGKILL
// between the failure of its call and its record.
const sendingVariable = "PAWL_DURABLE_UNSENT"

func unsentChild(path string) error {
	db, err := sqlite.Open(path, nil)
	if err != nil {
		return err
	}
	defs, err := outside.Parse([]byte(os.Getenv(sendingVariable)))
	if err != nil {
		return err
	}
	tools, err := outside.New(defs, nil)
	if err != nil {
		return err
	}
	kill := func(next func()) {
		next()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
	_, err = (&durable.Engine{Journal: db}).Runner("r", acting("http", tools, kill)).Run(context.Background(), llm.User("go"))
	return err
}

// It is so for a real process.
func TestUnsentWriteOfAKilledProcess(t *testing.T) {
	for _, down := range []bool{true, false} {
		s := newShop(t)
		form := fmt.Sprintf(`[{http: {name: act, description: d, method: POST, url: "http://%s/x"}}]`, s.addr)
		if down {
			s.down()
		}
		path := filepath.Join(t.TempDir(), "runs.db")
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "PAWL_DURABLE_CHILD="+path, sendingVariable+"="+form)
		var killed *exec.ExitError
		out, err := cmd.CombinedOutput()
		if !errors.As(err, &killed) || killed.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the child was not killed: %v, %s", err, out)
		}

		s.up(t)
		db, err := sqlite.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		eng := &durable.Engine{Journal: db}
		eng.SetClock(func() time.Time { return time.Now().Add(time.Hour) })
		res, err := runtest.Ended(eng.Runner("r", acting("http", doors["http"](t, s, nil), nil)).Run(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if asked := len(res.Pending) > 0; asked == down || s.arrived.Load() != 1 {
			t.Errorf("not sent %v: asked %v, arrived %d times", down, asked, s.arrived.Load())
		}
	}
}
