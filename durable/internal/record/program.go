package record

// program.go: Program, the agent and the tools of a run.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Program is what the requests of a run are made with: its agent and its tools.
type Program struct {
	Tools map[string]string `json:"tools"` // digests by name
	// Marked has the schemas that mark arguments as secret, so that programs that show the run can
	// hide them.
	Marked       map[string]json.RawMessage `json:"marked,omitzero"`
	Instructions string                     `json:"instructions,omitzero"`
	// Tools that were not offered from the start.
	Later map[string]string `json:"later,omitzero"`

	Agent   *Agent        `json:"agent,omitzero"`   // nil in journals of earlier versions
	Offered []OfferedTool `json:"offered,omitzero"` // the definitions of Tools and Later
}

// with returns b with the tools that were recorded later.
func (b Program) with(more Program) Program {
	b.Later = Joined(b.Later, more.Later)
	b.Marked = Joined(b.Marked, more.Marked) // an argument that was secret stays secret
	if more.Agent != nil {
		b.Agent = more.Agent
		b.Instructions = more.Instructions
	}

	for _, t := range more.Offered {
		if i := slices.IndexFunc(b.Offered, func(o OfferedTool) bool { return o.Name == t.Name }); i >= 0 {
			b.Offered = slices.Concat(b.Offered[:i], []OfferedTool{t}, b.Offered[i+1:])
		} else {
			b.Offered = append(slices.Clip(b.Offered), t)
		}
	}
	return b
}

// Joined returns the entries of a and b. An entry of b counts if both have it.
func Joined[M ~map[string]V, V any](a, b M) M {
	if len(b) == 0 {
		return a
	}
	out := make(M, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// Accept replaces the definitions of the run by the accepted definitions. Approvals of calls of the
// changed tools that have not started do not count any more, and their questions are open again.
func (h *History) Accept(b Acceptance) {
	was := h.Programs[b.Run]
	was.Tools = b.Tools
	h.Programs[b.Run] = was.with(b.Program)

	for key := range h.Questions {
		if !strings.HasPrefix(string(key), b.Run+"/") {
			continue
		}
		q := h.OpenQuestion(key)
		if q != nil && q.approved() && slices.Contains(b.Names, q.Waiting.Call.Name) {
			q.Answer = nil
		}
	}

	if b.Agent == nil {
		return
	}
	// The earlier requests were made with another agent.
	for key, r := range h.Replies {
		if RunOf(key) == b.Run {
			r.Messages = ""
			r.Request = ""
		}
	}
}

// Effects returns the effects of the tools that the run offered, by name.
func (h *History) Effects() map[string]pawl.Effect {
	effects := map[string]pawl.Effect{}
	for _, p := range h.Programs {
		for _, t := range p.Offered {
			effects[t.Name] = t.Effect
		}
	}
	return effects
}

// Marked returns the schemas of the run's tools that mark an argument, by name.
func (h *History) Marked() map[string]json.RawMessage {
	all := h.Begin.Marked
	for _, b := range h.Programs {
		all = Joined(all, b.Marked)
	}
	return all
}

// MarkedIn returns the schemas that may mark an argument as secret. redact.Redactor decides.
func MarkedIn(tools []*llm.ToolSpec) (marked map[string]json.RawMessage) {
	for _, t := range tools {
		if !bytes.Contains(t.Input, []byte("writeOnly")) && !bytes.Contains(t.Input, []byte("x-secret")) {
			continue
		}
		if marked == nil {
			marked = map[string]json.RawMessage{}
		}
		marked[t.Name] = t.Input
	}
	return marked
}

// Agent is the agent that a run began with. The run continues with it, also in a process that has
// another version of the agent.
type Agent struct {
	Model        string         `json:"model,omitzero"` // "provider:name"; empty means unknown
	Instructions string         `json:"instructions,omitzero"`
	Choice       llm.ToolChoice `json:"choice,omitzero"`
	Settings     llm.Settings   `json:"settings,omitzero"`
}

// Difference names what differs from the recorded agent, or returns "".
func (b *Agent) Difference(was Program) string {
	settings := func(b *Agent) string {
		form, _ := json.Marshal([]any{b.Choice, b.Settings}) // plain data
		return string(form)
	}
	switch {
	case was.Instructions != Digest([]byte(b.Instructions)):
		return "instructions"
	case was.Agent != nil && was.Agent.Model != b.Model:
		return fmt.Sprintf("model (was %.80q, is %.80q)", was.Agent.Model, b.Model)
	case was.Agent != nil && settings(was.Agent) != settings(b):
		return "settings"
	}
	return ""
}
