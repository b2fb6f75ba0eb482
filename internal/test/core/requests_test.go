package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/team"
)

// again is a fault that the client answers with another request.
var again = &pawltest.Fault{Status: 503, Header: map[string]string{"Retry-After-Ms": "1"}}

// sequence is a model that plays one turn a request. It does not read the request.
type sequence struct {
	mu    sync.Mutex
	turns []script.Turn
}

func (s *sequence) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := script.Fail(errors.New("no turn is left"))
	if len(s.turns) > 0 {
		turn, s.turns = s.turns[0], s.turns[1:]
	}
	return script.New(script.Loop(turn)).Stream(ctx, req)
}

// requestCase is a server that counts requests, with an agent whose models ask it.
type requestCase struct {
	turns  []script.Turn // replies of the server, in the order of the answered requests
	faults map[int]*pawltest.Fault
	agent  func(m llm.Model) *pawl.Agent // m asks the server
	msgs   []llm.Message                 // nil means one question
	fails  bool                          // the run fails
	once   bool                          // the client repeats no request
	cancel bool                          // the run is cancelled during its first request
}

// TestRequestsAreThoseOfTheServer compares Spent.Requests with the requests that a server received,
// whole and streamed, in this process and with a journal.
func TestRequestsAreThoseOfTheServer(t *testing.T) {
	look := pawl.Func("look", "looks", func(context.Context, struct{}) (string, error) { return "seen", nil })
	plain := func(m llm.Model) *pawl.Agent { return &pawl.Agent{Model: m, Tools: []pawl.Toolset{look}} }
	deciding := func(m llm.Model) *pawl.Agent { return plain(react.New(m, nil)) }
	say := func(texts ...string) (turns []script.Turn) {
		for _, s := range texts {
			turns = append(turns, script.Say(s))
		}
		return turns
	}
	type faults = map[int]*pawltest.Fault
	const calls = `{"thought":"t","type":"call_tool","tool":"look","args":{}}`
	const answers = `{"thought":"t","type":"final_answer","answer":"done"}`

	for name, c := range map[string]requestCase{
		"a call":  {turns: []script.Turn{script.Call("look", nil), script.Say("done")}, agent: plain},
		"retries": {turns: say("done"), faults: faults{1: again, 2: again}, agent: plain},
		"fails":   {faults: faults{1: again, 2: again, 3: again}, agent: plain, fails: true},
		"rejected": {turns: []script.Turn{script.Call("look", nil)}, faults: faults{2: {Status: 400}},
			agent: plain, fails: true},
		"breaks off": {turns: say("a long answer"), faults: faults{1: {Break: true, After: 3}},
			agent: plain, fails: true, once: true},
		"cancelled": {turns: say("done"), agent: plain, fails: true, cancel: true},
		"react":     {turns: say("what?", calls, "no idea", answers), agent: deciding},
		"react with an inference": {turns: say(answers, "done"), agent: func(m llm.Model) *pawl.Agent {
			return plain(react.New(m, &react.Options{FinalViaInference: true}))
		}},
		"react without a decision": {turns: say("what?", "what?", "what?"), fails: true,
			faults: faults{2: again}, agent: deciding},
		"react that breaks off": {turns: say("what?"), fails: true,
			faults: faults{2: {Status: 400}}, agent: deciding},
		"fallback": {turns: []script.Turn{script.Call("look", nil), script.Say("done")},
			faults: faults{1: again, 2: again, 3: again}, agent: func(m llm.Model) *pawl.Agent {
				a := plain(m)
				a.Middleware = []pawl.Middleware{policy.Fallback{Models: []llm.Model{m}}.Middleware()}
				return a
			}},
		"fallback fails": {faults: faults{1: {Status: 401}, 2: {Status: 400}}, fails: true,
			agent: func(m llm.Model) *pawl.Agent {
				a := plain(m)
				a.Middleware = []pawl.Middleware{policy.Fallback{Models: []llm.Model{m}}.Middleware()}
				return a
			}},
		"corrections": {turns: say("no", `{"n":1}`), agent: func(m llm.Model) *pawl.Agent {
			return &pawl.Agent{Model: m, Output: json.RawMessage(`{"type":"object","required":["n"]}`)}
		}},
		"an agent as a tool": {turns: []script.Turn{script.Call("clerk", `{"task":"t"}`), script.Say("inner"), script.Say("done")},
			faults: faults{2: again}, agent: func(m llm.Model) *pawl.Agent {
				clerk := &pawl.Agent{Name: "clerk", Model: m}
				return &pawl.Agent{Model: m, Tools: []pawl.Toolset{clerk.Tool("works")}}
			}},
		"a nested run that fails": {turns: []script.Turn{script.Call("clerk", `{"task":"t"}`), script.Say("done")},
			faults: faults{2: {Status: 400}}, agent: func(m llm.Model) *pawl.Agent {
				clerk := &pawl.Agent{Name: "clerk", Model: m}
				return &pawl.Agent{Model: m, Tools: []pawl.Toolset{clerk.Tool("works")}}
			}},
		"a network": {turns: []script.Turn{script.Call("ask_clerk", `{"task":"t"}`), script.Say("inner"), script.Say("done")},
			agent: func(m llm.Model) *pawl.Agent {
				a, err := team.Network(&pawl.Agent{Name: "lead", Model: m},
					team.Worker{Agent: &pawl.Agent{Name: "clerk", Model: m}, Description: "works"})
				if err != nil {
					t.Fatal(err)
				}
				return a
			}},
	} {
		for _, way := range []string{"whole", "streamed", "durable"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				sim, err := pawltest.NewSimulator(&sequence{turns: c.turns}, &pawltest.SimulatorOptions{
					Fault: func(n int, _ *pawltest.Received) *pawltest.Fault {
						if c.cancel {
							cancel()
							return &pawltest.Fault{Hold: make(chan struct{})}
						}
						return c.faults[n]
					}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = sim.Close() })
				transport := new(http.Transport)
				t.Cleanup(transport.CloseIdleConnections)
				o := &openai.Options{BaseURL: sim.URL, Key: "k", HTTP: transport}
				if c.once {
					o.Retries = -1
				}
				a := c.agent(openai.NewChat("m", o))
				if c.msgs == nil {
					c.msgs = []llm.Message{llm.User("go")}
				}
				var res *pawl.Result
				switch way {
				case "whole":
					res, err = a.Run(ctx, c.msgs...)
				case "durable":
					res, err = (&durable.Engine{Journal: new(store.MemoryJournal)}).Runner("r", a).Run(ctx, c.msgs...)
				default:
					for e, fault := range a.Stream(ctx, c.msgs...) {
						if err = fault; e.Kind == pawl.EventRunEnded && e.Run == "run" {
							res = e.Result
						}
					}
				}
				if c.fails != (err != nil) {
					t.Errorf("got the error %v", err)
				}
				if got := len(sim.Received()); res.Spent.Requests != got || got == 0 {
					t.Errorf("%d requests are counted, and the server received %d", res.Spent.Requests, got)
				}
			})
		}
	}
}

// A refused connection sends nothing, so it is no request.
func TestRefusedConnectionsDoNotCount(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	gone := openai.NewChat("m", &openai.Options{BaseURL: "http://" + closed.Addr().String(), Key: "k", Retries: -1, HTTP: transport})
	for want, policies := range [][]pawl.Middleware{nil,
		{policy.Fallback{Models: []llm.Model{script.New(script.Say("done"))}}.Middleware()}} {
		res, err := (&pawl.Agent{Model: gone, Middleware: policies}).Run(t.Context(), llm.User("go"))
		if res.Spent.Requests != want || (err == nil) != (want == 1) {
			t.Errorf("%d requests, %v; want %d", res.Spent.Requests, err, want)
		}
	}
}
