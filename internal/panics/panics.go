// Package panics turns panics of code of the program, such as a model, into errors.
package panics

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"

	"github.com/pawl-go/pawl/llm"
)

// Error is pawl.PanicError.
type Error struct {
	What  string // the code that panicked, such as "the model"
	Value any    // of the panic
	Stack []byte // of the goroutine, as debug.Stack returns it
}

// Error returns the code and the value.
func (e *Error) Error() string { return fmt.Sprintf("%s panicked: %v", e.What, e.Value) }

// New returns the error of a panic with the value v. The deferred function that recovered v calls
// it.
func New(what string, v any) error {
	return &Error{What: what, Value: v, Stack: debug.Stack()}
}

// Recover turns a panic of the function that deferred it into an error. what is the code that was
// called.
func Recover(what string, err *error) {
	if v := recover(); v != nil {
		*err = New(what, v)
	}
}

// Model returns m with a stream whose last error is the panic of m. A panic of the reader of the
// stream stays a panic.
func Model(m llm.Model) llm.Model { return guarded{m} }

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
				yield(llm.Delta{}, New("the model", v))
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
