package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/team"
)

// planned is an agent with a plan in its system prompt. Its calls change a value of the run, and
// each ends its process.
func planned(stop *func()) (*pawl.Agent, *script.Model) {
	count := pawl.Func("count", "counts", func(ctx context.Context, _ struct {
		N int `json:"n"`
	}) (string, error) {
		v := pawl.InvocationFrom(ctx)
		n := 0
		if _, err := v.Get("n", &n); err != nil {
			return "", err
		}
		(*stop)()
		return asJSON(n + 1), v.Set("n", n+1)
	})
	count.Effect, count.Timeout = pawl.EffectRead, -1
	m := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		n := 0
		for _, msg := range req.Messages {
			n += len(msg.Calls())
		}
		if n < 3 {
			return script.Call("count", map[string]int{"n": n})
		}
		return script.Say("counted to " + script.Results(req)[0].Text())
	})))
	return &pawl.Agent{Model: m, Tools: []pawl.Toolset{count}, Limits: pawl.Limits{Rounds: 6}}, m
}

// A run that starts from a Result has its messages, values and counters in every process, and a
// resume does not need the Result.
func TestFrom(t *testing.T) {
	stop := func() {}
	a, _ := planned(&stop)
	from := &pawl.Result{Messages: []llm.Message{llm.User("Hello."), llm.Assistant(llm.Text{Text: "Hello!"})},
		Values: pawl.Values{"n": json.RawMessage(`4`), team.PlanKey: json.RawMessage(`{"phases":[{"goals":"count"}]}`)},
		Spent:  pawl.Spent{Rounds: 2, Requests: 3}}
	want, err := a.Resume(t.Context(), from, llm.User("Count."))
	if err != nil || want.Text() != "counted to 7" || want.Spent.Requests != 7 {
		t.Fatalf("%+v, %v", want, err)
	}
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	a, m := planned(&stop)
	var got *pawl.Result
	for i := range 9 {
		run := eng.Runner("r", a)
		if i == 0 {
			run.From = from
		}
		var msgs []llm.Message
		if i == 0 {
			msgs = append(msgs, llm.User("Count."))
		}
		ctx, cancel := context.WithCancel(t.Context())
		stop = cancel
		got, err = runtest.Ended(run.Run(ctx, msgs...))
		cancel()
		if err == nil {
			break
		}
	}
	if err != nil || asJSON(got.Messages) != asJSON(want.Messages) || asJSON(got.Spent) != asJSON(want.Spent) ||
		asJSON(got.Values["n"]) != "7" {
		t.Errorf("got %s\nwant %s; %v", asJSON(got), asJSON(want), err)
	}
	if sys := m.Requests()[0].Messages[0]; sys.Role != llm.RoleSystem || !strings.Contains(sys.Text(), "count") {
		t.Errorf("the plan is not in the system text: %+v", sys)
	}
	x, err := eng.Export(t.Context(), "r")
	if err != nil || len(x.Messages) != 3 || asJSON(x.Values["n"]) != "4" || x.Replies[0].Key != "run/1/model" {
		t.Errorf("exported: %s, %v", asJSON(x), err)
	}
	if p, err := eng.Replay(t.Context(), "r", a); err != nil || p.Requests != 4 || p.Result.Text() != "counted to 7" {
		t.Errorf("played back: %+v, %v", p, err)
	}
	same := eng.Runner("r", a)
	same.From = from
	if res, err := same.Run(t.Context(), llm.User("Count.")); err != nil || res.Text() != "counted to 7" {
		t.Errorf("the same line once more: %+v, %v", res, err)
	}
	same.From = &pawl.Result{Messages: from.Messages}
	if _, err := same.Run(t.Context()); !errors.Is(err, store.ErrConflict) {
		t.Errorf("from another Result: %v", err)
	}
	if _, err := eng.Runner("r", a).Run(t.Context(), llm.User("Count.")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("from no Result: %v", err)
	}
	if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "f", Steps: 1}); err != nil {
		t.Fatal(err)
	}
	stop = func() {}
	before := len(m.Requests())
	if res, err := eng.Runner("f", a).Run(t.Context()); err != nil || res.Text() != "counted to 7" || len(m.Requests())-before != 3 {
		t.Errorf("a fork with one step of four: %+v, %v, %d requests", res, err, len(m.Requests())-before)
	}
	if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "g", Steps: 5}); err == nil {
		t.Error("a fork behind the end")
	}
	if _, err := eng.Runner("w", observe.RunnerFunc(a.Stream)).Run(t.Context(), llm.User("x")); err != nil {
		t.Errorf("what is no Agent: %v", err)
	}
	other := eng.Runner("v", observe.RunnerFunc(a.Stream))
	other.From = from
	if _, err := other.Run(t.Context(), llm.User("x")); err == nil {
		t.Error("what is no Agent goes on from a Result")
	}
}

