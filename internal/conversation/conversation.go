// Package conversation passes the conversation of a call to the process that executes the call.
package conversation

import (
	"context"

	"github.com/pawl-go/pawl/llm"
)

type key struct{}

// With returns the context of a call whose conversation load returns.
func With(ctx context.Context, load func() []llm.Message) context.Context {
	return context.WithValue(ctx, key{}, load)
}

// Of returns the messages before the reply that made the call. nil means that they are not known.
func Of(ctx context.Context) []llm.Message {
	if load, ok := ctx.Value(key{}).(func() []llm.Message); ok {
		return load()
	}
	return nil
}
