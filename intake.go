package pawl

// intake.go: sorts the messages that a run starts with: history, decisions and new messages.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// lastOf returns the index of the last message of role; -1 if there is none.
func lastOf(msgs []llm.Message, role llm.Role) int {
	i := len(msgs) - 1
	for i >= 0 && msgs[i].Role != role {
		i--
	}
	return i
}

// withResults adds results, in call order, to the message of results after the reply at index i.
// It returns the new conversation and changes no message of msgs.
func withResults(msgs []llm.Message, i int, results []llm.Part) []llm.Message {
	if len(results) == 0 {
		return msgs
	}
	if i+1 >= len(msgs) || msgs[i+1].Role != llm.RoleTool {
		return append(msgs, llm.Message{Role: llm.RoleTool, Parts: results})
	}
	byCall := map[string]llm.Part{}
	for _, p := range append(msgs[i+1].Parts[:len(msgs[i+1].Parts):len(msgs[i+1].Parts)], results...) {
		byCall[p.(llm.ToolResult).CallID] = p
	}
	m := llm.Message{Role: llm.RoleTool, Parts: make([]llm.Part, 0, len(byCall))}
	for _, c := range msgs[i].Calls() {
		if p, ok := byCall[c.ID]; ok {
			m.Parts = append(m.Parts, p)
		}
	}
	return append(msgs[:i+1:i+1], m)
}

// intake sorts messages into the conversation so far, the decisions about its open calls, and the
// messages that follow when those calls have results.
type intake struct {
	msgs      []llm.Message
	decisions []llm.Decision
	then      []llm.Message

	open []llm.ToolCall // of the last reply in msgs
	at   int            // index of that reply
}

// add adds a message. n is its index for errors.
func (in *intake) add(n int, m llm.Message) error {
	bad := func(format string, args ...any) error {
		return &TranscriptError{Index: n, Text: fmt.Sprintf(format, args...)}
	}
	if err := m.Validate(); err != nil {
		return bad("%v", err)
	}

	decisions := 0
	for _, p := range m.Parts {
		if d, ok := p.(llm.Decision); ok {
			decisions++
			in.decisions = append(in.decisions, d)
		}
	}
	if decisions > 0 && decisions == len(m.Parts) {
		return nil
	}
	if decisions > 0 {
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool {
			_, ok := p.(llm.Decision)
			return ok
		})
	}

	switch m.Role {
	case llm.RoleTool:
		return in.results(m, bad)
	case llm.RoleAssistant:
		if len(in.open) > 0 {
			return bad("a reply follows calls that have no result: %s", callIDs(in.open))
		}
		in.msgs = append(in.msgs, m)
		in.open, in.at = openCalls(in.msgs)
	case llm.RoleSystem, llm.RoleDeveloper, llm.RoleUser:
		if len(in.open) == 0 {
			in.msgs = append(in.msgs, m)
		} else {
			in.then = append(in.then, m)
		}
	default:
		return bad("unknown role %q; known: system, developer, user, assistant, tool", m.Role)
	}
	return nil
}

func (in *intake) results(m llm.Message, bad func(string, ...any) error) error {
	given := map[string]llm.Part{}
	for _, p := range m.Parts {
		r := p.(llm.ToolResult)
		switch {
		case !hasCall(in.open, r.CallID):
			return bad("the result for call %q answers no open call; open: %s", r.CallID, callIDs(in.open))
		case given[r.CallID] != nil:
			return bad("call %q has two results", r.CallID)
		}
		given[r.CallID] = r
	}
	var ordered []llm.Part
	for _, c := range in.open {
		if p := given[c.ID]; p != nil {
			ordered = append(ordered, p)
		}
	}
	in.msgs = withResults(in.msgs, in.at, ordered)
	in.open, in.at = openCalls(in.msgs)
	in.flush()
	return nil
}

