package api

import (
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// Start is the request that starts or resumes a run.
type Start struct {
	ID       string        `json:"id,omitzero"`
	Agent    string        `json:"agent,omitzero"`
	Input    string        `json:"input,omitzero"`
	Messages []llm.Message `json:"messages,omitzero"`
	Wait     bool          `json:"wait,omitzero"`
}

// Run is the state of a run.
type Run struct {
	ID      string             `json:"id"`
	Agent   string             `json:"agent,omitzero"`
	User    string             `json:"user,omitzero"`
	Task    string             `json:"task,omitzero"`
	State   string             `json:"state"`
	Stop    pawl.StopReason    `json:"stop,omitzero"`
	Code    string             `json:"code,omitzero"`
	Cause   string             `json:"cause,omitzero"`
	Answer  string             `json:"answer,omitzero"`
	Output  json.RawMessage    `json:"output,omitzero"`
	Spent   *pawl.Spent        `json:"spent,omitzero"`
	Thread  string             `json:"thread,omitzero"`
	Forked  *journal.Origin    `json:"forked_from,omitzero"`
	Waits   int                `json:"waits,omitzero"`
	Ahead   int                `json:"ahead,omitzero"`
	Pending []pawl.PendingCall `json:"pending,omitzero"`
	Created time.Time          `json:"created,omitzero"`
	Updated time.Time          `json:"updated,omitzero"`
}

// Runs is a page of a list.
type Runs struct {
	Runs  []Run  `json:"runs"`
	After string `json:"after,omitzero"`
}
