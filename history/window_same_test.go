package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/thread"
)

// way continues a conversation: it returns the result of the turn of w with the message said, after
// the result res.
type way func(w *world, a *pawl.Agent, res *pawl.Result, said string) (*pawl.Result, error)

func ways(t *testing.T, id string, db store.Threads) map[string]way {
	end := func(res *pawl.Result, err error) (*pawl.Result, error) {
		var stop *pawl.StopError
		if errors.As(err, &stop) {
			res = stop.Result
		}
		return res, err
	}
	journal := new(store.MemoryJournal)
	e := &durable.Engine{Journal: journal}
	return map[string]way{
		"run": func(_ *world, a *pawl.Agent, res *pawl.Result, said string) (*pawl.Result, error) {
			return end(a.Run(t.Context(), append(res.Messages, llm.User(said))...))
		},
		"resume from JSON": func(_ *world, a *pawl.Agent, res *pawl.Result, said string) (*pawl.Result, error) {
			stored := new(pawl.Result)
			if err := json.Unmarshal([]byte(form(res)), stored); err != nil {
				t.Fatal(err)
			}
			return end(a.Resume(t.Context(), stored, llm.User(said)))
		},
		"thread": func(_ *world, a *pawl.Agent, _ *pawl.Result, said string) (*pawl.Result, error) {
			r := &thread.Runner{Runner: a, DB: db, ID: id}
			return end(pawl.Collect(r.Stream(t.Context(), llm.User(said)), nil))
		},
		"fork": func(w *world, a *pawl.Agent, res *pawl.Result, said string) (*pawl.Result, error) {
			begun := len(w.asked)
			run := fmt.Sprint("r", w.turn)
			if _, err := e.Runner(run, a).Run(t.Context(), append(res.Messages, llm.User(said))...); err != nil {
				return nil, err
			}
			steps := len(w.asked) - begun
			if steps < 2 {
				steps = 2 // the copy has the first step, which is the last one
			}
			if err := e.Fork(t.Context(), durable.Fork{Run: run, ID: "f" + run, Steps: steps / 2}); err != nil {
				t.Fatal(err)
			}
			if begun+steps/2 < len(w.asked) {
				w.asked, w.reply = w.asked[:begun+steps/2], steps/2
			}
			return end(e.Runner("f"+run, a).Run(context.WithoutCancel(t.Context())))
		},
	}
}

// However a conversation goes on, the same is sent: by Run with its messages, by Resume of a stored
// result, in a thread, and in a fork from the middle of each turn. The control is another window.
func TestWindowSameViews(t *testing.T) {
	soak.Sequential(t)
	db := tooltest.DB(t, nil)
	edits := 0
	for seed := range soak.N(12, 200) {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		turns := make([][][]wanted, 1+r.IntN(3))
		for i := range turns {
			turns[i] = make([][]wanted, r.IntN(8))
			for k := range turns[i] {
				for range 1 + r.IntN(2) {
					c := wanted{Size: []int{100, 1_500, 6_000}[r.IntN(3)], Long: 3_000 * (r.IntN(4) / 3)}
					c.Fails, c.Pinned = r.IntN(6) == 0, r.IntN(9) == 0
					turns[i][k] = append(turns[i][k], c)
				}
			}
		}
		sent := map[string]string{}
		play := func(name string, window int, next way) {
			w := &world{turns: turns}
			a := &pawl.Agent{Model: w, Instructions: "Rules.", Tools: w.tools(),
				Limits:     pawl.Limits{Rounds: 1_000, LoopThreshold: -1},
				Middleware: []pawl.Middleware{w.outside(), history.Window(&history.WindowOptions{Tokens: window})}}
			res := new(pawl.Result)
			for i := range turns {
				w.turn, w.reply = i, 0
				var err error
				if res, err = next(w, a, res, fmt.Sprint("Task ", i)); err != nil {
					t.Fatalf("seed %d, %s, turn %d: %v", seed, name, i, err)
				}
			}
			for _, x := range w.asked {
				edits += x.edits
				for _, req := range x.sent {
					sent[name] += form(req.Messages) + "\n"
				}
			}
		}
		all := ways(t, fmt.Sprint("t", seed), db)
		for name, next := range all {
			play(name, 12_000, next)
		}
		play("control", 9_000, all["run"])
		for name, got := range sent {
			if got != sent["run"] && name != "control" {
				t.Errorf("seed %d: %s sends other requests:\n%.3000s\n\n%.3000s", seed, name, got, sent["run"])
			}
		}
		if seed == 0 && sent["control"] == sent["run"] {
			t.Error("another window sends the same: nothing is tested")
		}
	}
	if edits < 50 {
		t.Errorf("only %d edits: nothing is tested", edits)
	}
}
