package temporal

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// fate counts what happened in schedules.
type fate struct{ expired, deployed, lost atomic.Int64 }

// versions returns versions of the agent: with other instructions, and with other arguments of pay.
// The first approval of a payment is not used within its time.
func versions(c *durabletest.Case, world durabletest.World, had *fate) (all []*pawl.Agent) {
	var mu sync.Mutex
	asked := map[string]int{}
	for version := range 3 {
		a := c.Agent(world)
		a.Middleware = []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall,
			_ *pawl.Tool) (pawl.Approval, error) {
			mu.Lock()
			defer mu.Unlock()
			if c.Name != "pay" {
				return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
			}
			if asked[c.ID]++; asked[c.ID] == 1 {
				had.expired.Add(1)
				return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: time.Nanosecond}, nil
			}
			return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
		})}
		switch version {
		case 1:
			a.Instructions += " Be careful."
		case 2:
			for i, set := range a.Tools {
				if tool, ok := set.(*pawl.Tool); ok && tool.Name == "pay" {
					tool = tool.Clone()
					tool.Input = json.RawMessage(`{"type":"object","properties":{"why":{"type":"string"}},"required":["why"]}`)
					a.Tools[i] = tool
				}
			}
		}
		all = append(all, a)
	}
	return all
}

// scheduled makes a run whose questions get random answers before the right one: repeated, with
// other arguments, for other questions. Meanwhile workers with other versions of the agent take the
// place of the first one, and some are lost after a call. It returns how the run breaks R9. Empty
// means that it does not. deaf means that answers do not arrive, for the control.
func scheduled(ctx context.Context, seed uint64, deaf bool, had *fate) string {
	r, c, world := rand.New(rand.NewPCG(seed, 13)), durabletest.Random(seed), new(durabletest.Memory)
	all := versions(c, world, had)
	e, err := newEnv(ctx, fmt.Sprintf("schedule-%d", seed), all[0])
	if err != nil {
		return err.Error()
	}
	var trees []*tree
	for _, a := range all {
		t, err := plant(ctx, "agent", a)
		if err != nil {
			return err.Error()
		}
		trees = append(trees, t)
	}
	e.OnActivity(activityCall, mock.Anything, mock.Anything).Return(func(ctx context.Context,
		in callInput) (pawl.Execution, error) {
		x, err := e.w.act.call(ctx, in)
		at := fnv.New64a()
		fmt.Fprint(at, seed, in.Task.Key, in.Task.Attempt, activity.GetInfo(ctx).Attempt)
		if err == nil && at.Sum64()%8 == 0 && activity.GetInfo(ctx).Attempt < tries {
			had.lost.Add(1)
			return x, sdk.NewHeartbeatTimeoutError("it acted")
		}
		return x, err
	})
	var asked []pawl.PendingCall
	why := ""
	e.tick = func() error {
		if r.IntN(4) == 0 {
			had.deployed.Add(1)
			e.w.mu.Lock()
			e.w.trees["agent"] = trees[r.IntN(len(trees))]
			e.w.mu.Unlock()
		}
		s, err := e.state()
		switch {
		case err != nil || !s.Waits || deaf:
			return err
		case len(s.Pending) == 0:
			why = "it waits, and no question is open"
			return fmt.Errorf("%s", why)
		}
		asked = append(asked, s.Pending...)
		q := s.Pending[r.IntN(len(s.Pending))]
		if r.IntN(4) == 0 {
			q = asked[r.IntN(len(asked))]
		}
		answers, err := durabletest.Answers(ctx, world, []pawl.PendingCall{q})
		if err != nil {
			return err
		}
		right := answers[0].Parts[0].(llm.Decision)
		ds := []llm.Decision{right}
		switch kind := r.IntN(12); {
		case kind == 0:
			ds = append(ds, right)
		case kind == 1:
			ds[0].Digest = strings.Repeat("0", len(right.Digest))
		case kind == 2:
			ds[0].Key += "0"
		case kind <= 4 && !q.Passive && q.Outcome != pawl.OutcomeUnknown:
			ds[0] = q.Edit("somebody", json.RawMessage([]string{`{"n":7}`, `{"n":"seven"}`}[kind-3]))
		}
		for i, d := range ds {
			e.updateThen(updateDecide, fmt.Sprintf("%d-%d", e.ticks, i), []llm.Decision{d}, func(error) {})
		}
		return nil
	}
	out, err := e.run(input{Messages: c.Messages()})
	switch {
	case why != "":
		return why
	case err != nil:
		return err.Error()
	case out.Result.Stop != pawl.StopAnswer:
		return fmt.Sprintf("it stopped with %s: %s", out.Result.Stop, out.Error)
	}
	n := map[llm.Key]int{}
	for _, d := range world.All() {
		if n[d.Place]++; d.Effect == pawl.EffectWrite && n[d.Place] > 1 {
			return fmt.Sprintf("%s, a write of %s, happened twice", d.Place, d.Tool)
		}
	}
	return ""
}

// A run reaches its end with any answers to its questions, any version of its agent, and lost
// workers. TestKill and TestServerKilled kill workers and the cluster.
func TestSchedules(t *testing.T) {
	soak.Sequential(t)
	n := soak.N(10, 100)
	var had fate
	for seed := range uint64(n) {
		if why := scheduled(t.Context(), seed, false, &had); why != "" {
			t.Errorf("seed %d: %s", seed, why)
		}
	}
	expired, deployed, lost := had.expired.Load(), had.deployed.Load(), had.lost.Load()
	t.Logf("%d schedules: %d approvals expired, %d versions deployed, %d workers lost", n, expired, deployed, lost)
	if expired == 0 || deployed == 0 || lost == 0 {
		t.Error("the schedules do not contain what they are for")
	}
	for seed := range uint64(20) { // the control: the first run with a question waits for ever
		if why := scheduled(t.Context(), seed, true, &had); strings.Contains(why, "waits for ever") {
			return
		}
	}
	t.Error("no run without answers is found")
}
