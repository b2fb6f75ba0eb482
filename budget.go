package pawl

// budget.go: the budget that a run shares with its nested calls and runs.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl/llm"
)

// budget counts the usage of a run with its nested calls and runs. The budgets of a run and of the
// runs around it are a chain: usage counts in each of them once.
//
// A request reserves the most that it can use, until its usage is known. If that does not fit with
// the reservations of concurrent requests, it waits for them. So concurrent runs exceed a limit by
// no more than one request, as a single run does. Settings.MaxTokens makes reservations smaller.
type budget struct {
	limits  *Limits
	started atomic.Int64 // number of started calls
	refused atomic.Bool  // a call was rejected for Limits.Calls
	outer   *budget      // of the run around this one; nil means none

	ledger *ledger // nil means no limit of tokens or cost in the chain
	used   use
	held   use // reserved by active requests
	asking int // number of active requests
	blind  use // reserved by requests whose replies reported no usage, so that used is too small
}

// ledger is shared by the budgets of a chain.
type ledger struct {
	mu    sync.Mutex
	freed chan struct{} // closed and replaced when a request ends
}

// use is an amount of tokens and cost.
type use struct {
	tokens int
	cost   float64
}

// open initializes the budget of a run that has used spent. A nil outer means no run around it.
func (b *budget) open(l *Limits, spent Spent, outer *budget) {
	b.limits, b.outer, b.used = l, outer, use{spent.Usage.Total(), spent.Usage.Cost}
	b.started.Store(int64(spent.Calls))
	if outer != nil {
		b.ledger = outer.ledger
	}
	if b.ledger == nil && (l.Tokens > 0 || l.Cost > 0) {
		b.ledger = &ledger{freed: make(chan struct{})}
	}
}

// charge counts a call that starts, or returns the limit that prevents it.
func (b *budget) charge() error {
	for o := b; o != nil; o = o.outer {
		if n := o.started.Add(1); o.limits.Calls > 0 && n > int64(o.limits.Calls) {
			o.refused.Store(true)
			for u := b; ; u = u.outer { // undo the count
				u.started.Add(-1)
				if u == o {
					return &failure{outcome: OutcomeSkipped, limit: o.limits.Calls,
						text: fmt.Sprintf("Not run: the limit of %d calls was reached. Answer with what you have.", o.limits.Calls)}
				}
			}
		}
	}
	return nil
}

// refund undoes charge.
func (b *budget) refund() {
	for ; b != nil; b = b.outer {
		b.started.Add(-1)
	}
}

// leaves reports whether n more calls may start.
func (b *budget) leaves(n int) bool {
	for ; b != nil; b = b.outer {
		if b.limits.Calls > 0 && b.started.Load()+int64(n) > int64(b.limits.Calls) {
			return false
		}
	}
	return true
}

// callsRefused returns the limit for which a call was rejected.
func (b *budget) callsRefused() reached {
	for ; b != nil; b = b.outer {
		if b.refused.Load() {
			return reached{"calls", fmt.Sprintf("the limit of %d calls was reached", b.limits.Calls)}
		}
	}
	return reached{}
}

// costs reports whether the cost is limited.
func (b *budget) costs() bool {
	for ; b != nil; b = b.outer {
		if b.limits.Cost > 0 {
			return true
		}
	}
	return false
}

// spent returns the limit that n more would reach. The caller holds the lock of the ledger.
func (b *budget) spent(n use) (why reached) {
	for ; b != nil && why.limit == ""; b = b.outer {
		why = b.over(n, false)
	}
	return why
}

// over returns the limit of b that n more would reach, or that they would pass.
func (b *budget) over(n use, pass bool) reached {
	l := b.limits
	if l.Tokens > 0 {
		tokens := b.used.tokens + n.tokens
		reaches := tokens == l.Tokens && !pass
		if b.blind.tokens > 0 || tokens > l.Tokens || reaches {
			return reached{"tokens", b.tokensUsed()}
		}
	}
	if l.Cost > 0 {
		cost := b.used.cost + n.cost
		reaches := cost == l.Cost && !pass
		if b.blind.cost > 0 || cost > l.Cost || reaches {
			return reached{"cost", b.costUsed()}
		}
	}
	return reached{}
}

// passed returns the limit of b that its usage is over.
func (b *budget) passed() reached {
	if b.ledger == nil {
		return reached{}
	}
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	return b.over(use{}, true)
}

func (b *budget) tokensUsed() string {
	if b.blind.tokens > 0 {
		return "the provider reports no usage, so a limit of tokens cannot be kept"
	}
	return fmt.Sprintf("%d tokens of %d are used up", b.used.tokens, b.limits.Tokens)
}