// settle answers the open calls with errors, and returns these repairs.
func (in *intake) settle() (done []llm.Repaired) {
	if len(in.open) > 0 {
		in.msgs, done = llm.HistoryRules{Settled: true}.Repair(in.msgs)
		in.open = nil
		in.at = -1
		in.flush()
	}
	return done
}

// flush appends the messages that follow if no call is open.
func (in *intake) flush() {
	if len(in.open) == 0 {
		in.msgs = append(in.msgs, in.then...)
		in.then = nil
	}
}

// openCalls returns the calls of the last reply that have no result, and the index of that reply.
// The index is -1 if there is no reply or if it has no calls.
func openCalls(msgs []llm.Message) (open []llm.ToolCall, at int) {
	at = lastOf(msgs, llm.RoleAssistant)
	if at < 0 || !msgs[at].HasCalls() {
		return nil, -1
	}
	var results []llm.Part
	if at+1 < len(msgs) && msgs[at+1].Role == llm.RoleTool {
		results = msgs[at+1].Parts
	}
	for _, p := range msgs[at].Parts {
		c, ok := p.(llm.ToolCall)
		isResult := func(p llm.Part) bool {
			r, ok := p.(llm.ToolResult)
			return ok && r.CallID == c.ID
		}
		if !ok || slices.ContainsFunc(results, isResult) {
			continue
		}
		if open == nil {
			open = make([]llm.ToolCall, 0, len(msgs[at].Parts))
		}
		open = append(open, c)
	}
	return open, at
}

func hasCall(calls []llm.ToolCall, id string) bool {
	for _, c := range calls {
		if c.ID == id {
			return true
		}
	}
	return false
}

func callIDs(calls []llm.ToolCall) string {
	if len(calls) == 0 {
		return "none"
	}
	ids := make([]string, len(calls))
	for i, c := range calls {
		ids[i] = c.ID + " (" + c.Name + ")"
	}
	return strings.Join(ids, ", ")
}

// accept sorts the input of a run into history, decisions and new messages. It repairs stored
// history, which is the messages of a resumed Result or the messages up to the last reply, and
// rejects invalid new messages. Only the open calls of from stay open: msgs may come from a client,
// so their open calls get error results.
func (r *run) accept(from *Result, msgs []llm.Message) error {
	stored := msgs[:lastOf(msgs, llm.RoleAssistant)+1]
	added := msgs[len(stored):]
	if from != nil {
		stored = from.Messages
		added = msgs
		r.resumed.pending = from.Pending
	}

	// A run adds some messages of its own.
	r.history.sent = make([]llm.Message, 1, len(stored)+len(added)+16)
	in := intake{msgs: r.history.sent[1:]}
	if err := r.acceptStored(&in, stored); err != nil {
		return err
	}
	opened := from != nil && len(in.open) > 0
	held := len(in.then)
	recorded := len(in.msgs)

	for i, m := range added {
		if emptyMessage(m) {
			return &TranscriptError{Index: len(stored) + i, Text: "the message of the user is empty; it needs a text or media"}
		}
		if err := in.add(len(stored)+i, m); err != nil {
			return err
		}
	}
	if from == nil || in.at >= recorded {
		r.resumed.repairs = append(r.resumed.repairs, in.settle()...)
	}
	if from != nil && len(added) == 0 {
		r.raised(from, &in)
	}

	for _, m := range in.msgs {
		if m.Role == llm.RoleAssistant {
			r.history.replies++
		}
	}

	// The keys of open calls have the number of replies.
	if len(in.then) > held {
		if err := r.undecided(&in); err != nil {
			return err
		}
	}
	if err := r.unanswered(&in, stored, added); err != nil {
		return err
	}
	if len(in.decisions) > 0 {
		if err := r.answerable(&in); err != nil {
			return err
		}
	}

	if opened && len(in.open) == 0 && !r.exhausted() {
		r.res.Spent.Rounds++ // the caller executed its calls
	}
	r.res.Messages = in.msgs
	r.resumed.decisions = in.decisions
	r.history.then = in.then
	r.history.turn = max(0, lastOf(in.msgs, llm.RoleUser))
	return nil
}

