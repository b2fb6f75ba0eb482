package pawl

// panic.go: panics of the program's own models, toolsets and middleware, which are errors of the run.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"

	"github.com/pawl-go/pawl/llm"
)

// PanicError is the error of a run whose model, toolset or middleware panicked. A panic of a tool is the
// outcome of its call instead, and a panic of a receiver of events reaches the caller of the run.
type PanicError struct {
	What  string // the code that panicked, such as "the model"
	Value any    // of the panic
	Stack []byte // of the goroutine, as debug.Stack returns it
}

// Error returns the code and the value.
func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.What, e.Value) }

func panicError(what string, v any) error {
	return &PanicError{What: what, Value: v, Stack: debug.Stack()}
}

// recovered turns a panic of the function that deferred it into an error. what is the code that was
// called.
func recovered(what string, err *error) {
	if v := recover(); v != nil {
		*err = panicError(what, v)
	}
}

// guarded is a model whose panics are errors of its stream. A panic of the reader stays a panic.
type guarded struct{ llm.Model }

// Unwrap returns the model.
func (g guarded) Unwrap() llm.Model { return g.Model }

// Stream yields what the model yields. Its panic is the last error.
func (g guarded) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reading := false // the reader has the delta
		left := false    // the reader wants no further delta
		defer func() {
			if reading {
				return
			}
			if v := recover(); v != nil && !left {
				yield(llm.Delta{}, panicError("the model", v))
			}
		}()

		stream := g.Model.Stream(ctx, req)
		if stream == nil {
			yield(llm.Delta{}, errors.New("the model returned no stream"))
			return
		}
		for d, err := range stream {
			reading = true
			more := yield(d, err)
			reading = false
			if !more {
				left = true
				return
			}
		}
	}
}
