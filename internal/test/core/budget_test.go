package core_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/script"
)

// meter is a model that counts the usage of all requests to it and its copies, as a provider's bill
// does.
type meter struct {
	seed  uint64
	calls []string // names of the tools to call

	mu      *sync.Mutex
	tokens  *int
	cost    *float64
	largest *int
	dearest *float64
	asking  *int
	most    *int // concurrent requests
}

func (m *meter) MaxCost(req *llm.Request) (float64, bool) {
	return catalog.Price{Input: 1000, Output: 5000}.Max(req), true
}

func (m *meter) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		h := fnv.New64()
		h.Write([]byte(req.Key))
		rnd := rand.New(rand.NewPCG(m.seed, h.Sum64()))
		m.mu.Lock()
		*m.asking++
		*m.most = max(*m.most, *m.asking)
		m.mu.Unlock()
		time.Sleep(time.Duration(1+rnd.IntN(20)) * ms)
		in, out := req.Bounds()
		u := llm.Usage{Input: 1 + rnd.IntN(in), Output: 1 + rnd.IntN(min(out, 4000))}
		u.Cost = catalog.Price{Input: 1000, Output: 5000}.Cost(u)
		m.mu.Lock()
		*m.asking--
		*m.tokens += u.Total()
		*m.cost += u.Cost
		*m.largest, *m.dearest = max(*m.largest, u.Total()), max(*m.dearest, u.Cost)
		m.mu.Unlock()
		var parts []llm.Part
		if len(m.calls) > 0 && req.Choice.Mode != llm.ToolNone && rnd.IntN(4) > 0 {
			for i := range 1 + rnd.IntN(4) {
				parts = append(parts, call(fmt.Sprint("c", i), m.calls[rnd.IntN(len(m.calls))],
					fmt.Sprintf(`{"task":"%d"}`, rnd.IntN(1000))))
			}
		} else {
			parts = append(parts, text("done"))
		}
		for i, p := range parts {
			if !yield(llm.Delta{Index: i, Part: p, Done: true}, nil) {
				return
			}
		}
		yield(llm.Delta{Finish: llm.FinishReasonStop, Usage: &u}, nil)
	}
}

// The usage of a tree of runs is the sum over its requests, each counted once. It exceeds a limit
// by at most one request, for any number of concurrent children.
func TestOneBudgetForATreeOfRuns(t *testing.T) {
	stopped, together := 0, 0
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			var tokens, largest, asking, most int
			var cost, dearest float64
			base := meter{seed: seed, mu: new(sync.Mutex), tokens: &tokens, cost: &cost, largest: &largest,
				dearest: &dearest, asking: &asking, most: &most}
			model := func(calls ...string) *meter { m := base; m.calls = calls; return &m }
			limits := func() (l pawl.Limits) {
				l.LoopThreshold = -1
				l.Rounds = 3
				if rnd.IntN(2) == 0 {
					l.Tokens = 2000 + rnd.IntN(40000)
				}
				if rnd.IntN(4) == 0 {
					l.Cost = 5 + 200*rnd.Float64()
				}
				return l
			}
			settings := func() (s llm.Settings) {
				if rnd.IntN(3) > 0 {
					s.MaxTokens = 500 + rnd.IntN(3000)
				}
				return s
			}
			leaf := &pawl.Agent{Name: "leaf", Model: model(), Settings: settings(), Limits: limits()}
			clerk := &pawl.Agent{Name: "clerk", Model: model("leaf", "leaf", "leaf"),
				Tools: []pawl.Toolset{leaf.Tool("")}, Settings: settings(), Limits: limits()}
			boss := &pawl.Agent{Model: model("clerk", "leaf", "clerk"),
				Tools: []pawl.Toolset{clerk.Tool(""), leaf.Tool("")}, Settings: settings(), Limits: limits()}
			boss.Limits.Tokens = 3000 + rnd.IntN(60000)
			res, err := runtest.Ended(boss.Run(t.Context(), llm.User("go")))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got := res.Spent.Usage; got.Total() != tokens || math.Abs(got.Cost-cost) > 1e-6 {
				t.Errorf("seed %d: spent %d tokens and $%f, its requests used %d and $%f", seed, got.Total(), got.Cost, tokens, cost)
			}
			if l := boss.Limits.Tokens; tokens >= l+largest {
				t.Errorf("seed %d: %d tokens of %d are spent, the largest request had %d", seed, tokens, l, largest)
			}
			if l := boss.Limits.Cost; l > 0 && cost >= l+dearest {
				t.Errorf("seed %d: $%f of $%f are spent", seed, cost, l)
			}
			if res.Stop == pawl.StopLimit {
				stopped++
			}
			if most > 1 {
				together++
			}
		})
	}
	t.Logf("of 300 trees %d reached a limit, in %d requests ran side by side", stopped, together)
	if stopped < 30 || together < 30 {
		t.Error("the trees are too tame")
	}
}

