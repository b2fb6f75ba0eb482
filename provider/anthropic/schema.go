package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"

	dialects "github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/jsonscan"
)

// fromSchema returns the schema of a tool's arguments on one line. The API wants an object with type object at its root.
func fromSchema(schema json.RawMessage) ([]byte, error) {
	if len(schema) == 0 {
		return []byte(`{"type":"object","properties":{}}`), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, schema); err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	out := b.Bytes()
	c := jsonscan.New(out)
	if !c.Object() {
		if string(out) == "true" {
			return []byte(`{"type":"object"}`), nil
		}
		return nil, fmt.Errorf("input: the schema is not an object")
	}
	members := 0
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		members++
		if string(k) == "type" {
			return out, nil
		}
	}
	if members == 0 {
		return []byte(`{"type":"object"}`), nil
	}
	return append([]byte(`{"type":"object",`), out[1:]...), nil
}

// nativeOutput returns the schema of the reply as the server can hold the model to it: on Claude from 4.5 on, where what is sent
// needs no turning back. Else the system prompt asks for it.
func nativeOutput(e *encoder, schema []byte) []byte {
	if len(schema) == 0 || !e.newest() || e.version < 405 {
		return nil
	}
	c, err := dialects.AnthropicStrict.Compile(schema)
	if err != nil {
		return nil
	}
	for _, l := range c.Losses {
		// A map of any names would become the empty object, and nothing could be said.
		if l.Kind == dialects.Reshaped || l.Kind == dialects.Stricter && bytes.Contains(c.Schema, []byte(`"properties":{}`)) {
			return nil
		}
	}
	return c.Schema
}
