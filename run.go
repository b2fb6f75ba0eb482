package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// run is one run of an agent: what loop works on.
type run struct {
	agent  *Agent
	name   string
	key    Key // "run", or the key of the call it is made in and the agent's name
	whole  bool
	sink   func(Event)
	limits Limits
	rounds int
	model  Model // inside its middleware
	scope  scope
	res    *Result

	replies   int // in the transcript
	reply     int // where the last one with calls stands
	decisions []Decision
	mends     []Mend    // to what was stored
	waiting   []Waiting // what the run that is resumed left pending
	then      []Message // messages that follow once no call is open
	turn      int       // where the user's last message stands
	output    *output   // what the answer must fit; nil: free text
	sent      []Message // instructions and transcript, as last sent
	proof     proof     // of what is sent
	asked     *Request  // the request that the last reply answers
	ready     []int     // parts of the reply being made that were announced as ready calls
	inbox     Inbox     // nil: nobody sends messages
	beginner  Beginner  // begins calls early; nil: nobody does, or nothing may
	ahead     ahead
	inside    *Invocation // the call that the run is made in; nil: none
	asking    bool        // need is reserved for a request
	need      use
	last      use    // what the last request has used
	lastTurn  string // why the last request asks for an answer and nothing else; "": it does not
	stall     stall
	seq       int64
}

// emit tells whoever watches.
func (r *run) emit(e Event) {
	if r.sink == nil {
		return
	}
	if e.Run == "" {
		e.Run = r.key
		if e.Step == 0 {
			e.Step = r.replies
		}
	}
	r.seq++
	e.Seq = r.seq
	r.sink(e)
}

