package pawl

// state.go: run and its parts, the state that the loop works on.

import (
	"maps"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl/internal/slots"
	"github.com/pawl-go/pawl/llm"
)

// run is one run of an agent: the state that loop works on.
type run struct {
	agent *Agent  // started
	name  string  // of the agent
	key   llm.Key // "run", or the key of the call around it and the name of the agent
	res   *Result
	scope scope           // shared with the calls
	own   budget          // scope.budget
	slots slots.Semaphore // scope.slots, unless the run is nested

	parent  parent
	resumed resumed
	setup   setup
	history history
	reply   reply
	output  *output       // format of the answer; nil means free text
	inbox   MessageSource // nil means none
	stall   stall
	out     out

	started Agent // the agent as it was when the run started
	warned  bool  // noticeUnstated has looked at the calls of this run
}

// parent is the call that a run is nested in. At most one field is set.
type parent struct {
	call   *Invocation // of this process
	branch *Branch     // of another process
}

// resumed is what the input of a run says about its open calls.
type resumed struct {
	decisions []llm.Decision
	pending   []PendingCall  // of the Result that is resumed
	repairs   []llm.Repaired // of the stored messages
	answer    *Answer        // of the Result, whose limit was raised; nil means none
	refused   []string       // why decisions were not used
	claimed   *Result        // whose open calls the first step executes; nil means none
}

// setup is what all requests of a run have in common.
type setup struct {
	model        llm.Model       // in its middleware
	pricer       llm.Pricer      // nil means that prices are unknown
	specs        []*llm.ToolSpec // of scope.tools
	deferred     *deferred       // tools that tool_search finds; nil means none
	instructions string          // of the agent, with the plan of the run
	rounds       int             // limit
	starter      *Parallel       // starts calls of unfinished replies; nil means none
}

// history is the position in the conversation, which is Result.Messages.
type history struct {
	sent    []llm.Message // instructions and conversation, in one array with Result.Messages
	then    []llm.Message // messages that follow when no call is open
	replies int           // number of replies
	at      int           // index of the last reply with calls
	turn    int           // index of the last message of the user

	answered bool // a request of this run, or of the run that it resumes, was answered
}

// reply is the state of one request and its reply.
type reply struct {
	request  *llm.Request // nil after the step is recorded
	err      error        // that ended the reply
	restarts int          // how often the request was sent again
	lost     llm.Usage    // of the replies before that
	deltas   *deltas      // nil until the reply has events
	ahead    *ahead       // calls started early; nil means none
	need     use          // reserved in the budget
	reserved bool         // need is reserved
	used     use          // by the last request
	final    reached      // limit for which the request asks for an answer
	answer   *Answer      // that the run ends with; nil means none
}

// out is the receiver of the events.
type out struct {
	sink func(Event) // nil means none
	seq  int64       // of the last event
}

// isOfAny reports whether key is the key of one of the calls at keys, or of a call nested in one.
func isOfAny(key llm.Key, keys []llm.Key) bool {
	return slices.ContainsFunc(keys, func(k llm.Key) bool { return inOrUnder(key, k) })
}

// stillWait keeps the pending calls of tasks that were not executed.
func (r *run) stillWait(tasks []Task) {
	for i := range tasks {
		r.stillWaits(tasks[i].Key)
	}
}

// stillWaits keeps the pending calls at key and nested in it.
func (r *run) stillWaits(key llm.Key) {
	for _, w := range r.resumed.pending {
		if inOrUnder(w.Key, key) {
			r.res.Pending = append(r.res.Pending, w)
		}
	}
}

func (r *run) requestKey() llm.Key {
	return r.key + llm.Key("/"+strconv.Itoa(r.history.replies)+"/model")
}

func (r *run) replyKey() llm.Key { return r.key + llm.Key("/"+strconv.Itoa(r.history.replies)) }

// view returns the messages of a request: instructions and conversation. Both are one array,
// because the conversation only grows.
func (r *run) view() []llm.Message {
	msgs := r.res.Messages
	if r.setup.instructions == "" {
		return slices.Clip(msgs)
	}
	if cap(r.history.sent) <= len(msgs) || &r.history.sent[:2][1] != &msgs[0] { // the array is full
		all := make([]llm.Message, 1, len(msgs)+len(msgs)/2+8)
		all[0] = r.history.sent[0]
		r.history.sent = append(all, msgs...)
		r.res.Messages = r.history.sent[1:]
	}
	if r.history.sent[0].Role == "" {
		r.history.sent[0] = llm.System(r.setup.instructions)
	}
	r.history.sent = r.history.sent[:len(msgs)+1]
	return slices.Clip(r.history.sent)
}

// exhausted reports whether the rounds are used up.
func (r *run) exhausted() bool { return r.res.Spent.Rounds >= r.setup.rounds }

// spend counts usage, also in the call around the run.
func (r *run) spend(s Spent) {
	r.res.Spent.Add(s)
	if r.parent.call != nil {
		r.parent.call.spend(s)
	}
}

// record adds a step to the Result, with its request, and emits it.
func (r *run) record(step Step) {
	if r.res.Steps == nil {
		r.res.Steps = make([]Step, 0, 2)
	}
	step.Request, r.reply.request = r.reply.request, nil
	r.res.Steps = append(r.res.Steps, step)
	if r.out.sink == nil {
		return
	}
	s := r.res.Steps[len(r.res.Steps)-1] // a copy: the Result is the caller's
	outcomes := make([]Outcome, len(s.Executions))
	for i := range s.Executions {
		outcomes[i] = s.Executions[i].Outcome
	}
	spent := r.res.Spent
	r.emit(Event{Kind: EventStep, Outcomes: outcomes, Spent: &spent, Error: s.Error, Completed: &s})
}

// merged returns a copy of old with the changes of a call.
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
