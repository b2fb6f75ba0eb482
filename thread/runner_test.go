package thread_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/thread"
)

// lasting returns a conversation whose messages are durable runs of an agent.
func lasting(db store.Threads, journal store.Journal, agent *pawl.Agent) *thread.Runner {
	eng := &durable.Engine{Journal: journal}
	return &thread.Runner{
		Run:   func(id string) pawl.Runner { return eng.Runner(id, agent) },
		DB:    db,
		Scope: store.Scope{User: "ann"},
		ID:    "x",
	}
}

func messages(t *testing.T, db store.Threads) []llm.Message {
	t.Helper()
	_, from, err := thread.Load(t.Context(), db, store.Scope{User: "ann"}, "x")
	if err != nil {
		t.Fatal(err)
	}
	return from.Messages
}

// A conversation of durable runs: each message is a run, an approval continues the run that asked,
// and counts once. The runs belong to the owner of the conversation.
func TestDurableConversation(t *testing.T) {
	db, journal := opened(t), new(store.MemoryJournal)
	agent, paid := paying(nil, nil)
	chat := lasting(db, journal, agent)

	_, err := pawl.Run(t.Context(), chat, llm.User("pay"))
	stop, ok := errors.AsType[*pawl.StopError](err)
	if !ok || stop.Reason != pawl.StopPending || paid.Load() != 0 {
		t.Fatal(err)
	}
	yes := llm.DecisionMessage(stop.Result.Pending[0].Approve("ann"))
	for n := range 2 { // the second is a double click
		res, err := pawl.Run(t.Context(), lasting(db, journal, agent), yes)
		switch {
		case n == 0 && (err != nil || res.Text() != "Done."):
			t.Fatalf("got %v, %v", res, err)
		case n == 1 && !errors.Is(err, store.ErrConflict):
			t.Errorf("the second decision: %v", err)
		}
	}
	_, err = pawl.Run(t.Context(), chat, llm.User("again"))
	stop, ok = errors.AsType[*pawl.StopError](err)
	if !ok || stop.Reason != pawl.StopPending || paid.Load() != 1 {
		t.Errorf("the next message: %v after %d payments", err, paid.Load())
	}
	if n := len(messages(t, db)); n != 6 {
		t.Errorf("the conversation has %d messages, want 6", n)
	}

	heads, err := journal.JournalRuns(t.Context(), store.Scope{User: "ann"}, "", store.Page{})
	if err != nil || len(heads) != 2 || heads[0].ID != "x-0" || heads[1].ID != "x-4" {
		t.Errorf("the runs are %+v, %v", heads, err)
	}
}

// A run that was interrupted is not part of the conversation until a Stream without messages, or
// with the same ones, has ended it. Another message is refused meanwhile.
func TestInterruptedDurableConversation(t *testing.T) {
	for name, again := range map[string][]llm.Message{"no message": nil, "the same": {llm.User("pay")}} {
		db, journal := opened(t), new(store.MemoryJournal)
		agent, paid := paying(nil, nil)
		agent.Middleware = nil
		for e := range lasting(db, journal, agent).Stream(t.Context(), llm.User("pay")) {
			if e.Kind == pawl.EventStep { // the call has ended
				break
			}
		}
		if n := len(messages(t, db)); n != 0 {
			t.Errorf("%s: the conversation has %d messages of an unfinished run", name, n)
		}
		_, err := pawl.Run(t.Context(), lasting(db, journal, agent), llm.User("another"))
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: another message: %v", name, err)
		}
		res, err := pawl.Run(t.Context(), lasting(db, journal, agent), again...)
		if err != nil || res.Text() != "Done." || paid.Load() != 1 || len(messages(t, db)) != 4 {
			t.Errorf("%s: got %v, %v, %d payments, %d messages", name, res, err, paid.Load(), len(messages(t, db)))
		}
	}
}

// runnerFunc is a Runner that is no Agent.
type runnerFunc func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error]

func (f runnerFunc) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return f(ctx, msgs...)
}

// Any Runner can have a conversation.
func TestConversationOfAnyRunner(t *testing.T) {
	db := opened(t)
	chat := &thread.Runner{Runner: runnerFunc(counts().Stream), DB: db, Scope: store.Scope{User: "ann"}, ID: "x"}
	for n := 1; n <= 3; n++ {
		res, err := pawl.Run(t.Context(), chat, llm.User("hello"))
		if err != nil || res.Text() != fmt.Sprint("message ", n) {
			t.Errorf("got %v, %v", res, err)
		}
	}
}

// Each message has the limits of a run: a long conversation does not use them up.
func TestLimitsAreOfEachMessage(t *testing.T) {
	var did atomic.Int32
	look := pawl.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { did.Add(1); return "seen", nil })
	turn := script.Func(func(req *llm.Request) script.Turn {
		if len(script.Results(req)) > 0 {
			return script.Say("Done.")
		}
		return script.Call("look", nil)
	})
	agent := &pawl.Agent{
		Model:  script.New(script.Loop(turn)),
		Tools:  []pawl.Toolset{look},
		Limits: pawl.Limits{Rounds: 2},
	}
	chat := &thread.Runner{Runner: agent, DB: opened(t), ID: "x"}
	for n := range int32(4) {
		res, err := pawl.Run(t.Context(), chat, llm.User("look"))
		if err != nil || res.Spent.Rounds != 1 || did.Load() != n+1 {
			t.Errorf("message %d: got %v, %v, %d calls", n, res, err, did.Load())
		}
	}
}
