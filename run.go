package pawl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	teller       *teller        // of the reply being made; nil: nobody watches, or nothing yet
	inbox        MessageSource  // nil: nobody sends messages
	beginner     Beginner       // begins calls early; nil: nobody does, or nothing may
	ahead        *ahead         // nil: no reply is being made, or nothing may begin early
	inside       *Invocation    // the call that the run is made in; nil: none
	branch       *Branch        // the run is made inside of a call elsewhere; nil: it is not
	asking       bool           // need is reserved for a request
	need         use
	last         use    // what the last request has used
	lastTurn     string // why the last request asks for an answer and nothing else; "": it does not
	stall        stall
	later        *later // tools that are offered once they are found; nil: none
	seq          int64
}

// take sorts what the run is given: the transcript, and what is said of its open calls. What was stored is healed: the messages of the
// Result that is resumed, or those up to the last reply. What the caller says now must be right.
func (r *run) take(from *Result, msgs []llm.Message) error {
	var in intake
	stored, n := msgs[:lastOf(msgs, llm.RoleAssistant)+1], 0
	if from != nil {
		stored = from.Messages
		r.waiting = from.Pending
	} else {
		msgs = msgs[len(stored):]
	}
	r.sent = make([]llm.Message, 1, len(stored)+len(msgs)+7)
	in.msgs = r.sent[1:]
	healed, mends := llm.Repair(stored)
	if len(mends) == 0 {
		for _, f := range llm.Check(stored) {
			if f.Code == llm.FaultUnknownRole || f.Code == llm.FaultUnknownPart { // nothing repairs these
				return &TranscriptError{Index: f.Message, Text: f.Text}
			}
		}
	}
	r.mends = mends
	for _, m := range healed {
		if err := in.add(n, m); err != nil {
			return fmt.Errorf("stored messages: %w", err)
		}
		n++
	}
	n = len(stored)
	opened := from != nil && len(in.open) > 0
	held := len(in.then)
	for _, m := range msgs {
		if err := in.add(n, m); err != nil {
			return err
		}
		n++
	}
	for _, m := range in.msgs {
		if m.Role == llm.RoleAssistant {
			r.replies++
		}
	}
	if len(in.then) > held {
		keys := r.openKeys(&in)
		for _, w := range r.waiting {
			decided := slices.ContainsFunc(in.decisions, func(d llm.Decision) bool { return d.Key == w.Key })
			if isOfAny(w.Key, keys) && !decided {
				return fmt.Errorf("call %s (%s) still waits; answer or deny it before a new message", w.Call.ID, w.Call.Name)
			}
		}
	}
	if len(in.msgs)+len(in.then) == 0 {
		return errors.New("there is no message to answer")
	}
	if last := len(in.msgs) - 1; len(in.then) == 0 && in.msgs[last].Role == llm.RoleAssistant && len(in.open) == 0 {
		if i := lastOf(msgs, llm.RoleAssistant); i >= 0 {
			last = len(stored) + i
		} else {
			last = lastOf(stored, llm.RoleAssistant) // where it was given, not where healing has put it
		}
		return &TranscriptError{Index: last, Text: "the conversation ends with an answer; add a message to go on"}
	}
	if err := r.answerable(&in); err != nil {
		return err
	}
	if opened && len(in.open) == 0 && !r.exhausted() {
		r.res.Spent.Rounds++ // its calls were carried out by the caller
	}
	r.res.Messages, r.decisions, r.then = in.msgs, in.decisions, in.then
	r.turn = max(0, lastOf(in.msgs, llm.RoleUser))
	return nil
}

// answerable reports a decision that answers no open call: it would be lost in silence.
func (r *run) answerable(in *intake) error {
	if len(in.decisions) == 0 {
		return nil
	}
	keys := r.openKeys(in)
	for i, d := range in.decisions {
		if slices.ContainsFunc(in.decisions[:i], func(o llm.Decision) bool { return o.Key == d.Key && o.Digest == d.Digest }) {
			return fmt.Errorf("there are two decisions for %q; a call is decided on once", d.Key)
		}
		if !isOfAny(d.Key, keys) {
			return fmt.Errorf("the decision for %q answers no open call; open: %s", d.Key, cmp.Or(strings.ReplaceAll(strings.Trim(fmt.Sprint(keys), "[]"), " ", ", "), "none"))
		}
	}
	return nil
}

// openKeys returns the keys of the open calls.
func (r *run) openKeys(in *intake) (keys []llm.Key) {
	if len(in.open) == 0 {
		return nil
	}
	for place, c := range in.msgs[in.at].Calls() {
		if hasCall(in.open, c.ID) {
			keys = append(keys, r.replyKey()+llm.Key("/"+strconv.Itoa(place)))
		}
	}
	return keys
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
