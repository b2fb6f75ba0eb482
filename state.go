package pawl

// state.go: run and its parts, the state that the loop works on.

import (
	"maps"
	"slices"
	"strconv"
	"strings"

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
	fault   error         // of the MessageSource; nil means none
	replies int           // number of replies
	at      int           // index of the last reply with calls
	turn    int           // index of the last message of the user

	authors authors // of the conversation

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
		instructions := llm.Text{Text: r.setup.instructions, Label: r.scope.label.Shared()}
		r.history.sent[0] = llm.Message{Role: llm.RoleSystem, Parts: []llm.Part{instructions}}
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

// authors is the join of the labels of a conversation, which grows with it.
//
// begin is called before its other methods.
type authors struct {
	read    int        // messages that label counts
	label   llm.Label  // the join of their labels
	changed bool       // label differs from last
	last    *llm.Label // what add returned, shared by the texts of several replies
}

// everybody are the readers of a text that nothing private went into.
var everybody = []string{llm.Everybody}

// label returns the label of what the model writes next.
func (r *run) label() *llm.Label { return r.history.authors.add(r.res.Messages) }

// labelOf returns the label of what a model writes after msgs.
// Its replies have the label of its instructions already.
func labelOf(msgs []llm.Message) *llm.Label {
	a := new(authors)
	a.begin(*llm.Operator.Label())
	return a.add(msgs)
}

// begin sets the label of the instructions, whose words a text of the model may have.
func (a *authors) begin(instructions llm.Label) {
	a.label = llm.Label{By: llm.Typed, Readers: everybody}
	if instructions.By < llm.Operator {
		a.label = a.label.Join(instructions)
	}
	a.changed = true
}

// add counts the messages of msgs that are new, and returns the label of a text that a model writes
// after msgs. Its words may come from each of them, but they are never the operator's.
func (a *authors) add(msgs []llm.Message) *llm.Label {
	for ; a.read < len(msgs); a.read++ {
		m := msgs[a.read]
		if m.Role == llm.RoleTool && a.read > 0 {
			a.addResults(msgs[a.read-1], m)
		} else if l, ok := m.Label(); ok {
			a.join(l)
		}
	}

	if a.changed {
		a.changed = false
		a.last = a.label.Shared()
	}
	return a.last
}

// join adds a label. Most labels change nothing.
func (a *authors) join(l llm.Label) {
	before := a.label
	a.label = before.Join(l)
	more := len(a.label.From) != len(before.From)
	fewer := len(a.label.Readers) != len(before.Readers)
	if a.label.By != before.By || more || fewer {
		a.changed = true
	}
}

// addResults adds the results of the calls of reply. A tool is a source, unless its results are
// trusted.
func (a *authors) addResults(reply, results llm.Message) {
	var tools []llm.Source
	for i, p := range results.Parts {
		l, _ := llm.Message{Parts: results.Parts[i : i+1]}.Label()
		a.join(l)
		if l.By >= llm.Trusted || len(tools) == llm.MaxSources {
			continue
		}
		for _, q := range reply.Parts {
			c, ok := q.(llm.ToolCall)
			if !ok || c.ID != p.(llm.ToolResult).CallID {
				continue
			}
			source := llm.Source{Kind: "tool", Name: c.Name}
			if !slices.Contains(a.label.From, source) && !slices.Contains(tools, source) {
				tools = append(tools, source)
			}
		}
	}
	a.addSources(tools)
}

// addSources adds sources to the label.
func (a *authors) addSources(sources []llm.Source) {
	if len(sources) == 0 {
		return
	}
	slices.SortFunc(sources, func(x, y llm.Source) int { return strings.Compare(x.Name, y.Name) })
	a.join(llm.Label{By: llm.Operator, From: sources, Readers: everybody})
}
