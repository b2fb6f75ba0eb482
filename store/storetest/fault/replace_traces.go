package fault

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// traceStore has a name that is no method of the interface, unlike Traces.
type traceStore = store.Traces

// traces is a store.Traces whose methods a fault replaces.
type traces struct {
	traceStore
	onPutRun       func(ctx context.Context, sc store.Scope, r store.Run) error
	onRun          func(ctx context.Context, sc store.Scope, id string) (store.Run, error)
	onRuns         func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Run, error)
	onAppendEvents func(ctx context.Context, sc store.Scope, run string, events ...pawl.Event) error
	onEvents       func(ctx context.Context, sc store.Scope, run string, after int64, limit int) ([]pawl.Event, error)
	onDeleteRun    func(ctx context.Context, sc store.Scope, id string) error
}

// plantTraces returns db with a fault. replace sets the methods that have it.
func plantTraces(db store.Traces, replace func(f *traces)) store.Traces {
	f := &traces{
		traceStore:     db,
		onPutRun:       db.PutRun,
		onRun:          db.Run,
		onRuns:         db.Runs,
		onAppendEvents: db.AppendEvents,
		onEvents:       db.Events,
		onDeleteRun:    db.DeleteRun,
	}
	replace(f)
	return f
}

func (f *traces) PutRun(ctx context.Context, sc store.Scope, r store.Run) error {
	return f.onPutRun(ctx, sc, r)
}

func (f *traces) Run(ctx context.Context, sc store.Scope, id string) (store.Run, error) {
	return f.onRun(ctx, sc, id)
}

func (f *traces) Runs(ctx context.Context, sc store.Scope, p store.Page) ([]store.Run, error) {
	return f.onRuns(ctx, sc, p)
}

func (f *traces) AppendEvents(ctx context.Context, sc store.Scope, run string, events ...pawl.Event) error {
	return f.onAppendEvents(ctx, sc, run, events...)
}

func (f *traces) Events(ctx context.Context, sc store.Scope, run string, after int64,
	limit int) ([]pawl.Event, error) {
	return f.onEvents(ctx, sc, run, after, limit)
}

func (f *traces) DeleteRun(ctx context.Context, sc store.Scope, id string) error {
	return f.onDeleteRun(ctx, sc, id)
}
