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
	"strings"

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
	// A request without thinking to leave out would be refused again.
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
	req, more := m.repair(req, yield)
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
	name := cmp.Or(req.Model, m.name)
	if err = checkOrder(req, own, m.enforces(name, m.output.Get(req.Output))); err != nil {
		return err
	}
	tools, err := m.toolset(req, own)
	if err != nil {
		return err
	}
	t := &turn{model: m, name: name, url: m.address(req), req: req, own: own, tools: tools, yield: yield}
	t.out = m.emitter(tools, t.emit)
	// A summary replaces messages, and code in the container still waits for results in them.
	if req.Summarize && m.summarizes(req) && !m.codeWaits(req.Messages) {
		t.own.compaction = []byte(orderSummary)
		t.optional = true
	}
	return t.run(ctx)
}

// repair returns req with messages that the API accepts. A summary may come first.
func (m *Model) repair(req *llm.Request, yield func(llm.Delta, error) bool) (*llm.Request, bool) {
	version := m.factsOf(cmp.Or(req.Model, m.name)).version
	reads := version == unknown || version >= 406
	summaries := m.summaries()
	r := rules
	r.Reads = func(p llm.Part) bool { return reads && summaries.isAny(p) }
	r.UserFirst = !reads || !anyPart(req.Messages, summaries.isSigned)
	return r.Repair(req, req.Settings.Options[provider], yield)
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

// turn is a reply, for which several requests may be sent: one for a summary, and one after each
// pause. The deltas form one reply.
type turn struct {
	model *Model
	name  string // of the model that answers
	url   *url.URL
	req   *llm.Request
	own   options
	tools *wire.Toolset
	out   *wire.Emitter
	yield func(llm.Delta, error) bool

	// plain means that the request has no options. Then it cannot pause: only the tools of the
	// server do, which are in the options.
	plain    bool
	optional bool // the reply is asked for without a summary if the server refuses to write one
	noticed  bool // the notices about the request were emitted
	soFar    llm.Response
	spent    llm.Usage // of the requests before the last
}

// run sends the request, and sends it again with the reply so far as long as the server pauses.
func (t *turn) run(ctx context.Context) error {
	t.plain = t.own.empty()
	next := t.req
	if t.own.compaction != nil {
		var err error
		next, err = t.summarize(ctx)
		if err != nil || next == nil {
			return err
		}
	}

	for n := 0; ; n++ {
		err := t.send(ctx, next, t.out)
		if err != errPaused {
			return err
		}
		// The server pauses only to execute tools of its own, which are in the options. Without
		// them, a pause is a fault that a new request would meet again.
		if t.plain || n == MaxContinuations || len(t.soFar.Message.Parts) == 0 {
			return stayedPaused(n)
		}
		// Each request of the turn reports its own tokens, and each is billed.
		if t.out.Usage != nil {
			t.spent.Add(*t.out.Usage)
		}
		t.out.Usage = nil
		next = t.continued()
	}
}

// stayedPaused returns the error of a turn that is paused after n continuations: what there is of
// the reply is no answer.
func stayedPaused(n int) error {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeMalformedReply,
		Message: fmt.Sprintf("the server paused the turn, and %d further requests did not complete it", n)}
}

// continued returns the request that continues the reply so far. It may be repeated after a
// failure: its own part of the reply has not begun.
func (t *turn) continued() *llm.Request {
	t.out.Began = false
	next := *t.req
	next.Messages = append(slices.Clip(next.Messages), llm.Assistant(slices.Clone(t.soFar.Message.Parts)...))
	return &next
}

// emit yields a delta of the reply, with the usage of all its requests.
func (t *turn) emit(d llm.Delta, err error) bool {
	if d.Usage != nil && t.spent.Total() > 0 {
		raw := d.Usage.Raw
		d.Usage = d.Usage.Plus(t.spent)
		d.Usage.Raw = raw // of the last request
	}
	if !t.plain {
		t.soFar.Add(d) // its errors are reported by the consumer's own Response
	}
	return t.yield(d, err)
}

// send sends one request of the turn, whose reply out emits.
func (t *turn) send(ctx context.Context, req *llm.Request, out *wire.Emitter) error {
	m := t.model
	body, err := m.encode(wire.Buffer(req, t.tools), m.name, t.tools, m.output.Get(req.Output), req, t.own)
	if err != nil {
		return err
	}
	if !t.notice() {
		return wire.ErrStopped
	}
	return m.client.SendHeader(ctx, t.url, t.header(req), body, req.Whole, out)
}

