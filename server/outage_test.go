package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// cloud is a provider that is away for a while. Its agent pays, and then answers.
type cloud struct {
	back  time.Time // when it answers again; the zero time means that it is never away
	begun bool      // a reply breaks off after its first words
	asked atomic.Int32
	paid  atomic.Int32
}

// Stream answers a request. The first one of a run is answered always.
func (c *cloud) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	c.asked.Add(1)
	turn := script.Call("pay", struct{}{})
	if len(script.Results(req)) > 0 {
		turn = script.Say("Settled")
		if time.Now().Before(c.back) {
			return func(yield func(llm.Delta, error) bool) {
				if c.begun && !yield(llm.Delta{Part: llm.Text{Text: "Half a w"}}, nil) {
					return
				}
				yield(llm.Delta{}, &llm.ProviderError{Provider: "openai", Status: 503, Code: llm.CodeServer, Retryable: true})
			}
		}
	}
	return script.New(turn).Stream(ctx, &llm.Request{Messages: []llm.Message{llm.User("go")}})
}

// agent returns the agent of the provider.
func (c *cloud) agent() *pawl.Agent {
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		c.paid.Add(1)
		return "paid", nil
	})
	pay.Effect = pawl.EffectWrite
	return &pawl.Agent{
		Name:       "payer",
		Model:      runtest.ModelFunc(c.Stream),
		Tools:      []pawl.Toolset{pay},
		Middleware: []pawl.Middleware{pawl.Approve(allow)},
	}
}

// outageDoor is an endpoint that starts a run.
type outageDoor struct {
	path, body string
	events     bool   // the header Accept
	late       string // what a client reads that does not wait: status and text
	status     int
}