func (b *budget) costUsed() string {
	if b.blind.cost > 0 {
		return "the provider reports no usage, so a limit of cost cannot be kept"
	}
	return fmt.Sprintf("$%.4f of $%.4f are spent", b.used.cost, b.limits.Cost)
}

// room reports whether n fits with the reservations. The caller holds the lock of the ledger.
func (b *budget) room(n use) bool {
	for ; b != nil; b = b.outer {
		l := b.limits
		u := b.used
		h := b.held
		tokens := l.Tokens > 0 && u.tokens+h.tokens+n.tokens > l.Tokens
		cost := l.Cost > 0 && u.cost+h.cost+n.cost > l.Cost
		if b.asking > 0 && (tokens || cost) {
			return false
		}
	}
	return true
}

// reserve reserves n for a request and waits for room. why is the limit that was reached. When ctx
// ends, reserve returns without a reservation.
func (b *budget) reserve(ctx context.Context, n use) (why reached, ok bool) {
	l := b.ledger
	for {
		l.mu.Lock()
		why = b.spent(use{})
		ok = why.limit == "" && ctx.Err() == nil && b.room(n)
		for o := b; ok && o != nil; o = o.outer {
			o.held.tokens += n.tokens
			o.held.cost += n.cost
			o.asking++
		}

		// Read under the lock: a request that ends from now on closes this channel.
		freed := l.freed
		l.mu.Unlock()
		if ok || why.limit != "" {
			return why, ok
		}
		if !waitFor(ctx, freed) {
			return reached{}, false
		}
	}
}

// settle replaces the reservation n of a request by its usage. blind means that it has none.
func (b *budget) settle(n, used use, blind bool) {
	l := b.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for o := b; o != nil; o = o.outer {
		o.held.tokens -= n.tokens
		o.held.cost -= n.cost
		o.used.tokens += used.tokens
		o.used.cost += used.cost
		if blind {
			o.blind.tokens += n.tokens
			o.blind.cost += n.cost
		}
		o.asking--
		if o.asking == 0 {
			o.held = use{} // removes rounding errors
		}
	}
	close(l.freed)
	l.freed = make(chan struct{})
}

// add counts usage of another process.
func (b *budget) add(calls int64, n use) {
	for o := b; o != nil; o = o.outer {
		o.started.Add(calls)
	}
	if b == nil || b.ledger == nil {
		return
	}
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for o := b; o != nil; o = o.outer {
		o.used.tokens += n.tokens
		o.used.cost += n.cost
	}
}

// near returns the limit that another request like the last one would reach.
func (b *budget) near(last use) reached {
	if b.ledger == nil || last == (use{}) {
		return reached{}
	}
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	return b.spent(last)
}

// admit starts the next request: it reserves the most that the request can use, and waits for
// concurrent requests if needed. It returns the limit that prevents the request.
func (r *run) admit(ctx context.Context) reached {
	r.reply = reply{used: r.reply.used, deltas: r.reply.deltas}
	b := r.scope.budget
	if b.ledger == nil || ctx.Err() != nil {
		return reached{}
	}
	msgs := r.res.Messages
	if len(r.history.then) > 0 {
		msgs = slices.Concat(msgs, r.history.then)
	}
	req := &llm.Request{Messages: msgs, Tools: r.setup.specs, Output: r.agent.Output, Settings: r.agent.Settings}
	in, out := req.Bounds()
	r.reply.need = use{tokens: in + len(r.setup.instructions) + out}
	if b.costs() {
		r.reply.need.cost, _ = r.setup.pricer.MaxCost(req) // known: see Agent.run
	}
	why, ok := b.reserve(ctx, r.reply.need)
	r.reply.reserved = ok
	return why
}

// paid counts the usage of the active request. Without one it has no effect. blind means that its
// reply is complete and has no usage.
func (r *run) paid(u llm.Usage, blind bool) {
	if r.reply.reserved {
		r.reply.reserved = false
		r.reply.used = use{u.Total(), u.Cost}
		r.scope.budget.settle(r.reply.need, r.reply.used, blind)
	}
}

// priced reports whether the price of the model is known.
func (r *run) priced() bool {
	if r.setup.pricer == nil {
		return false
	}
	_, known := r.setup.pricer.MaxCost(&llm.Request{Tools: r.setup.specs, Settings: r.agent.Settings})
	return known
}

// unpriced is the error of a limit on cost without a price.
func (r *run) unpriced() error {
	model := "the agent's model"
	if m, ok := llm.As[llm.Namer](r.agent.Model); ok {
		model = "the model " + m.Name()
	}
	return fmt.Errorf("the price of %s, or of a model that may answer for it, is not known, so Limits.Cost "+
		"cannot be kept: state the price with catalog.Price.Of or, where package provider opens it, in a "+
		"catalogue of your own; or limit Tokens instead", model)
}
