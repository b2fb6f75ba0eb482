package durable_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// transfers is the world of a run with 20 transfers: the numbers that arrived, in order.
type transfers struct {
	made   []int
	backup func() // called within the seventh transfer; nil means that there is none
}

func (w *transfers) agent(reconcile bool) *pawl.Agent {
	tool := pawl.Func("transfer", "transfers money", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		w.made = append(w.made, in.N)
		if in.N == 7 && w.backup != nil {
			w.backup()
		}
		return fmt.Sprint("transferred ", in.N), nil
	})
	if reconcile {
		tool.Reconcile = func(_ context.Context, call llm.ToolCall) (*llm.ToolResult, error) {
			var n int
			if _, err := fmt.Sscanf(string(call.Args), `{"n":%d}`, &n); err != nil || !slices.Contains(w.made, n) {
				return nil, err
			}
			res := llm.TextResult(fmt.Sprint("transferred ", n))
			return &res, nil
		}
	}
	var turns []script.Turn
	for n := range 20 {
		turns = append(turns, script.Call("transfer", map[string]any{"n": n + 1}))
	}
	return &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...), Tools: []pawl.Toolset{tool},
		Limits: pawl.Limits{Rounds: 30}}
}

// A run of 20 writes is backed up within the seventh and then ends. Restored, it repeats nothing:
// each write that the backup does not have is a question, or is answered by the tool. The control,
// a copy of the backup without the mark, repeats 12 in silence.
func TestRestoredRuns(t *testing.T) {
	for _, row := range []struct {
		name              string
		marked, reconcile bool
		questions, again  int
	}{
		{"marked", true, false, 14, 0},
		{"marked, and the tool can say", true, true, 0, 0},
		{"control: not marked", false, false, 1, 13},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			copied := filepath.Join(dir, "backup.db")
			db := open(t)
			w := new(transfers)
			w.backup = func() {
				if err := db.Backup(t.Context(), copied); err != nil {
					t.Error(err)
				}
			}
			first := &durable.Engine{Journal: db}
			res, err := first.Runner("r", w.agent(row.reconcile)).Run(t.Context(), llm.User("go"))
			if err != nil || len(w.made) != 20 {
				t.Fatal(res, err, w.made)
			}
			w.backup = nil
			restored, err := sqlite.Open(copied, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer restored.Close()
			eng := &durable.Engine{Journal: restored}
			eng.SetClock(func() time.Time { return time.Now().Add(time.Hour) })
			if row.marked {
				if n, err := eng.MarkRestored(t.Context()); err != nil || n != 1 {
					t.Fatal(n, err)
				}
			}
			asked := 0
			for range 30 {
				res, err := runtest.Ended(eng.Runner("r", w.agent(row.reconcile)).Run(t.Context()))
				if err != nil {
					t.Fatal(err)
				}
				if res.Stop == pawl.StopAnswer {
					break
				}
				q := res.Pending[0]
				asked++
				if q.Outcome != pawl.OutcomeUnknown ||
					row.marked && asked > 1 && !strings.Contains(q.Why, "restored from a backup") {
					t.Fatalf("the question is %+v", q)
				}
				f, err := eng.Effects(t.Context(), "r")
				if last := f[len(f)-1]; err != nil || last.State != journal.EffectUnknown || last.Question == nil {
					t.Fatalf("its effect is %+v, %v", last, err)
				}
				// The person finds the transfer in the books.
				if err := eng.Decide(t.Context(), "r", q.Answer("ann", llm.TextResult("transferred"))); err != nil {
					t.Fatal(err)
				}
			}
			if again := len(w.made) - 20; asked != row.questions || again != row.again {
				t.Errorf("%d questions and %d transfers again, want %d and %d: %v", asked, again, row.questions, row.again, w.made)
			}
			if _, err := eng.Verify(t.Context(), "r", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// An approval that was given before the backup does not start the call after the restore, and a
// call that did not happen runs once after a person says so.
func TestRestoredApproval(t *testing.T) {
	j := new(store.MemoryJournal)
	eng := &durable.Engine{Journal: j}
	var paid []string
	a := paying(&paid, -1)
	w := pending(t, eng, a)
	if err := eng.Decide(t.Context(), "r", w.Approve("boss")); err != nil {
		t.Fatal(err)
	}
	if n, err := eng.MarkRestored(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context()))
	if err != nil || len(res.Pending) != 1 || res.Pending[0].Outcome != pawl.OutcomeUnknown || len(paid) != 0 {
		t.Fatalf("%+v, %v, paid %v", res, err, paid)
	}
	if err := eng.Decide(t.Context(), "r", res.Pending[0].Approve("boss")); err != nil {
		t.Fatal(err)
	}
	if res, err = eng.Runner("r", a).Run(t.Context()); err != nil || res.Stop != pawl.StopAnswer {
		t.Fatal(res, err)
	}
	if diff := cmp.Diff([]string{"5"}, paid); diff != "" {
		t.Error(diff)
	}
	if n, err := eng.MarkRestored(t.Context()); n != 0 || err != nil {
		t.Errorf("a run that is over is marked: %d, %v", n, err)
	}
}
