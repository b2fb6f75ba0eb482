package pawl

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// Brancher is what an Engine is, too, that has the runs which agents make inside of calls carried out elsewhere, each with a record of its own, as child workflows are.
type Brancher interface {
	Engine
	// Branch has the run that b describes, of a, carried out by Agent.Inside, and returns what that returned when it is over. With that b.Around is what Inside left of it. The run must
	// end when ctx does, with the same cause.
	Branch(ctx context.Context, a *Agent, b *Branch) (*Result, error)
}

// Branch is what there is to know of a run inside of a call, apart from its agent. It is plain data.
type Branch struct {
	Key      llm.Key         `json:"key"`             // of the run
	Depth    int             `json:"depth"`           // of calls inside of calls
	Plan     json.RawMessage `json:"plan,omitzero"`   // StrategicPlan of the call
	Around   []Allowance     `json:"around,omitzero"` // the runs around it, from the inside
	Messages []llm.Message   `json:"messages"`
}

// Allowance is what a run may use, and had used when one inside of it began. What runs beside that one use meanwhile is not known there, so together they can pass a limit by what is under way.
type Allowance struct {
	Limits  Limits  `json:"limits"`
	Calls   int     `json:"calls,omitzero"`
	Tokens  int     `json:"tokens,omitzero"`
	Cost    float64 `json:"cost,omitzero"`
	Refused bool    `json:"refused,omitzero"` // whether a call was, for Limits.Calls
}

// RunBranch carries out the run of b, which Engine.Branch was given elsewhere, or goes on with it from a Result. It notes in b.Around which limits refused calls.
func (a *Agent) RunBranch(ctx context.Context, from *Result, b *Branch) (*Result, error) {
	msgs := b.Messages
	if from != nil {
		msgs = nil
	}
	return a.run(ctx, from, msgs, runOptions{whole: true, key: b.Key, branch: b})
}

// branch has a run inside of v's call carried out elsewhere, and counts what it used.
func (v *Invocation) branch(ctx context.Context, e Brancher, a *Agent, key llm.Key, msgs []llm.Message) (*Result, error) {
	outer := v.work.task.scope
	b := &Branch{Key: key, Depth: outer.depth + 1, Around: outer.budget.allowances(), Messages: msgs}
	if plan, ok := v.plan(); ok {
		b.Plan = plan
	}
	res, err := e.Branch(ctx, a, b)
	if res != nil {
		v.spend(res.Spent)
		outer.budget.add(int64(res.Spent.Calls), use{res.Spent.Usage.Total(), res.Spent.Usage.Cost})
	}
	i := 0
	for o := outer.budget; o != nil && i < len(b.Around); o, i = o.outer, i+1 {
		if b.Around[i].Refused {
			o.refused.Store(true)
		}
	}
	return res, err
}

// allowances is what b and those around it leave, as data.
func (b *budget) allowances() (all []Allowance) {
	if b != nil && b.ledger != nil {
		b.ledger.mu.Lock()
		defer b.ledger.mu.Unlock()
	}
	for o := b; o != nil; o = o.outer {
		all = append(all, Allowance{*o.limits, int(o.begun.Load()), o.used.tokens, o.used.cost, o.refused.Load()})
	}
	return all
}

// around makes the budgets of the runs around b again. spent is what b has used already.
func (b *Branch) around(spent Spent) (last *budget) {
	for _, a := range slices.Backward(b.Around) {
		o := new(budget)
		o.open(&a.Limits, Spent{Calls: a.Calls + spent.Calls, Usage: llm.Usage{Input: a.Tokens + spent.Usage.Total(), Cost: a.Cost + spent.Usage.Cost}}, last)
		o.refused.Store(a.Refused)
		last = o
	}
	return last
}

// refused notes which of the runs around b a call was refused for.
func (b *Branch) refused(inner *budget) {
	i := 0
	for o := inner; o != nil; o, i = o.outer, i+1 {
		b.Around[i].Refused = o.refused.Load()
	}
}
