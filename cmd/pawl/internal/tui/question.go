package tui

// question.go: what a person is asked about: one call, or the calls of a step with the same doubts.

import (
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// question is what a person is asked. A question with doubts is about the values of the call: a yes
// to it covers these values in this step, and no later call of the tool.
type question struct {
	call   llm.ToolCall
	why    string
	doubts []pawl.Doubt
	path   llm.Key
	others []llm.ToolCall // further calls of the step with the same doubts
}

// mayRepeat reports whether a person may answer all later questions like it. A yes to a value that
// a stranger's text may have named is for that call alone.
func (q question) mayRepeat() bool { return len(q.doubts) == 0 }

// key identifies questions with the same answer. The reason of a rule is the same for each call of
// a tool. Doubts have the values in question, and the key of the step.
func (q question) key() string {
	if q.mayRepeat() {
		return q.call.Name + "\x00" + q.why
	}
	step := string(q.path)
	step = step[:max(0, strings.LastIndexByte(step, '/'))]
	return q.call.Name + "\x00" + step + "\x00" + q.why
}

// calls are the calls that a yes covers.
func (q question) calls() []llm.ToolCall { return append([]llm.ToolCall{q.call}, q.others...) }

// title names the calls.
func (q question) title() string {
	if len(q.others) == 0 {
		return q.call.Name
	}
	return fmt.Sprintf("%s (%d calls)", q.call.Name, 1+len(q.others))
}

// othersOf returns the calls of the open questions with the key of q.
func othersOf(q question, open []pawl.PendingCall) (others []llm.ToolCall) {
	if q.mayRepeat() {
		return nil
	}
	for _, o := range open {
		same := question{call: o.Call, why: o.Why, doubts: o.Doubts, path: o.Key}
		if o.Outcome == pawl.OutcomePending && !o.Passive && !same.mayRepeat() && same.key() == q.key() {
			others = append(others, o.Call)
		}
	}
	return others
}

// othersIn returns the other calls in the last reply of msgs, of the same tool, with all of the
// values that q has doubts about. The policy may not have judged them yet: a yes to q is used for
// those with the same doubts.
func (a *asker) othersIn(q question, msgs []llm.Message) (others []llm.ToolCall) {
	if q.mayRepeat() || len(msgs) == 0 {
		return nil
	}
	for _, c := range msgs[len(msgs)-1].Calls() {
		isOther := c.ID != q.call.ID && c.Name == q.call.Name && !a.asked[callKey(c)]
		if isOther && q.hasDoubtfulValues(c) {
			others = append(others, c)
		}
	}
	return others
}

// callKey identifies a call of a conversation.
func callKey(c llm.ToolCall) string { return c.ID + "\x00" + string(c.Args) }

// hasDoubtfulValues reports whether the arguments of c have each value that q has doubts about.
func (q question) hasDoubtfulValues(c llm.ToolCall) bool {
	for _, d := range q.doubts {
		value := strings.TrimSuffix(d.Value, "…")
		if value == "" || !strings.Contains(string(c.Args), value) {
			return false
		}
	}
	return true
}

// isAnswered reports whether the person has answered q with yes already. a.mu is locked, or only
// one goroutine asks.
func (a *asker) isAnswered(q question) bool { return a.always[q.key()] && a.covers(q) }

// agreed records a yes to q. always means that it is also one to all later questions like it.
func (a *asker) agreed(q question, always bool) {
	if q.mayRepeat() && !always {
		return
	}
	a.always[q.key()] = true

	// The person has seen these calls, and no other ones. A question that may repeat has none.
	for _, c := range q.others {
		a.seen[callKey(c)] = true
	}
}

// covers reports whether a yes that was given covers the call of q.
func (a *asker) covers(q question) bool {
	return q.mayRepeat() || a.seen[callKey(q.call)]
}
