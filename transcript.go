package pawl

import (
	"fmt"
	"slices"
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

// answered puts results, which stand in call order, into the one results message after the reply at index i, and returns the
// transcript. No message of the old one is changed.
func answered(msgs []llm.Message, i int, results []llm.Part) []llm.Message {
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

// intake sorts what a run is given: the transcript so far, decisions on its open calls, and the messages that follow once those are
// settled.
type intake struct {
	msgs      []llm.Message
	decisions []llm.Decision
	then      []llm.Message

	open []llm.ToolCall // of the last reply in msgs
	at   int            // where it is
}

// add takes one message more; n is its number, for errors.
func (in *intake) add(n int, m llm.Message) error {
	bad := func(format string, args ...any) error {
		return &TranscriptError{Index: n, Text: fmt.Sprintf(format, args...)}
	}
	if err := llm.CheckMessage(m); err != nil {
		return bad("%v", err)
	}
	decisions := 0
	for _, p := range m.Parts {
		if d, ok := p.(llm.Decision); ok {
			decisions++
			in.decisions = append(in.decisions, d)
		}
	}
	if decisions > 0 {
		if decisions == len(m.Parts) {
			return nil
		}
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool { _, ok := p.(llm.Decision); return ok })
	}
	switch m.Role {
	case llm.RoleTool:
		return in.results(m, bad)
	case llm.RoleAssistant:
		if len(in.open) > 0 {
			return bad("a reply follows calls that have no result: %s", callIDs(in.open))
		}
		in.msgs = append(in.msgs, m)
		in.open, in.at = llm.OpenCalls(in.msgs)
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
	in.msgs = answered(in.msgs, in.at, ordered)
	in.open, in.at = llm.OpenCalls(in.msgs)
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
