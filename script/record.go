package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Record returns a Model that asks m and records its replies. After the run, Script is the same
// conversation without m: a run with it, with the same tools and the same input, has the same
// Result.
//
//	rec := script.Record(openai.New("gpt-6.1-terra", nil))
//	res, err := (&pawl.Agent{Model: rec, Tools: tools}).Run(ctx, llm.User("…"))
//	written, err := rec.Script()
//	b, err := json.Marshal(written) // for testdata; json.Unmarshal reads it into a Model
func Record(m llm.Model) *Capture { return &Capture{inner: m, turns: map[int]Turn{}} }

// Capture is a Model that records the replies of another, by the number of replies before. It
// records one conversation, in any number of runs, and may be used concurrently.
type Capture struct {
	inner llm.Model

	mu    sync.Mutex
	turns map[int]Turn // by the replies before
	holds bool
	err   error
}

var (
	_ llm.Model        = (*Capture)(nil)
	_ llm.OutputHolder = (*Capture)(nil)
)

// Unwrap returns the recorded model.
func (r *Capture) Unwrap() llm.Model { return r.inner }

// HoldsOutput returns the answer of the recorded model, and records it.
func (r *Capture) HoldsOutput(req *llm.Request) bool {
	h, ok := llm.As[llm.OutputHolder](r.inner)
	holds := ok && h.HoldsOutput(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds = holds
	return holds
}

// Stream passes the reply on, and records it when it is whole or has failed. Of a failed reply only
// the error is recorded, and of a reply that the consumer stopped nothing.
func (r *Capture) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		resp := new(llm.Response)
		broken := false
		for d, err := range r.inner.Stream(ctx, req) {
			switch {
			// An error after the consumer has cancelled is the consumer's, and would be replayed as
			// the model's.
			case err != nil && ctx.Err() == nil:
				r.keep(req, Turn{Err: err, Requests: max(0, resp.Requests-1)})
			case err == nil && !broken:
				// A reply that breaks the rules of deltas cannot be recorded. The consumer detects
				// the same fault.
				broken = resp.Add(d) != nil
				if !broken && d.Finish != "" {
					u := resp.Usage
					r.keep(req, Turn{Parts: resp.Message.Parts, Finish: resp.Finish, Usage: &u,
						Model: resp.Model, ID: resp.ID, Requests: resp.Requests})
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// keep records a turn. A reply replaces a failure. Another reply in the same place belongs to
// another conversation.
func (r *Capture) keep(req *llm.Request, t Turn) {
	n := replies(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	before, ok := r.turns[n]
	if ok && before.Err == nil {
		if t.Err == nil && !reflect.DeepEqual(before, t) && r.err == nil {
			r.err = fmt.Errorf("script: two replies were recorded after %d others; record one conversation at a time", n)
		}
		return
	}
	r.turns[n] = t
}

// Script returns the turns so far. The error says that they are not one conversation.
func (r *Capture) Script() (*Model, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	places := slices.Sorted(maps.Keys(r.turns))
	m := &Model{Holds: r.holds}
	for i, n := range places {
		if i == 0 {
			m.Skip = n
		}
		if n != m.Skip+i {
			return nil, fmt.Errorf("script: the reply after %d others was not recorded", m.Skip+i)
		}
		m.Turns = append(m.Turns, r.turns[n])
	}
	return m, r.err
}

type (
	modelJSON struct {
		Skip  int        `json:"skip,omitzero"`
		Holds bool       `json:"holds,omitzero"`
		Turns []turnJSON `json:"turns"`
	}
	turnJSON struct {
		Message *llm.Message `json:"message,omitzero"` // nil means an empty reply
		// of its calls, if their spacing would be lost in the form of a message
		Args   []string         `json:"args,omitzero"`
		Finish llm.FinishReason `json:"finish,omitzero"`
		Usage  *llm.Usage       `json:"usage,omitzero"`
		Model  string           `json:"model,omitzero"`
		ID     string           `json:"id,omitzero"`
		Error  *errorJSON       `json:"error,omitzero"`
		// besides the answered request
		Requests int    `json:"requests,omitzero"`
		Asked    string `json:"asked,omitzero"` // written by hand: Expect with Asked
		// written by hand: the First of these, and nothing else
		First []turnJSON `json:"first,omitzero"`
	}
	errorJSON struct {
		Provider string `json:"provider,omitzero"`
		Status   int    `json:"status,omitzero"`
		// empty means an error other than a ProviderError
		Code       llm.Code      `json:"code,omitzero"`
		Message    string        `json:"message"`
		Retryable  bool          `json:"retryable,omitzero"`
		RetryAfter time.Duration `json:"retry_after_ns,omitzero"`
	}
)

// MarshalJSON writes
// {"skip"?,"holds"?,"turns":[{"message","finish","usage","model","id","error"?}]}. Turns that
// decide, repeat or wait have no such form and are an error.
func (m *Model) MarshalJSON() ([]byte, error) {
	w := modelJSON{Skip: m.Skip, Holds: m.Holds, Turns: make([]turnJSON, len(m.Turns))}
	for i, t := range m.Turns {
		if !t.isPlain() {
			return nil, fmt.Errorf("script: turn %d is no plain reply", i+1)
		}
		j := turnJSON{Finish: t.Finish, Usage: t.Usage, Model: t.Model, ID: t.ID, Requests: t.Requests}
		// A turn of only an error has no message.
		if len(t.Parts) > 0 {
			j.Message = &llm.Message{Role: llm.RoleAssistant, Parts: t.Parts}
			j.Args = spaced(j.Message.Calls())
		}
		if t.Err != nil {
			j.Error = errorForm(t.Err)
		}
		w.Turns[i] = j
	}
	return json.Marshal(w)
}

// errorForm returns the form of an error. Only a provider's has more than a text.
func errorForm(err error) *errorJSON {
	var p *llm.ProviderError
	if !errors.As(err, &p) {
		return &errorJSON{Message: err.Error()}
	}
	form := &errorJSON{p.Provider, p.Status, p.Code, p.Message, p.Retryable, p.RetryAfter}
	if p.Message == "" && p.Err != nil {
		form.Message = p.Err.Error()
	}
	return form
}

// spaced returns the arguments of calls if some of them have spacing, and nil otherwise.
func spaced(calls []llm.ToolCall) []string {
	args := make([]string, len(calls))
	found := false
	for i, c := range calls {
		args[i] = string(c.Args)
		var b bytes.Buffer
		found = found || json.Compact(&b, c.Args) == nil && b.String() != args[i]
	}
	if !found {
		return nil
	}
	return args
}

// UnmarshalJSON reads the form of MarshalJSON, and two forms that are written by hand: a turn with
// "asked", which expects that text in the last message of the user, and {"first":[…]}, the first of
// these turns whose expectations are met.
func (m *Model) UnmarshalJSON(b []byte) error {
	var w modelJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	m.Skip = w.Skip
	m.Holds = w.Holds
	m.Turns = nil
	for _, j := range w.Turns {
		m.Turns = append(m.Turns, j.turn())
	}
	return nil
}

func (j *turnJSON) turn() Turn {
	if j.First != nil {
		all := make([]Turn, len(j.First))
		for i := range j.First {
			all[i] = j.First[i].turn()
		}
		return First(all...)
	}

	t := Turn{Finish: j.Finish, Usage: j.Usage, Model: j.Model, ID: j.ID, Requests: j.Requests}
	if j.Message != nil {
		t.Parts = j.Message.Parts
	}
	// Arguments within the message have lost their spacing, so they are stored as text as well.
	calls := 0
	for i := range t.Parts {
		c, ok := t.Parts[i].(llm.ToolCall)
		if !ok || calls == len(j.Args) {
			continue
		}
		c.Args = json.RawMessage(j.Args[calls])
		t.Parts[i] = c
		calls++
	}
	if j.Error != nil {
		t.Err = j.Error.err()
	}
	if j.Asked != "" {
		t = Expect(t, Asked(j.Asked))
	}
	return t
}

// err returns the error of the form.
func (e *errorJSON) err() error {
	if e.Code == "" {
		return errors.New(e.Message)
	}
	return &llm.ProviderError{
		Provider:   e.Provider,
		Status:     e.Status,
		Code:       e.Code,
		Message:    e.Message,
		Retryable:  e.Retryable,
		RetryAfter: e.RetryAfter,
	}
}

// isPlain reports whether t is a reply that decides, repeats and waits for nothing.
func (t *Turn) isPlain() bool {
	decides := t.next != nil || t.loop != nil || t.want != nil
	waits := t.Hold != nil || t.Delay != 0 || t.Pace != 0
	inPieces := t.Deltas != nil || t.Size != 0
	return !decides && !waits && !inPieces
}
