package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// paying is an agent that pays once, after an approval.
func paying(paid *[]string, within time.Duration) *pawl.Agent {
	pay := pawl.Func("pay", "pays", func(_ context.Context, in struct {
		Amount int `json:"amount"`
	}) (string, error) {
		*paid = append(*paid, asJSON(in.Amount))
		return "paid", nil
	})
	pay.Effect = pawl.EffectWrite
	return &pawl.Agent{Model: script.New(script.Call("pay", `{"amount":5}`), script.Say("done")), Tools: []pawl.Toolset{pay},
		Middleware: []pawl.Middleware{pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval,
			error) {
			return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: within}, nil
		})}}
}

func pending(t *testing.T, eng *durable.Engine, a *pawl.Agent) pawl.PendingCall {
	t.Helper()
	res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context(), llm.User("pay")))
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	return res.Pending[0]
}

var errMisfit = errors.New("misfit")

// Answers that are repeated, late, contradictory, or for another question: at most one counts, and
// the call happens at most once.
func TestDecisions(t *testing.T) {
	edited := json.RawMessage(`{"amount":3}`)
	for _, row := range []struct {
		name    string
		answers func(w pawl.PendingCall) []llm.Decision
		later   time.Duration // from the question to the answers
		unused  time.Duration // from the answers to the resume
		errs    []error       // one for each answer
		paid    string
		stop    pawl.StopReason
	}{
		{"one", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Approve("a")} }, 0, 0, []error{nil},
			"5", pawl.StopAnswer},
		{"twice the same", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Approve("a"), w.Approve("b")} },
			0, 0, []error{nil, nil}, "5", pawl.StopAnswer},
		{"yes, then no", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Approve("a"), w.Deny("b", "")} },
			0, 0, []error{nil, store.ErrConflict}, "5", pawl.StopAnswer},
		{"no, then yes", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Deny("b", ""), w.Approve("a")} },
			0, 0, []error{nil, store.ErrConflict}, "", pawl.StopAnswer},
		{"other arguments", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Edit("a", edited)} },
			0, 0, []error{nil}, "3", pawl.StopAnswer},
		{"other arguments, then a yes", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Edit("a", edited), w.Approve("b")} },
			0, 0, []error{nil, store.ErrConflict}, "3", pawl.StopAnswer},
		{"to arguments that were edited since", func(w pawl.PendingCall) []llm.Decision {
			d := w.Approve("a")
			d.Digest = strings.Repeat("0", len(d.Digest))
			return []llm.Decision{d}
		}, 0, 0, []error{store.ErrConflict}, "", pawl.StopPending},
		{"to another call", func(w pawl.PendingCall) []llm.Decision { d := w.Approve("a"); d.Key += "0"; return []llm.Decision{d} },
			0, 0, []error{store.ErrConflict}, "", pawl.StopPending},
		{"a late yes", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Approve("a")} },
			2 * time.Hour, 0, []error{nil}, "5", pawl.StopAnswer},
		{"a yes that is used in time", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Approve("a")} },
			0, 59 * time.Minute, []error{nil}, "5", pawl.StopAnswer},
		{"a yes that is not used in time", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Approve("a")} },
			0, 2 * time.Hour, []error{nil}, "", pawl.StopPending},
		{"a misfit", func(w pawl.PendingCall) []llm.Decision {
			return []llm.Decision{w.Edit("a", json.RawMessage(`{"amount":"seven"}`))}
		}, 0, 0, []error{errMisfit}, "", pawl.StopPending},
		{"a misfit, then a yes", func(w pawl.PendingCall) []llm.Decision {
			return []llm.Decision{w.Edit("a", json.RawMessage(`{"amount":"seven"}`)), w.Edit("a", edited)}
		}, 0, 0, []error{errMisfit, nil}, "3", pawl.StopAnswer},
		{"a late no", func(w pawl.PendingCall) []llm.Decision { return []llm.Decision{w.Deny("a", "")} },
			2 * time.Hour, 0, []error{nil}, "", pawl.StopAnswer},
	} {
		t.Run(row.name, func(t *testing.T) {
			eng := &durable.Engine{Journal: new(store.MemoryJournal)}
			var paid []string
			a := paying(&paid, time.Hour)
			w := pending(t, eng, a)
			eng.SetClock(func() time.Time { return time.Now().Add(row.later) })
			for i, d := range row.answers(w) {
				err := eng.Decide(t.Context(), "r", d)
				if bad := (*journal.AnswerError)(nil); errors.As(err, &bad) && bad.Code == journal.AnswerMisfit {
					err = errMisfit
				}
				if !errors.Is(err, row.errs[i]) {
					t.Errorf("answer %d: %v, want %v", i, err, row.errs[i])
				}
			}
			eng.SetClock(func() time.Time { return time.Now().Add(row.later + row.unused) })
			for range 2 { // the second finds the run ended, or unchanged
				res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context()))
				if err != nil || res.Stop != row.stop {
					t.Fatalf("%+v, %v; want %s", res, err, row.stop)
				}
			}
			if got := strings.Join(paid, " "); got != row.paid {
				t.Errorf("paid %q, want %q", got, row.paid)
			}
			if row.stop == pawl.StopAnswer {
				if err := eng.Decide(t.Context(), "r", w.Approve("late")); !errors.Is(err, store.ErrConflict) {
					t.Errorf("an answer to what is done: %v", err)
				}
			}
			if _, err := eng.Verify(t.Context(), "r", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// Of many concurrent answers, one counts.
func TestDecisionsAtOnce(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var paid []string
	w := pending(t, eng, paying(&paid, -1))
	errs := make(chan error)
	for i := range 8 {
		go func() {
			if i%2 == 0 {
				errs <- eng.Decide(context.Background(), "r", w.Approve("a"))
			} else {
				errs <- eng.Decide(context.Background(), "r", w.Deny("b", ""))
			}
		}()
	}
	good := 0
	for range 8 {
		if err := <-errs; err == nil {
			good++
		} else if !errors.Is(err, store.ErrConflict) {
			t.Error(err)
		}
	}
	if good != 4 {
		t.Errorf("%d of 8 were taken, want the 4 that say the same as the first", good)
	}
}

// A changed tool is rejected by name, unless changes of it are accepted. An absent tool and another
// address are rejected too.
func TestChangedProgram(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var paid []string
	w := pending(t, eng, paying(&paid, -1))
	if err := eng.Decide(t.Context(), "r", w.Approve("a")); err != nil {
		t.Fatal(err)
	}
	changed := func() *pawl.Agent {
		a := paying(&paid, -1)
		tool := a.Tools[0].(*pawl.Tool).Clone()
		tool.Input = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"},"why":{"type":"string"}}}`)
		a.Tools[0] = tool
		return a
	}
	gone := paying(&paid, -1)
	gone.Tools = nil
	moved := paying(&paid, -1)
	moved.Tools[0].(*pawl.Tool).Address = "https://elsewhere.example"
	for what, a := range map[string]*pawl.Agent{"were: pay": changed(), "pay (it is gone)": gone,
		`pay (address was "", is "https://elsewhere.example")`: moved} {
		if _, err := runtest.Ended(eng.Runner("r", a).Run(t.Context())); !errors.Is(err, durable.ErrChanged) ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(paid) > 0 {
		t.Errorf("paid %v", paid)
	}
	accepting := &durable.Engine{Journal: eng.Journal, AcceptChangedTools: []string{"pay"}}
	res, err := runtest.Ended(accepting.Runner("r", changed()).Run(t.Context()))
	if err != nil || res.Stop != pawl.StopPending || len(paid) > 0 {
		t.Fatalf("%+v, %v, paid %v; a yes to the old tool is none to the new one", res, err, paid)
	}
	if err := eng.Decide(t.Context(), "r", res.Pending[0].Approve("a")); err != nil {
		t.Fatal(err)
	}
	res, err = eng.Runner("r", changed()).Run(t.Context()) // the journal recorded it
	if err != nil || res.Text() != "done" || len(paid) != 1 {
		t.Errorf("%+v, %v, paid %v", res, err, paid)
	}
	if _, err := runtest.Ended(eng.Runner("r", paying(&paid, -1)).Run(t.Context())); !errors.Is(err, durable.ErrChanged) {
		t.Errorf("the old tool after the new one: %v", err)
	}
	records, err := eng.Journal.JournalRecords(t.Context(), store.Scope{}, "r", 0)
	if err != nil || !slices.ContainsFunc(records, func(r store.Record) bool { return r.Kind == "accept" }) {
		t.Errorf("it is not in the journal: %v", err)
	}
}

// The same line resumes the run. Other messages with the same ID are rejected.
func TestBegunWithOtherMessages(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var paid []string
	a := paying(&paid, -1)
	pending(t, eng, a)
	pending(t, eng, a)
	if _, err := eng.Runner("r", a).Run(t.Context(), llm.User("pay twice")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("other messages: %v", err)
	}
	if _, err := eng.Runner("none", a).Run(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("no messages: %v", err)
	}
	ctx := store.WithScope(t.Context(), store.Scope{Tenant: "other"})
	if _, err := eng.Runner("r", a).Run(ctx); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another scope: %v", err)
	}
}

// A run is cancelled from outside, while it is pending and while it works.
func TestCancel(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var paid []string
	a := paying(&paid, -1)
	pending(t, eng, a)
	for range 2 {
		if err := eng.Cancel(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context()))
		if err != nil || res.Stop != pawl.StopCancelled || len(res.Calls()) != 0 || len(paid) != 0 {
			t.Errorf("%+v, %v", res, err)
		}
	}
	synctest.Test(t, cancelAtWork)
}

// The process that works on the run reads the cancellation when it renews its lease.
func cancelAtWork(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	began := make(chan struct{})
	works := pawl.Func("work", "works", func(ctx context.Context, _ none) (string, error) {
		close(began)
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	b := &pawl.Agent{Model: script.New(script.Call("work", `{}`), script.Say("done")), Tools: []pawl.Toolset{works}}
	go func() {
		<-began
		if err := eng.Cancel(context.Background(), "b"); err != nil {
			t.Error(err)
		}
	}()
	res, err := runtest.Ended(eng.Runner("b", b).Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopCancelled || !strings.Contains(asJSON(res.Messages), "may have happened") {
		t.Errorf("%+v, %v", res, err)
	}
}

// A message sent to a run is received once, by the same request in each replay.
func TestSteer(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	var paid []string
	a := paying(&paid, -1)
	w := pending(t, eng, a)
	if err := eng.Steer(t.Context(), "r", llm.User("in euros")); err != nil {
		t.Fatal(err)
	}
	if err := eng.Decide(t.Context(), "r", w.Approve("a")); err != nil {
		t.Fatal(err)
	}
	var mine pawl.Steering
	if err := mine.Steer(t.Context(), llm.User("today")); err != nil {
		t.Fatal(err)
	}
	res, err := eng.Runner("r", a).Run(pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &mine}))
	if err != nil || len(res.Messages) != 6 || res.Messages[3].Text() != "in euros" || res.Messages[4].Text() != "today" {
		t.Fatalf("%+v, %v", res, err)
	}
	again, err := eng.Runner("r", a).Run(t.Context())
	if err != nil || asJSON(again.Messages) != asJSON(res.Messages) || asJSON(again.Spent) != asJSON(res.Spent) {
		t.Errorf("played back: %+v, %v", again, err)
	}
	if err := eng.Steer(t.Context(), "r", llm.User("too late")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("to a run that is over: %v", err)
	}
	if err := eng.Steer(t.Context(), "r", llm.Assistant(llm.Text{Text: "x"})); err == nil {
		t.Error("a message of the model was taken")
	}
}

// oldQuestions is a journal whose questions have no schema, as earlier versions wrote them.
type oldQuestions struct {
	store.Journal
	off bool
}

func (j *oldQuestions) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	rs ...store.Record) (int64, error) {
	for i, r := range rs {
		if r.Kind == "question" && !j.off {
			var body map[string]json.RawMessage
			if err := json.Unmarshal(r.Body, &body); err != nil {
				return 0, err
			}
			delete(body, "schema")
			rs[i].Body, _ = json.Marshal(body)
		}
	}
	return j.Journal.AppendJournal(ctx, l, c, rs...)
}

// A run with an approval that an earlier version took, and whose arguments do not fit, asks again
// when it is resumed.
func TestAMisfitInTheJournalIsAskedAgain(t *testing.T) {
	j := &oldQuestions{Journal: new(store.MemoryJournal)}
	eng := &durable.Engine{Journal: j}
	var paid []string
	a := paying(&paid, 0)
	w := pending(t, eng, a)
	if err := eng.Decide(t.Context(), "r", w.Edit("a", json.RawMessage(`{"amount":"seven"}`))); err != nil {
		t.Fatal("the control: without a schema the answer is taken, as by earlier versions:", err)
	}
	j.off = true
	for range 2 { // the second finds the new question
		res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context()))
		if err != nil || res.Stop != pawl.StopPending || len(paid) > 0 {
			t.Fatalf("%+v, %v, paid %v; want a question", res, err, paid)
		}
	}
	open, err := eng.Pending(t.Context(), "r")
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v, %v; want the question again", open, err)
	}
	if err := eng.Decide(t.Context(), "r", open[0].Edit("a", json.RawMessage(`{"amount":3}`))); err != nil {
		t.Fatal(err)
	}
	res, err := eng.Runner("r", a).Run(t.Context())
	if err != nil || res.Text() != "done" || strings.Join(paid, " ") != "3" {
		t.Errorf("%+v, %v, paid %v", res, err, paid)
	}
	if _, err := eng.Verify(t.Context(), "r", nil); err != nil {
		t.Error(err)
	}
}

