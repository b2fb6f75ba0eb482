package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// outage is the error of a provider that is away.
func outage(code llm.Code, retryable bool) script.Turn {
	return script.Fail(&llm.ProviderError{Provider: "openai", Status: 503, Code: code, Retryable: retryable})
}

// summaryOf returns the head of the run r, and its summary.
func summaryOf(t *testing.T, j store.Journal, id string) (store.JournalRun, durable.Summary) {
	t.Helper()
	head, err := j.JournalRun(t.Context(), store.Scope{}, id)
	if err != nil {
		t.Fatal(err)
	}
	var sum durable.Summary
	if err := json.Unmarshal(head.Summary, &sum); err != nil {
		t.Fatal(err)
	}
	return head, sum
}

// A run whose provider is away stays open, is due again later and later, and answers when the
// provider is back. Its calls are executed once.
func TestOutageOfAProvider(t *testing.T) {
	j := new(store.MemoryJournal)
	now := time.Date(2026, 3, 1, 9, 14, 0, 0, time.UTC)
	eng := &durable.Engine{Journal: j}
	eng.SetClock(func() time.Time { return now })
	paid := 0
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid++; return "paid", nil })
	pay.Effect = pawl.EffectWrite
	model := &runtest.InTurn{Turns: []script.Turn{script.Call("pay", struct{}{}), outage(llm.CodeServer, true),
		outage(llm.CodeRateLimit, true), outage(llm.CodeServer, true), script.Say("Paid.")}}
	agent := &pawl.Agent{Name: "clerk", Model: model, Tools: []pawl.Toolset{pay}}

	began := now
	for try := 1; try <= 3; try++ {
		_, err := eng.Runner("r", agent).Run(t.Context(), llm.User("pay"))
		var failed *llm.ProviderError
		if !errors.As(err, &failed) {
			t.Fatalf("attempt %d: %v", try, err)
		}
		head, sum := summaryOf(t, j, "r")
		w := sum.Waiting
		if head.State != store.JournalOpen || w == nil || w.Tries != try || !w.Since.Equal(began) || w.Provider != "openai" {
			t.Fatalf("attempt %d: %s, %+v", try, head.State, w)
		}
		least := 15 * time.Second << (try - 1)
		if pause := w.Next.Sub(now); !head.Next.Equal(w.Next) || pause < least || pause > least*6/5 {
			t.Errorf("attempt %d: the next one follows after %v, want %v and a fifth at most", try, pause, least)
		}
		if !strings.HasPrefix(w.String(), "waiting for openai since 09:14, next try 09:1") {
			t.Errorf("it is shown as %q", w)
		}
		if stuck, err := eng.CheckLiveness(t.Context()); err != nil || len(stuck) > 0 {
			t.Errorf("attempt %d: %+v, %v", try, stuck, err)
		}

		// It is due when its time has come, and not before.
		if due, err := eng.Abandoned(t.Context(), 0); err != nil || len(due) > 0 {
			t.Errorf("attempt %d: due at once: %+v, %v", try, due, err)
		}
		now = w.Next
	}

	n, err := eng.Recover(t.Context(), 0, func(store.JournalRun) (pawl.Runner, error) { return agent, nil })
	head, sum := summaryOf(t, j, "r")
	if err != nil || n != 1 || head.State != store.JournalOver || sum.Waiting != nil || sum.Stop != pawl.StopAnswer {
		t.Errorf("the provider is back: %d runs, %v: %s, %+v", n, err, head.State, sum)
	}
	if paid != 1 {
		t.Errorf("the call was executed %d times", paid)
	}
	if v, err := eng.Verify(t.Context(), "r", nil); err != nil || !v.Sealed {
		t.Errorf("%+v, %v", v, err)
	}
}

// Which errors keep a run open, and for how long.
func TestOutageEnds(t *testing.T) {
	asks := &llm.ProviderError{Provider: "openai", Code: llm.CodeRateLimit, Retryable: true, RetryAfter: time.Hour}
	for _, row := range []struct {
		name   string
		outage time.Duration // Engine.Outage
		turn   script.Turn
		state  string
	}{
		{"a temporary error", 0, outage(llm.CodeServer, true), store.JournalOpen},
		{"a provider that asks for an hour", 0, script.Fail(asks), store.JournalOpen},
		{"an hour, and less time", time.Minute, script.Fail(asks), store.JournalFailed},
		{"a refusal", 0, outage(llm.CodeInvalidRequest, false), store.JournalFailed},
		{"an error of another kind", 0, script.Fail(errors.New("no")), store.JournalFailed},
		{"control: turned off", -1, outage(llm.CodeServer, true), store.JournalFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := new(store.MemoryJournal)
			eng := &durable.Engine{Journal: j, Outage: row.outage}
			agent := &pawl.Agent{Name: "clerk", Model: &runtest.InTurn{Turns: []script.Turn{row.turn}}}
			if _, err := eng.Runner("r", agent).Run(t.Context(), llm.User("hi")); err == nil {
				t.Error("no error")
			}
			head, sum := summaryOf(t, j, "r")
			if open := row.state == store.JournalOpen; head.State != row.state || (sum.Waiting != nil) != open {
				t.Errorf("the run is %s, %+v; want %s", head.State, sum.Waiting, row.state)
			}
		})
	}
}

// A run whose processes die is not taken by the sixth one. A record, or a person, gives it another
// chance. The control has no limit.
func TestPoisonIsParked(t *testing.T) {
	for _, row := range []struct {
		name    string
		crashes int64 // Engine.Crashes
		deaths  int
		parked  bool
	}{
		{"four deaths", 0, 4, false},
		{"five deaths", 0, 5, true},
		{"a limit of two", 2, 2, true},
		{"control: no limit", -1, 9, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := new(store.MemoryJournal)
			now := time.Now()
			eng := &durable.Engine{Journal: j, Crashes: row.crashes}
			eng.SetClock(func() time.Time { return now })
			agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("Done."))}
			if err := eng.Runner("r", agent).Enqueue(t.Context(), llm.User("hi")); err != nil {
				t.Fatal(err)
			}

			// A process that dies has a lease, and neither stores a record nor releases it.
			for n := range row.deaths {
				_, err := j.ClaimJournal(t.Context(), store.Scope{}, "r", fmt.Sprint("process", n), now, now.Add(time.Second))
				if err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Minute)
			}

			_, err := eng.Runner("r", agent).Run(t.Context())
			if errors.Is(err, durable.ErrCrashed) != row.parked || err != nil != row.parked {
				t.Fatalf("the next process: %v", err)
			}
			head, sum := summaryOf(t, j, "r")
			if !row.parked {
				if head.State != store.JournalOver {
					t.Errorf("the run is %s", head.State)
				}
				return
			}
			if head.State != store.JournalFailed || sum.Code != "crashed" || !strings.Contains(sum.Cause, "its record begin") {
				t.Errorf("the run is %s, %+v", head.State, sum)
			}
			if due, err := eng.Abandoned(t.Context(), 0); err != nil || len(due) > 0 {
				t.Errorf("it is due: %+v, %v", due, err)
			}
			if _, err := eng.Runner("r", agent).Run(t.Context()); err != nil {
				t.Errorf("a person resumes it: %v", err)
			}
		})
	}
}
