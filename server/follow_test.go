package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// reading sends the events of a stream to a channel, and closes it at the end.
func (v *serving) reading(res *http.Response) <-chan sent {
	all := make(chan sent, 1000)
	go func() {
		defer close(all)
		v.events(res.Body, func(e sent) bool { all <- e; return false })
	}()
	return all
}

// upTo returns the events up to an event with that name.
func upTo(t *testing.T, all <-chan sent, name string) (seen []sent) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		select {
		case e, ok := <-all:
			if !ok {
				t.Fatalf("the stream ended without %s: %s", name, names(seen))
			}
			if seen = append(seen, e); e.name == name {
				return seen
			}
		case <-deadline:
			t.Fatalf("no %s came: %s", name, names(seen))
		}
	}
}

// A client that watches a pending run receives its further events in the same stream, until the run
// ends.
func TestAStreamFollowsARunThatWaits(t *testing.T) {
	v := serve(t, nil)
	var run api.Run
	v.do("POST", "/v1/runs", `{"id":"w","input":"pay 7","wait":true}`, 201, &run)
	all := v.reading(v.request("GET", "/v1/runs/w/events", ""))
	first := upTo(t, all, "run_ended")
	if end := first[len(first)-1]; end.event.Result.Stop != pawl.StopPending {
		t.Errorf("the first end: %+v", end.event.Result)
	}
	// After the last event of a pending run, no event is sent until the run resumes.
	behind := v.reading(v.request("GET", "/v1/runs/w/events", "", "Last-Event-ID", first[len(first)-1].id))
	v.do("POST", "/v1/runs/w/approve", `{"key":"run/1/0","digest":"`+run.Pending[0].Digest+`"}`, 200, nil)
	for _, stream := range []<-chan sent{all, behind} {
		second := upTo(t, stream, "run_ended")
		if !strings.HasPrefix(names(second), "notice run_started") || second[0].event.Code != "attempt" {
			t.Errorf("it continues with %s", names(second))
		}
		if res := second[len(second)-1].event.Result; res.Stop != pawl.StopAnswer || res.Text() != "Done: paid 7" {
			t.Errorf("the second end: %+v", res)
		}
		if e, more := <-stream; more {
			t.Errorf("after the end: %+v", e)
		}
	}
}

// The same if the answer was given to another server: the event arrives with the next heartbeat.
func TestAStreamFollowsARunThatGoesOnElsewhere(t *testing.T) {
	journal := new(store.MemoryJournal)
	near := serve(t, func(o *options) { o.Journal, o.Times.Beat = journal, 20*time.Millisecond })
	far := serve(t, func(o *options) { o.Journal = journal })
	var run api.Run
	near.do("POST", "/v1/runs", `{"id":"w","input":"pay 7","wait":true}`, 201, &run)
	all := near.reading(near.request("GET", "/v1/runs/w/events", ""))
	upTo(t, all, "run_ended")
	far.do("POST", "/v1/runs/w/approve", `{"key":"run/1/0","digest":"`+run.Pending[0].Digest+`"}`, 200, nil)
	second := upTo(t, all, "run_ended")
	if res := second[len(second)-1].event.Result; res.Text() != "Done: paid 7" || near.world.paid.Load() != 0 ||
		far.world.paid.Load() != 1 {
		t.Errorf("the end: %+v", res)
	}
}

