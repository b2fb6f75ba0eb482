package store

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// Run is the head of a run's trace.
type Run struct {
	ID      string     `json:"id"`
	Agent   string     `json:"agent,omitzero"`
	Model   string     `json:"model,omitzero"`
	Task    string     `json:"task,omitzero"` // the beginning of what was asked
	Started time.Time  `json:"started,omitzero"`
	Ended   time.Time  `json:"ended,omitzero"` // zero: it runs, or nobody knows
	Stop    pawl.Stop  `json:"stop,omitzero"`
	Cause   string     `json:"cause,omitzero"`
	Spent   pawl.Spent `json:"spent,omitzero"`
}

// Traces keeps what runs told, for those who look later. Methods may be called concurrently.
type Traces interface {
	// PutRun keeps the head of a run, in place of the one with its ID.
	PutRun(ctx context.Context, s Scope, r Run) error
	// Run returns one.
	Run(ctx context.Context, s Scope, id string) (Run, error)
	// Runs lists them, the newest start first; Page.After is the ID that the part before ended with.
	Runs(ctx context.Context, s Scope, p Page) ([]Run, error)
	// AppendEvents adds events to a run's trace. An event whose Seq is there already is passed over, so that it may be sent again.
	AppendEvents(ctx context.Context, s Scope, run string, events ...pawl.Event) error
	// Events returns up to limit events of a run with a Seq over after, in order; limit 0: all.
	Events(ctx context.Context, s Scope, run string, after int64, limit int) ([]pawl.Event, error)
	// DeleteRun removes a run with its events.
	DeleteRun(ctx context.Context, s Scope, id string) error
}
