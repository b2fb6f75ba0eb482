package answertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// Till is a tool pay whose calls need an approval, and wait in progress until Let.
type Till struct {
	Begun chan struct{} // receives a value for each call that has begun
	Open  chan struct{} // closed by Let
	Let   func()        // lets the calls end
	paid  atomic.Int32
}

// NewTill returns a Till. Its calls end when the test ends.
func NewTill(t *testing.T) *Till {
	till := &Till{Begun: make(chan struct{}, 20), Open: make(chan struct{})}
	till.Let = sync.OnceFunc(func() { close(till.Open) })
	t.Cleanup(till.Let)
	return till
}

// Paid returns the number of calls.
func (p *Till) Paid() int { return int(p.paid.Load()) }

// Agent returns an agent that pays the amount once. An approval is valid for within. The name of
// the agent ends in the amount.
func (p *Till) Agent(amount int, within time.Duration) *pawl.Agent {
	pay := pawl.Func("pay", "pays", func(ctx context.Context, _ struct {
		Amount int `json:"amount"`
	}) (string, error) {
		p.paid.Add(1)
		p.Begun <- struct{}{}
		select {
		case <-p.Open:
			return "paid", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	ask := func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: within}, nil
	}
	return &pawl.Agent{Name: fmt.Sprint("clerk", amount),
		Model: script.New(script.Call("pay", fmt.Sprintf(`{"amount":%d}`, amount)), script.Loop(script.Say("done"))),
		Tools: []pawl.Toolset{pay}, Middleware: []pawl.Middleware{pawl.Approve(ask)}}
}

// Owner is the scope of the runs of Over.
var Owner = store.Scope{User: "anna"}

// Over returns an Open for runs of an engine over a journal. answer gives an answer to the run with
// that ID.
func Over(journal func(*testing.T) store.Journal,
	answer func(eng *durable.Engine, id string, to To, d llm.Decision) string) Open {
	return func(t *testing.T, n int, within time.Duration) (all []*Run) {
		eng := &durable.Engine{Journal: journal(t)}
		ctx := store.WithScope(context.Background(), Owner)
		for amount := 5; amount < 5+n; amount++ {
			id, till := fmt.Sprint("pay-", amount), NewTill(t)
			a := till.Agent(amount, within)
			run := func(msgs ...llm.Message) []pawl.PendingCall {
				res, err := eng.Runner(id, a).Run(ctx, msgs...)
				if stop := (*pawl.StopError)(nil); res == nil || err != nil && !errors.As(err, &stop) {
					t.Error(err)
					return nil
				}
				return res.Pending
			}
			open := run(llm.User("pay"))
			if len(open) != 1 {
				t.Fatalf("%d questions", len(open))
			}
			done := make(chan int, 1)
			begin := sync.OnceFunc(func() { go func() { done <- len(run()) }() })
			all = append(all, &Run{Question: open[0], Till: till,
				Answer: func(to To, d llm.Decision) string {
					if to.Lost {
						return answer(eng, "none", to, d)
					}
					return answer(eng, id, to, d)
				},
				Begin: func() { begin(); <-till.Begun },
				End:   sync.OnceValue(func() int { till.Let(); begin(); return <-done })})
		}
		return all
	}
}

// ScopeOf returns the scope in which a Go program answers. The program checks its approvers.
func ScopeOf(to To) store.Scope {
	if to.User == Stranger {
		return store.Scope{User: Stranger}
	}
	return Owner
}

// Decide answers as a Go program does.
func Decide(eng *durable.Engine, id string, to To, d llm.Decision) string {
	return Word(eng.Decide(store.WithScope(context.Background(), ScopeOf(to)), id, d))
}

// Word returns the word of the error of an engine.
func Word(err error) string {
	var bad *journal.AnswerError
	switch {
	case err == nil:
		return Taken
	case errors.As(err, &bad):
		return map[string]string{journal.AnswerMisfit: misfit, journal.AnswerNotOpen: notOpen,
			journal.AnswerOther: other, journal.AnswerTaken: answered}[bad.Code]
	case errors.Is(err, store.ErrNotFound):
		return noRun
	}
	return err.Error()
}

// WordOf returns the word of the text of an error.
func WordOf(text string) string {
	for _, w := range [][2]string{{noRun, "no run"}, {noRun, "not found"}, {other, "is to another question"},
		{answered, "was answered otherwise"}, {misfit, "fit its schema"}, {notOpen, "does not wait for an answer"},
		{notOpen, "no open call has this key"}, {notOpen, "is not open any more"}, {notOpen, "no call of run"}, {notOpen, "not open any more"}} {
		if strings.Contains(text, w[1]) {
			return w[0]
		}
	}
	return text
}
