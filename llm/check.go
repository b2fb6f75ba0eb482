package llm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that keeps a list of messages from being a valid transcript (see Message), or from being one that an API takes.
type Fault struct {
	Code    FaultCode `json:"code"`
	Message int       `json:"message"` // which, from 0
	Part    int       `json:"part"`    // which of its parts, from 0; -1: the message as a whole
	Text    string    `json:"text"`    // what is wrong, for people
}

// FaultCode says what kind a Fault is of.
type FaultCode string

// The faults. There is a mend for each but the first two.
const (
	FaultUnknownRole FaultCode = "unknown_role"     // nobody knows who speaks
	FaultUnknownPart FaultCode = "unknown_part"     // a part is nil or of no known type
	FaultPart        FaultCode = "misplaced_part"   // the message, or the result, cannot hold such a part
	FaultEmpty       FaultCode = "empty_message"    // a message without parts that is no reply
	FaultCallID      FaultCode = "call_id"          // a call has no id, or that of another call of its reply
	FaultUnanswered  FaultCode = "no_result"        // a call of a reply before the last has no result
	FaultOrphan      FaultCode = "no_call"          // a result has no call before it
	FaultSecond      FaultCode = "second_result"    // the call has a result already
	FaultMoved       FaultCode = "misplaced_result" // a result does not stand in the message right after its reply
	FaultOrder       FaultCode = "result_order"     // results do not stand in the order of their calls
	FaultStart       FaultCode = "start"            // the API wants the user to speak first
	FaultEnd         FaultCode = "reply_end"        // the API takes no reply that ends so
)

// Rules are what one API wants of a transcript beyond what makes it valid, as far as its adapter does not see to it: forms of ids,
// alternation and empty texts are the adapter's to translate. The zero value is what every transcript must keep.
type Rules struct {
	Settled   bool     // no call may be open: calls of the last reply have their results, too
	UserFirst bool     // whoever speaks first, instructions aside, is the user
	NotLast   []string // types of a reasoning part's Opaque.Data that cannot end a reply
}

// RulesOf returns the rules that an API has for the messages of a request: openai-chat, openai-responses, anthropic-messages (or
// anthropic) or gemini. An API that is not known has none. The adapters of this module keep their own API's: what a Request holds is
// checked before it is sent, and what is mended is told by a Notice with the code "healed".
func RulesOf(api string) Rules {
	switch api {
	case "anthropic-messages", "anthropic":
		return Rules{Settled: true, UserFirst: true, NotLast: []string{"thinking", "redacted_thinking"}}
	case "gemini":
		return Rules{Settled: true, UserFirst: true}
	case "openai-chat", "openai-responses":
		return Rules{Settled: true}
	}
	return Rules{}
}

// Check returns what keeps msgs from being a valid transcript, in the order of the messages; nil when nothing does. Open calls of
// the last reply are no fault, nor are words that wait behind them.
func Check(msgs []Message) []Fault { return Rules{}.Check(msgs) }

// Check is the function Check with the rules of an API.
func (r Rules) Check(msgs []Message) []Fault {
	if r.sound(msgs) {
		return nil
	}
	_, mends, lost := r.mend(msgs)
	faults := lost
	for _, m := range mends {
		faults = append(faults, m.Fault)
	}
	sortFaults(faults)
	return faults
}

// sound reports whether msgs have no fault. It is what every request pays, so it goes through them once and allocates nothing.
func (r Rules) sound(msgs []Message) bool {
	begun := !r.UserFirst
	open := false // the last reply has calls without a result
	calls := 0    // of the reply right before
	for i := range msgs {
		m := &msgs[i]
		of := calls
		calls = 0
		switch m.Role {
		case RoleUser, RoleSystem, RoleDeveloper:
			if len(m.Parts) == 0 {
				return false
			}
			for _, p := range m.Parts {
				switch p.(type) {
				case Text, Media:
				default:
					return false
				}
			}
		case RoleAssistant:
			if open {
				return false
			}
			if calls = countCalls(m.Parts); calls < 0 || len(r.NotLast) > 0 && r.cutBefore(m) < len(m.Parts) {
				return false
			}
			open = calls > 0
		case RoleTool:
			if of == 0 || len(m.Parts) == 0 || len(m.Parts) > of || !inOrder(msgs[i-1].Parts, m.Parts) {
				return false
			}
			open = len(m.Parts) < of
		default:
			return false
		}
		if !begun && begins(m) {
			if begun = true; m.Role != RoleUser {
				return false
			}
		}
	}
	return !open || !r.Settled
}

// countCalls returns how many calls a reply has; -1: a part that it cannot hold is there, or a call without an id of its own.
func countCalls(reply []Part) int {
	calls := 0
	for _, p := range reply {
		switch p := p.(type) {
		case Text, Reasoning, Media:
		case ToolCall:
			if calls++; p.ID == "" {
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

// inOrder reports whether results are those of calls of reply, in their order, and hold what results can.
func inOrder(reply, results []Part) bool {
	at := 0
	for _, p := range results {
		if _, ok := p.(ToolResult); !ok {
			return false
		}
		id := p.(ToolResult).CallID // so nothing else of it is copied
		for _, q := range p.(ToolResult).Parts {
			switch q.(type) {
			case Text, Media:
			default:
				return false
			}
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

// begins reports whether m can be what a conversation begins with: instructions stand outside of it, and the user's silence is not sent.
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
	const few = 32 // up to here comparing is cheaper than a map
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

// cutBefore returns how many parts of a reply remain when what cannot end it is left out.
func (r Rules) cutBefore(m *Message) int {
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

// known reports whether p is a part by value.
func known(p Part) bool {
	switch p.(type) {
	case Text, Media, Reasoning, ToolCall, ToolResult, Decision:
		return true
	}
	return false
}

func newFault(code FaultCode, message, part int, format string, args ...any) Fault {
	return Fault{Code: code, Message: message, Part: part, Text: fmt.Sprintf(format, args...)}
}

// CheckMessage reports a part that m cannot hold, and a call without an id of its own.
func CheckMessage(m Message) error {
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