// An approval that was not used in time does not count: the question is open again, and the next
// answer is taken in the same request.
func TestAnExpiredYesIsGivenAgain(t *testing.T) {
	for name, again := range map[string]bool{"after a resume": true, "at once": false} {
		t.Run(name, func(t *testing.T) {
			eng := &durable.Engine{Journal: new(store.MemoryJournal)}
			var paid []string
			a := paying(&paid, time.Hour)
			w := pending(t, eng, a)
			for n := range 3 { // twice too late
				eng.SetClock(func() time.Time { return time.Now().Add(time.Duration(3*n) * time.Hour) })
				open, err := eng.Pending(t.Context(), "r")
				if err != nil || len(open) != 1 || open[0].Digest != w.Digest {
					t.Fatalf("%d: %+v, %v; want the question", n, open, err)
				}
				if err := eng.Decide(t.Context(), "r", open[0].Approve("a")); err != nil {
					t.Fatal(err)
				}
				if open, err = eng.Pending(t.Context(), "r"); err != nil || len(open) != 0 {
					t.Fatalf("%d: %+v, %v; want no question", n, open, err)
				}
				if again && n < 2 {
					eng.SetClock(func() time.Time { return time.Now().Add(time.Duration(3*n+2) * time.Hour) })
					res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context()))
					if err != nil || res.Stop != pawl.StopPending {
						t.Fatalf("%+v, %v", res, err)
					}
				}
			}
			if res, err := eng.Runner("r", a).Run(t.Context()); err != nil || res.Text() != "done" || len(paid) != 1 {
				t.Errorf("%+v, %v, paid %v", res, err, paid)
			}
			if _, err := eng.Verify(t.Context(), "r", nil); err != nil {
				t.Error(err)
			}
		})
	}
}
