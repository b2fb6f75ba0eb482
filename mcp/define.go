package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Definition is a server's definition of a tool. The parts that a model sees are kept byte for
// byte.
type Definition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema,omitempty"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
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
	ReadOnly    bool  `json:"readOnlyHint"`
	Idempotent  bool  `json:"idempotentHint"`
	Destructive *bool `json:"destructiveHint"`
}

// effect returns the effect of a call, using the annotations only if the server is trusted.
func (d *Definition) effect(trust bool) pawl.Effect {
	var h hints
	if !trust || json.Unmarshal(d.Annotations, &h) != nil {
		return pawl.EffectWrite
	}
	switch {
	case h.ReadOnly:
		return pawl.EffectRead
	case h.Idempotent:
		return pawl.EffectIdempotent
	}
	return pawl.EffectWrite
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

	m := new(repairer)
	all, err := json.Marshal(env.Tools)
	if err != nil {
		return nil, err
	}
	var defs []Definition
	if err := json.Unmarshal(m.list(all), &defs); err != nil {
		return nil, err
	}

	none := func(Definition) pawl.ToolFunc {
		return func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.ErrorResult("The tool was only looked at and cannot be called."), nil
		}
	}
	return append(s.inspect(defs, o, none), m.rejected()...), nil
}
