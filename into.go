package pawl

// into.go: answers as Go types: Into, the Runners that it accepts, and the schema of a type.

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/pawl-go/pawl/internal/schema/gotype"
	"github.com/pawl-go/pawl/llm"
)

// OutputRunner is a Runner with a schema for its answer, such as an Agent. WithOutput returns a
// copy whose Result.Output fits schema, in place of an earlier schema.
//
// Into uses two more abilities of the Runner that WithOutput returns, if it has them: CheckedRunner
// and FollowedRunner. A Runner with neither gets the whole conversation again, with the correction.
type OutputRunner interface {
	Runner
	WithOutput(schema json.RawMessage) Runner
}

var _ OutputRunner = (*Agent)(nil)

// CheckedRunner is the ability of an OutputRunner to ask the model again about an answer which fits
// the schema and not the Go type. Agent has it.
type CheckedRunner interface {
	// WithCheck returns a copy of the Runner whose answers check must accept too: a refused answer
	// is sent back to the model. It returns false if the run inside cannot check.
	WithCheck(check func(answer json.RawMessage) error) (Runner, bool)
}

// FollowedRunner is the ability of an OutputRunner whose runs have an ID of their own, and cannot
// check: a correction is the next message. thread.Runner has it.
type FollowedRunner interface {
	// FollowUp returns the run that continues res with a new message, always the same for a run,
	// and whether that run is stored already. A nil next means that it has none.
	FollowUp(ctx context.Context, res *Result) (next Runner, stored bool, err error)
}

var _ CheckedRunner = (*Agent)(nil)

// WithOutput returns a copy of a with Output set to schema, and without OutputCheck.
func (a *Agent) WithOutput(schema json.RawMessage) Runner {
	if a == nil {
		return a // its runs return the error
	}
	b := *a
	b.Output = schema
	b.OutputCheck = nil
	return &b
}

// WithCheck returns a copy of a with OutputCheck set to check.
func (a *Agent) WithCheck(check func(answer json.RawMessage) error) (Runner, bool) {
	if a == nil {
		return a, true
	}
	b := *a
	b.OutputCheck = check
	return &b, true
}

// Into executes the task in msgs and returns the answer as a T. The schema of the answer is
// inferred from T, as NewFunc does for arguments. An answer that does not fit the schema or T, or
// that a method Validate() error of T or of a type inside it refuses, is sent back to the model
// (Limits.Corrections). The task is executed as Run does it.
//
// The error is the error of the run, as in Agent.Run, or an *OutputError: the answer does not fit.
// A run of a journal that ended with an *OutputError asks the model again when it is resumed. If a
// limit was reached and there is an answer, Into returns both the answer and the *StopError. Into
// panics if no schema can be inferred.
func Into[T any](ctx context.Context, r OutputRunner, msgs ...llm.Message) (T, *Result, error) {
	var in struct {
		Value T `json:"value"`
	}
	of := mustInfer(reflect.TypeFor[T]())
	into := any(&in.Value)
	if !of.Object { // providers need an object
		of = mustInfer(reflect.TypeOf(in))
		into = &in
	}
	if r == nil {
		return in.Value, nil, errNoRunner
	}
	t := typed{of: of, run: r.WithOutput(of.Schema)}
	if c, ok := t.run.(CheckedRunner); ok {
		checked, ok := c.WithCheck(of.Fits)
		if ok {
			t.run = checked
			t.checks = true
		}
	}

	res, err := t.ask(ctx, msgs)
	if res == nil || res.Output == nil {
		if err == nil {
			err = &OutputError{Text: res.Text(), Result: res}
		}
		return in.Value, res, err
	}
	if wrong := gotype.Decode(res.Output, into); wrong != nil && err == nil {
		err = unusable(res, wrong)
	}
	return in.Value, res, err
}

// typed is a run whose answer must fit a Go type.
type typed struct {
	of     *gotype.Type
	run    Runner
	checks bool // the run itself asks again about an answer that does not fit the type
}

// ask runs the task. It asks again about an answer that the run has accepted and that does not fit
// the type, because the run could not check it.
func (t *typed) ask(ctx context.Context, msgs []llm.Message) (*Result, error) {
	res, err := Run(ctx, t.run, msgs...)
	for n := 0; !t.checks && err == nil && res.Output != nil; {
		wrong := t.of.Fits(res.Output)
		if wrong == nil {
			break
		}
		if n == defaultCorrections {
			return res, unusable(res, wrong)
		}

		next, stored, failed := t.correction(ctx, res, wrong)
		if failed != nil {
			return res, failed
		}
		if !stored { // a stored correction costs no request
			n++
		}
		res, err = Run(ctx, t.run, next...)
	}
	return res, err
}

// correction makes t the run that continues res, and returns its messages. stored reports that the
// run exists: it has the words of the check as they were then.
func (t *typed) correction(ctx context.Context, res *Result, wrong error) (msgs []llm.Message, stored bool, err error) {
	text := "The answer cannot be used:" + gotype.FaultText(wrong) + answerAgain
	words := llm.User(text).WithLabel(labelOf(res.Messages)) // it repeats words of the answer
	whole := append(slices.Clip(res.Messages), words)
	f, ok := t.run.(FollowedRunner)
	if !ok {
		return whole, false, nil
	}

	next, stored, err := f.FollowUp(ctx, res)
	switch {
	case err != nil:
		return nil, false, err
	case next == nil:
		return whole, false, nil
	}
	t.run = next
	if stored {
		return nil, true, nil
	}
	return []llm.Message{words}, false, nil
}

// unusable returns the error for an answer that fits the schema and not the type.
func unusable(res *Result, wrong error) error {
	return &OutputError{Text: string(res.Output), Faults: faultLines(gotype.FaultText(wrong)), Result: res}
}

// CheckFor returns the check of a T for Agent.OutputCheck, next to SchemaFor for Agent.Output: an
// answer must decode into a T that no method Validate() error refuses. It panics if T has no
// schema.
func CheckFor[T any]() func(answer json.RawMessage) error {
	return mustInfer(reflect.TypeFor[T]()).Fits
}

// SchemaFor is SchemaOf for types that are known to have a schema. It panics with the error of
// SchemaOf, because that is a mistake in the program.
func SchemaFor[T any]() json.RawMessage { return mustInfer(reflect.TypeFor[T]()).Schema }

// SchemaOf returns the JSON Schema of T for Agent.Output, as NewFunc infers it for arguments. The
// error names the type, the field and a remedy.
func SchemaOf[T any]() (json.RawMessage, error) {
	of, err := gotype.Of(reflect.TypeFor[T](), gotype.Input)
	if err != nil {
		return nil, err
	}
	return of.Schema, nil
}

// mustInfer returns the schema of t. It panics if there is none.
func mustInfer(t reflect.Type) *gotype.Type {
	of, err := gotype.Of(t, gotype.Input)
	if err != nil {
		panic(fmt.Sprintf("pawl: %v", err))
	}
	return of
}
