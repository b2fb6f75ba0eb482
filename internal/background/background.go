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
