// Package runtrace carries the position of a run in a trace from package telemetry to package
// durable, which stores it, so that a resumed run can link to the trace of the previous attempt.
package runtrace

import "context"

type key struct{}

// With returns the context of runs that belong to the given trace, a W3C traceparent.
func With(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, key{}, traceparent)
}

// Of returns the traceparent of With. Empty means none.
func Of(ctx context.Context) string {
	at, _ := ctx.Value(key{}).(string)
	return at
}
