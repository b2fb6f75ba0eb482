package gemini

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
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
	req, more := rules.Repair(req, req.Settings.Options[provider], yield)
	name := cmp.Or(req.Model, m.name)
	if more {
		req, more = m.media(name).Apply(req, yield)
	}
	if !more {
		return wire.ErrStopped
	}
	tools, err := m.tools.Get(req.Tools)
	if err != nil {
		return err
	}
	body, err := m.encode(wire.Buffer(req, tools), name, tools, m.output.Get(req.Output), req)
	if err != nil {
		return err
	}
	if !tools.EmitNotices(yield) {
		return wire.ErrStopped
	}
	method := "streamGenerateContent"
	if req.Whole {
		method = "generateContent"
	}
	u, err := address(m.base, name, method)
	if err != nil {
		return err
	}
	if !req.Whole {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&alt=sse", "&")
	}
	return m.turns(ctx, u, body, req.Whole, tools, yield)
}

// maxContinuations is how often Stream continues one reply.
const maxContinuations = 16

// pausedError ends a decoder whose reply another request continues. token is for that request.
type pausedError struct{ token string }

func (e *pausedError) Error() string { return "the API continues the reply with another request" }

// turns sends a request, and sends it again with the token of the reply so far as long as the API
// pauses. The deltas form one reply.
func (m *Model) turns(ctx context.Context, u *url.URL, body []byte, whole bool, tools *wire.Toolset,
	yield func(llm.Delta, error) bool) error {
	var spent llm.Usage
	out := emitter(m.tag, tools, func(d llm.Delta, err error) bool {
		if d.Usage != nil && spent.Total() > 0 {
			raw := d.Usage.Raw
			d.Usage = d.Usage.Plus(spent)
			d.Usage.Raw = raw // of the last request
		}
		return yield(d, err)
	})

	last := ""
	sent := wire.NewBody(body)
	defer sent.Release()
	send := sent
	for n := 0; ; n++ {
		err := m.client.SendBody(ctx, u, send, whole, out)
		var paused *pausedError
		if !errors.As(err, &paused) {
			return err
		}
		// The same token again means that the API makes no progress.
		if n == maxContinuations || paused.token == last {
			return &llm.ProviderError{Provider: provider, Code: llm.CodeMalformedReply,
				Message: fmt.Sprintf("the API paused the reply, and %d further requests did not complete it", n)}
		}

		if out.Usage != nil {
			spent.Add(*out.Usage)
		}
		out.Usage = nil
		// The next request continues the reply, so that it may be repeated after a failure before
		// it adds anything.
		out.Began = false
		last = paused.token
		send = wire.NewBody(continued(body, last))
	}
}

// continued returns the body of the request that continues a reply.
func continued(body []byte, token string) []byte {
	open := slices.Clone(bytes.TrimSuffix(body, []byte("}")))
	return append(wire.AppendMember(open, "continuationToken", jsonscan.AppendString(nil, token)), '}')
}