// notice emits the notices about the request, once. It reports whether the consumer wants more.
func (t *turn) notice() bool {
	if t.noticed {
		return true
	}
	t.noticed = true
	return t.tools.EmitNotices(t.yield) &&
		t.model.emitUnthought(t.req, t.own, t.yield) &&
		t.model.emitHeld(t.req, t.yield)
}

// header returns the headers of a request. nil means the client's.
func (t *turn) header(req *llm.Request) http.Header {
	m := t.model
	betas := slices.Clip(t.own.betas)
	summaries := m.summaries()
	for _, beta := range summaries.betas(summaries.sent(req.Messages), t.own.compaction != nil) {
		if !strings.Contains(m.betaHeader(betas), beta) {
			betas = append(betas, beta)
		}
	}
	if len(betas) == 0 {
		return nil
	}
	h := m.client.Header.Clone()
	h.Set("Anthropic-Beta", m.betaHeader(betas))
	return h
}

// summarize asks for a summary of the conversation and emits it. It returns the request that
// continues from it; nil means that the reply is complete, because no message waits for an answer.
// If the server writes no summary, next is the request without one.
func (t *turn) summarize(ctx context.Context) (next *llm.Request, err error) {
	summary, why, err := t.askSummary(ctx)
	if err != nil {
		return nil, err
	}

	// The order was for the summary alone. The request for the answer must not ask for another one.
	t.own.compaction = nil
	answers := !endsWithReply(t.req.Messages)
	switch {
	case summary != nil && answers:
		err = t.out.Part(summary)
		return t.continued(), err
	case summary != nil:
		return nil, t.finish(summary)
	case answers:
		return t.without(why)
	}
	return nil, &llm.ProviderError{Provider: provider, Code: llm.CodeMalformedReply, Message: "the server wrote no summary: " + why}
}

// askSummary sends the request for a summary. If the summary is nil, why says what came in its
// place.
func (t *turn) askSummary(ctx context.Context) (summary llm.Part, why string, err error) {
	m := t.model
	asked := *t.req
	seen := m.summaries().sent(asked.Messages) // a new summary covers the one before
	asked.Messages = seen[:replaced(seen)]

	var reply llm.Response
	out := m.emitter(t.tools, func(d llm.Delta, _ error) bool {
		reply.Add(d) // a reply without a summary is of no use
		aside := llm.Delta{Notice: d.Notice, Requests: d.Requests}
		return aside.Notice == nil && aside.Requests == 0 || t.yield(aside, nil)
	})
	out.Summary = true
	err = t.send(ctx, &asked, out)

	var refused *llm.ProviderError
	paused := err == errPaused // after a summary
	switch {
	case err == nil, paused:
	// A summary that a middleware asked for is optional, since the conversation can be sent whole.
	// A summary in the options is an order.
	case t.optional && errors.As(err, &refused) && refused.Code == llm.CodeInvalidRequest:
		return nil, refused.Message, nil
	default:
		return nil, "", err
	}
	if err := t.count(out, !paused); err != nil {
		return nil, "", err
	}
	if paused || !reply.Finish.Cut() {
		summary = lastPart(reply.Message.Parts, m.summaries().isSummary)
	}
	return summary, "the reply to it ended with " + string(reply.Finish), nil
}

// count reports the usage of the request for a summary, also for a reply that fails after it. The
// client has counted the request itself if it ended with an error, as a pause does.
func (t *turn) count(asked *wire.Emitter, request bool) error {
	d := llm.Delta{Usage: asked.Usage}
	if asked.Usage != nil {
		t.spent = *asked.Usage
	}
	if request {
		d.Requests = 1
	}
	t.out.Model = asked.Model
	t.out.ID = asked.ID
	if !t.yield(d, nil) {
		return wire.ErrStopped
	}
	return nil
}

// endsWithReply reports whether no message waits for an answer.
func endsWithReply(messages []llm.Message) bool {
	n := len(messages)
	return n > 0 && messages[n-1].Role == llm.RoleAssistant
}

// finish ends a reply that is a summary alone.
func (t *turn) finish(summary llm.Part) error {
	if err := t.out.Part(summary); err != nil {
		return err
	}
	return t.out.FinishAs(wire.End{Word: "compaction", Ending: wire.Answered})
}

// without returns the request after a failed summary, with a notice.
func (t *turn) without(why string) (*llm.Request, error) {
	n := &llm.Notice{Code: "summary_failed", Text: "anthropic: the server wrote no summary, so the conversation is sent whole: " + why}
	if !t.yield(llm.Delta{Notice: n}, nil) {
		return nil, wire.ErrStopped
	}
	return t.req, nil
}
