package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// twoPayments is an agent with two calls that need an approval, and one call that runs in between.
func twoPayments(during func()) *pawl.Agent {
	pay := pawl.Func("pay", "pays", func(_ context.Context, in struct {
		Amount int `json:"amount"`
	}) (string, error) {
		if in.Amount == 1 {
			during()
		}
		return "paid", nil
	})
	return &pawl.Agent{Model: script.New(script.Together(script.Call("pay", `{"amount":1}`), script.Call("pay", `{"amount":2}`)), script.Say("done")),
		Tools: []pawl.Toolset{pay}, Middleware: []pawl.Middleware{pawl.Approve(func(context.Context, llm.ToolCall,
			*pawl.Tool) (pawl.Approval, error) {
			return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: -1}, nil
		})}}
}

// dying is a journal whose process dies after the commit that ends an attempt.
type dying struct {
	store.Journal
	armed, dead atomic.Bool
	before      func() // called before that commit
	wrong       bool   // the control: a run with questions waits, also if all are answered
}

var errDied = errors.New("the process died here")

func (j *dying) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	if j.dead.Load() {
		return 0, errDied
	}
	ends := c != nil && c.Release && j.armed.Load()
	if ends {
		j.before()
	}
	if ends && j.wrong {
		c = &store.JournalChange{State: store.JournalWaiting, Summary: c.Summary, Release: true}
	}
	n, err := j.Journal.AppendJournal(ctx, l, c, records...)
	j.dead.Store(ends)
	return n, err
}

func (j *dying) AppendOutside(ctx context.Context, s store.Scope, id, state string, records ...store.Record) error {
	if j.dead.Load() {
		return errDied
	}
	return j.Journal.AppendOutside(ctx, s, id, state, records...)
}

// The second of two answers arrives while the process works with the first one, or while it stores
// its stop, and the process dies right after that. Another process resumes the run.
func TestAnswerDuringAnAttempt(t *testing.T) {
	for _, row := range []struct{ late, control bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		outside := &durable.Engine{Journal: new(store.MemoryJournal)}
		var second llm.Decision
		answer := func(now bool) func() {
			return func() {
				if !now {
					return
				}
				if err := outside.Decide(context.Background(), "r", second); err != nil {
					t.Error(err)
				}
			}
		}
		j := &dying{Journal: outside.Journal, before: answer(row.late), wrong: row.control}
		agent := twoPayments(answer(!row.late))
		run := (&durable.Engine{Journal: j}).Runner("r", agent)
		res, err := runtest.Ended(run.Run(t.Context(), llm.User("pay")))
		if err != nil || len(res.Pending) != 2 {
			t.Fatalf("%+v, %v", res, err)
		}
		second = res.Pending[1].Approve("b")
		if err := outside.Decide(t.Context(), "r", res.Pending[0].Approve("a")); err != nil {
			t.Fatal(err)
		}
		j.armed.Store(true)
		if res, err = runtest.Ended(run.Run(t.Context())); err != nil || res.Stop != pawl.StopPending {
			t.Fatalf("%+v, %v", res, err)
		}
		head, err := outside.Journal.JournalRun(t.Context(), store.Scope{}, "r")
		if err != nil || (head.State == store.JournalWaiting) != row.control {
			t.Errorf("%+v: state %s, %v", row, head.State, err)
		}
		stuck, err := outside.CheckLiveness(t.Context())
		if err != nil || (len(stuck) == 1 && strings.Contains(stuck[0].Why, "no question is open")) != row.control {
			t.Errorf("%+v: %+v, %v", row, stuck, err)
		}
		n, err := outside.Recover(t.Context(), 0, func(store.JournalRun) (pawl.Runner, error) { return agent, nil })
		if err != nil || n != 1 { // a run of an earlier version, too
			t.Errorf("%+v: %d runs resumed, %v", row, n, err)
		}
		if head, err = outside.Journal.JournalRun(t.Context(), store.Scope{}, "r"); err != nil ||
			head.State != store.JournalOver {
			t.Errorf("%+v: state %s, %v", row, head.State, err)
		}
	}
}

// A waiting run is resumed without an answer, because its tool can find out what happened. Its
// process dies after that step, and another one resumes the run.
func TestStepWithoutAnswer(t *testing.T) {
	outside := &durable.Engine{Journal: new(store.MemoryJournal)}
	asks := true
	agent := twoPayments(func() {})
	agent.Middleware = []pawl.Middleware{pawl.Approve(func(context.Context, llm.ToolCall,
		*pawl.Tool) (pawl.Approval, error) {
		if asks {
			return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: -1}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})}
	j := &failing{Journal: outside.Journal, err: errDied}
	j.left.Store(1000)
	run := (&durable.Engine{Journal: j}).Runner("r", agent)
	if res, err := runtest.Ended(run.Run(t.Context(), llm.User("pay"))); err != nil || len(res.Pending) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	asks = false
	j.left.Store(2) // the intents and the outcomes
	if _, err := run.Run(t.Context()); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	head, err := outside.Journal.JournalRun(t.Context(), store.Scope{}, "r")
	if err != nil || head.State != store.JournalOpen {
		t.Errorf("state %s, %v; want open, because no question waits", head.State, err)
	}
}

