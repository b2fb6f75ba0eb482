package team_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// mortal is the journal of a process that dies at its at-th write, before or after it. No later
// write reaches the journal.
type mortal struct {
	store.Journal
	mu    sync.Mutex
	at    int
	after bool
	kill  context.CancelCauseFunc
	ahead time.Duration // of the clock of later processes, so that old leases have expired
}

var errDead = errors.New("the process is dead")

func (j *mortal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.at--; j.at < 0 || j.at == 0 && !j.after {
		j.kill(errDead)
		return 0, errDead
	}
	n, err := j.Journal.AppendJournal(ctx, l, c, records...)
	if j.at == 0 {
		j.kill(errDead)
		return 0, errDead
	}
	return n, err
}

func (j *mortal) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now,
	until time.Time) (store.Lease, error) {
	return j.Journal.ClaimJournal(ctx, s, id, owner, now.Add(j.ahead), until.Add(j.ahead))
}

// A team under an engine dies at each of its writes, and another process resumes it to the same
// end. Stored work is done once: no phase with a stored end runs again, and no plan is made twice.
func TestDurable(t *testing.T) {
	finds := map[string]int{} // executions of the phases' work in all lives
	var mu sync.Mutex
	process := func() *pawl.Agent {
		work := func(name string) *pawl.Tool {
			return &pawl.Tool{Name: name, Description: "Works.", Effect: pawl.EffectRead,
				Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					mu.Lock()
					defer mu.Unlock()
					finds[name]++
					return llm.TextResult(name + " is done"), nil
				}}
		}
		boss := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			mu.Lock()
			defer mu.Unlock()
			if req.Output == nil {
				return script.Say("All is done.")
			}
			finds["plan"]++
			return script.Say(`{"phases":[{"worker":"scout","goals":"Find."},{"worker":"clerk","goals":"Count."}]}`)
		})))
		boss.Holds = true
		return strategic(t, boss, nil, worker("scout", script.New(script.Call("find", `{}`), script.Say("found")), work("find")),
			worker("clerk", script.New(script.Call("count", `{}`), script.Say("counted")), work("count")))
	}
	plain, err := process().Run(t.Context(), llm.User("Go."))
	if err != nil {
		t.Fatal(err)
	}
	lives, repeated := 0, 0
	for at := 1; ; at++ {
		died := false
		for _, after := range []bool{false, true} {
			clear(finds)
			memory := new(store.MemoryJournal)
			ctx, kill := context.WithCancelCause(t.Context())
			j := &mortal{Journal: memory, at: at, after: after, kill: kill}
			_, err := runtest.Ended((&durable.Engine{Journal: j}).Runner("r", process()).Run(ctx, llm.User("Go.")))
			died = died || err != nil
			kill(nil)
			before := maps.Clone(finds)
			ended := before["count"] > 0 // the first phase has ended and is stored
			res, err := (&durable.Engine{Journal: &mortal{Journal: memory, at: 1 << 30,
				ahead: time.Hour}}).Runner("r", process()).Run(t.Context(), llm.User("Go."))
			if err != nil {
				t.Fatalf("write %d, after %t: %v", at, after, err)
			}
			lives++
			if diff := cmp.Diff(res.Messages, plain.Messages); diff != "" {
				t.Errorf("write %d, after %t: the transcript differs:\n%s", at, after, diff)
			}
			if ended && (finds["find"] != before["find"] || finds["plan"] != before["plan"]) {
				t.Errorf("write %d, after %t: the first phase was over and is repeated: %v, then %v", at, after, before, finds)
			}
			for _, n := range finds {
				if n > 1 {
					repeated++
				}
			}
		}
		if !died {
			break
		}
	}
	if lives < 16 || repeated == 0 {
		t.Errorf("%d deaths were tried, %d times work that was not kept was done again; as a control that must happen", lives, repeated)
	}
	t.Logf("%d deaths, the same transcript after each", lives)
}

// A worker's call that needs an approval pends in the engine's run. After the approval the team
// resumes there, and nothing is done twice.
func TestWorkerWaits(t *testing.T) {
	memory := new(store.MemoryJournal)
	written := 0
	write := &pawl.Tool{Name: "write", Description: "Writes.", Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		written++
		return llm.TextResult("written"), nil
	}}
	scout, boss := script.New(script.Say("u1")), lead("Done.", twoPhases)
	clerk := worker("clerk", script.New(script.Call("write", `{}`), script.Say("It is written.")), write)
	clerk.Agent.Middleware = []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}
	a := strategic(t, boss, nil, worker("scout", scout), clerk)
	res, err := runtest.Ended((&durable.Engine{Journal: memory}).Runner("r", a).Run(t.Context(), llm.User("Go.")))
	if err != nil || res.Stop != pawl.StopPending || len(res.Pending) != 1 || res.Pending[0].Key != "run/3/0/clerk/1/0" || written != 0 {
		t.Fatalf("got %v, %s, %+v", err, res.Stop, res.Pending)
	}
	yes := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{res.Pending[0].Approve("ann")}}
	res, err = (&durable.Engine{Journal: memory}).Runner("r", a).Run(t.Context(), yes)
	if err != nil || res.Text() != "Done." || written != 1 || len(scout.Requests()) != 1 || boss.asked != 1 {
		t.Errorf("got %v, %q; written %d times, the scout was asked %d times, %d plans", err, res.Text(), written, len(scout.Requests()), boss.asked)
	}
}
