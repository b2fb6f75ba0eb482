package durable_test

import (
	"context"
	"errors"
	"fmt"
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

// away is a journal whose database is not available for some writes of records of a kind.
type away struct {
	store.Journal
	kind  string
	left  int
	after bool // the write is on disk although it fails
}

func (j *away) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	for _, r := range records {
		if r.Kind != j.kind || j.left == 0 {
			continue
		}
		if j.left--; j.after {
			if _, err := j.Journal.AppendJournal(ctx, l, c, records...); err != nil {
				return 0, err
			}
		}
		return 0, fmt.Errorf("append: %w: disk full", store.ErrUnavailable)
	}
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

// A process that lives holds what it could not write, and writes it again: no question is asked for
// an outcome that it has. Without the repetition, the outcome is unknown: the negative control.
func TestOutcomesAreHeld(t *testing.T) {
	for _, row := range []struct {
		kind     string
		fails    int
		after    bool
		retry    time.Duration
		unknown  bool
		reported int
	}{
		{kind: "outcome", fails: 1, reported: 1}, {kind: "outcome", fails: 9, reported: 9},
		{kind: "outcome", fails: 1, after: true, reported: 1}, {kind: "intent", fails: 3, reported: 3},
		{kind: "reply", fails: 3, reported: 3}, {kind: "reply", fails: 1, after: true, reported: 1},
		{kind: "end", fails: 3, reported: 3}, {kind: "end", fails: 1, after: true, reported: 1},
		{kind: "outcome", fails: 1000, retry: -1, unknown: true, reported: 1},
		{kind: "outcome", fails: 1000, retry: 3 * time.Second, unknown: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			paid, reported := 0, 0
			pay := pawl.Func("pay", "pays", func(context.Context, none) (string, error) { paid++; return "paid", nil })
			a := &pawl.Agent{Model: script.New(script.Call("pay", `{}`), script.Say("done")), Tools: []pawl.Toolset{pay}}
			j := &away{Journal: new(store.MemoryJournal), kind: row.kind, left: row.fails, after: row.after}
			eng := &durable.Engine{Journal: j, Retry: row.retry, Report: func(run string, err error) {
				if run == "r" && errors.Is(err, store.ErrUnavailable) {
					reported++
				}
			}}
			res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context(), llm.User("Pay.")))
			if row.unknown {
				if !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%+v: %v", row, err)
				}
				j.left = 0
				res, err = runtest.Ended(eng.Runner("r", a).Run(t.Context()))
				if err != nil || res.Stop != pawl.StopPending || res.Pending[0].Outcome != pawl.OutcomeUnknown {
					t.Errorf("%+v: %+v, %v; the control asks about the outcome", row, res, err)
				}
			} else if err != nil || res.Text() != "done" {
				t.Errorf("%+v: %+v, %v", row, res, err)
			}
			if paid != 1 || row.reported > 0 && reported != row.reported {
				t.Errorf("%+v: paid %d times, %d errors reported", row, paid, reported)
			}
			if _, err := eng.Verify(t.Context(), "r", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A longer fault than a lease does not end the run, unless another process has taken it over.
func TestFaultLongerThanLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pay := pawl.Func("pay", "pays", func(context.Context, none) (string, error) { return "paid", nil })
		a := &pawl.Agent{Model: script.New(script.Call("pay", `{}`), script.Say("done")), Tools: []pawl.Toolset{pay}}
		j := &away{Journal: new(store.MemoryJournal), kind: "outcome", left: 12}
		eng := &durable.Engine{Journal: j, Lease: 2 * time.Second}
		res, err := eng.Runner("r", a).Run(t.Context(), llm.User("Pay."))
		if err != nil || res.Text() != "done" || j.left != 0 {
			t.Errorf("%+v, %v, %d faults left", res, err, j.left)
		}
	})
}