// A client that may only read gets the stored events and starts nothing. Other readers start
// nothing either.
func TestReadersSetNothingToWork(t *testing.T) {
	journal := new(store.MemoryJournal)
	first := serve(t, func(o *options) { o.Journal, o.Access.Tokens = journal, tokens() })
	first.token = allToken
	first.do("POST", "/v1/runs", `{"id":"waits","input":"pay 7","wait":true}`, 201, nil)
	first.do("POST", "/v1/runs", `{"id":"failed","input":"fail","wait":true}`, 201, nil)
	first.do("POST", "/v1/runs", `{"id":"over","input":"look Oslo","wait":true}`, 201, nil)
	heads := func() (all []store.JournalRun) {
		all, err := journal.JournalRuns(t.Context(), store.Scope{}, "", store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := heads()
	next := serve(t, func(o *options) { o.Journal, o.Access.Tokens = journal, tokens() })
	next.token = readToken
	for id, want := range map[string]string{"waits": "run_ended", "failed": "error", "over": "run_ended"} {
		for range 2 {
			all := next.events(next.request("GET", "/v1/runs/"+id+"/events", "").Body, func(e sent) bool { return id == "waits" && e.name == "run_ended" })
			if !strings.HasPrefix(names(all), "notice run_started") || all[len(all)-1].name != want {
				t.Errorf("%s: %s", id, names(all))
			}
			if id != "waits" {
				res := next.request("GET", "/v1/runs/"+id+"/events", "", "Last-Event-ID", all[len(all)-1].id)
				if res.Body.Close(); res.StatusCode != 204 {
					t.Errorf("%s, after the end: %d", id, res.StatusCode)
				}
			}
		}
		var run api.Run
		if next.do("GET", "/v1/runs/"+id, "", 200, &run); run.State == "running" {
			t.Errorf("%s is said to run", id)
		}
	}
	after := heads()
	for i := range before {
		if after[i].Fence != before[i].Fence || after[i].Records != before[i].Records ||
			after[i].State != before[i].State {
			t.Errorf("%s: was %+v, is %+v", before[i].ID, before[i], after[i])
		}
	}
	// A replay of stored events blocks no other request.
	var run api.Run
	next.token = allToken
	next.do("POST", "/v1/runs", `{"id":"failed","wait":true}`, 200, &run)
	if run.State != "failed" || heads()[0].Fence != before[0].Fence+1 {
		t.Errorf("resumed: %+v", run)
	}
}

// A Runner in the server's process starts a run that clients see, answers its pending calls, and
// cancels it.
func TestARunnerInTheProcess(t *testing.T) {
	v := serve(t, nil)
	stream := func(ctx context.Context, id string, msgs ...llm.Message) (res *pawl.Result, kinds string, err error) {
		run := v.s.Runner(server.RunnerOptions{ID: id, Agent: "clerk", By: "a person at MCP"})
		res, err = runtest.Ended(pawl.Collect(run.Stream(ctx, msgs...),
			func(e pawl.Event) { kinds += string(e.Kind) + " " }))
		return res, kinds, err
	}
	res, kinds, err := stream(t.Context(), "r", llm.User("pay 3"))
	if err != nil || res.Stop != pawl.StopPending || !strings.HasPrefix(kinds, "run_started") {
		t.Fatalf("%+v, %s, %v", res, kinds, err)
	}
	res, _, err = stream(t.Context(), "r", llm.DecisionMessage(res.Pending[0].Approve("")))
	if err != nil || res.Text() != "Done: paid 3" || v.world.paid.Load() != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	var x struct {
		Calls []struct {
			Execution struct{ Decision struct{ By string } }
		}
	}
	v.do("GET", "/v1/runs/r/export", "", 200, &x)
	if x.Calls[0].Execution.Decision.By != "a person at MCP" {
		t.Errorf("decided by %+v", x)
	}
	ctx, cancel := context.WithCancelCause(store.WithScope(t.Context(), store.Scope{Tenant: "acme"}))
	defer cancel(nil)
	for e, err := range v.s.Runner(server.RunnerOptions{ID: "c"}).Stream(ctx, llm.User("wait")) {
		if err != nil && !errors.Is(err, pawl.ErrCancelled) {
			t.Error(err)
		}
		if e.Kind == pawl.EventCallStarted {
			cancel(pawl.ErrCancelled)
		}
		if e.Kind == pawl.EventRunEnded && e.Result.Stop != pawl.StopCancelled {
			t.Errorf("given up: %+v", e.Result)
		}
	}
	v.code("GET", "/v1/runs/c", "", 404, "not_found") // it belongs to acme
	var failed *api.Error
	for _, err := range v.s.Runner(server.RunnerOptions{ID: "x", Agent: "nobody"}).Stream(t.Context(), llm.User("hi")) {
		failed, _ = err.(*api.Error)
	}
	if failed == nil || failed.Code != "not_found" {
		t.Errorf("got %v", failed)
	}
}

func TestRunnersInTheProcessPassTheSuite(t *testing.T) {
	pawltest.TestRunner(t, func(t *testing.T, a *pawl.Agent) pawl.Runner {
		s := serve(t, func(o *options) { o.Agents = []*pawl.Agent{a} }).s
		return s.Runner(server.RunnerOptions{ID: "r", Agent: "clerk", By: "suite"})
	})
}
