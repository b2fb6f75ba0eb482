package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

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

// nativeOutput returns the schema of the reply where the server can hold the model to it: on Claude from 4.5 on, where every
// object is closed and no keyword is one that the API refuses. Else the system prompt asks for it.
func nativeOutput(e *encoder, schema []byte) []byte {
	if len(schema) == 0 || !e.newest() || e.version < 405 {
		return nil
	}
	c := jsonscan.New(schema)
	if !held(&c, 0) || c.End() != nil {
		return nil
	}
	return schema
}

// The keywords that the API takes in the schema of a reply.
// https://docs.claude.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations
var outputWords = []string{"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "allOf",
	"$ref", "$defs", "definitions", "title", "description", "default", "format", "$schema"}

func held(c *jsonscan.Cursor, depth int) bool {
	if depth > 64 || !c.Object() {
		return false
	}
	ok, object, closed := true, false, false
	for k, more := c.Key(); more; k, more = c.Key() {
		word := string(k)
		if !slices.Contains(outputWords, word) {
			ok = false
		}
		switch word {
		case "type":
			if c.Kind() == jsonscan.String {
				object = object || string(c.Text()) == "object"
			} else {
				for c.Array(); c.More(); {
					object = object || c.Kind() == jsonscan.String && string(c.Text()) == "object"
				}
			}
		case "properties", "$defs", "definitions":
			object = object || word == "properties"
			c.Object()
			for _, more := c.Key(); more; _, more = c.Key() {
				ok = held(c, depth+1) && ok
			}
		case "additionalProperties":
			closed = c.Kind() == jsonscan.False
		case "items":
			ok = held(c, depth+1) && ok
		case "anyOf", "allOf":
			for c.Array(); c.More(); {
				ok = held(c, depth+1) && ok
			}
		}
	}
	return ok && (closed || !object)
}
