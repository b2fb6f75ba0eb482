// Package background says which replies outlive the request for them. An engine that has stored
// Delta.Background fetches the reply after a restart, so that the adapter must not cancel it.
package background

import "context"

type key struct{}

// With returns the context of a request whose reply stays at the provider if keeps reports true
// when the request ends early.
func With(ctx context.Context, keeps func() bool) context.Context {
	return context.WithValue(ctx, key{}, keeps)
}

// Kept reports whether the reply stays at the provider after a request that ended early.
func Kept(ctx context.Context) bool {
	keeps, _ := ctx.Value(key{}).(func() bool)
	return keeps != nil && keeps()
}

type asideKey struct{}

// Aside returns the context of a request that is no part of the run's own, such as the check of a
// text. An engine does not record it, and does not send it in a replay.
func Aside(ctx context.Context) context.Context {
	return context.WithValue(ctx, asideKey{}, true)
}

// IsAside reports whether ctx is from Aside.
func IsAside(ctx context.Context) bool { return ctx.Value(asideKey{}) != nil }
