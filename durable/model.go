package durable

// model.go: replays the replies of the model, and stores new ones.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/internal/background"
	"github.com/pawl-go/pawl/llm"
)

// model replays stored replies and stores new ones. It serves one run.
type model struct {
	session *session
	inner   llm.Model
	pricer  llm.Pricer       // nil means that the price is unknown
	holder  llm.OutputHolder // nil means that the model does not say
	accept  []string
	agent   record.Agent
	name    string // of the model in requests; "" means its own name

	tools offered
	sent  []sentMessage
	wire  []byte // the previous request as it was sent; nil means not stored
}

var (
	_ llm.Model        = (*model)(nil)
	_ llm.Pricer       = (*model)(nil)
	_ llm.OutputHolder = (*model)(nil)
)

// Unwrap returns the wrapped model.
func (m *model) Unwrap() llm.Model { return m.inner }

// MaxCost returns the answer of the wrapped model.
func (m *model) MaxCost(req *llm.Request) (float64, bool) {
	if m.pricer == nil {
		return 0, false
	}
	return m.pricer.MaxCost(req)
}

// HoldsOutput returns the answer of the wrapped model.
func (m *model) HoldsOutput(req *llm.Request) bool {
	return m.holder != nil && m.holder.HoldsOutput(req)
}

// Stream replays the stored reply, or sends the request and stores the reply.
func (m *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s := m.session
		conversation, rest := m.digest(req)
		stored := s.history.Replies[req.Key]
		if err := m.compare(ctx, req, stored, conversation, rest); err != nil {
			yield(llm.Delta{}, s.fail(err))
			return
		}

		earlier := s.history.Failed[req.Key]
		if stored != nil {
			stored.Original().Deltas()(after(earlier, yield))
			return
		}

		b := s.history.Background[req.Key]
		if b != nil && (b.Messages != conversation || b.Request != rest) {
			b = nil // the reply to another request, of an agent that was changed
		}
		s.leavePast()
		if ctx.Err() != nil && (b == nil || s.readOnly) {
			earlier.Requests-- // the run counts one for this error
			after(earlier, yield)(llm.Delta{}, context.Cause(ctx))
			return
		}

		// A commit only if the reply before had no calls: an answer that the model is to correct.
		if err := s.flush(nil); err != nil {
			yield(llm.Delta{}, err)
			return
		}
		m.ask(ctx, req, b, conversation, rest, after(earlier, yield))
	}
}

// compare returns an error if req is not the request that was made. stored is its reply; nil means
// that only the tools and the agent can be compared.
func (m *model) compare(ctx context.Context, req *llm.Request, stored *record.Reply, conversation, rest string) error {
	if err := m.compareBytes(ctx, req, stored); err != nil {
		return err
	}
	if err := m.compareTools(req); err != nil {
		return err
	}
	if stored == nil {
		return nil
	}

	err := compareDigests(stored, req.Key, conversation, rest)
	if err != nil && m.session.readOnly && m.session.history.AtLimit() {
		return limited(m.session.history, m.session.id)
	}
	return err
}

// ask sends the request and stores the reply. b is the reply that the provider computes already:
// it is fetched, or cancelled with the run. nil means none.
func (m *model) ask(ctx context.Context, req *llm.Request, b *record.Background, conversation, rest string,
	yield func(llm.Delta, error) bool) {
	n := 0 // of the last background record
	if was := m.session.history.Background[req.Key]; was != nil {
		n = was.N
	}
	var stored atomic.Bool
	if b != nil {
		later := *req
		later.Background = &b.Background
		req = &later
		stored.Store(true)
	}

	if m.name != "" {
		named := *req
		named.Model = cmp.Or(req.Model, m.name)
		req = &named
	}

	// The reply stays at the provider if another process will fetch it.
	run := ctx
	fetchable := func() bool { return stored.Load() && suspended(run) }
	ctx, w := watch(background.With(ctx, fetchable), false)
	resp := new(llm.Response)
	failed := error(nil)
	defer func() {
		if resp.Finish == "" {
			m.session.countFailure(run, req.Key, resp, failed, fetchable())
		}
	}()

	for d, err := range m.inner.Stream(ctx, req) {
		if err == nil {
			err = resp.Add(d)
		}
		if err == nil && d.Background != nil {
			n++
			err = m.storeBackground(req, &record.Background{Messages: conversation, Request: rest,
				Background: *d.Background, N: n}, w)
			stored.Store(err == nil)
		}
		if err == nil && d.Finish != "" {
			err = m.store(req, conversation, rest, resp, w, b)
		}
		failed = err
		if !yield(d, err) || err != nil {
			return
		}
	}
}

// suspended reports whether the run of ctx has ended in this process and will be resumed.
func suspended(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && cause != pawl.ErrCancelled && !errors.Is(cause, pawl.ErrTime)
}

// storeBackground stores at once which reply the provider computes.
func (m *model) storeBackground(req *llm.Request, b *record.Background, w *wire) error {
	if to, sent, ok := w.first(); ok {
		b.Sent = record.NewSentRequest(to, m.wire, sent, req.Whole)
	}
	if err := m.session.add(record.KindBackground, record.Numbered(req.Key, record.KindBackground, b.N), b); err != nil {
		return err
	}
	return m.session.flush(nil)
}

// store stores a whole reply before its calls start. b is the stored form of the request if an
// earlier process has sent it; nil means that it has not.
func (m *model) store(req *llm.Request, conversation, rest string, resp *llm.Response, w *wire,
	b *record.Background) error {
	body, err := record.NewReply(resp)
	if err != nil {
		return m.session.fail(err)
	}
	body.Messages = conversation
	body.Request = rest
	if to, sent, ok := w.first(); ok {
		body.Sent = record.NewSentRequest(to, m.wire, sent, req.Whole)
		m.wire = sent
	} else if b != nil && b.Sent != nil {
		body.Sent = b.Sent
		m.wire, err = b.Sent.After(m.wire)
		if err != nil {
			return m.session.fail(fmt.Errorf("%w: %s: %v", ErrCorrupt, req.Key, err))
		}
	}

	if err := m.storeTools(req); err != nil {
		return err
	}
	if err := m.session.add(record.KindReply, string(req.Key), body); err != nil {
		return err
	}
	if resp.Message.HasCalls() {
		m.session.commitSoon()
	}
	return nil
}

// compareBytes reads the sent bytes of a stored reply. If the replay compares bytes, it also builds the
// request again without sending it.
func (m *model) compareBytes(ctx context.Context, req *llm.Request, stored *record.Reply) error {
	if stored == nil || stored.Sent == nil {
		return nil
	}
	was, err := stored.Sent.After(m.wire)
	if err != nil {
		return fmt.Errorf("%w: %s: %v", ErrCorrupt, req.Key, err)
	}
	m.wire = was
	if m.session.played == nil || stored.Messages == "" {
		return nil
	}

	same := *req
	same.Whole = stored.Sent.Whole
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, w := watch(ctx, true)
	for range m.inner.Stream(ctx, &same) {
		if _, _, ok := w.first(); ok {
			break
		}
	}
	to, is, ok := w.first()
	if !ok {
		return nil // this model sends nothing, or not through Transport
	}

	m.session.played.Bytes++
	if to != stored.Sent.To || !bytes.Equal(was, is) {
		return &Mismatch{req.Key, stored.Sent.To, to, was, is}
	}
	return nil
}
