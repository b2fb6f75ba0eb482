package durable_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// looking returns an agent with one tool, whose model asks the simulator at url.
func looking(url string) *pawl.Agent {
	look := pawl.Func("look", "looks", func(context.Context, struct {
		N int `json:"n,omitempty"`
	}) (string, error) {
		return "seen", nil
	})
	return &pawl.Agent{Tools: []pawl.Toolset{look}, Model: openai.NewChat("m", &openai.Options{BaseURL: url, Key: "k"})}
}

// playing is a model that does not read its requests.
type playing func(ctx context.Context, yield func(llm.Delta, error) bool)

func (p playing) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) { p(ctx, yield) }
}

// A failed request is counted in every later attempt of its run, and in the replay of its end: the
// journal has it. Each attempt reads the journal anew.
func TestFailedRequestsAreKept(t *testing.T) {
	busy := &pawltest.Fault{Status: 503, Header: map[string]string{"Retry-After-Ms": "1"}}
	s, err := pawltest.NewSimulator(script.New(script.Call("look", `{}`), script.Say("done")), &pawltest.SimulatorOptions{
		Fault: func(n int, _ *pawltest.Received) *pawltest.Fault {
			return map[int]*pawltest.Fault{2: busy, 3: busy, 4: busy, 5: {Status: 400}}[n]
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path := filepath.Join(t.TempDir(), "runs.db")
	for i, want := range []struct {
		requests int
		stop     pawl.StopReason
	}{{4, pawl.StopFailed}, {5, pawl.StopFailed}, {6, pawl.StopAnswer}, {6, pawl.StopAnswer}} {
		db, err := sqlite.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		// A run that waits for its provider has no end.
		eng := &durable.Engine{Journal: db, Outage: -1}
		var res *pawl.Result
		if r := eng.Runner("r", looking(s.URL)); i == 1 {
			res, _ = pawl.Collect(r.Stream(t.Context(), llm.User("go")), nil)
		} else {
			res, _ = r.Run(t.Context(), llm.User("go"))
		}
		n := len(s.Received())
		if res.Spent.Requests != want.requests || n != want.requests || res.Stop != want.stop {
			t.Errorf("attempt %d: %s, counted %d requests, the server saw %d; want %+v", i+1, res.Stop, res.Spent.Requests, n, want)
		}
		events, err := pawl.Collect(eng.ReplayEvents("r", looking(s.URL)).Stream(t.Context()), nil)
		if events == nil || events.Spent.Requests != want.requests {
			t.Errorf("attempt %d: the events of the record have %+v, %v; want %d requests", i+1, events, err, want.requests)
		}
		db.Close()
	}
}

// The same for a request during which the run was cancelled, and the usage of a reply that broke
// off.
func TestCancelledRequestsAreKept(t *testing.T) {
	for _, cause := range []error{errors.New("the process stops"), pawl.ErrCancelled} {
		ctx, cancel := context.WithCancelCause(t.Context())
		u := &llm.Usage{Input: 7, Output: 3}
		n := 0
		m := playing(func(ctx context.Context, yield func(llm.Delta, error) bool) {
			switch n++; n {
			case 1:
				yield(llm.Delta{Requests: 1, Usage: u}, nil)
				yield(llm.Delta{}, errors.New("broken off"))
			case 2:
				yield(llm.Delta{Part: llm.Text{Text: "Half"}}, nil)
				cancel(cause)
				yield(llm.Delta{}, context.Cause(ctx))
			default:
				yield(llm.Delta{Part: llm.Text{Text: "done"}, Done: true, Usage: u, Finish: llm.FinishReasonStop}, nil)
			}
		})
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		r := eng.Runner("r", &pawl.Agent{Model: m})
		r.Run(ctx, llm.User("go"))
		res, _ := r.Run(ctx, llm.User("go"))
		if res.Stop != pawl.StopCancelled || res.Spent.Requests != 2 || res.Spent.Usage.Total() != 10 {
			t.Errorf("%v: %s after %+v, want 2 requests and 10 tokens", cause, res.Stop, res.Spent)
		}
		requests, tokens := 3, 20
		if cause == pawl.ErrCancelled {
			requests, tokens = 2, 10 // the run is over
		}
		for range 2 {
			res, _ = r.Run(t.Context())
			if res.Spent.Requests != requests || res.Spent.Usage.Total() != tokens || n != requests {
				t.Errorf("%v, then: %s after %+v, want %d requests and %d tokens; %d were made", cause, res.Stop, res.Spent, requests, tokens, n)
			}
		}
		cancel(nil)
	}
}

// A run that ended at a limit is over. Under a raised limit its error says what to do, and doing it
// gives the answer.
func TestRaisedLimit(t *testing.T) {
	used := func(turn script.Turn) script.Turn {
		turn.Usage = &llm.Usage{Input: 1000, Output: 1000}
		return turn
	}
	look := used(script.Call("look", `{}`))
	for name, limits := range map[string]pawl.Limits{"cost": {Cost: 0.003}, "tokens": {Tokens: 3000}, "rounds": {Rounds: 1},
		"calls": {Calls: 1}, "tokens at once": {Tokens: 1000}} {
		t.Run(name, func(t *testing.T) {
			first := look
			if name == "calls" {
				first = script.Together(look, script.Call("look", `{"n":2}`))
			}
			m := script.New(first, script.Func(func(req *llm.Request) script.Turn {
				if req.Choice.Mode == llm.ToolNone {
					return used(script.Say("partial"))
				}
				return used(script.Say("full"))
			}))
			agent := looking("http://127.0.0.1:1")
			agent.Model, agent.Limits = catalog.Price{Input: 1, Output: 1}.Of(m), limits
			eng := &durable.Engine{Journal: new(store.MemoryJournal)}
			from, err := eng.Runner("r", agent).Run(t.Context(), llm.User("go"))
			if from.Stop != pawl.StopLimit {
				t.Fatalf("%+v, %v", from, err)
			}
			again, _ := eng.Runner("r", agent).Run(t.Context())
			if again.Stop != pawl.StopLimit || again.Limit != from.Limit {
				t.Errorf("the same limits: %+v", again)
			}
			raised := *agent
			raised.Limits = pawl.Limits{}
			_, err = eng.Runner("r", &raised).Run(t.Context())
			var over *durable.LimitError
			if !errors.As(err, &over) || !errors.Is(err, durable.ErrChanged) ||
				!strings.Contains(err.Error(), "Fork it at step 1") {
				t.Fatalf("raised limits: %v", err)
			}
			if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "fork", Steps: over.Step}); err != nil {
				t.Fatal(err)
			}
			if res, err := eng.Runner("fork", &raised).Run(t.Context()); err != nil || res.Text() != "full" {
				t.Errorf("the fork: %+v, %v", res, err)
			}
			other := eng.Runner("other", &raised)
			other.From = from
			if res, err := other.Run(t.Context()); err != nil || res.Text() != "full" {
				t.Errorf("a run from the Result: %+v, %v", res, err)
			}
		})
	}
}

// A run whose context has ended stops with a *pawl.StopError before it starts, as an Agent does.
func TestCancelledBeforeTheStart(t *testing.T) {
	for _, cause := range []error{nil, pawl.ErrCancelled, errors.New("the process stops")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		agent := &pawl.Agent{Model: script.New(script.Say("never"))}
		want, wantErr := agent.Run(ctx, llm.User("go"))
		got, err := eng.Runner("r", agent).Run(ctx, llm.User("go"))
		_, streamed := pawl.Collect(eng.Runner("r", agent).Stream(ctx, llm.User("go")), nil)
		var stop *pawl.StopError
		if !errors.As(err, &stop) || !errors.As(streamed, &stop) || got == nil || got.Stop != want.Stop ||
			got.Cause != want.Cause || err.Error() != wantErr.Error() || streamed.Error() != wantErr.Error() ||
			errors.Is(err, context.Canceled) != errors.Is(wantErr, context.Canceled) {
			t.Errorf("%v: %+v, %v, streamed %v; an agent has %+v, %v", cause, got, err, streamed, want, wantErr)
		}
		if _, err := eng.Journal.JournalRun(t.Context(), store.Scope{}, "r"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v: the journal has the run: %v", cause, err)
		}
	}
}

// Into gives a durable run its schema, and reads the stored answer again.
func TestInto(t *testing.T) {
	m := script.New(script.Say(`{"n":7}`))
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	for range 2 {
		v, res, err := pawl.Into[struct {
			N int `json:"n"`
		}](t.Context(), eng.Runner("r", &pawl.Agent{Model: m}), llm.User("go"))
		if err != nil || v.N != 7 || res.Spent.Requests != 1 || len(m.Requests()) != 1 {
			t.Errorf("%+v, %+v, %v after %d requests", v, res, err, len(m.Requests()))
		}
	}
}