// A run whose process has died is free when its lease ends. WaitLease waits for that, and for a
// process that releases the run earlier.
func TestWaitLease(t *testing.T) {
	for _, row := range []struct {
		name          string
		wait, release time.Duration // 0 for release means that the process has died
		lost          bool
		waited        time.Duration
	}{
		{"no wait", 0, 0, true, 0}, {"too short", 20 * time.Second, 0, true, 20 * time.Second},
		{"to the end of the lease", time.Minute, 0, false, 30 * time.Second},
		{"released", time.Minute, 5 * time.Second, false, 5 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var paid []string
				eng := &durable.Engine{Journal: new(store.MemoryJournal), WaitLease: row.wait}
				agent := paying(&paid, -1)
				pending(t, eng, agent)
				now := time.Now()
				l, err := eng.Journal.ClaimJournal(t.Context(), store.Scope{}, "r", "another", now, now.Add(30*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				if row.release > 0 {
					time.AfterFunc(row.release, func() {
						_, _ = eng.Journal.RenewJournal(context.Background(), l, time.Time{})
					})
				}
				res, err := runtest.Ended(eng.Runner("r", agent).Run(t.Context()))
				if errors.Is(err, durable.ErrLost) != row.lost || !row.lost && res.Stop != pawl.StopPending {
					t.Errorf("%+v, %v", res, err)
				}
				if got := time.Since(now); got < row.waited || got > row.waited+time.Second {
					t.Errorf("waited %v, want %v", got, row.waited)
				}
			})
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var paid []string
			eng := &durable.Engine{Journal: new(store.MemoryJournal), WaitLease: time.Hour}
			agent := paying(&paid, -1)
			pending(t, eng, agent)
			now := time.Now()
			if _, err := eng.Journal.ClaimJournal(t.Context(), store.Scope{}, "r", "another", now,
				now.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if res, err := eng.Runner("r", agent).Run(ctx); res == nil || res.Stop != pawl.StopCancelled {
				t.Errorf("%+v, %v", res, err)
			}
		})
	})
}

// Each way to break R9 is found, with its reason. Runs that work, wait, failed or are over are not
// listed.
func TestCheckLiveness(t *testing.T) {
	start := time.Now()
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	agent := twoPayments(func() {})
	for _, id := range []string{"waits", "over", "stuck"} {
		ctx := store.WithScope(t.Context(), store.Scope{Tenant: "acme"})
		res, err := runtest.Ended(eng.Runner(id, agent).Run(ctx, llm.User("pay")))
		if err != nil || len(res.Pending) != 2 {
			t.Fatalf("%+v, %v", res, err)
		}
		yes := []llm.Decision{res.Pending[0].Approve("a"), res.Pending[1].Approve("a")}
		switch id {
		case "stuck": // the answers are stored, and the state is what it was
			for i, d := range yes {
				body, err := json.Marshal(d)
				if err != nil {
					t.Fatal(err)
				}
				key := []string{"run/1/0/question/1/decision", "run/1/1/question/1/decision"}[i]
				if err := eng.Journal.AppendOutside(ctx, store.Scope{Tenant: "acme"}, id, "",
					store.Record{Key: key, Kind: "decision", At: start, Body: body}); err != nil {
					t.Fatal(err)
				}
			}
		case "over":
			_, err := eng.Runner(id, agent).Run(ctx, llm.DecisionMessage(yes[0]), llm.DecisionMessage(yes[1]))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for id, head := range map[string]store.JournalRun{
		"works":       {State: store.JournalOpen},
		"interrupted": {State: store.JournalOpen, Until: start.Add(-time.Minute)},
		"failed":      {State: store.JournalFailed, Summary: json.RawMessage(`{"cause":"overloaded"}`)},
		"why":         {State: store.JournalFailed, Summary: json.RawMessage(`{}`)},
		"damaged":     {State: store.JournalWaiting},
	} {
		until := start.Add(2 * time.Hour)
		if !head.Until.IsZero() {
			until = head.Until
		}
		l, err := eng.Journal.BeginJournal(t.Context(), store.Scope{}, store.JournalRun{ID: id, State: head.State},
			"me", until)
		if err != nil {
			t.Fatal(err)
		}
		if head.State != store.JournalOpen {
			if _, err := eng.Journal.AppendJournal(t.Context(), l,
				&store.JournalChange{State: head.State, Summary: head.Summary, Release: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := eng.Runner("queued", agent).Enqueue(t.Context(), llm.User("pay")); err != nil {
		t.Fatal(err)
	}
	check := func(later time.Duration) string {
		eng.SetClock(func() time.Time { return start.Add(later) })
		list, err := eng.CheckLiveness(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range list {
			why, _, _ := strings.Cut(s.Why, ":")
			out = append(out, s.Scope.Tenant+"/"+s.Run+" "+s.State+": "+why)
			if s.Since.IsZero() {
				t.Errorf("%+v has no time", s)
			}
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	}
	want := `/damaged waiting: run damaged
/why failed: it failed without a reason
acme/stuck waiting: it waits for an answer, and no question is open`
	if got := check(10 * time.Second); got != want {
		t.Errorf("at once:\n%s", got)
	}
	want = strings.Replace(want, "/why", "/interrupted open: it was interrupted, and no process resumes it\n/why", 1)
	if got := check(time.Hour); got != want {
		t.Errorf("later:\n%s", got)
	}
}
