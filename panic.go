package pawl

// panic.go: panics of the program's own models, toolsets and middleware, which are errors of the run.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"runtime"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// recovered turns a panic of the function that deferred it into an error. what is the code that was
// called.
func recovered(what string, err *error) {
	if v := recover(); v != nil {
		*err = panicError(what, v)
	}
}

// panicError returns the error for the panic value v of what. It names the line that panicked, if
// that is known. It must be called by the deferred function that recovered v.
func panicError(what string, v any) error {
	return fmt.Errorf("%s panicked: %v%s", what, v, panicSite())
}

// panicSite returns the file and the line of a panic, in parentheses. "" means unknown.
func panicSite() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	inPanic := false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		ofRuntime := strings.HasPrefix(f.Function, "runtime.")
		switch {
		case ofRuntime:
			inPanic = inPanic || f.Function == "runtime.gopanic"
		case inPanic:
			return fmt.Sprintf(" (%s:%d)", path.Base(f.File), f.Line)
		}
	}
	return ""
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
