package api

// decide.go: the forms of pending calls and of their answers.

import (
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Inbox lists the calls that wait for a decision or a result.
type Inbox struct {
	// Runs with pending calls.
	Waiting []PendingRun `json:"waiting"`
	// Runs of the client that cannot continue with the present agent, on the first page.
	Changed []Run `json:"changed,omitzero"`
	// Value of after for the next page. Absent on the last page.
	After string `json:"after,omitzero"`
}

// PendingRun is a run with its pending calls.
type PendingRun struct {
	// The run.
	Run Run `json:"run"`
	// Its pending calls.
	Pending []pawl.PendingCall `json:"pending"`
	// What calls would change, by their keys. A call without a known effect has none.
	Previews map[llm.Key]Preview `json:"previews,omitzero"`
}

// Preview is the effect that a pending call would have now, for the person who decides.
type Preview struct {
	// The kind of effect: file.
	Kind string `json:"kind"`
	// The file.
	Path string `json:"path"`
	// The whole text of the file before the call.
	Before string `json:"before"`
	// The whole text after it. Empty for a file that is deleted.
	After string `json:"after"`
	// The file exists before the call.
	Exists bool `json:"exists"`
}

// Verdict is a decision on an open call. Key and Digest are copied from the pending call and bind
// the decision to it.
type Verdict struct {
	// Key of the pending call.
	Key llm.Key `json:"key"`
	// Digest of the pending call: the decision holds for these arguments alone.
	Digest string `json:"digest"`
	// approve: arguments that replace the model's.
	Args json.RawMessage `json:"args,omitzero"`
	// deny: the reason, for the model.
	Reason string `json:"reason,omitzero"`
}

// CallResult is the result of an open call.
type CallResult struct {
	// Key of the pending call.
	Key llm.Key `json:"key"`
	// Digest of the pending call.
	Digest string `json:"digest"`
	// The text for the model.
	Text string `json:"text"`
	// The call failed.
	IsError bool `json:"is_error,omitzero"`
	// The result as JSON, for programs.
	Data json.RawMessage `json:"data,omitzero"`
}