// acceptStored adds the stored messages, repaired. It returns an error for what nothing repairs.
func (r *run) acceptStored(in *intake, stored []llm.Message) error {
	if len(stored) == 0 {
		return nil
	}

	repaired, done := llm.Repair(stored)
	if len(done) == 0 {
		for _, f := range llm.Check(stored) {
			if f.Code == "unknown_role" || f.Code == "unknown_part" {
				return &TranscriptError{Index: f.Message, Text: f.Text}
			}
		}
	}
	r.resumed.repairs = done

	for i, m := range repaired {
		if err := in.add(i, m); err != nil {
			return fmt.Errorf("stored messages: %w", err)
		}
	}
	return nil
}

// undecided returns an error for a pending call that has no decision, although a message follows.
func (r *run) undecided(in *intake) error {
	keys := r.openKeys(in)
	for _, w := range r.resumed.pending {
		decided := slices.ContainsFunc(in.decisions, func(d llm.Decision) bool { return d.Key == w.Key })
		if isOfAny(w.Key, keys) && !decided {
			return fmt.Errorf("call %s (%s) still waits; answer or deny it before a new message", w.Call.ID, w.Call.Name)
		}
	}
	return nil
}

// unanswered returns an error if the input leaves nothing to do: it has no message, or ends with an
// answer.
func (r *run) unanswered(in *intake, stored, added []llm.Message) error {
	if len(in.msgs)+len(in.then) == 0 {
		return errors.New("there is no message to answer")
	}

	isOpen := len(in.then)+len(in.open) > 0 || r.resumed.answer != nil
	if isOpen || in.msgs[len(in.msgs)-1].Role != llm.RoleAssistant {
		return nil
	}

	// The index of the caller's message: the repair may have changed the number of messages.
	last := lastOf(stored, llm.RoleAssistant)
	if i := lastOf(added, llm.RoleAssistant); i >= 0 {
		last = len(stored) + i
	}
	return &TranscriptError{Index: last, Text: "the conversation ends with an answer; add a message to continue"}
}

// emptyMessage reports whether m is a message of the user with nothing but empty texts. A message
// without parts is one of no decisions.
func emptyMessage(m llm.Message) bool {
	filled := func(p llm.Part) bool {
		t, ok := p.(llm.Text)
		return !ok || strings.TrimSpace(t.Text) != ""
	}
	return m.Role == llm.RoleUser && len(m.Parts) > 0 && !slices.ContainsFunc(m.Parts, filled)
}

// raised continues from, which stopped at a limit, without a message: see Agent.Resume.
func (r *run) raised(from *Result, in *intake) {
	if from.Stop != StopLimit || len(in.open) > 0 {
		return
	}

	if answer := from.answered(); answer != nil && !answer.Forced {
		r.resumed.answer = answer
		r.res.Output = from.Output
		r.res.Repairs = from.Repairs
		return
	}

	// The model is asked again, as if it had not written the last reply.
	last := len(in.msgs) - 1
	if last > 0 && in.msgs[last].Role == llm.RoleAssistant {
		in.msgs = in.msgs[:last]
	}
}

// answerable returns an error for a decision that answers no open call.
func (r *run) answerable(in *intake) error {
	keys := r.openKeys(in)
	for i, d := range in.decisions {
		same := func(o llm.Decision) bool { return o.Key == d.Key && o.Digest == d.Digest }
		if slices.ContainsFunc(in.decisions[:i], same) {
			return fmt.Errorf("there are two decisions for %q; a call is decided on once", d.Key)
		}
		if !isOfAny(d.Key, keys) {
			open := strings.ReplaceAll(strings.Trim(fmt.Sprint(keys), "[]"), " ", ", ")
			return fmt.Errorf("the decision for %q answers no open call; open: %s", d.Key,
				cmp.Or(open, "none; Resume needs the Result that has the call"))
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