// Children make concurrent requests far from a limit, and sequential requests close to it.
func TestChildrenWaitForEachOtherCloseToALimit(t *testing.T) {
	for _, test := range []struct {
		limit, reply int
		most         int
		stop         pawl.StopReason
	}{
		{10_000_000, 0, 4, pawl.StopAnswer},
		{200_000, 0, 1, pawl.StopAnswer}, // a reply may have 128 Ki tokens
		{200_000, 1000, 4, pawl.StopAnswer},
		{3000, 1000, 1, pawl.StopLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			asking, most := 0, 0
			var mu sync.Mutex
			child := &pawl.Agent{Name: "child", Settings: llm.Settings{MaxTokens: test.reply},
				Model: modelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
					return func(yield func(llm.Delta, error) bool) {
						mu.Lock()
						asking++
						most = max(most, asking)
						mu.Unlock()
						time.Sleep(time.Second)
						mu.Lock()
						asking--
						mu.Unlock()
						if yield(llm.Delta{Part: text("done"), Done: true}, nil) {
							yield(llm.Delta{Finish: llm.FinishReasonStop,
								Usage: &llm.Usage{Input: 500, Output: 500}}, nil)
						}
					}
				})}
			one := func(n int) script.Turn { return script.Call("child", fmt.Sprintf(`{"task":"%d"}`, n)) }
			a := &pawl.Agent{Model: script.New(script.Together(one(1), one(2), one(3), one(4)), script.Say("done")),
				Tools: []pawl.Toolset{child.Tool("")}, Limits: pawl.Limits{Tokens: test.limit}}
			res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
			if err != nil || most != test.most || res.Stop != test.stop {
				t.Errorf("limit %d, replies of %d: got %v, %s, %d at once, want %s and %d", test.limit, test.reply, err, res.Stop, most, test.stop, test.most)
			}
		})
	}
}

// A limit on cost is enforced or refused. Without a known price the run ends before its first
// request, and the error states the remedy.
func TestCostWithoutAPrice(t *testing.T) {
	limits := pawl.Limits{Cost: 1}
	m := script.New(script.Say("hi"))
	res, err := (&pawl.Agent{Model: m, Limits: limits}).Run(t.Context(), llm.User("go"))
	if err == nil || res != nil || !strings.HasPrefix(err.Error(), "Limits.Cost: the price of the agent's model") ||
		!strings.Contains(err.Error(), "catalog.Price.Of") || len(m.Requests()) != 0 {
		t.Errorf("got %v, %+v, %d requests", err, res, len(m.Requests()))
	}
	price := catalog.Price{Input: 2e6, Output: 10e6}
	use := script.Turn{Parts: []llm.Part{text("hi")}, Usage: &llm.Usage{Input: 3, Output: 2, CacheRead: 1}}
	for way, run := range ways {
		res, err = run(t.Context(), &pawl.Agent{Model: price.Of(script.New(use)), Limits: pawl.Limits{Cost: 100}},
			llm.User("go"))
		if err != nil || res.Spent.Usage.Cost != 3*2+2*10 {
			t.Errorf("%s: got %v, cost %f", way, err, res.Spent.Usage.Cost)
		}
	}
	if got := (catalog.Price{Input: 2e6, Output: 10e6, Cached: new(1e6), Write: new(4e6)}).Cost(llm.Usage{Input: 6,
		Output: 2, CacheRead: 1, CacheWrite: 2}); got != 3*2+2*10+1+2*4 {
		t.Errorf("got %f", got)
	}
	// The same holds for a run within a run whose cost is limited.
	child := &pawl.Agent{Name: "child", Model: m}
	a := &pawl.Agent{Model: price.Of(script.New(script.Call("child", `{"task":"x"}`), script.Say("done"))),
		Limits: pawl.Limits{Cost: 1e6}, Tools: []pawl.Toolset{child.Tool("")}}
	res, err = a.Run(t.Context(), llm.User("go"))
	if err != nil || len(m.Requests()) != 0 || !strings.Contains(res.Messages[2].Parts[0].(llm.ToolResult).Text(), "price") {
		t.Errorf("got %v, %d requests\n%s", err, len(m.Requests()), say(res.Messages))
	}
	// unpriced is a model without a known price.
	res, err = (&pawl.Agent{Model: noPrice{m}, Limits: limits}).Run(t.Context(), llm.User("go"))
	if err == nil || res != nil {
		t.Errorf("got %v, %+v", err, res)
	}
}

type noPrice struct{ llm.Model }

func (noPrice) MaxCost(*llm.Request) (float64, bool) { return 0, false }

// A run that waits for room ends with its context. A failed request releases its reservation.
func TestWaitingForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		n := 0
		var mu sync.Mutex
		child := &pawl.Agent{Name: "child",
			Model: modelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					mu.Lock()
					n++
					first := n == 1
					mu.Unlock()
					if first {
						time.Sleep(time.Second)
						yield(llm.Delta{}, errors.New("lost"))
						return
					}
					cancel(pawl.ErrCancelled)
					<-ctx.Done()
					yield(llm.Delta{}, ctx.Err())
				}
			})}
		one := func(n int) script.Turn { return script.Call("child", fmt.Sprintf(`{"task":"%d"}`, n)) }
		a := &pawl.Agent{Model: script.New(script.Together(one(1), one(2), one(3))),
			Tools: []pawl.Toolset{child.Tool("")}, Limits: pawl.Limits{Tokens: 1000}}
		res, err := runtest.Ended(a.Run(ctx, llm.User("go")))
		if err != nil || res.Stop != pawl.StopCancelled || n != 2 {
			t.Errorf("got %v, %+v after %d requests", err, res, n)
		}
		mustBeValid(t, res)
	})
}
