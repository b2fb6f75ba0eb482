package server_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// looker returns an agent that looks for two seconds, and then pays. nested puts both tools behind
// an agent that is a tool.
func looker(paid *atomic.Int32, nested bool) *pawl.Agent {
	look := pawl.Func("look", "Looks.", func(context.Context, struct{}) (string, error) {
		time.Sleep(2 * time.Second) // it does not heed the end of its context
		return "a door", nil
	})
	look.Effect = pawl.EffectRead
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		paid.Add(1)
		return "paid", nil
	})
	turn := func(req *llm.Request) script.Turn {
		results := script.Results(req)
		switch {
		case len(results) == 0:
			return script.Call("look", "{}")
		case results[0].Text() == "a door":
			return script.Call("pay", "{}")
		}
		return script.Say("Paid.")
	}
	model := func(turn func(*llm.Request) script.Turn) llm.Model {
		return &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}}
	}
	worker := &pawl.Agent{
		Name:       "worker",
		Model:      model(turn),
		Tools:      []pawl.Toolset{look, pay},
		Middleware: []pawl.Middleware{pawl.Approve(allow)},
	}
	if !nested {
		return worker
	}

	delegate := func(req *llm.Request) script.Turn {
		if len(script.Results(req)) > 0 {
			return script.Say("Paid.")
		}
		return script.Call("worker", `{"task":"pay"}`)
	}
	return &pawl.Agent{
		Name:       "lead",
		Model:      model(delegate),
		Tools:      []pawl.Toolset{worker.Tool("Pays.")},
		Middleware: []pawl.Middleware{pawl.Approve(allow)},
	}
}

// A client that stops does no more than disconnect. At once no call begins, at each endpoint; the
// run is cancelled unless its client returns in time, as a page does that is reloaded.
func TestStopStops(t *testing.T) {
	type visit struct {
		method, path, body string
	}
	chat := func(agent string) visit {
		return visit{"POST", "/v1/chat/completions", `{"model":"` + agent + `","stream":true,"messages":[{"role":"user","content":"pay"}]}`}
	}
	responses := func(agent string) visit {
		return visit{"POST", "/v1/responses", `{"model":"` + agent + `","stream":true,"input":"pay"}`}
	}
	messages := func(agent string) visit {
		return visit{"POST", "/v1/messages", `{"model":"` + agent + `","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"pay"}]}`}
	}
	ui := func(agent string) visit {
		return visit{"POST", "/v1/ui/" + agent, `{"id":"chat","trigger":"submit-message","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"pay"}]}]}`}
	}
	reload := func(agent string) visit { return visit{"GET", "/v1/ui/" + agent + "/chat/stream", ""} }
	agui := func(agent string) visit {
		return visit{"POST", "/v1/agui/" + agent, `{"threadId":"t","runId":"r","state":{},"messages":[{"id":"1","role":"user","content":"pay"}],"tools":[],"context":[],"forwardedProps":{}}`}
	}
	for name, door := range map[string]struct{ ask, again func(agent string) visit }{
		"chat completions": {chat, chat},
		"responses":        {responses, responses},
		"messages":         {messages, messages},
		"useChat":          {ui, reload},
		"AG-UI":            {agui, agui},
	} {
		for _, tt := range []struct {
			name, header string
			nested       bool
			returns      bool
			paid         int32
		}{
			{"stopped", "", false, false, 0},
			{"stopped in a nested agent", "", true, false, 0},
			{"returns", "", false, true, 1},
			{"returns to a nested agent", "", true, true, 1},
			{"goes on", "continue", false, false, 1},
		} {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var paid atomic.Int32
					agent := looker(&paid, tt.nested)
					journal := new(store.MemoryJournal)
					s, err := server.New([]*pawl.Agent{agent}, journal, nil)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close(t.Context())
					send := func(ctx context.Context, v visit) string {
						w := httptest.NewRecorder()
						r := request(t, v.method, "http://127.0.0.1"+v.path, v.body).WithContext(ctx)
						if tt.header != "" {
							r.Header.Set("X-Pawl-Disconnect", tt.header)
						}
						s.ServeHTTP(w, r)
						return w.Body.String()
					}

					// The client stops in the middle of look.
					ctx, stop := context.WithTimeout(t.Context(), time.Second)
					defer stop()
					send(ctx, door.ask(agent.Name))
					if ctx.Err() == nil {
						t.Fatal("the answer came before the client stopped")
					}
					if tt.returns {
						time.Sleep(3 * time.Second) // look has ended, and nothing may have begun
						if paid.Load() > 0 {
							t.Error("a call began without a client")
						}
						if got := send(t.Context(), door.again(agent.Name)); !strings.Contains(got, "Paid.") {
							t.Errorf("the client that returned got %s", got)
						}
					}
					time.Sleep(time.Minute)
					synctest.Wait()

					runs, err := journal.JournalRuns(t.Context(), store.Scope{}, "", store.Page{})
					if err != nil || len(runs) != 1 || runs[0].State != "over" || paid.Load() != tt.paid {
						t.Errorf("%d payments, want %d; %+v, %v", paid.Load(), tt.paid, runs, err)
					}
				})
			})
		}
	}
}
