package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Limits bound a run, the calls and runs inside it included. What was used survives Resume. Reaching a limit is never
// reported as success: the run stops with StopLimit, and Result.Cause names the limit.
//
// A model turns in a circle when it makes the same call to the same result, Repeats times among twice as many calls, or when calls of one tool
// fail in as many steps with nothing between them that worked. It is told so in the result; a call made as often again, or failures in three
// times as many steps, end the run with StopStalled.
type Limits struct {
	Rounds        int           // steps whose calls are carried out; 0: 20 (Run), 1 (Once); NoRounds: none. N rounds make at most N+1 requests
	Calls         int           // calls begun; those past it are answered with a result that says so; 0: no limit
	CallsPerStep  int           // calls of one reply that are carried out; the rest are answered so; 0: no limit
	Tokens        int           // input and output, over all requests; 0: no limit
	Cost          float64       // US dollars; the Model must be a Pricer, or the run fails at once; 0: no limit
	Time          time.Duration // from the start of Run, Stream or Resume; 0: no limit
	Corrections   int           // answers that do not fit Agent.Output and are sent back, each a request more; 0: 2; negative: none
	LoopThreshold int           `json:"Repeats"` // how often a model may turn in a circle before it is told so, see below; 0: 3; at most 50; negative: for ever
	AtLimit       AtLimit       // what the last request is when a limit is reached
}

// NoRounds as Limits.Rounds: no call is ever run.
const NoRounds = -1

const defaultRounds = 20

// AtLimit is what a run does with its last request: when the rounds are used up, when a call was refused for Limits.Calls, and when one more request like
// the last would reach Limits.Tokens or Limits.Cost.
type AtLimit int

// What to do with the last request. The zero value means AtLimitReturn for Once and AtLimitAnswer for
// all other runs.
const (
	AtLimitAnswer AtLimit = iota + 1 // send it with tool choice none, so that the model answers
	AtLimitReturn                    // send it as usual, and leave the calls of its reply to the caller
)

// budget is what a run may use, the runs and calls inside of it included. The budgets of a run and of those it is inside are a chain: what is used
// counts in each of them at once, so nothing counts twice and nothing is handed out that is used elsewhere.
//
// Requests are let in against a reservation: the most they can use, held until it is known what they did. Where that does not fit beside
// what others hold, a request waits for them. So runs side by side pass a limit by no more than one request, as a run by itself
// does; and whoever wants them to ask side by side close to a limit says how long a reply may be (Settings.MaxTokens).
type budget struct {
	limits  *Limits
	begun   atomic.Int64 // calls
	refused atomic.Bool  // whether a call was, for this limit
	outer   *budget      // of the run that this one is inside; nil: none

	ledger *ledger // nil: neither here nor outside is there a limit of tokens or cost
	used   use
	held   use // by requests under way
	asking int // how many those are
}

// ledger is shared by the budgets of a chain.
type ledger struct {
	mu    sync.Mutex
	freed chan struct{} // closed, and made anew, when a request is over
}

// use is an amount of what is limited by requests.
type use struct {
	tokens int
	cost   float64
}

// open makes b the budget of a run inside outer, if that is not nil, which has spent from before.
func (b *budget) open(l *Limits, spent Spent, outer *budget) {
	b.limits, b.outer, b.used = l, outer, use{spent.Usage.Total(), spent.Usage.Cost}
	b.begun.Store(int64(spent.Calls))
	if outer != nil {
		b.ledger = outer.ledger
	}
	if b.ledger == nil && (l.Tokens > 0 || l.Cost > 0) {
		b.ledger = &ledger{freed: make(chan struct{})}
	}
}

// take counts a call that begins.
func (b *budget) take() error {
	for o := b; o != nil; o = o.outer {
		if n := o.begun.Add(1); o.limits.Calls > 0 && n > int64(o.limits.Calls) {
			o.refused.Store(true)
			for u := b; ; u = u.outer { // nothing was begun
				if u.begun.Add(-1); u == o {
					return &failure{outcome: OutcomeSkipped, limit: o.limits.Calls, text: fmt.Sprintf("Not run: the limit of %d calls was reached. Answer with what you have.", o.limits.Calls)}
				}
			}
		}
	}
	return nil
}

// giveBack undoes take: the call counts as never begun.
func (b *budget) giveBack() {
	for ; b != nil; b = b.outer {
		b.begun.Add(-1)
	}
}

