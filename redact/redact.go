// Package redact hides secrets from the observers of a run: in its events, results and errors, and
// in text that is made from them. The model and the tools still receive the secrets.
//
//	secrets := &redact.Redactor{}
//	err := secrets.Add(os.Getenv("API_KEY"))
//	runner := redact.Runner(agent, secrets) // innermost: all observers see redacted events
//
//	agent ──▶ redact.Runner ──▶ logs, journals, traces, viewers
//	          s3cr3t/key         [redacted]
//
// Redactor.String, JSON, Call, Result and Error redact values outside a stream of events. Package
// secret finds secrets in text; marks.go finds the arguments that schemas mark as secret.
package redact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/redact/internal/secret"
)

// Redactor hides secrets from the observers of a run: in events, results and errors, and in logs,
// journals and traces that are made from them. Models and tools still receive the secrets. Each
// hidden piece is emitted as [redacted].
//
// A Redactor hides the secrets passed to Add, verbatim and in base64, URL and JSON form, wherever
// they occur. It also hides arguments that a tool's schema marks with "writeOnly": true or
// "x-secret": true: in calls, and texts of at least 6 bytes from them wherever else they occur.
//
// The zero value and nil hide nothing. A Redactor is safe for concurrent use. Secrets may be added
// at any time.
type Redactor struct {
	mu    sync.Mutex
	state atomic.Pointer[redaction]
}

// Add adds secrets. It returns an error if one is shorter than 4 bytes, because it would match
// everywhere; that secret is not added, and the error does not contain it. Empty secrets are
// ignored.
func (r *Redactor) Add(secrets ...string) (err error) {
	var forms []string
	for _, s := range secrets {
		switch {
		case s == "":
		case len(s) < secret.MinForm:
			err = fmt.Errorf("a secret of %d bytes is too short to be distinguished from other text", len(s))
		default:
			forms = append(forms, secret.Forms(s)...)
		}
	}
	r.change(func(x *redaction) { x.learn(forms) })
	return err
}

// AddTools adds the arguments that the schemas of tools mark as secret. Runner does so itself for
// the tools of the runs that it sees.
func (r *Redactor) AddTools(tools ...*pawl.Tool) {
	marks := marksOf(tools)
	r.change(func(x *redaction) { x.mark(marks) })
}

// Learn adds the values in calls of arguments that the schemas of AddTools mark as secret: texts of
// at least 6 bytes are hidden wherever they occur. Programs that show a stored run call it. A
// Runner learns from the run itself.
func (r *Redactor) Learn(calls ...llm.ToolCall) {
	x := r.now()
	if x == nil || len(x.marks) == 0 {
		return
	}
	var found []string
	for i := range calls {
		found = x.toLearn(&calls[i], found)
	}
	if len(found) > 0 {
		r.change(func(x *redaction) { x.learn(formsOf(found)) })
	}
}

// Clone returns a Redactor that hides what r hides now, and that accepts further secrets without a
// change to r. A clone of nil hides nothing.
func (r *Redactor) Clone() *Redactor {
	c := new(Redactor)
	c.state.Store(r.now())
	return c
}

func (r *Redactor) change(f func(*redaction)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.now().clone()
	f(x)
	r.state.Store(x)
}

func (r *Redactor) now() *redaction {
	if r == nil {
		return nil
	}
	return r.state.Load()
}

// String returns s without secrets.
func (r *Redactor) String(s string) string { return r.now().text(s) }

// JSON returns b without secrets in values and names. Invalid JSON is redacted as text. A number
// that is a secret becomes text.
func (r *Redactor) JSON(b json.RawMessage) json.RawMessage { return r.now().json(b, nil) }

// Call returns c without secrets, in the form for a person who decides about it.
func (r *Redactor) Call(c llm.ToolCall) llm.ToolCall {
	if x := r.now(); x != nil {
		return x.call(c)
	}
	return c
}

// ToolResult returns res without secrets.
func (r *Redactor) ToolResult(res llm.ToolResult) llm.ToolResult {
	if x := r.now(); x != nil {
		return x.toolResult(res)
	}
	return res
}

// Results returns a middleware that hides secrets in the results and errors of tools before the
// model or a journal gets them, as when a server repeats the headers of its request. It acts
// within other middleware, wherever it is listed. It does not see the result of FinishError.
func Results(secrets *Redactor) pawl.Middleware {
	m := pawl.After(func(_ context.Context, _ llm.ToolCall, res llm.ToolResult, err error) (llm.ToolResult, error) {
		return secrets.ToolResult(res), secrets.Error(err)
	})
	m.Rank = 100 // the others see what it leaves
	return m
}

// Result returns a copy of res without secrets. Its steps have no Request. A run can resume from
// it, except with an open call whose arguments were hidden: the model then reads that it must make
// the call again.
func (r *Redactor) Result(res *pawl.Result) *pawl.Result {
	x := r.now()
	if x == nil || res == nil {
		return res
	}
	w := watch{redactor: r, redaction: x}
	w.learnMessages(res.Messages)
	// All marked values are learned first: an early text may repeat an argument that only a later
	// step shows.
	for _, s := range res.Steps {
		if s.Response != nil {
			w.learnMessages([]llm.Message{s.Response.Message})
		}
		for i := range s.Executions {
			w.learn(&s.Executions[i].Call)
		}
	}
	return apply(res, w.result)
}

