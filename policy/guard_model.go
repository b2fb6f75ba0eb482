package policy

// guard_model.go: the middleware of a Guard: the model that checks input and output, and results.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Middleware returns the middleware that enforces g.
func (g Guard) Middleware() pawl.Middleware {
	g.Name = cmp.Or(g.Name, "guard")
	g.Timeout = cmp.Or(max(g.Timeout, 0), 30*time.Second)
	s := &guard{Guard: g, known: map[[sha256.Size]byte]Ruling{}}
	m := pawl.Middleware{Rank: rankGuard, Check: func([]*pawl.Tool) error { return g.checkSettings() }}
	if s.guards(GuardInput) || s.guards(GuardOutput) {
		m.Model = func(inner llm.Model) llm.Model { return &guarded{inner, s} }
	}
	// Behind the approval, where only executed calls have results.
	if s.guards(GuardResult) {
		m.Approved = func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				res, err := next(ctx, call)
				return s.result(ctx, res, err)
			}
		}
	}
	return m
}

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
		// All texts were ruled on in earlier requests of this process.
		case len(texts) == 0:
			m.reply(ctx, view, nil, yield)
		default:
			m.together(ctx, req, view, texts, yield)
		}
	}
}

// together sends view while texts are checked, and holds its reply back. If a text is not allowed,
// the reply is dropped, and req is sent anew with the rulings.
func (m *guarded) together(ctx context.Context, req, view *llm.Request, texts []string,
	yield func(llm.Delta, error) bool) {
	ctx, done := context.WithCancel(ctx)
	asked, cancel := context.WithCancel(ctx)
	h := &holding{ruled: make(chan *inputs, 1), yield: yield, requests: 1}
	go func() {
		in := m.guard.input(ctx, texts)
		if !in.allow {
			cancel()
		}
		h.ruled <- in
	}()

	// The check ends with the request, also if the consumer stops before.
	defer func() {
		done()
		if h.in == nil {
			<-h.ruled
		}
	}()

	m.reply(asked, view, h.allowed, func(d llm.Delta, err error) bool {
		return h.pass(d, err, asked.Err() != nil)
	})
	if h.allowed() {
		if h.broken != nil {
			h.yield(llm.Delta{}, h.broken)
		}
		return
	}

	// The reply is dropped. Its usage counts all the same.
	in := h.in
	h.addDropped()
	yield = in.before(yield)
	view, stop, _ := m.guard.view(req, in.rulings)
	switch {
	case in.err != nil:
		yield(llm.Delta{}, in.err)
	case stop != nil:
		m.guard.withhold(GuardInput, ruled{Ruling: *stop}, unsent(), yield)
	default:
		m.reply(ctx, view, nil, yield)
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

// result checks what a tool returned.
func (g *guard) result(ctx context.Context, res llm.ToolResult, err error) (llm.ToolResult, error) {
	v := pawl.InvocationFrom(ctx)
	text := res.Text()
	if err != nil {
		text = err.Error()

		// Only a tool that ran has words of its own. A composing call may wait for its calls, and
		// their results are checked.
		ran := v != nil && v.Attempt > 0 && v.Tool().Effect != pawl.EffectCompose
		if !ran {
			return res, err
		}
	}
	if text == "" || ctx.Err() != nil {
		return res, err
	}

	what := Guarded{Place: GuardResult, Text: text}
	if v != nil {
		what.Tool = v.Tool().Name
	}
	r, failed := g.rule(ctx, what)
	if failed != nil {
		return llm.ErrorResult("The result is withheld, because it could not be checked."), nil
	}

	n := g.notice(GuardResult, r)
	if n != nil && v != nil {
		v.Emit(n.Text, n.Data)
	}
	switch r.Action {
	case GuardStop:
		return llm.ToolResult{}, pawl.AbortError(errors.New(n.Text))
	case GuardReplace:
		return llm.ToolResult{Parts: llm.TextResult(r.Text).Parts, IsError: res.IsError || err != nil}, nil
	}
	return res, err
}
