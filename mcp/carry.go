package mcp

import (
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// carriedKey is the name under which the content of a result passes the SDK, as the server wrote
// it. The SDK decodes a result as one value, so one block that it cannot decode would lose them
// all, and it reads numbers as floating point.
const carriedKey = "pawl/result"

// carriedMembers are the members of a result that pass the SDK in its metadata.
var carriedMembers = []string{"content", "structuredContent", "isError", "contents", "messages"}

// carry moves the content of a result into its metadata. A result that asks for input has no
// content.
func carry(result map[string]json.RawMessage) {
	if string(result["resultType"]) == `"input_required"` {
		return
	}
	content := map[string]json.RawMessage{}
	for _, name := range carriedMembers {
		if value, ok := result[name]; ok {
			content[name] = value
			delete(result, name)
		}
	}
	if len(content) == 0 {
		return
	}

	var meta map[string]any
	if json.Unmarshal(result["_meta"], &meta) != nil || meta == nil {
		meta = map[string]any{}
	}
	b, _ := json.Marshal(content) // it was decoded from JSON
	meta[carriedKey] = string(b)
	result["_meta"], _ = json.Marshal(meta)
}

// carried is the content of a result, as the server wrote it.
type carried struct {
	Content    json.RawMessage // of a call
	Structured json.RawMessage `json:"structuredContent"` // of a call
	IsError    json.RawMessage // of a call
	Contents   json.RawMessage // of a resource
	Messages   json.RawMessage // of a prompt
}

// carriedBy returns the content of a result with the metadata meta. decoded is the result as the
// SDK decoded it; it has the content if the message did not pass a repairer.
func carriedBy(meta sdk.Meta, decoded any) carried {
	var c carried
	text, ok := meta[carriedKey].(string)
	if !ok {
		b, _ := json.Marshal(decoded) // it was decoded from JSON
		text = string(b)
	}
	_ = json.Unmarshal([]byte(text), &c) // carry wrote it
	if string(c.Structured) == "null" {
		c.Structured = nil
	}
	return c
}

// failed reports whether the server calls the result an error. Servers also write the word as text,
// in the spelling of their language, or as 1.
func (c *carried) failed() bool {
	word := strings.Trim(string(c.IsError), `" `)
	return word == "1" || strings.EqualFold(word, "true")
}