// leaves reports whether n further calls may begin, whatever else goes on.
func (b *budget) leaves(n int) bool {
	for ; b != nil; b = b.outer {
		if b.limits.Calls > 0 && b.begun.Load()+int64(n) > int64(b.limits.Calls) {
			return false
		}
	}
	return true
}

// callsRefused returns the limit for which a call was refused.
func (b *budget) callsRefused() reached {
	for ; b != nil; b = b.outer {
		if b.refused.Load() {
			return reached{"calls", fmt.Sprintf("the limit of %d calls was reached", b.limits.Calls)}
		}
	}
	return reached{}
}

// costs reports whether there is a limit on cost.
func (b *budget) costs() bool {
	for ; b != nil; b = b.outer {
		if b.limits.Cost > 0 {
			return true
		}
	}
	return false
}

// LimitName names a limit: rounds, calls, tokens, cost or time, as in Limits, or output for the
// maximum length of a reply. "" means none.
type LimitName string

// reached is a limit that was reached, with the sentence for Result.Cause. The zero value means that
// none was.
type reached struct {
	limit LimitName
	cause string
}

// spent returns the limit that n more would reach. The caller holds the lock of the ledger.
func (b *budget) spent(n use) reached {
	for ; b != nil; b = b.outer {
		switch l := b.limits; {
		case l.Tokens > 0 && b.used.tokens+n.tokens >= l.Tokens:
			return reached{"tokens", fmt.Sprintf("%d tokens of %d are used up", b.used.tokens, l.Tokens)}
		case l.Cost > 0 && b.used.cost+n.cost >= l.Cost:
			return reached{"cost", fmt.Sprintf("$%.4f of $%.4f are spent", b.used.cost, l.Cost)}
		}
	}
	return reached{}
}

// room reports whether n fits beside what is held. The ledger is locked.
func (b *budget) room(n use) bool {
	for ; b != nil; b = b.outer {
		l, u, h := b.limits, b.used, b.held
		if b.asking > 0 && (l.Tokens > 0 && u.tokens+h.tokens+n.tokens > l.Tokens || l.Cost > 0 && u.cost+h.cost+n.cost > l.Cost) {
			return false
		}
	}
	return true
}

// reserve holds n for a request, once there is room. why names the limit that forbids it. When ctx ends it returns without.
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

// settle counts what the request has used for which n was held.
func (b *budget) settle(n, used use) {
	l := b.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for o := b; o != nil; o = o.outer {
		o.held.tokens -= n.tokens
		o.held.cost -= n.cost
		o.used.tokens += used.tokens
		o.used.cost += used.cost
		if o.asking--; o.asking == 0 {
			o.held = use{} // no rounding error stays
		}
	}
	close(l.freed)
	l.freed = make(chan struct{})
}

// add counts what was used elsewhere.
func (b *budget) add(calls int64, n use) {
	for o := b; o != nil; o = o.outer {
		o.begun.Add(calls)
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

// near names the limit that another request like the last one would reach; "" if none, or none was made.
func (b *budget) near(last use) reached {
	if b.ledger == nil || last == (use{}) {
		return reached{}
	}
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	return b.spent(last)
}

// admit reserves what the next request may use, where something is limited, and waits for those beside it where it has to. It names the limit
// that forbids the request; "" if none does.
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
		r.reply.need.cost, _ = r.setup.pricer.MaxCost(req) // there is one: see affordable
	}
	why, ok := b.reserve(ctx, r.reply.need)
	r.reply.reserved = ok
	return why
}

// paid counts what the request under way has used; without one it does nothing.
func (r *run) paid(u llm.Usage) {
	if r.reply.reserved {
		r.reply.reserved = false
		r.reply.used = use{u.Total(), u.Cost}
		r.scope.budget.settle(r.reply.need, r.reply.used)
	}
}

// affordable reports a limit on cost that nobody could keep.
func (r *run) affordable() error {
	if !r.scope.budget.costs() {
		return nil
	}
	if r.setup.pricer != nil {
		if _, known := r.setup.pricer.MaxCost(&llm.Request{Tools: r.setup.specs, Settings: r.agent.Settings}); known {
			return nil
		}
	}
	return errors.New("the price of the agent's model, or of one that may answer for it, is not known, so Limits.Cost cannot be kept: give it one with catalog.Price.Of or, where package provider opens it, in a catalogue of your own; or limit Tokens instead")
}