// take sorts what the run is given: the transcript, and what is said of its open calls. What was stored is healed: the messages of the
// Result that is resumed, or those up to the last reply. What the caller says now must be right.
func (r *run) take(from *Result, msgs []Message) error {
	var in intake
	stored, n := msgs[:lastOf(msgs, RoleAssistant)+1], 0
	if from != nil {
		stored = from.Messages
		r.waiting = from.Pending
	} else {
		msgs = msgs[len(stored):]
	}
	in.msgs = make([]Message, 0, len(stored)+len(msgs)+8)
	healed, mends, lost := Rules{}.heal(stored)
	if len(lost) > 0 {
		return &TranscriptError{Index: lost[0].Message, Text: lost[0].Text}
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
	if len(in.then) > held {
		for _, w := range r.waiting {
			decided := slices.ContainsFunc(in.decisions, func(d Decision) bool { return d.Key == w.Key })
			if hasCall(in.open, w.Call.ID) && !decided {
				return fmt.Errorf("call %s (%s) still waits; answer or deny it before a new message", w.Call.ID, w.Call.Name)
			}
		}
	}
	if len(in.msgs)+len(in.then) == 0 {
		return errors.New("there is no message to answer")
	}
	for _, m := range in.msgs {
		if m.Role == RoleAssistant {
			r.replies++
		}
	}
	if last := len(in.msgs) - 1; len(in.then) == 0 && in.msgs[last].Role == RoleAssistant && len(in.open) == 0 {
		if i := lastOf(msgs, RoleAssistant); i >= 0 {
			last = len(stored) + i
		} else {
			last = lastOf(stored, RoleAssistant) // where it was given, not where healing has put it
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
	r.turn = max(0, lastOf(in.msgs, RoleUser))
	return nil
}

// answerable reports a decision that answers no open call: it would be lost in silence.
func (r *run) answerable(in *intake) error {
	if len(in.decisions) == 0 {
		return nil
	}
	var keys []string
	if len(in.open) > 0 {
		for place, c := range in.msgs[in.at].Calls() {
			if hasCall(in.open, c.ID) {
				keys = append(keys, string(r.replyKey())+"/"+strconv.Itoa(place))
			}
		}
	}
	for i, d := range in.decisions {
		if slices.ContainsFunc(in.decisions[:i], func(o Decision) bool { return o.Key == d.Key && o.Digest == d.Digest }) {
			return fmt.Errorf("there are two decisions for %q; a call is decided on once", d.Key)
		}
		if !slices.ContainsFunc(keys, func(k string) bool { return string(d.Key) == k || strings.HasPrefix(string(d.Key), k+"/") }) {
			return fmt.Errorf("the decision for %q answers no open call; open: %s", d.Key, cmp.Or(strings.Join(keys, ", "), "none"))
		}
	}
	return nil
}

// waitsFor returns what the call at key waited for when the run was resumed; nil: nothing.
func (r *run) waitsFor(key Key) *Waiting {
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
		if w := r.waitsFor(tasks[i].Key); w != nil {
			r.res.Pending = append(r.res.Pending, *w)
		}
	}
}

func (r *run) requestKey() Key { return r.key + Key("/"+strconv.Itoa(r.replies)+"/model") }

func (r *run) replyKey() Key { return r.key + Key("/"+strconv.Itoa(r.replies)) }

// view returns what is sent: instructions in front of the transcript. The part that was sent before is kept as it is.
func (r *run) view() []Message {
	if r.agent.Instructions == "" {
		return slices.Clip(r.res.Messages)
	}
	if len(r.sent) == 0 {
		r.sent = make([]Message, 1, len(r.res.Messages)+16)
		r.sent[0] = System(r.agent.Instructions)
	}
	r.sent = append(r.sent[:len(r.sent):cap(r.sent)], r.res.Messages[len(r.sent)-1:]...)
	return slices.Clip(r.sent)
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
func (r *run) record(resp *Response, execs []Execution) {
	s := Step{Request: r.asked, Response: resp, Executions: execs}
	r.asked = nil
	r.res.Steps = append(r.res.Steps, s)
	if r.sink == nil {
		return
	}
	outcomes := make([]Outcome, len(execs))
	for i := range execs {
		outcomes[i] = execs[i].Outcome
	}
	spent := r.res.Spent
	r.emit(Event{Kind: EventStep, Outcomes: outcomes, Spent: &spent, Record: &s})
}

// tellMends tells what was put right in the messages that the run was given.
func (r *run) tellMends() {
	for i := 0; r.sink != nil && i < len(r.mends); i++ {
		n := r.mends[i].Notice()
		r.emit(Event{Kind: EventNotice, Code: n.Code, Text: n.Text, Data: n.Data})
	}
}

// tell turns a fragment of the reply into events.
func (r *run) tell(resp *Response, d Delta) {
	if r.sink == nil {
		return
	}
	step := r.replies + 1
	if d.Notice != nil {
		r.emit(Event{Kind: EventNotice, Step: step, Code: d.Notice.Code, Text: d.Notice.Text, Data: d.Notice.Data})
	}
	switch p := d.Part.(type) {
	case Text:
		if p.Text != "" {
			r.emit(Event{Kind: EventText, Step: step, Index: d.Index, Text: p.Text})
		}
	case Reasoning:
		if p.Text != "" {
			r.emit(Event{Kind: EventReasoning, Step: step, Index: d.Index, Text: p.Text})
		}
	case ToolCall:
		c := resp.Message.Parts[d.Index].(ToolCall)
		r.emit(Event{Kind: EventCallDelta, Step: step, Index: d.Index, Call: &ToolCall{ID: c.ID, Name: c.Name}, Text: string(p.Args)})
	}
	if d.Done {
		r.callReady(resp, d.Index)
	}
	if d.Finish != "" {
		for i := range resp.Message.Parts {
			r.callReady(resp, i)
		}
		r.ready = r.ready[:0]
	}
}

func (r *run) callReady(resp *Response, i int) {
	c, ok := resp.part(i).(ToolCall)
	if !ok || slices.Contains(r.ready, i) {
		return
	}
	r.ready = append(r.ready, i)
	r.emit(Event{Kind: EventCallReady, Step: r.replies + 1, Index: i, Call: &c})
}

// retract drops text that only echoes a call's arguments.
func (r *run) retract(resp *Response) {
	var kept []Part // nil: all
	for i, p := range resp.Message.Parts {
		if t, ok := p.(Text); ok && echoes(t.Text, resp.Message) {
			r.emit(Event{Kind: EventTextRetracted, Step: r.replies + 1, Index: i, Text: t.Text})
			if kept == nil {
				kept = append(make([]Part, 0, len(resp.Message.Parts)), resp.Message.Parts[:i]...)
			}
			continue
		}
		if kept != nil {
			kept = append(kept, p)
		}
	}
	if kept != nil {
		resp.Message.Parts = kept
	}
}

// answered stops at a reply without calls.
func (r *run) answered(resp *Response) (Stop, error) {
	switch {
	case resp.Finish == FinishLength:
		return r.limit("the answer was cut at the bound of the model's output")
	case resp.Finish == FinishContentFilter:
		return StopFailed, &ProviderError{Code: CodeContentFilter, Message: cmp.Or(resp.Message.Text(), "the reply was withheld")}
	case resp.Finish == FinishError:
		return StopFailed, &ProviderError{Code: CodeServer, Message: cmp.Or(resp.Message.Text(), "the provider ended the reply with an error")}
	case r.output.unfit():
		return r.unfit()
	case r.lastTurn != "":
		return r.limit(r.lastTurn + "; the model was asked to answer")
	case r.scope.budget.callsRefused() > 0:
		return r.limit(fmt.Sprintf("the limit of %d calls was reached", r.scope.budget.callsRefused()))
	case strings.TrimSpace(resp.Message.Text()) == "":
		r.res.Cause = "the answer is empty"
	}
	return StopAnswer, nil
}

// finished stops at a call that ends the run.
func (r *run) finished(x *Execution) (Stop, error) {
	switch {
	case x.Ends == EndsFailed:
		return StopFailed, &ToolError{Execution: *x, Err: x.err}
	case r.answers(x.Call) && len(r.res.Pending) > 0:
		return r.pending() // what the other calls come to may change it: the model is asked again then
	case r.answers(x.Call):
		r.res.Output, r.res.Repairs = x.Call.Args, x.Repairs
		if r.lastTurn != "" && !r.output.asked {
			return r.limit(r.lastTurn + "; the model was asked to answer")
		}
		return StopAnswer, nil
	}
	return StopFinished, nil
}

func (r *run) limit(cause string) (Stop, error) {
	r.res.Cause = cause
	return StopLimit, nil
}

func (r *run) pending() (Stop, error) {
	names := make([]string, len(r.res.Pending))
	for i, w := range r.res.Pending {
		names[i] = w.Call.Name
	}
	r.res.Cause = "calls wait for an answer: " + strings.Join(names, ", ")
	return StopPending, nil
}

func (r *run) stalled() (Stop, error) {
	r.res.Cause = r.stall.cause
	return StopStalled, nil
}

// interrupted stops a run whose context has ended.
func (r *run) interrupted(ctx context.Context) (Stop, error) {
	switch cause := context.Cause(ctx); cause {
	case ErrTime:
		if r.limits.Time == 0 {
			return r.limit("the time is used up") // somebody else's clock
		}
		return r.limit(fmt.Sprintf("the time of %v is used up", r.limits.Time))
	case ErrCancelled:
		r.res.Cause = "the run was cancelled"
		return StopCancelled, nil
	default:
		r.res.Cause = "interrupted: " + cause.Error()
		return StopCancelled, cause
	}
}

// broken stops a run whose model failed. What it had said is dropped; the transcript is as it was before the request.
func (r *run) broken(ctx context.Context, req *Request, err error) (Stop, error) {
	if ctx.Err() != nil {
		return r.interrupted(ctx)
	}
	var ee ExecutionError
	if errors.As(err, &ee) {
		r.replies++ // the failed step has a number of its own
		r.asked = req
		x := ee.FailedExecution()
		r.spend(x.Spent) // the attempts were paid for
		r.paid(x.Spent.Usage)
		r.record(nil, []Execution{x})
	}
	return StopFailed, fmt.Errorf("%s: %w", req.Key, err)
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
