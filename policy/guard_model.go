package policy

// guard_model.go: the model of a Guard, which checks input and output.

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/pawl-go/pawl/llm"
)

// guarded is a model whose input and output are checked.
type guarded struct {
	llm.Model
	guard *guard
}

// Unwrap returns the wrapped model.
func (m *guarded) Unwrap() llm.Model { return m.Model }

// Stream yields a reply that the guard has allowed.
func (m *guarded) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if !m.guard.guards(GuardInput) {
			m.reply(ctx, req, nil, yield)
			return
		}

		view, stop, texts := m.guard.view(req, nil)
		switch {
		case stop != nil:
			m.guard.withhold(GuardInput, ruled{Ruling: *stop}, unsent(), yield)
		case len(texts) == 0:
			m.reply(ctx, view, nil, yield)
		default:
			m.together(ctx, req, view, texts, yield)
		}
	}
}

// unsent returns the usage of a reply without a request; see llm.Delta.Requests.
func unsent() *llm.Response { return &llm.Response{Requests: -1} }

// reply yields the reply to req. If output is guarded, it is held back until it is complete and
// checked; only notices, and what identifies a reply in the background, are not. allowed waits
// until the input is ruled on, and reports whether the reply is used; nil means that it is.
func (m *guarded) reply(ctx context.Context, req *llm.Request, allowed func() bool,
	yield func(llm.Delta, error) bool) {
	if !m.guard.guards(GuardOutput) {
		m.Model.Stream(ctx, req)(yield)
		return
	}
	resp, err := m.collect(ctx, req, yield)
	if err != nil {
		if err != errStopped && yieldUsage(resp.Requests, resp, yield) {
			yield(llm.Delta{}, err)
		}
		return
	}

	// Calls alone are not checked, and a reply that broke off has no effect.
	text := answerOf(resp)
	if text == "" || resp.Finish == "" {
		resp.Deltas()(yield)
		return
	}

	// A reply that is dropped needs no check.
	if allowed != nil && !allowed() {
		yieldUsage(resp.Requests, resp, yield)
		return
	}
	m.ruleOutput(ctx, text, resp, yield)
}

// ruleOutput checks text, the answer in resp, and yields what the ruling leaves of resp.
func (m *guarded) ruleOutput(ctx context.Context, text string, resp *llm.Response,
	yield func(llm.Delta, error) bool) {
	r, err := m.guard.rule(ctx, Guarded{Place: GuardOutput, Text: text})
	resp.Requests += r.Requests
	if r.Requests > 0 {
		resp.Usage.Add(r.Usage)
	}

	switch {
	case err != nil:
		// The request was sent, and no reply counts it.
		if yieldUsage(resp.Requests+1, resp, yield) {
			yield(llm.Delta{}, err)
		}
		return
	case r.Action == GuardStop:
		m.guard.withhold(GuardOutput, r, resp, yield)
		return
	case r.Action == GuardReplace:
		replaceAnswer(resp, r.Text)
	}

	n := m.guard.notice(GuardOutput, r)
	if n == nil || yield(llm.Delta{Notice: n}, nil) {
		resp.Deltas()(yield)
	}
}

// yieldUsage yields the usage of a reply that is not passed on, and a number of requests.
func yieldUsage(requests int, resp *llm.Response, yield func(llm.Delta, error) bool) bool {
	return yield(llm.Delta{Requests: requests, Usage: &resp.Usage}, nil)
}

// errStopped ends a request whose reader wants no more. It is never yielded.
var errStopped = errors.New("the consumer stopped")

// collect returns the whole reply to req. It yields what is not held back.
func (m *guarded) collect(ctx context.Context, req *llm.Request,
	yield func(llm.Delta, error) bool) (*llm.Response, error) {
	resp := new(llm.Response)
	for d, err := range m.Model.Stream(ctx, req) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			return resp, err
		}

		now := llm.Delta{Notice: d.Notice, Background: d.Background}
		if (d.Notice != nil || d.Background != nil) && !yield(now, nil) {
			return resp, errStopped
		}
	}
	return resp, nil
}

// answerOf returns the text of a reply, with the answer of an agent with Output.
func answerOf(resp *llm.Response) string {
	text := resp.Message.Text()
	for _, c := range resp.Message.Calls() {
		if c.Name == answerTool {
			text += string(c.Args)
		}
	}
	return text
}

// replaceAnswer puts text in place of what answerOf returns.
func replaceAnswer(resp *llm.Response, text string) {
	resp.Message.Parts = replaced(resp.Message.Parts, text)
	for i, p := range resp.Message.Parts {
		if c, ok := p.(llm.ToolCall); ok && c.Name == answerTool {
			c.Args = json.RawMessage(text)
			resp.Message.Parts[i] = c
		}
	}
}

// answerTool is the tool that takes the answer of an agent with Output.
const answerTool = "final_answer"

// withhold yields the reply of a stop, with the usage of resp.
func (g *guard) withhold(p GuardPlace, r ruled, resp *llm.Response, yield func(llm.Delta, error) bool) {
	n := g.notice(p, r)
	if !yield(llm.Delta{Notice: n}, nil) || !yield(llm.Delta{Part: llm.Text{Text: n.Text}, Done: true}, nil) {
		return
	}
	yield(llm.Delta{
		Usage:    &resp.Usage,
		Finish:   llm.FinishReasonContentFilter,
		Model:    resp.Model,
		ID:       resp.ID,
		Requests: resp.Requests,
	}, nil)
}
