package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// Stream sends req and yields the reply. A failed request is repeated if that may help and no
// fragment of its reply was emitted; a Delta with a Notice announces it. Errors are
// *llm.ProviderError, or wrap the cause of a cancelled ctx.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return wire.Stream(func(yield func(llm.Delta, error) bool) error { return m.stream(ctx, req, yield) })
}

// errPaused ends a decoder whose reply continues with another request.
var errPaused = errors.New("paused")

// stream asks, and asks once more without thinking if the server refuses the thinking that was sent
// back.
func (m *Model) stream(ctx context.Context, req *llm.Request, yield func(llm.Delta, error) bool) error {
	if name := cmp.Or(req.Model, m.name); m.factsOf(name).bound {
		req = m.without(req, req.Edited)
	}
	err := m.ask(ctx, req, yield)
	var pe *llm.ProviderError
	if !errors.As(err, &pe) || pe.Code != llm.CodeBoundThinking {
		return err
	}
	again := m.without(req, len(req.Messages))
	if again == req {
		return err
	}
	if !yield(llm.Delta{Notice: &llm.Notice{Code: string(pe.Code),
		Text: "anthropic: the thinking does not belong to this conversation any more; it is left out, and the request is sent again"}}, nil) {
		return wire.ErrStopped
	}
	return m.ask(ctx, again, yield)
}

func (m *Model) ask(ctx context.Context, req *llm.Request, yield func(llm.Delta, error) bool) error {
	if m.err != nil {
		return m.err
	}
	req, more := rules.Repair(req, req.Settings.Options[provider], yield)
	if more {
		req, more = m.media(cmp.Or(req.Model, m.name)).Apply(req, yield)
	}
	if !more {
		return wire.ErrStopped
	}
	own, err := readOptions(req.Settings.Options[provider])
	if err != nil {
		return err
	}
	tools, err := m.toolset(req, own)
	if err != nil {
		return err
	}
	if !slices.Contains(own.betas, betaCompact) && slices.ContainsFunc(req.Messages, m.summarized) {
		own.betas = append(own.betas, betaCompact)
	}
	var h http.Header // nil means the client's
	if len(own.betas) > 0 {
		h = m.client.Header.Clone()
		h.Set("Anthropic-Beta", m.betaHeader(own.betas))
	}
	body, err := m.encode(wire.Buffer(req, tools), m.name, tools, m.output.Get(req.Output), req, own)
	if err != nil {
		return err
	}
	if !tools.EmitNotices(yield) || !m.emitUnthought(req, own, yield) || !m.emitHeld(req, yield) {
		return wire.ErrStopped
	}
	u := m.address(req)
	if own.empty() { // only the server's tools, which are in the options, pause a turn
		out := m.emitter(tools, yield)
		if err = m.client.SendHeader(ctx, u, h, body, req.Whole, out); err == errPaused {
			err = stayedPaused(0)
		}
		return err
	}
	return m.turns(ctx, u, h, body, tools, req, own, yield)
}

// turns sends a request, and sends it again with the reply so far as long as the server pauses its
// turn. The deltas form one reply.
func (m *Model) turns(ctx context.Context, u *url.URL, h http.Header, body []byte, tools *wire.Toolset,
	req *llm.Request, own options, yield func(llm.Delta, error) bool) error {
	var soFar llm.Response
	var spent llm.Usage
	out := m.emitter(tools, func(d llm.Delta, err error) bool {
		if d.Usage != nil && spent.Total() > 0 {
			raw := d.Usage.Raw
			d.Usage = d.Usage.Plus(spent)
			d.Usage.Raw = raw // of the last request
		}
		soFar.Add(d) // its errors are reported by the consumer's own Response
		return yield(d, err)
	})
	for n := 0; ; n++ {
		err := m.client.SendHeader(ctx, u, h, body, req.Whole, out)
		if err != errPaused {
			return err
		}
		if n == MaxContinuations || len(soFar.Message.Parts) == 0 {
			return stayedPaused(n)
		}
		if out.Usage != nil {
			spent.Add(*out.Usage)
		}
		out.Usage = nil
		out.Began = false
		next := *req
		next.Messages = append(slices.Clip(req.Messages),
			llm.Message{Role: llm.RoleAssistant, Parts: slices.Clone(soFar.Message.Parts)})
		body, err = m.encode(wire.Buffer(&next, tools), m.name, tools, m.output.Get(next.Output), &next,
			own)
		if err != nil {
			return err
		}
	}
}

// stayedPaused returns the error of a turn that is paused after n continuations: what there is of
// the reply is no answer.
func stayedPaused(n int) error {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeMalformedReply,
		Message: fmt.Sprintf("the server paused the turn, and %d further requests did not complete it", n)}
}

// toolset returns the request's tools, except tools that its options define.
func (m *Model) toolset(req *llm.Request, own options) (*wire.Toolset, error) {
	if own.tools == nil {
		return m.tools.Get(req.Tools)
	}
	return wire.NewToolset(toolForm, own.without(req.Tools))
}

// address returns the URL of a request.
func (m *Model) address(req *llm.Request) *url.URL {
	if !m.vertex {
		return m.url
	}
	name := cmp.Or(req.Model, m.name)
	verb := ":streamRawPredict"
	if req.Whole {
		verb = ":rawPredict"
	}
	return m.url.JoinPath(url.PathEscape(name) + verb)
}
