package react

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawl-go/pawl/llm"
)

// errLeft means that the consumer has stopped.
var errLeft = errors.New("the caller broke off")

// reply is the reply being made, of one or more of the inner model's.
type reply struct {
	yield func(llm.Delta, error) bool
	usage llm.Usage // of the inner requests so far
	index int       // of the next part

	replies int // of the inner models
}

func (r *reply) send(d llm.Delta) error {
	if !r.yield(d, nil) {
		return errLeft
	}
	return nil
}

func (r *reply) notice(code, text string, data map[string]any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return r.send(llm.Delta{Notice: &llm.Notice{Code: code, Text: text, Data: b}})
}

// ask sends req and joins its deltas. It emits the notices. It passes parts to the function as they
// arrive; nil means that no part is passed on.
func (r *reply) ask(ctx context.Context, m llm.Model, req *llm.Request,
	emit func(llm.Part) error) (*llm.Response, error) {
	resp := new(llm.Response)
	for d, err := range m.Stream(ctx, req) {
		if err == nil {
			err = resp.Add(d)
		}
		if r.replies > 0 {
			d.Background = nil // after a restart, the first request would fetch it
		}
		if err == nil {
			err = r.passOn(d)
		}
		if d.Part != nil && err == nil && emit != nil {
			err = emit(d.Part)
		}
		if err != nil {
			return nil, err
		}
	}
	// A stream without an end is cut. Its text could be read as a decision that the model had not
	// finished.
	if resp.Finish == "" {
		return nil, &llm.ProviderError{Code: llm.CodeStream, Message: "the reply ended without a finish reason", Retryable: true}
	}
	r.usage.Add(resp.Usage)
	r.replies++
	return resp, nil
}

// passOn sends what d says besides its part.
func (r *reply) passOn(d llm.Delta) error {
	if d.Notice == nil && d.Requests == 0 && d.Background == nil {
		return nil
	}
	return r.send(llm.Delta{Notice: d.Notice, Requests: d.Requests, Background: d.Background})
}

// parts sends whole parts.
func (r *reply) parts(parts ...llm.Part) error {
	for _, p := range parts {
		if err := r.send(llm.Delta{Index: r.index, Part: p, Done: true}); err != nil {
			return err
		}
		r.index++
	}
	return nil
}

// text sends a fragment of the last part.
func (r *reply) text(s string) error {
	return r.send(llm.Delta{Index: r.index, Part: llm.Text{Text: s}})
}

// texts sends the text among what comes as fragments of the last part.
func (r *reply) texts(p llm.Part) error {
	if t, ok := p.(llm.Text); ok {
		return r.text(t.Text)
	}
	return nil
}

// finish sends the last parts, and the end of the inner model's last reply with the usage of all.
func (r *reply) finish(resp *llm.Response, parts ...llm.Part) error {
	if err := r.parts(parts...); err != nil {
		return err
	}
	u := r.usage
	finish := resp.Finish
	if finish == llm.FinishReasonToolCalls {
		finish = llm.FinishReasonStop // Response.Add says which it is
	}
	return r.send(llm.Delta{Usage: &u, Finish: finish, Model: resp.Model, ID: resp.ID, Requests: r.replies - 1})
}
