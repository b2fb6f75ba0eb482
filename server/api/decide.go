package api

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
)

// Verdict is a decision on an open call. Key and Digest are copied from the pending call and bind
// the decision to it.
type Verdict struct {
	Key    llm.Key         `json:"key"`
	Digest string          `json:"digest"`
	Args   json.RawMessage `json:"args,omitzero"`
	Reason string          `json:"reason,omitzero"`
}

// CallResult is the result of an open call.
type CallResult struct {
	Key     llm.Key         `json:"key"`
	Digest  string          `json:"digest"`
	Text    string          `json:"text"`
	IsError bool            `json:"is_error,omitzero"`
	Data    json.RawMessage `json:"data,omitzero"`
}
