package llm

// check.go: Check finds the faults that make messages an invalid conversation.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// HistoryFault is a fault that makes a list of messages an invalid transcript (see Message), or a
// transcript that one API rejects. The codes are:
//
//	unknown_role      the role of a message is unknown
//	unknown_part      a part is nil or has an unknown type
//	misplaced_part    a part of this type cannot stand here
//	empty_message     a message other than a reply has no parts
//	call_id           a call of a reply has no id of its own
//	no_result         a call has no result (see HistoryRules.Settled)
//	no_call           a result has no call before it
//	second_result     the call already has a result
//	misplaced_result  a result is not right after its reply
//	result_order      results are not in the order of the calls
//	start             the API requires the user to speak first
//	reply_end         the API rejects this end of a reply
//
// Repair has a repair for each code except the first two.
type HistoryFault struct {
	Code    string `json:"code"`    // from the list above
	Message int    `json:"message"` // index of the message, from 0
	Part    int    `json:"part"`    // index of the part, from 0; -1 means the whole message
	Text    string `json:"text"`    // the fault, for people
}

// HistoryRules are the requirements of one API that go beyond a valid transcript and that its
// adapter does not meet by translation. Adapters translate the form of ids, alternating roles and
// empty texts. The zero value holds the rules of every transcript.
//
// An adapter calls RepairRequest before it sends a Request, and reports each repair in a Notice
// with the code "healed". provider.API has the rules of each API.
type HistoryRules struct {
	Settled   bool     // no call may be open, including the calls of the last reply
	UserFirst bool     // the first message after the instructions is a user's
	NotLast   []string // types in Reasoning.Opaque.Data that cannot end a reply
}

// Check returns the faults that make msgs an invalid transcript, in the order of the messages, or
// nil. Open calls of the last reply are valid, and so are messages that wait behind them.
func Check(msgs []Message) []HistoryFault { return HistoryRules{}.Check(msgs) }

// Check is the function Check with the rules of an API.
func (r HistoryRules) Check(msgs []Message) []HistoryFault {
	if r.sound(msgs) {
		return nil
	}
	_, repairs, lost := r.repair(msgs)
	faults := lost
	for _, m := range repairs {
		faults = append(faults, m.HistoryFault)
	}
	sortFaults(faults)
	return faults
}

// sound reports whether msgs have no fault. Every request pays for it, so it is a single pass
// without allocations.
func (r HistoryRules) sound(msgs []Message) bool {
	begun := !r.UserFirst
	open := false // the last reply has calls without a result
	calls := 0    // the number of calls in the previous message
	for i := range msgs {
		m := &msgs[i]
		before := calls
		calls = 0

		switch m.Role {
		case RoleUser, RoleSystem, RoleDeveloper:
			if len(m.Parts) == 0 || !textAndMedia(m.Parts) {
				return false
			}

		case RoleAssistant:
			if open {
				return false
			}
			calls = countCalls(m.Parts)
			if calls < 0 || r.cutBefore(m) < len(m.Parts) {
				return false
			}
			open = calls > 0

		case RoleTool:
			results := len(m.Parts)
			if results == 0 || results > before { // also a message that stands behind no reply
				return false
			}
			if !inOrder(msgs[i-1].Parts, m.Parts) {
				return false
			}
			open = results < before

		default:
			return false
		}

		if !begun && begins(m) {
			begun = true
			if m.Role != RoleUser {
				return false
			}
		}
	}
	return !open || !r.Settled
}

// textAndMedia reports whether parts have no other types.
func textAndMedia(parts []Part) bool {
	for _, p := range parts {
		switch p.(type) {
		case Text, Media:
		default:
			return false
		}
	}
	return true
}

// countCalls returns the number of calls in a reply. It returns -1 if the reply has a part that it
// cannot hold, or a call without an id of its own.
func countCalls(reply []Part) int {
	calls := 0
	for _, p := range reply {
		switch p := p.(type) {
		case Text, Reasoning, Media:
		case ToolCall:
			calls++
			if p.ID == "" {
				return -1
			}
		default:
			return -1
		}
	}
	if calls > 1 && !distinctIDs(reply) {
		return -1
	}
	return calls
}

// inOrder reports whether results answer calls of reply in their order, and have only parts that a
// result can hold.
func inOrder(reply, results []Part) bool {
	at := 0
	for _, p := range results {
		if _, ok := p.(ToolResult); !ok {
			return false
		}
		id := p.(ToolResult).CallID // avoids a copy of the other fields
		if !textAndMedia(p.(ToolResult).Parts) {
			return false
		}

		for ; at < len(reply); at++ {
			if _, ok := reply[at].(ToolCall); ok && reply[at].(ToolCall).ID == id {
				break
			}
		}
		if at == len(reply) {
			return false
		}
		at++
	}
	return true
}

// begins reports whether m can be the first message of a conversation. Instructions are not part of
// the conversation, and an empty message of the user is not sent.
func begins(m *Message) bool {
	switch m.Role {
	case RoleSystem, RoleDeveloper:
		return false
	case RoleUser:
		for _, p := range m.Parts {
			if t, ok := p.(Text); !ok || strings.TrimSpace(t.Text) != "" {
				return true
			}
		}
		return false
	}
	return true
}

// distinctIDs reports whether each call of a reply has an id of its own.
func distinctIDs(reply []Part) bool {
	const few = 32 // up to this length, comparing is cheaper than a map
	if len(reply) > few {
		return uniqueIDs(Assistant(reply...)) == nil
	}
	for i, p := range reply {
		c, ok := p.(ToolCall)
		if !ok {
			continue
		}
		for _, q := range reply[:i] {
			if d, ok := q.(ToolCall); ok && d.ID == c.ID {
				return false
			}
		}
	}
	return true
}

// cutBefore returns the number of parts that remain when the parts that cannot end a reply are
// dropped.
func (r HistoryRules) cutBefore(m *Message) int {
	n := len(m.Parts)
	for n > 0 && len(r.NotLast) > 0 {
		p, ok := m.Parts[n-1].(Reasoning)
		if !ok || p.Opaque == nil {
			break
		}
		var head struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(p.Opaque.Data, &head) != nil || !slices.Contains(r.NotLast, head.Type) {
			break
		}
		n--
	}
	return n
}

// known reports whether p is a value of a known type of part.
func known(p Part) bool { return partName(p) != noPart }

func newFault(code string, message, part int, format string, args ...any) HistoryFault {
	return HistoryFault{Code: code, Message: message, Part: part, Text: fmt.Sprintf(format, args...)}
}

// Validate returns an error if m has a part that it cannot hold, or a call without an id of its
// own. A message with decisions is valid. Check finds the faults between messages.
func (m Message) Validate() error {
	for _, p := range m.Parts {
		if err := allowed(m.Role, p); err != nil {
			return err
		}
	}
	if m.Role == RoleAssistant {
		return uniqueIDs(m)
	}
	return nil
}

// allowed returns an error if a message with this role cannot hold p.
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

// noPart is the name of a part that is nil or of an unknown type.
const noPart = "nothing"

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
	return noPart
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
