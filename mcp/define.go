package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Definition is a server's definition of a tool. The parts that a model sees are kept byte for
// byte.
type Definition struct {
	Name        string          `json:"name"`                   // the server's name for the tool
	Title       string          `json:"title,omitempty"`        // for people
	Description string          `json:"description,omitempty"`  // for models
	Input       json.RawMessage `json:"inputSchema,omitempty"`  // the JSON Schema of the arguments
	Output      json.RawMessage `json:"outputSchema,omitempty"` // of results
	Annotations json.RawMessage `json:"annotations,omitempty"`  // hints
}

// Digest identifies the definition by its content. Definitions that differ only in the order of
// names and the white space of their JSON have the same digest.
func (d *Definition) Digest() string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(d.Name), []byte(d.Title), []byte(d.Description), canonical(d.Input),
		canonical(d.Output), canonical(d.Annotations)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// hints are a tool's annotations. According to the specification they are only hints.
type hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Idempotent  *bool `json:"idempotentHint"`
	Destructive *bool `json:"destructiveHint"`
}

// effect returns the effect of a call, using the annotations only if the server is trusted. A tool
// without them has EffectUnstated. A tool that is stated not to be read-only, or to be destructive
// or not, is a write.
func (d *Definition) effect(trust bool) pawl.Effect {
	var h hints
	if !trust || json.Unmarshal(d.Annotations, &h) != nil {
		return pawl.EffectUnstated
	}
	switch {
	case isTrue(h.ReadOnly):
		return pawl.EffectRead
	case isTrue(h.Idempotent):
		return pawl.EffectIdempotent
	case h.ReadOnly != nil || h.Destructive != nil:
		return pawl.EffectWrite
	}
	return pawl.EffectUnstated
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

// decode reads a tool as a server lists it. Only its name is required: a member of another type
// than the protocol's is left out, and l.Ignored says so. ok is false for a tool without a name.
func decode(raw json.RawMessage) (l Listed, ok bool) {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(raw, &m) // without members, it has no name
	if json.Unmarshal(m["name"], &l.Name) != nil || l.Name == "" {
		l.Name = ""
		l.Verdict = Quarantined
		l.Why = "its form is not part of the protocol: it has no name"
		return l, false
	}

	ignored := func(member string, value json.RawMessage) {
		l.Ignored = append(l.Ignored, fmt.Sprintf("its member %s is not of the protocol's type and is not read: %s",
			member, clip(show(string(value)), 80)))
	}
	for _, text := range []struct {
		member string
		to     *string
	}{{"title", &l.Title}, {"description", &l.Description}} {
		value := m[text.member]
		if len(value) > 0 && json.Unmarshal(value, text.to) != nil {
			ignored(text.member, value)
		}
	}

	l.Input = m["inputSchema"]
	l.Output = m["outputSchema"]
	l.Annotations = hintsOf(m["annotations"], ignored)
	return l, true
}

// hintsOf returns annotations without the hints that are not of the protocol's type.
func hintsOf(raw json.RawMessage, ignored func(string, json.RawMessage)) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return raw
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		ignored("annotations", raw)
		return nil
	}

	whole := len(m)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		var err error
		switch name {
		case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
			err = json.Unmarshal(m[name], new(bool))
		case "title":
			err = json.Unmarshal(m[name], new(string))
		}
		if err != nil {
			ignored("annotations."+name, m[name])
			delete(m, name)
		}
	}
	if len(m) == whole {
		return raw
	}
	return asJSON(m)
}

// canonical returns one form of equal JSON.
func canonical(b json.RawMessage) []byte { return jsonform.Canonical(b) }

// asJSON returns v as JSON. It returns nil for a nil v.
func asJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil || string(b) == "null" {
		return nil
	}
	return b
}

// Inspect parses a server's response to tools/list (the result, or the whole message) and returns
// the verdict on each tool. The tools cannot be called. o may be nil.
func Inspect(s Server, list []byte, o *Options) ([]Listed, error) {
	o = cmp.Or(o, new(Options))

	var env struct {
		Result *struct{ Tools []json.RawMessage }
		Tools  []json.RawMessage
	}
	if err := json.Unmarshal(list, &env); err != nil {
		return nil, fmt.Errorf("a list of tools: %w", err)
	}
	if env.Result != nil {
		env.Tools = env.Result.Tools
	}

	var tools, bad []Listed
	for _, raw := range env.Tools {
		if l, ok := decode(raw); ok {
			tools = append(tools, l)
		} else {
			bad = append(bad, l)
		}
	}

	none := func(Definition) pawl.ToolFunc {
		return func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.ErrorResult("The tool was only looked at and cannot be called."), nil
		}
	}
	return append(s.inspect(tools, o, none), bad...), nil
}