var outageDoors = map[string]outageDoor{
	"runs": {path: "/v1/runs", body: `{"id":"r","input":"pay","wait":true}`, status: 503, late: `"code":"outage"`},
	"runs, streamed": {path: "/v1/runs", body: `{"id":"r","input":"pay"}`, events: true, status: 200,
		late: "event: error\ndata: {\"error\":{\"code\":\"outage\""},
	"chat completions": {path: "/v1/chat/completions", status: 503, late: `"code":"outage"`,
		body: `{"model":"payer","messages":[{"role":"user","content":"pay"}]}`},
	"chat completions, streamed": {path: "/v1/chat/completions", status: 200, late: `"code":"outage"`,
		body: `{"model":"payer","stream":true,"messages":[{"role":"user","content":"pay"}]}`},
	"responses": {path: "/v1/responses", body: `{"model":"payer","input":"pay"}`, status: 503, late: `"code":"outage"`},
	"responses, streamed": {path: "/v1/responses", body: `{"model":"payer","stream":true,"input":"pay"}`, status: 200,
		late: `"code":"outage"`},
	"useChat": {path: "/v1/ui/payer", status: 200, late: "is waiting for openai since",
		body: `{"id":"chat","trigger":"submit-message","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"pay"}]}]}`},
	"AG-UI": {path: "/v1/agui/payer", status: 200, late: "is waiting for openai since",
		body: `{"threadId":"t","runId":"r","state":{},"messages":[{"id":"1","role":"user","content":"pay"}],"tools":[],"context":[],"forwardedProps":{}}`},
	"A2A": {path: "/a2a/payer", status: 200, late: `"state":"TASK_STATE_WORKING"`,
		body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"pay"}]}}}`},
	"A2A, streamed": {path: "/a2a/payer", status: 200, late: "is waiting for openai since",
		body: `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"pay"}]}}}`},
}

// send sends the request of a door to s.
func (d outageDoor) send(t *testing.T, s http.Handler, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := request(t, "POST", "http://127.0.0.1"+d.path, d.body)
	if d.events {
		r.Header.Set("Accept", "text/event-stream")
	}
	r.Header.Set("A2A-Version", "1.0")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	s.ServeHTTP(w, r)
	return w
}

// only returns the only run of a journal.
func only(t *testing.T, j store.Journal) store.JournalRun {
	t.Helper()
	all, err := j.JournalRuns(t.Context(), store.Scope{}, "", store.Page{})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d runs, %v; want one", len(all), err)
	}
	return all[0]
}

// A provider that is away for a minute fails no run, at no door. A client that waits gets the
// answer; a client that does not wait gets the ID of the run. The payment is made once.
func TestOutageAtEachDoor(t *testing.T) {
	for name, door := range outageDoors {
		for _, row := range []struct {
			name    string
			away    time.Duration
			begun   bool
			header  []string
			waits   bool // the client gets the answer
			control bool
		}{
			{name: "control: the provider answers", waits: true, control: true},
			{name: "a client that waits", away: time.Minute, waits: true},
			{name: "a reply that broke off", away: time.Minute, begun: true, waits: true},
			{name: "a client that does not wait", away: time.Minute, header: []string{"Prefer", "wait=0"}},
			{name: "a client that waits long", away: time.Hour, header: []string{"Prefer", "respond-async, wait=7200"}, waits: true},
			{name: "an outage longer than a client is held", away: time.Hour},
		} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &cloud{begun: row.begun}
					if !row.control {
						c.back = time.Now().Add(row.away)
					}
					journal := new(store.MemoryJournal)
					s, err := server.New([]*pawl.Agent{c.agent()}, journal, &server.Options{A2A: &server.A2A{}})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close(t.Context())

					began := time.Now()
					w := door.send(t, s, row.header...)
					body := w.Body.String()
					answered := strings.Contains(body, "Settled")
					if answered != row.waits {
						t.Fatalf("after %v: %d %s", time.Since(began), w.Code, body)
					}
					switch {
					case row.waits && w.Code != http.StatusOK && w.Code != http.StatusCreated:
						t.Errorf("status %d", w.Code)
					case !row.waits && (w.Code != door.status || !strings.Contains(body, door.late)):
						t.Errorf("got %d %s; want %d with %s", w.Code, body, door.status, door.late)
					case !row.waits && w.Code == 503 && w.Header().Get("Retry-After") == "":
						t.Error("there is no Retry-After")
					}
					if held := time.Since(began); !row.waits && held > 3*time.Minute {
						t.Errorf("the client was held for %v", held)
					}
					if strings.Count(body, "Settled") == 0 && !strings.Contains(body, only(t, journal).ID) && w.Code != 200 {
						t.Errorf("the ID of the run is not in %s", body)
					}

					// The run is shown as waiting, and goes on by itself.
					if !row.waits {
						var run api.Run
						shown := httptest.NewRecorder()
						s.ServeHTTP(shown, request(t, "GET", "http://127.0.0.1/v1/runs/"+only(t, journal).ID, ""))
						if err := json.Unmarshal(shown.Body.Bytes(), &run); err != nil {
							t.Fatal(err)
						}
						if run.State != "open" || run.Outage == nil || run.Outage.Provider != "openai" ||
							!strings.HasPrefix(run.Cause, "waiting for openai since ") {
							t.Errorf("the run is shown as %s", shown.Body)
						}
						time.Sleep(row.away + 10*time.Minute)
					}
					synctest.Wait()
					if run := only(t, journal); run.State != store.JournalOver || c.paid.Load() != 1 {
						t.Errorf("the run is %s after %d payments", run.State, c.paid.Load())
					}
				})
			})
		}
	}
}

// A client that was sent away and asks again gets the run that goes on, and no second one.
func TestOutageIsAskedForAgain(t *testing.T) {
	for name, door := range outageDoors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cloud{back: time.Now().Add(5 * time.Minute)}
				journal := new(store.MemoryJournal)
				s, err := server.New([]*pawl.Agent{c.agent()}, journal, &server.Options{A2A: &server.A2A{}})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(t.Context())

				door.send(t, s, "Prefer", "wait=0")
				w := door.send(t, s, "Prefer", "wait=3600")
				if !strings.Contains(w.Body.String(), "Settled") || c.paid.Load() != 1 {
					t.Errorf("%d payments; got %s", c.paid.Load(), w.Body)
				}
				only(t, journal)
			})
		})
	}
}

// A run that waits at one server is executed by another one, and its reader at the first gets the
// answer. A server that ends sends its readers away, and the next one executes the run.
func TestOutageAtSeveralServers(t *testing.T) {
	for name, other := range map[string]func(t *testing.T, near, far *server.Server){
		"another server is asked to resume the run": func(t *testing.T, _, far *server.Server) {
			outageDoor{path: "/v1/runs", body: `{"id":"r"}`}.send(t, far)
		},
		"another server finds the run": func(t *testing.T, _, far *server.Server) {
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			defer stop()
			far.Recover(ctx)
		},
		"the server ends, and the next one finds the run": func(t *testing.T, near, far *server.Server) {
			if err := near.Close(t.Context()); err != nil {
				t.Error(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			defer stop()
			far.Recover(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cloud{back: time.Now().Add(5 * time.Second)}
				journal := new(store.MemoryJournal)
				start := func() *server.Server {
					s, err := server.New([]*pawl.Agent{c.agent()}, journal, nil)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				near, far := start(), start()
				defer near.Close(t.Context())
				defer far.Close(t.Context())

				got := make(chan string, 1)
				go func() { got <- outageDoors["runs, streamed"].send(t, near).Body.String() }()
				time.Sleep(10 * time.Second)
				other(t, near, far)
				body := <-got
				ends := strings.Contains(name, "ends")
				if n := strings.Count(body, "event: run_started"); n != 1 {
					t.Errorf("the run starts %d times in %s", n, body)
				}
				if answered := strings.Contains(body, "Settled"); answered == ends {
					t.Errorf("the reader of the first server got %s", body)
				}
				if run := only(t, journal); run.State != store.JournalOver || c.paid.Load() != 1 {
					t.Errorf("the run is %s after %d payments", run.State, c.paid.Load())
				}
			})
		})
	}
}

// Code of the process, such as an MCP server, waits for the time that it states.
func TestOutageOfARunner(t *testing.T) {
	for _, row := range []struct {
		hold  time.Duration
		waits bool
	}{
		{hold: 0, waits: true},
		{hold: time.Minute, waits: false},
	} {
		t.Run(row.hold.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cloud{back: time.Now().Add(time.Hour)}
				s, err := server.New([]*pawl.Agent{c.agent()}, new(store.MemoryJournal), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(t.Context())

				began := time.Now()
				run := s.Runner(server.RunnerOptions{ID: "r", Hold: row.hold})
				res, err := pawl.Run(t.Context(), run, llm.User("pay"))
				var away *api.Error
				switch {
				case row.waits && (err != nil || res.Text() != "Settled"):
					t.Errorf("got %+v, %v", res, err)
				case !row.waits && (!errors.As(err, &away) || away.Code != "outage" || away.Run != "r"):
					t.Errorf("got %v", err)
				case !row.waits && time.Since(began) != row.hold:
					t.Errorf("it was held for %v", time.Since(began))
				}
			})
		})
	}
}

// A run whose time has come takes its turn in the queue, also while new runs arrive all the time.
func TestOutageTakesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := runtest.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			time.Sleep(time.Minute)
			return script.New(script.Say("Done.")).Stream(ctx, req)
		})
		c := &cloud{back: time.Now().Add(time.Second)}
		journal := new(store.MemoryJournal)
		o := &server.Options{}
		o.Limits.Runs = 1
		o.Limits.Queue = 100
		s, err := server.New([]*pawl.Agent{c.agent(), {Name: "slow", Model: slow}}, journal, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		start := func(agent, id string) {
			door := outageDoor{path: "/v1/runs", body: `{"id":"` + id + `","agent":"` + agent + `","input":"go"}`}
			if w := door.send(t, s); w.Code != http.StatusCreated {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
		}

		start("payer", "r")
		for i := range 30 { // there are always runs in the queue
			start("slow", fmt.Sprint("a", i))
			start("slow", fmt.Sprint("b", i))
			time.Sleep(time.Minute)
		}
		head, err := journal.JournalRun(t.Context(), store.Scope{}, "r")
		if err != nil || head.State != store.JournalOver {
			t.Errorf("the run is %s after half an hour, %v", head.State, err)
		}
	})
}
