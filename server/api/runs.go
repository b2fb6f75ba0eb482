package api

// runs.go: the forms of runs and of lists of them.

import (
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// Start is the request that starts or resumes a run.
type Start struct {
	// ID of the run. A repeated request with the same ID is the same run, so a client can repeat it
	// safely. Default: a generated ID.
	ID string `json:"id,omitzero"`
	// Name of the agent. Default: the only one.
	Agent string `json:"agent,omitzero"`
	// The request, as the text of one user message.
	Input string `json:"input,omitzero"`
	// The conversation so far. For an existing run: decisions on its open calls and results of
	// passive ones, or none to resume it.
	Messages []llm.Message `json:"messages,omitzero"`
	// JSON Schema of the answer, in place of the agent's; its value is in the output of the run. It
	// is stored with the run. Default: the agent's own. For an existing run: the same, or none.
	Output json.RawMessage `json:"output,omitzero"`
	// ID of a run that is over. The new run continues its conversation, values and usage with
	// messages. For an existing run: the same, or none.
	Previous string `json:"previous,omitzero"`
	// Respond when the run has stopped. The run continues if the client disconnects.
	Wait bool `json:"wait,omitzero"`
}

// Run is the state of a run.
type Run struct {
	// ID of the run.
	ID string `json:"id"`
	// Name of its agent, with its version.
	Agent string `json:"agent,omitzero"`
	// side: an answer of a chat program's request for a title or the like. call: a single call
	// without a model. Absent: a run of the agent.
	Kind string `json:"kind,omitzero"`
	// The user of the run, for an approver of another user.
	User string `json:"user,omitzero"`
	// The beginning of the request.
	Task string `json:"task,omitzero"`
	// running: executing here. open: executing in another process, or waiting to be resumed.
	// waiting: pending. failed: stopped by an error that may be temporary; it can be resumed. over:
	// ended.
	State string `json:"state"`
	// Why it stopped last. answer and finished mean success.
	Stop pawl.StopReason `json:"stop,omitzero"`
	// changed: the agent has changed, and the run cannot continue with it. cause names the
	// difference.
	Code string `json:"code,omitzero"`
	// Why it stopped, in words: the cause of a limit, a cancellation or a failure.
	Cause string `json:"cause,omitzero"`
	// For what the open run waits: its model's provider is away. cause says it in words. Absent: it
	// does not wait.
	Outage *Outage `json:"outage,omitzero"`
	// Absent in lists.
	Answer string `json:"answer,omitzero"`
	// The answer as JSON if the agent has an output. Absent in lists.
	Output json.RawMessage `json:"output,omitzero"`
	// What it has used so far: tokens, steps and calls.
	Spent *pawl.Spent `json:"spent,omitzero"`
	// The conversation of the client that the run belongs to.
	Thread string `json:"thread,omitzero"`
	// The run that it was forked from, and the number of steps. Absent in lists.
	Forked *journal.Origin `json:"forked_from,omitzero"`
	// Calls of the last reply that the run returned and did not execute, because its agent may
	// execute no more rounds of calls. Absent in lists.
	Calls []llm.ToolCall `json:"calls,omitzero"`
	// Number of pending calls.
	Waits int `json:"waits,omitzero"`
	// Number of queued runs that start before this one. Absent in lists.
	Ahead int `json:"ahead,omitzero"`
	// The pending calls. Absent in lists.
	Pending []pawl.PendingCall `json:"pending,omitzero"`
	// When it began.
	Created time.Time `json:"created,omitzero"`
	// When it last changed.
	Updated time.Time `json:"updated,omitzero"`
}

// Outage is the time for which the provider of a run's model is away. The run asks it again by
// itself.
type Outage struct {
	// Name of the provider, such as openai. Absent: unknown.
	Provider string `json:"provider,omitzero"`
	// When the first request failed.
	Since time.Time `json:"since"`
	// When the run asks again, at the latest.
	Next time.Time `json:"next"`
	// Number of failed attempts of the run.
	Tries int `json:"tries"`
}

// Runs is a page of a list.
type Runs struct {
	// The runs, by ID.
	Runs []Run `json:"runs"`
	// Value of after for the next page. Absent on the last page.
	After string `json:"after,omitzero"`
}

// Deleted is a run that was deleted.
type Deleted struct {
	// ID of the run.
	ID string `json:"id"`
	// Always true: an error has another form.
	Deleted bool `json:"deleted"`
}

// SteerRequest is a message for a run in progress.
type SteerRequest struct {
	// One user message, as text.
	Input string `json:"input,omitzero"`
	// User messages.
	Messages []llm.Message `json:"messages,omitzero"`
}

// Fork describes a fork of a run.
type Fork struct {
	// ID of the new run. Default: a generated one.
	ID string `json:"id,omitzero"`
	// Number of replies to copy.
	Steps int `json:"steps"`
}
