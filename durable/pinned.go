package durable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

type toolsBody struct {
	Tools map[string]string `json:"tools"` // digests by name
	// Marked has the schemas that mark arguments as secret, so that programs that show the run can
	// hide them.
	Marked       map[string]json.RawMessage `json:"marked,omitzero"`
	Instructions string                     `json:"instructions,omitzero"`
	// Tools that were not offered from the start.
	Later map[string]string `json:"later,omitzero"`

	Agent   *agentBody    `json:"agent,omitzero"`   // nil in journals of earlier versions
	Offered []offeredTool `json:"offered,omitzero"` // the definitions of Tools and Later
}

// with returns b with the tools that were recorded later.
func (b toolsBody) with(more toolsBody) toolsBody {
	// An argument that was secret stays secret.
	b.Later, b.Marked = joined(b.Later, more.Later), joined(b.Marked, more.Marked)
	if more.Agent != nil {
		b.Agent, b.Instructions = more.Agent, more.Instructions
	}
	for _, t := range more.Offered {
		if i := slices.IndexFunc(b.Offered, func(o offeredTool) bool { return o.Name == t.Name }); i >= 0 {
			b.Offered = slices.Concat(b.Offered[:i], []offeredTool{t}, b.Offered[i+1:])
		} else {
			b.Offered = append(slices.Clip(b.Offered), t)
		}
	}
	return b
}

func joined[M ~map[string]V, V any](a, b M) M {
	if len(b) == 0 {
		return a
	}
	out := make(M, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// accept replaces the definitions of the run by the accepted definitions. Approvals of calls of the
// changed tools that have not started do not count any more, and their questions are open again.
func (h *history) accept(b acceptBody) {
	was := h.tools[b.Run]
	was.Tools = b.Tools
	h.tools[b.Run] = was.with(b.toolsBody)
	for key := range h.asked {
		if !strings.HasPrefix(string(key), b.Run+"/") {
			continue
		}
		if q := h.open(key); q != nil && q.answer != nil && q.answer.Approve &&
			slices.Contains(b.Names, q.waiting.Call.Name) {
			q.answer = nil
		}
	}
	if b.Agent == nil {
		return
	}
	for key, r := range h.replies {
		if runOf(key) == b.Run {
			r.Messages = ""
			r.Request = ""
		}
	}
}

// agentBody is the agent that a run began with. The run continues with it, also in a process that
// has another version of the agent.
type agentBody struct {
	Model        string         `json:"model,omitzero"` // "provider:name"; empty means unknown
	Instructions string         `json:"instructions,omitzero"`
	Choice       llm.ToolChoice `json:"choice,omitzero"`
	Settings     llm.Settings   `json:"settings,omitzero"`
}

// offeredTool is the definition of a tool that a run offers.
type offeredTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Input       json.RawMessage `json:"input,omitzero"`
	Output      json.RawMessage `json:"output,omitzero"`
	Effect      pawl.Effect     `json:"effect"`
	Passive     bool            `json:"passive,omitzero"`
	Address     string          `json:"address,omitzero"`
}

// difference names what differs from the recorded agent, or returns "".
func (b *agentBody) difference(was toolsBody) string {
	settings := func(b *agentBody) string {
		form, _ := json.Marshal([]any{b.Choice, b.Settings}) // plain data
		return string(form)
	}
	switch {
	case was.Instructions != sum([]byte(b.Instructions)):
		return "instructions"
	case was.Agent != nil && was.Agent.Model != b.Model:
		return fmt.Sprintf("model (was %.80q, is %.80q)", was.Agent.Model, b.Model)
	case was.Agent != nil && settings(was.Agent) != settings(b):
		return "settings"
	}
	return ""
}

func offeredOf(t *pawl.Tool) offeredTool {
	return offeredTool{t.Name, t.Description, t.Input, t.Output, t.Effect, t.Passive, t.Address}
}

func offeredSpecs(specs []*llm.ToolSpec) (out []offeredTool) {
	for _, s := range specs {
		out = append(out, offeredOf(toolOf(s)))
	}
	return out
}

// compatible reports whether the tool now can execute the calls of the recorded tool was: they
// differ at most in texts for the model.
func (was *offeredTool) compatible(now offeredTool) bool {
	return was.Effect == now.Effect && was.Passive == now.Passive && was.Address == now.Address &&
		sameSchema(was.Input, now.Input) && sameSchema(was.Output, now.Output)
}

// sameSchema compares schemas without their annotations.
func sameSchema(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	return reflect.DeepEqual(plainSchema(x, true), plainSchema(y, true))
}

// plainSchema removes the annotations of a schema. In a map of schemas or values, such as
// properties, every name is content.
func plainSchema(v any, schema bool) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plainSchema(v[i], schema)
		}
	case map[string]any:
		for key, one := range v {
			switch {
			case schema && slices.Contains([]string{"description", "title", "examples", "$comment"}, key):
				delete(v, key)
			case schema && slices.Contains([]string{"const", "enum", "default"}, key): // values
			case schema:
				v[key] = plainSchema(one, !slices.Contains([]string{"properties", "patternProperties", "$defs",
					"definitions", "dependentSchemas"}, key))
			default:
				v[key] = plainSchema(one, true)
			}
		}
	}
	return v
}

