package redact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/redact/internal/secret"
)

// Redactor hides secrets from whoever watches a run: in events, results, errors, and what is made of them (logs, journals, traces). Models and
// tools still get the truth. Every hidden piece is told as [redacted].
//
// What it hides: the secrets given to Add, as they are and in base64, URL and JSON form, wherever they stand; and arguments that a tool's schema
// marks with "writeOnly": true or "x-secret": true, in calls, and text of 6 bytes and more from them wherever else it stands.
//
// The zero value hides nothing; so does nil. A Redactor may be used concurrently, and added to at any time.
type Redactor struct {
	mu    sync.Mutex
	state atomic.Pointer[redaction]
}

// Add adds secrets. The error says that one is shorter than 4 bytes, which would be found everywhere; it is not added, and not told. An empty
// secret is none.
func (r *Redactor) Add(secrets ...string) (err error) {
	var forms []string
	for _, s := range secrets {
		switch {
		case s == "":
		case len(s) < secret.MinForm:
			err = fmt.Errorf("a secret of %d bytes is too short to be told from other text", len(s))
		default:
			forms = append(forms, secret.Forms(s)...)
		}
	}
	r.change(func(x *redaction) { x.learn(forms) })
	return err
}

// AddTools adds the arguments that the schemas of tools mark as secret. Redact does so by itself for the tools of the runs that it sees.
func (r *Redactor) AddTools(tools ...*pawl.Tool) {
	marks := marksOf(tools)
	r.change(func(x *redaction) { x.mark(marks) })
}

// Learn adds what calls have in arguments that the schemas of AddTools mark as secret: text of 6 bytes and more is hidden wherever it stands. It is for whoever shows what
// was kept of a run; a run that is watched is learned from as it goes.
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

// Clone returns a Redactor that hides what r hides now, and to which others can be added without r. A clone of nil hides nothing.
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

// JSON returns b without secrets, in names too. What is no JSON is taken as text. A number that is a secret becomes text.
func (r *Redactor) JSON(b json.RawMessage) json.RawMessage { return r.now().json(b, nil) }

// Call returns c without secrets: what a person is shown who decides about it.
func (r *Redactor) Call(c llm.ToolCall) llm.ToolCall {
	if x := r.now(); x != nil {
		return x.call(c)
	}
	return c
}

// Result returns res without secrets, and leaves res as it is. Its steps have no Request. A run can go on from it, but not with an open call whose
// arguments were hidden: the model is told to make that call again.
func (r *Redactor) Result(res *pawl.Result) *pawl.Result {
	x := r.now()
	if x == nil || res == nil {
		return res
	}
	w := watch{redactor: r, redaction: x}
	w.learnMessages(res.Messages)
	for _, s := range res.Steps {
		if s.Response != nil {
			w.learnMessages([]llm.Message{s.Response.Message})
		}
		w.learnExecutions(s.Executions)
	}
	return w.result(res)
}

// Error returns err without secrets: errors.Is finds what it found before, errors.As finds *ProviderError, *ToolError, *TranscriptError and
// *OutputError, which are without secrets too, and nothing else. An error with nothing to hide may be returned as it is. nil gives nil.
func (r *Redactor) Error(err error) error { return r.now().error(err) }

// Redact returns r with the secrets of a Redactor hidden in all that it tells: put it innermost, around the run, so that every other observer
// sees what it lets through. Secrets that come in several fragments are hidden too, and so text that may be the beginning of one is held
// back until it is known not to be; the end of a part may come as a fragment of its own. Arguments of a call that are marked as secret come as one fragment
// when the call is whole. If r is an OutputRunner, so is what Redact returns. secrets may be nil: then nothing is hidden.
func Runner(r pawl.Runner, secrets *Redactor) pawl.Runner {
	return observe.Wrap(r, func(r pawl.Runner) observe.RunnerFunc { return secrets.over(r) })
}

// over returns inner with what is secret hidden.
func (r *Redactor) over(inner pawl.Runner) observe.RunnerFunc {
	return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return func(yield func(pawl.Event, error) bool) {
			w := watch{redactor: r, redaction: r.now()}
			for e, err := range inner.Stream(ctx, msgs...) {
				if err != nil {
					w.current()
					if !yield(pawl.Event{}, w.error(err)) {
						return
					}
					continue
				}
				if !w.tell(e, func(e pawl.Event) bool { return yield(e, nil) }) {
					return
				}
			}
		}
	}
}

// redaction is what is hidden. It does not change once it is in use; nil hides nothing.
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
	if x == nil || err == nil || x.find == nil && len(x.marks) == 0 {
		return err
	}
	text := err.Error()
	hidden := x.text(text)
	safe := &redactedError{text: hidden, err: err}
	var pe *llm.ProviderError
	var te *pawl.ToolError
	var tr *pawl.TranscriptError
	var oe *pawl.OutputError
	switch {
	case errors.As(err, &pe):
		c := *pe
		c.Message, c.Err = x.text(pe.Message), x.error(pe.Err)
		safe.provider = &c
		if err == error(pe) {
			return &c
		}
	case errors.As(err, &te):
		c := *te
		c.Execution, c.Err = *x.execution(&te.Execution), x.error(te.Err)
		safe.tool = &c
		if err == error(te) {
			return &c
		}
	case errors.As(err, &tr):
		c := *tr
		c.Text = x.text(tr.Text)
		safe.transcript = &c
	case errors.As(err, &oe):
		safe.output = x.outputError(oe)
		if err == error(oe) {
			return safe.output
		}
	case hidden == text && !x.within(err):
		return err
	}
	return safe
}

// outputError returns err without secrets.
func (x *redaction) outputError(err *pawl.OutputError) *pawl.OutputError {
	c := pawl.OutputError{Text: x.text(err.Text), Faults: slices.Clone(err.Faults)}
	for i, f := range c.Faults {
		c.Faults[i] = x.text(f)
	}
	if err.Result != nil {
		c.Result = x.result(err.Result)
	}
	return &c
}

// within reports whether an error inside of err has a secret in its text.
func (x *redaction) within(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		inner := e.Unwrap()
		return inner != nil && (x.find.Find(inner.Error()) || x.within(inner))
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(inner error) bool {
			return inner != nil && (x.find.Find(inner.Error()) || x.within(inner))
		})
	}
	return false
}

// redactedError stands for an error that may hold a secret.
type redactedError struct {
	text       string
	err        error // never given away
	provider   *llm.ProviderError
	tool       *pawl.ToolError
	transcript *pawl.TranscriptError
	output     *pawl.OutputError
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }

func (e *redactedError) As(target any) bool {
	switch t := target.(type) {
	case **llm.ProviderError:
		if e.provider != nil {
			*t = e.provider
			return true
		}
	case **pawl.ToolError:
		if e.tool != nil {
			*t = e.tool
			return true
		}
	case **pawl.OutputError:
		if e.output != nil {
			*t = e.output
			return true
		}
	case **pawl.TranscriptError:
		if e.transcript != nil {
			*t = e.transcript
			return true
		}
	}
	return false
}
