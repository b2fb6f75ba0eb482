package pawl

import (
	"maps"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl/llm"
)

// run is one run of an agent: what loop works on.
type run struct {
	agent  *Agent
	name   string
	key    llm.Key // "run", or the key of the call it is made in and the agent's name
	whole  bool
	sink   func(Event)
	rounds int
	model  llm.Model       // inside its middleware
	specs  []*llm.ToolSpec // of all tools of scope
	pricer llm.Pricer      // knows what a request costs; nil: nobody does
	scope  scope
	own    budget // scope's
	slots  slots  // scope's, unless it is inside another run
	res    *Result

	instructions string // those of the agent, with the plan that the run was given
	replies      int    // in the transcript
	reply        int    // where the last one with calls stands
	decisions    []llm.Decision
	mends        []llm.Repaired // to what was stored
	waiting      []PendingCall  // what the run that is resumed left pending
	then         []llm.Message  // messages that follow once no call is open
	turn         int            // where the user's last message stands
	output       *output        // what the answer must fit; nil: free text
	sent         []llm.Message  // instructions, where there are any, and transcript: one array
	lost         error          // with which the reply being made broke off
	asked        *llm.Request   // the request that the last reply answers
	deltas       *deltas        // nil until the reply being made has events
	inbox        MessageSource  // nil: nobody sends messages
	beginner     *Parallel      // starts calls early; nil means that no call starts early
	ahead        *ahead         // nil: no reply is being made, or nothing may begin early
	inside       *Invocation    // the call that the run is made in; nil: none
	branch       *Branch        // the run is made inside of a call elsewhere; nil: it is not
	asking       bool           // need is reserved for a request
	need         use
	last         use     // what the last request has used
	lastTurn     reached // the limit for which the last request asks for an answer and nothing else
	stall        stall
	later        *later // tools that are offered once they are found; nil: none
	seq          int64
}

// isOfAny reports whether key is of one of the calls at keys, or of one inside of it.
func isOfAny(key llm.Key, keys []llm.Key) bool {
	return slices.ContainsFunc(keys, func(k llm.Key) bool { return inOrUnder(key, k) })
}

// waitsFor returns what the call at key waited for when the run was resumed; nil: nothing.
func (r *run) waitsFor(key llm.Key) *PendingCall {
	for i := range r.waiting {
		if r.waiting[i].Key == key {
			return &r.waiting[i]
		}
	}
	return nil
}

// stillWait notes that none of tasks was carried out.
func (r *run) stillWait(tasks []Task) {
	for i := range tasks {
		r.stillWaits(tasks[i].Key)
	}
}

// stillWaits notes that the call at key, and those inside of it, wait for what they waited for before.
func (r *run) stillWaits(key llm.Key) {
	for _, w := range r.waiting {
		if inOrUnder(w.Key, key) {
			r.res.Pending = append(r.res.Pending, w)
		}
	}
}

func (r *run) requestKey() llm.Key { return r.key + llm.Key("/"+strconv.Itoa(r.replies)+"/model") }

func (r *run) replyKey() llm.Key { return r.key + llm.Key("/"+strconv.Itoa(r.replies)) }

// view returns what is sent: instructions in front of the transcript. The transcript only grows, so both are the same array, and what
// was sent before stays as it is.
func (r *run) view() []llm.Message {
	msgs := r.res.Messages
	if r.instructions == "" {
		return slices.Clip(msgs)
	}
	if cap(r.sent) <= len(msgs) || &r.sent[:2][1] != &msgs[0] { // it has outgrown its array
		all := make([]llm.Message, 1, len(msgs)+len(msgs)/2+8)
		all[0] = r.sent[0]
		r.sent = append(all, msgs...)
		r.res.Messages = r.sent[1:]
	}
	if r.sent[0].Role == "" {
		r.sent[0] = llm.System(r.instructions)
	}
	r.sent = r.sent[:len(msgs)+1]
	return slices.Clip(r.sent)
}

// offered returns the tools of the next request.
func (r *run) offered() []*llm.ToolSpec {
	if r.later == nil {
		return r.specs
	}
	return specs(r.later.tools(r.res.Messages))
}

// exhausted reports whether the rounds are used up.
func (r *run) exhausted() bool { return r.res.Spent.Rounds >= r.rounds }

// spend counts what was used, in the call that the run is made in too.
func (r *run) spend(s Spent) {
	r.res.Spent.Add(s)
	if r.inside != nil {
		r.inside.spend(s)
	}
}

// record keeps the step and tells of it.
func (r *run) record(resp *llm.Response, execs []Execution) {
	if r.res.Steps == nil {
		r.res.Steps = make([]Step, 0, 2)
	}
	r.res.Steps = append(r.res.Steps, Step{Request: r.asked, Response: resp, Executions: execs})
	r.asked = nil
	if r.sink == nil {
		return
	}
	s := r.res.Steps[len(r.res.Steps)-1] // a copy: the Result is the caller's
	outcomes := make([]Outcome, len(execs))
	for i := range execs {
		outcomes[i] = execs[i].Outcome
	}
	spent := r.res.Spent
	r.emit(Event{Kind: EventStep, Outcomes: outcomes, Spent: &spent, Completed: &s})
}

// merged returns old with the changes of a call, and leaves old as it is.
func merged(old, changes Values) Values {
	if len(changes) == 0 {
		return old
	}
	out := maps.Clone(old)
	if out == nil {
		out = Values{}
	}
	maps.Copy(out, changes)
	return out
}