// difference describes the first field in which the tool differs from what it was.
func (was *offeredTool) difference(now *offeredTool) string {
	if now == nil {
		return "it is gone"
	}
	for _, f := range []struct{ name, was, now string }{
		{"effect", was.Effect.String(), now.Effect.String()}, {"address", was.Address, now.Address},
		{"passive", fmt.Sprint(was.Passive), fmt.Sprint(now.Passive)},
		{"input", string(was.Input), string(now.Input)}, {"output", string(was.Output), string(now.Output)},
		{"description", was.Description, now.Description},
	} {
		if f.was != f.now {
			return f.name + " was " + excerpt(f.was, f.now) + ", is " + excerpt(f.now, f.was)
		}
	}
	return "no field that is compared"
}

// excerpt returns the part of a text that begins shortly before the difference from other.
func excerpt(s, other string) string {
	n := text.Common(s, other)
	out := text.Clip(s[max(n-20, 0):], 80)
	if n > 20 {
		out = "…" + out
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(out, ""))
}

// nameOf returns the name of a model as "provider:name", or "" if it is unknown.
func nameOf(m llm.Model) string {
	if named, ok := llm.As[interface{ Name() string }](m); ok {
		return named.Name()
	}
	return ""
}

// pin changes b to the agent that the run began with, and returns the name of its model for
// requests; "" means the model's own.
func (s *session) pin(b *pawl.Agent, was toolsBody) (model string) {
	if was.Agent == nil || s.played != nil || s.engine.AcceptChanges {
		return ""
	}
	b.Instructions, b.Choice, b.Settings = was.Agent.Instructions, was.Agent.Choice, was.Agent.Settings
	b.Tools = []pawl.Toolset{&pinned{pawl.Toolsets(b.Tools), was, s.engine.AcceptChangedTools}}
	provider, name, _ := strings.Cut(was.Agent.Model, ":")
	if now, own, _ := strings.Cut(nameOf(b.Model), ":"); now == provider && own != name {
		return name
	}
	return ""
}

// pinned is the toolset of a run that continues: the tools that it began with, in their order.
type pinned struct {
	pawl.Toolset
	was    toolsBody
	accept []string // tools that may have changed
}

// Tools returns the recorded tools, and tools that a request may add later. A tool that is not
// compatible is returned unchanged: the first request rejects it.
func (p *pinned) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	all, err := p.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}
	recorded := byName(p.was.Offered)
	out := []*pawl.Tool{}
	for _, t := range all {
		was := recorded[t.Name]
		switch {
		case slices.Contains(p.accept, t.Name):
		case was == nil && !t.Deferred:
			continue // the run began without it
		case was != nil && was.compatible(offeredOf(t)):
			t = was.over(t)
		}
		out = append(out, t)
	}
	order := func(t *pawl.Tool) int {
		return slices.IndexFunc(p.was.Offered, func(o offeredTool) bool { return o.Name == t.Name })
	}
	slices.SortStableFunc(out, func(a, b *pawl.Tool) int { // new tools, -1, are last
		return cmp.Compare(uint(order(a)), uint(order(b)))
	})
	return out, nil
}

// over returns t with the recorded texts.
func (was *offeredTool) over(t *pawl.Tool) *pawl.Tool {
	now := offeredOf(t)
	if now.Description == was.Description && bytes.Equal(now.Input, was.Input) && bytes.Equal(now.Output, was.Output) {
		return t
	}
	c := t.Clone()
	c.Description, c.Input, c.Output = was.Description, was.Input, was.Output
	return c
}

// endChanged stores that the run cannot continue with the program that this process has. It is then
// JournalFailed with the reason, until it is resumed with the former program or with AcceptChanges.
func (s *session) endChanged(why error) {
	var limit *LimitError
	if !errors.Is(why, ErrChanged) || errors.As(why, &limit) {
		return
	}
	cause := text.Clip(why.Error(), 1000)
	body := endBody{Stop: pawl.StopFailed, Cause: cause, Error: cause}
	if s.h.end != nil {
		body.Spent, body.Values = s.h.end.Spent, s.h.end.Values
	}
	r, err := s.record(kindEnd, fmt.Sprintf("end/%d", s.lease.Fence), body)
	if err != nil {
		return
	}
	summary, err := json.Marshal(Summary{Stop: body.Stop, Code: "changed", Cause: cause, Spent: body.Spent,
		Pending: len(s.h.waiting())})
	if err != nil {
		return
	}
	change := &store.JournalChange{State: store.JournalFailed, Summary: summary, Release: true, Seen: s.seen}
	_, err = s.write(change, []store.Record{r})
	s.ended = err == nil
}