// Error returns err without secrets. errors.Is finds the same errors as in err. errors.As finds
// only *ProviderError, *ToolError, *TranscriptError, *OutputError and *StopError, also without
// secrets. An error without secrets may be returned unchanged. Nil returns nil.
func (r *Redactor) Error(err error) error { return r.now().error(err) }

// Runner returns r with the secrets of a Redactor hidden in all its events. Wrap the run with it
// first, so that every other observer sees redacted events.
//
// Secrets that are split over fragments are hidden too. Text that may be the start of a secret is
// held back, so that the end of a part may arrive as a fragment of its own. The marked arguments of
// a call arrive as one fragment when the call is complete.
//
// If r is an OutputRunner, so is the result. Nil secrets hide nothing.
func Runner(r pawl.Runner, secrets *Redactor) pawl.Runner {
	return observe.Wrap(r, func(r pawl.Runner) observe.RunnerFunc { return secrets.over(r) })
}

// over returns inner with hidden secrets.
func (r *Redactor) over(inner pawl.Runner) observe.RunnerFunc {
	return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return func(yield func(pawl.Event, error) bool) {
			w := watch{redactor: r, redaction: r.now()}
			for e, err := range inner.Stream(ctx, msgs...) {
				if err != nil {
					// The error may quote a secret that was registered while the run was active.
					w.current()
					if !yield(pawl.Event{}, w.error(err)) {
						return
					}
					continue
				}
				if !w.emit(e, func(e pawl.Event) bool { return yield(e, nil) }) {
					return
				}
			}
		}
	}
}

// redaction is an immutable set of hidden values. Nil hides nothing.
type redaction struct {
	forms []string // sorted
	find  *secret.Matcher
	marks map[string]*mark // by folded name of the tool
}

func (x *redaction) clone() *redaction {
	if x == nil {
		return &redaction{}
	}
	c := *x
	return &c
}

func (x *redaction) learn(forms []string) {
	if len(forms) == 0 {
		return
	}
	x.forms = slices.Concat(x.forms, forms)
	slices.Sort(x.forms)
	x.forms = slices.Compact(x.forms)
	x.find = secret.New(x.forms)
}

func (x *redaction) text(s string) string {
	if x == nil {
		return s
	}
	return x.find.Replace(s)
}

func (x *redaction) error(err error) error {
	if err == nil || x.hidesNothing() {
		return err
	}

	text := err.Error()
	hidden := x.text(text)
	known, safe := x.knownError(err)
	switch {
	case known == nil && hidden == text && !x.within(err):
		return err
	case known != nil && known == err:
		return safe
	}
	return &redactedError{hidden, err, safe}
}

func (x *redaction) hidesNothing() bool {
	return x == nil || x.find == nil && len(x.marks) == 0
}

// knownError returns the first error of a known type in the tree of err, and a copy of it without
// secrets. Nil means none.
func (x *redaction) knownError(err error) (known, safe error) {
	var provider *llm.ProviderError
	var tool *pawl.ToolError
	var transcript *pawl.TranscriptError
	var output *pawl.OutputError
	var stop *pawl.StopError
	// Errors of these types are copied field by field, so that callers can still branch on them.
	// The text alone stays of all others.
	switch {
	case errors.As(err, &provider):
		c := *provider
		c.Message = x.text(provider.Message)
		c.Err = x.error(provider.Err)
		return provider, &c

	case errors.As(err, &tool):
		c := *tool
		c.Execution = x.execution(tool.Execution)
		c.Err = x.error(tool.Err)
		return tool, &c

	case errors.As(err, &transcript):
		return transcript, &pawl.TranscriptError{Index: transcript.Index, Text: x.text(transcript.Text)}

	case errors.As(err, &output):
		return output, &pawl.OutputError{
			Text:   x.text(output.Text),
			Faults: applyAll(output.Faults, x.text),
			Result: apply(output.Result, x.result),
		}

	case errors.As(err, &stop):
		return stop, &pawl.StopError{
			Reason: stop.Reason,
			Result: apply(stop.Result, x.result),
			Err:    x.error(stop.Err),
		}
	}
	return nil, nil
}

// wrapping and joined are errors with others in them.
type (
	wrapping interface{ Unwrap() error }
	joined   interface{ Unwrap() []error }
)

// within reports whether the text of an error in the tree of err contains a secret.
func (x *redaction) within(err error) bool {
	switch e := err.(type) {
	case wrapping:
		inner := e.Unwrap()
		return inner != nil && (x.find.Find(inner.Error()) || x.within(inner))
	case joined:
		return slices.ContainsFunc(e.Unwrap(), func(inner error) bool {
			return inner != nil && (x.find.Find(inner.Error()) || x.within(inner))
		})
	}
	return false
}

// redactedError replaces an error that may contain a secret.
type redactedError struct {
	text string
	err  error // never returned
	safe error // the error of a known type in it, without secrets; nil means none
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }

// As finds the error of a known type, and nothing behind it.
func (e *redactedError) As(target any) bool {
	to := reflect.ValueOf(target).Elem()
	if e.safe == nil || to.Type() != reflect.TypeOf(e.safe) {
		return false
	}
	to.Set(reflect.ValueOf(e.safe))
	return true
}