// A call that is pending in a Result is pending in the run that starts from it. It is answered at
// the start of the run or later. A call with an unknown outcome remains unknown.
func TestFromWhatWaits(t *testing.T) {
	var paid []string
	a := paying(&paid, -1)
	from, err := runtest.Ended(a.Run(t.Context(), llm.User("pay")))
	if err != nil || len(from.Pending) != 1 {
		t.Fatalf("%+v, %v", from, err)
	}
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	begin := func(id string, from *pawl.Result, msgs ...llm.Message) *pawl.Result {
		run := eng.Runner(id, paying(&paid, -1))
		run.From = from
		run.Meta = json.RawMessage(`{}`)
		res, err := runtest.Ended(run.Run(t.Context(), msgs...))
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		return res
	}
	says := func(d llm.Decision) llm.Message {
		return llm.Message{Role: llm.RoleUser, Parts: []llm.Part{d}}
	}
	if res := begin("answered", from, says(from.Pending[0].Approve("me"))); strings.Join(paid, " ") != "5" || res.Text() != "done" {
		t.Errorf("answered where it is begun: %+v, paid %v", res, paid)
	}
	paid = nil
	if res := begin("later", from); len(paid) > 0 || len(res.Pending) != 1 || res.Pending[0].Digest != from.Pending[0].Digest {
		t.Errorf("not answered: %+v, paid %v", res, paid)
	}
	if err := eng.Decide(t.Context(), "later", from.Pending[0].Approve("me")); err != nil {
		t.Fatal(err)
	}
	if res := begin("later", nil); strings.Join(paid, " ") != "5" || res.Text() != "done" {
		t.Errorf("answered later: %+v, paid %v", res, paid)
	}
	paid = nil
	lost := *from
	lost.Pending = slices.Clone(from.Pending)
	lost.Pending[0].Outcome, lost.Pending[0].Attempt = pawl.OutcomeUnknown, 1
	res := begin("lost", &lost)
	if len(paid) > 0 || len(res.Pending) != 1 || res.Pending[0].Outcome != pawl.OutcomeUnknown ||
		res.Pending[0].Attempt != 1 {
		t.Fatalf("interrupted before: %+v, paid %v", res, paid)
	}
	if fs, err := eng.Effects(t.Context(), "lost"); err != nil || len(fs) != 1 || fs[0].State != journal.EffectUnknown {
		t.Errorf("the ledger: %+v, %v", fs, err)
	}
	// It did not happen and is to run: it asks again, since an approval covers one attempt.
	for range 2 {
		if err := eng.Decide(t.Context(), "lost", res.Pending[0].Approve("me")); err != nil {
			t.Fatal(err)
		}
		if res = begin("lost", nil); len(paid) > 0 {
			break
		}
	}
	if fs, err := eng.Effects(t.Context(), "lost"); err != nil || strings.Join(paid, " ") != "5" ||
		fs[0].State != journal.EffectCompleted {
		t.Errorf("paid %v, %+v, %v", paid, fs, err)
	}
}

// A run executes the open calls of Runner.From and no others. A journal of an earlier version has
// no mark for that, and its run executes the calls that it began with.
func TestOpenCallsOfTheBeginning(t *testing.T) {
	ran := 0
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { ran++; return "paid", nil })
	a := &pawl.Agent{Name: "clerk", Model: script.New(script.Loop(script.Say("Done."))), Tools: []pawl.Toolset{pay}}
	msgs := []llm.Message{llm.User("Pay."), llm.Assistant(llm.ToolCall{ID: "c", Name: "pay", Args: json.RawMessage(`{}`)})}
	journal := new(store.MemoryJournal)
	eng := &durable.Engine{Journal: journal}
	old := asJSON(map[string]any{"state": 1, "agent": "clerk", "messages": msgs})
	lease, err := journal.BeginJournal(t.Context(), store.Scope{},
		store.JournalRun{ID: "old", Agent: "clerk", State: store.JournalOpen}, "x", time.Now().Add(time.Hour),
		store.Record{Key: "begin", Kind: "begin", At: time.Now(), Body: []byte(old)})
	if err == nil {
		_, err = journal.RenewJournal(t.Context(), lease, time.Now().Add(-time.Hour))
	}
	if err != nil {
		t.Fatal(err)
	}
	recorded, messages := eng.Runner("from", a), eng.Runner("messages", a)
	recorded.From = &pawl.Result{Messages: msgs}
	for _, test := range []struct {
		run  *durable.Runner
		msgs []llm.Message
		want int
	}{{recorded, nil, 1}, {messages, msgs, 0}, {eng.Runner("old", a), nil, 1}} {
		ran = 0
		for range 2 { // again: the stored end
			res, err := test.run.Run(t.Context(), test.msgs...)
			if err != nil || res.Text() != "Done." || ran != test.want || len(res.Calls()) > 0 {
				t.Errorf("%s: got %v, %s; %d calls ran", test.run.ID, err, asJSON(res), ran)
			}
		}
		if p, err := eng.Replay(t.Context(), test.run.ID, a); err != nil || p.Result.Text() != "Done." || ran != test.want {
			t.Errorf("%s, replayed: got %v, %+v; %d calls ran", test.run.ID, err, p, ran)
		}
	}
}
