package openai

import (
	"cmp"
	"context"
	"iter"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// Stream sends req and yields the reply. A failed request is repeated if that may help and no
// fragment of its reply was emitted; a Delta with a Notice announces it. Errors are
// *llm.ProviderError, or wrap the cause of a cancelled ctx.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return wire.Stream(func(yield func(llm.Delta, error) bool) error { return m.stream(ctx, req, yield) })
}

func (m *Model) stream(ctx context.Context, req *llm.Request, yield func(llm.Delta, error) bool) error {
	if m.err != nil {
		return m.err
	}
	// The changes that the rules and the media need are made to a copy for this request. The
	// conversation stays as it was, because another model may continue it.
	req, more := m.rules.Repair(req, m.options(req), yield)
	if more {
		req, more = m.media(cmp.Or(req.Model, m.name)).Apply(req, yield)
	}
	if !more {
		return wire.ErrStopped
	}
	tools, err := m.tools.Get(req.Tools)
	if err != nil {
		return err
	}
	body, err := m.dialect.encode(wire.Buffer(req, tools), m.name, tools, m.output.Get(req.Output), req)
	if err != nil {
		return err
	}
	// Notices, such as one about a tool that was left out, come only with a request that is sent.
	if !tools.EmitNotices(yield) {
		return wire.ErrStopped
	}
	if m.inBackground(req) {
		return m.await(ctx, req, body, m.emitter(tools, yield))
	}
	return m.client.Send(ctx, m.url, body, req.Whole, m.emitter(tools, yield))
}
