package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A full file is full again and again while runs write to it. The process holds what it could not
// write: each run ends, and no call becomes unknown.
func TestFull(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "pawl.db"), &Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	limit := func(pages int) {
		if _, err := db.backend.write.Exec(fmt.Sprintf("pragma max_page_count = %d", pages)); err != nil {
			t.Error(err)
		}
	}
	var faults, calls atomic.Int64
	full := "" // the text of a fault
	var once sync.Once
	eng := &durable.Engine{Journal: db, Report: func(_ string, err error) {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
		once.Do(func() { full = err.Error() })
		if faults.Add(1)%3 == 0 {
			limit(1 << 30)
		}
	}}
	runs, steps := soak.N(4, 100), 3
	var wg, begun sync.WaitGroup // a run that cannot begin is an error of its caller
	begun.Add(runs)
	for i := range runs {
		wg.Go(func() {
			first := sync.OnceFunc(func() { begun.Done(); begun.Wait() })
			fill := pawl.Func("fill", "fills", func(context.Context, struct{}) (string, error) {
				first()
				calls.Add(1)
				limit(1) // no page more than there are
				return strings.Repeat("x", 30<<10), nil
			})
			m := script.New()
			for range steps {
				m.Turns = append(m.Turns, script.Call("fill", `{}`))
			}
			m.Turns = append(m.Turns, script.Say("done"))
			a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{fill}}
			id := fmt.Sprint("r", i)
			res, err := eng.Runner(id, a).Run(t.Context(), llm.User("Fill."))
			if err != nil || res.Text() != "done" {
				t.Errorf("%s: %v", id, err)
			}
			effects, err := eng.Effects(t.Context(), id)
			for _, e := range effects {
				if err != nil || e.State != journal.EffectCompleted || e.Attempts != 1 {
					t.Errorf("%s: %s is %s after %d attempts: %v", id, e.Key, e.State, e.Attempts, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d runs, %d calls, %d faults, the first: %s", runs, calls.Load(), faults.Load(), full)
	if n := faults.Load(); n < int64(runs) || !strings.Contains(full, "full") {
		t.Errorf("%d faults: %q", n, full)
	}
	if n := calls.Load(); n != int64(runs*steps) {
		t.Errorf("%d calls, want %d", n, runs*steps)
	}
}
