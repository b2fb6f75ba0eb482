package pawl

import (
	"fmt"
	"slices"
	"strings"
)

// lastReply returns where the last reply stands, -1 if there is none or it has no calls, and the message with its results.
func lastReply(msgs []Message) (at int, answers Message) {
	at = len(msgs) - 1
	for at >= 0 && msgs[at].Role != RoleAssistant {
		at--
	}
	if at < 0 || !msgs[at].HasCalls() {
		return -1, answers
	}
	if at+1 < len(msgs) && msgs[at+1].Role == RoleTool {
		answers = msgs[at+1]
	}
	return at, answers
}

// openCalls returns the calls of the last reply that have no result, and where that reply stands.
func openCalls(msgs []Message) (open []ToolCall, at int) {
	at, answers := lastReply(msgs)
	if at < 0 {
		return nil, at
	}
	for _, p := range msgs[at].Parts {
		if c, ok := p.(ToolCall); ok && !answers.answers(c.ID) {
			open = append(open, c)
		}
	}
	return open, at
}

// answered puts results, which stand in call order, into the one results message after the reply at index i, and returns the
// transcript. No message of the old one is changed.
func answered(msgs []Message, i int, results []Part) []Message {
	if len(results) == 0 {
		return msgs
	}
	if i+1 >= len(msgs) || msgs[i+1].Role != RoleTool {
		return append(msgs, Message{RoleTool, results})
	}
	byCall := map[string]Part{}
	for _, p := range append(msgs[i+1].Parts[:len(msgs[i+1].Parts):len(msgs[i+1].Parts)], results...) {
		byCall[p.(ToolResult).CallID] = p
	}
	m := Message{Role: RoleTool, Parts: make([]Part, 0, len(byCall))}
	for _, c := range msgs[i].Calls() {
		if p, ok := byCall[c.ID]; ok {
			m.Parts = append(m.Parts, p)
		}
	}
	return append(msgs[:i+1:i+1], m)
}

// intake sorts what a run is given: the transcript so far, decisions on its open calls, and the messages that follow once those are
// settled.
type intake struct {
	msgs      []Message
	decisions []Decision
	then      []Message

	open []ToolCall // of the last reply in msgs
	at   int        // where it is
}

// add takes one message more; n is its number, for errors.
func (in *intake) add(n int, m Message) error {
	bad := func(format string, args ...any) error {
		return &TranscriptError{Index: n, Text: fmt.Sprintf(format, args...)}
	}
	decisions := 0
	for _, p := range m.Parts {
		if err := allowed(m.Role, p); err != nil {
			return bad("%v", err)
		}
		if d, ok := p.(Decision); ok {
			decisions++
			in.decisions = append(in.decisions, d)
		}
	}
	if decisions > 0 {
		if decisions == len(m.Parts) {
			return nil
		}
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool { _, ok := p.(Decision); return ok })
	}
	switch m.Role {
	case RoleTool:
		return in.results(m, bad)
	case RoleAssistant:
		if len(in.open) > 0 {
			return bad("a reply follows calls that have no result: %s", callIDs(in.open))
		}
		if err := uniqueIDs(m); err != nil {
			return bad("%v", err)
		}
		in.msgs = append(in.msgs, m)
		in.open, in.at = openCalls(in.msgs)
	case RoleSystem, RoleDeveloper, RoleUser:
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

func (in *intake) results(m Message, bad func(string, ...any) error) error {
	given := map[string]Part{}
	for _, p := range m.Parts {
		r := p.(ToolResult)
		switch {
		case !hasCall(in.open, r.CallID):
			return bad("the result for call %q answers no open call; open: %s", r.CallID, callIDs(in.open))
		case given[r.CallID] != nil:
			return bad("call %q has two results", r.CallID)
		}
		given[r.CallID] = r
	}
	var ordered []Part
	for _, c := range in.open {
		if p := given[c.ID]; p != nil {
			ordered = append(ordered, p)
		}
	}
	in.msgs = answered(in.msgs, in.at, ordered)
	in.open, in.at = openCalls(in.msgs)
	in.flush()
	return nil
}

// flush lets the messages that were held back follow, once no call is open.
func (in *intake) flush() {
	if len(in.open) == 0 {
		in.msgs = append(in.msgs, in.then...)
		in.then = nil
	}
}

// allowed says which parts a message may hold.
func allowed(role Role, p Part) error {
	ok := false
	switch p := p.(type) {
	case Text, Media:
		ok = role != RoleTool
	case Reasoning, ToolCall:
		ok = role == RoleAssistant
	case ToolResult:
		ok = role == RoleTool
		for _, q := range p.Parts {
			switch q.(type) {
			case Text, Media:
			default:
				return fmt.Errorf("a result cannot hold %s", partName(q))
			}
		}
	case Decision:
		ok = true
	case nil:
		return fmt.Errorf("a part is nil")
	}
	if !ok {
		return fmt.Errorf("a message of the role %s cannot hold %s", role, partName(p))
	}
	return nil
}

func partName(p Part) string {
	switch p.(type) {
	case Text:
		return "text"
	case Reasoning:
		return "reasoning"
	case Media:
		return "media"
	case ToolCall:
		return "a call"
	case ToolResult:
		return "a result"
	case Decision:
		return "a decision"
	}
	return "nothing"
}

func uniqueIDs(m Message) error {
	seen := map[string]bool{}
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			if c.ID == "" || seen[c.ID] {
				return fmt.Errorf("call id %q is empty or there twice; each call of a reply needs its own", c.ID)
			}
			seen[c.ID] = true
		}
	}
	return nil
}

func hasCall(calls []ToolCall, id string) bool {
	for _, c := range calls {
		if c.ID == id {
			return true
		}
	}
	return false
}

func callIDs(calls []ToolCall) string {
	if len(calls) == 0 {
		return "none"
	}
	ids := make([]string, len(calls))
	for i, c := range calls {
		ids[i] = c.ID + " (" + c.Name + ")"
	}
	return strings.Join(ids, ", ")
}
