package pawl

// run_options.go: RunOptions, which a run finds in its context.

import "context"

// RunOptions are what the code that starts a run states about it, in addition to its Runner and its
// messages. The zero value states nothing. Whose data a run uses is not among them: store.WithScope
// states it for a whole request.
type RunOptions struct {
	// Messages supplies messages to the run while it is active, such as a Steering. nil means none.
	// Nested runs do not take them: a message is for the outermost run.
	Messages MessageSource
	// Thread is the ID of the conversation that the run continues. "" means none. thread.Runner sets
	// it.
	Thread string
	// Engine makes the run durable. nil means that it is not. Packages durable and durable/temporal
	// set it.
	Engine *Engine
}

type runOptionsKey struct{}

// WithRunOptions returns a context for a run with the options o. The zero fields of o keep what ctx
// has.
func WithRunOptions(ctx context.Context, o RunOptions) context.Context {
	all, _ := ctx.Value(runOptionsKey{}).(*RunOptions)
	if all == nil {
		return context.WithValue(ctx, runOptionsKey{}, &o)
	}

	merged := *all
	if o.Messages != nil {
		merged.Messages = o.Messages
	}
	if o.Thread != "" {
		merged.Thread = o.Thread
	}
	if o.Engine != nil {
		merged.Engine = o.Engine
	}
	return context.WithValue(ctx, runOptionsKey{}, &merged)
}

// RunOptionsFrom returns the options of the run that ctx belongs to. In a call it returns no Messages.
func RunOptionsFrom(ctx context.Context) RunOptions {
	all, _ := ctx.Value(runOptionsKey{}).(*RunOptions)
	if all == nil {
		return RunOptions{}
	}
	o := *all
	if InvocationFrom(ctx) != nil {
		o.Messages = nil
	}
	return o
}

// RunID returns the ID of the run if an engine stores it, else "".
func (o RunOptions) RunID() string {
	if o.Engine == nil {
		return ""
	}
	return o.Engine.Run
}

// engineIn returns the engine of ctx, or a zero Engine.
func engineIn(ctx context.Context) Engine {
	all, _ := ctx.Value(runOptionsKey{}).(*RunOptions)
	if all == nil || all.Engine == nil {
		return Engine{}
	}
	return *all.Engine
}
