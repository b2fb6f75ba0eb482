package pawl

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

// sound reports whether msgs have no fault. It is what every request pays, so it allocates nothing.
func (r Rules) sound(msgs []Message) bool {
	last := lastOf(msgs, RoleAssistant) // the reply whose calls may be open
	if r.Settled {
		last = -1
	}
	begun := false
	for i := range msgs {
		m := &msgs[i]
		if len(m.Parts) == 0 && m.Role != RoleAssistant {
			return false
		}
		for _, p := range m.Parts {
			if _, decision := p.(Decision); decision || allowed(m.Role, p) != nil {
				return false
			}
		}
		switch m.Role {
		case RoleAssistant:
			if !distinctIDs(m) || r.cutBefore(m) < len(m.Parts) {
				return false
			}
			if i != last && m.HasCalls() && (i+1 == len(msgs) || msgs[i+1].Role != RoleTool) {
				return false
			}
		case RoleTool:
			if i == 0 || msgs[i-1].Role != RoleAssistant || !inOrder(&msgs[i-1], m, i-1 == last) {
				return false
			}
		case RoleSystem, RoleDeveloper, RoleUser:
		default:
			return false
		}
		if r.UserFirst && !begun && begins(m) {
			if begun = true; m.Role != RoleUser {
				return false
			}
		}
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

// lastOf returns where the last message of role stands; -1: there is none.
func lastOf(msgs []Message, role Role) int {
	i := len(msgs) - 1
	for i >= 0 && msgs[i].Role != role {
		i--
	}
	return i
}

// inOrder reports whether results are those of the calls of reply, in their order; some may be missing where open says so.
func inOrder(reply, results *Message, open bool) bool {
	at := 0
	for _, p := range reply.Parts {
		c, ok := p.(ToolCall)
		if !ok {
			continue
		}
		if at < len(results.Parts) && results.Parts[at].(ToolResult).CallID == c.ID {
			at++
		} else if !open {
			return false
		}
	}
	return at == len(results.Parts)
}

// distinctIDs reports whether each call of m has an id of its own.
func distinctIDs(m *Message) bool {
	const few = 32 // up to here comparing is cheaper than a map
	if len(m.Parts) > few {
		return uniqueIDs(*m) == nil
	}
	for i, p := range m.Parts {
		c, ok := p.(ToolCall)
		if !ok {
			continue
		}
		if c.ID == "" {
			return false
		}
		for _, q := range m.Parts[:i] {
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
