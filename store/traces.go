package store

// traces.go: Traces, the events of runs for later inspection, in the SQL table runs. Durable runs
// are in a Journal.

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// Run is the head of a run's trace. A durable run is a JournalRun.
type Run struct {
	ID      string    `json:"id"`               // unique in the scope
	Agent   string    `json:"agent,omitzero"`   // the name of the agent; "" means no name
	Model   string    `json:"model,omitzero"`   // the name of the model; "" means unknown
	Task    string    `json:"task,omitzero"`    // the beginning of the user's request
	Started time.Time `json:"started,omitzero"` // by the clock of the process that executed it
	// A zero Ended means that the run is executing, or that its end is unknown.
	Ended time.Time       `json:"ended,omitzero"`
	Stop  pawl.StopReason `json:"stop,omitzero"`  // Result.Stop; "" means not stopped
	Cause string          `json:"cause,omitzero"` // Result.Cause
	Spent pawl.Spent      `json:"spent,omitzero"` // Result.Spent
}

// Traces stores the events of runs for later inspection. Methods must be safe for concurrent use.
type Traces interface {
	// PutRun stores the head of a run, in place of an existing one with its ID.
	PutRun(ctx context.Context, s Scope, r Run) error
	// Run returns the head of a run.
	Run(ctx context.Context, s Scope, id string) (Run, error)
	// Runs lists runs, the latest start first. Page.After is the last ID of the previous page.
	Runs(ctx context.Context, s Scope, p Page) ([]Run, error)
	// AppendEvents appends events to a run's trace. It skips an event whose Seq exists already, so
	// that events may be sent again.
	AppendEvents(ctx context.Context, s Scope, run string, events ...pawl.Event) error
	// Events returns up to limit events of a run with a Seq greater than after, in order. Limit 0
	// means all.
	Events(ctx context.Context, s Scope, run string, after int64, limit int) ([]pawl.Event, error)
	// DeleteRun deletes a run with its events.
	DeleteRun(ctx context.Context, s Scope, id string) error
}
