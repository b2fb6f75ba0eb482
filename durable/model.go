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
	accept  []string         // Engine.AcceptChangedTools
	agent   record.Agent     // the agent of the run
	name    string           // of the model in requests; "" means its own name

	// What the previous requests had, since only the difference is compared and stored.
	tools    offered
	digester record.Digester
	wire     []byte // the previous request as it was sent; nil means not stored
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
		digests := m.digester.Next(req)
		stored := s.history.Replies[req.Key]
		if err := m.compare(ctx, req, stored, digests); err != nil {
			yield(llm.Delta{}, s.fail(err))
			return
		}

		earlier := s.history.Failed[req.Key]
		if stored != nil {
			reply := stored.Original().Deltas()
			reply(yieldFailures(earlier, yield))
			return
		}

		s.leavePast()

		coming := s.comingReply(req.Key, digests)
		if ctx.Err() != nil && (coming == nil || s.readOnly) {
			earlier.Requests-- // the loop counts a request for this error
			next := yieldFailures(earlier, yield)
			next(llm.Delta{}, context.Cause(ctx))
			return
		}

		if err := s.mayBegin(ctx); err != nil {
			yield(llm.Delta{}, err)
			return
		}

		// A commit only if the reply before had no calls: an answer that the model is to correct.
		if err := s.flush(nil); err != nil {
			yield(llm.Delta{}, err)
			return
		}
		m.ask(ctx, req, coming, digests, yieldFailures(earlier, yield))
	}
}

// comingReply returns the reply to a request that the provider computes in the background, because
// an earlier process asked for it. Nil means none, or one for an agent that was changed since.
func (s *session) comingReply(key llm.Key, digests record.Digests) *record.Background {
	b := s.history.Background[key]
	if b == nil || b.Messages != digests.Conversation || b.Request != digests.Rest {
		return nil
	}
	return b
}

// compare returns an error if req is not the request that was made. stored is its reply; nil means
// that only the tools and the agent can be compared.
func (m *model) compare(ctx context.Context, req *llm.Request, stored *record.Reply, digests record.Digests) error {
	if err := m.compareBytes(ctx, req, stored); err != nil {
		return err
	}
	if err := m.compareTools(req); err != nil {
		return err
	}
	if stored == nil {
		return nil
	}

	err := compareDigests(stored, req.Key, digests)
	if err != nil && m.session.readOnly && m.session.history.AtLimit() {
		return limited(m.session.history, m.session.id)
	}
	return err
}

// compareDigests returns ErrChanged if the new request is not the request of a stored reply.
func compareDigests(stored *record.Reply, key llm.Key, is record.Digests) error {
	what := stored.Difference(is)
	if what == "" {
		return nil
	}
	return fmt.Errorf("%w: the request %s differs from the recorded request: its %s differ", ErrChanged, key, what)
}

// ask sends the request and stores the reply. coming is the reply that the provider computes
// already: it is fetched, or cancelled with the run. Nil means none.
func (m *model) ask(ctx context.Context, req *llm.Request, coming *record.Background, digests record.Digests,
	yield yields) {
	req = m.requestOf(req, coming)
	run := ctx

	// The reply stays at the provider if another process will fetch it.
	var known atomic.Bool // the journal says which reply the provider computes
	known.Store(coming != nil)
	fetchable := func() bool { return known.Load() && suspended(run) }
	ctx, wire := watch(background.With(ctx, fetchable), false)

	resp := new(llm.Response)
	failed := error(nil)
	defer func() {
		if resp.Err() != nil {
			m.session.countFailure(run, req.Key, resp, failed, fetchable())
		}
	}()

	number := m.session.lastBackground(req.Key)
	for d, err := range m.inner.Stream(ctx, req) {
		if err == nil {
			err = resp.Add(d)
		}
		if err == nil && d.Background != nil {
			number++
			err = m.storeBackground(req, digests, *d.Background, number, wire)
			known.Store(err == nil)
		}
		if err == nil && d.Finish != "" {
			err = resp.Err() // only a reply is stored
			if err == nil {
				err = m.store(req, digests, resp, wire, coming)
			}
		}

		failed = err
		if !yield(d, err) || err != nil {
			return
		}
	}
}

// countFailure counts the requests of a reply that did not arrive: the end of the attempt stores
// them. fetched means that the reply stays at the provider for the next attempt.
func (s *session) countFailure(ctx context.Context, key llm.Key, resp *llm.Response, err error, fetched bool) {
	why := cmp.Or(context.Cause(ctx), err, resp.Err())
	f := record.Failure{Requests: resp.Requests, Usage: resp.Usage, Error: why.Error()}
	if ctx.Err() != nil && !fetched {
		f.Requests++ // as the run counts it
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures == nil {
		s.failures = map[llm.Key]record.Failure{}
	}
	s.failures[key] = s.failures[key].With(f)
	s.outage.note(ctx, resp, err)
}

// requestOf returns the request with the name of the run's model, and with the reply that the
// provider computes already; nil means none.
func (m *model) requestOf(req *llm.Request, coming *record.Background) *llm.Request {
	if m.name == "" && coming == nil {
		return req
	}
	sent := *req
	sent.Model = cmp.Or(req.Model, m.name)
	if coming != nil {
		sent.Background = &coming.Background
	}
	return &sent
}

// lastBackground returns the number of the last background record of a request. 0 means none.
func (s *session) lastBackground(key llm.Key) int {
	was := s.history.Background[key]
	if was == nil {
		return 0
	}
	return was.Number
}

// suspended reports whether the run of ctx has ended in this process and will be resumed.
func suspended(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && cause != pawl.ErrCancelled && !errors.Is(cause, pawl.ErrTime)
}

// storeBackground stores at once which reply the provider computes: the record with that number for
// the request.
func (m *model) storeBackground(req *llm.Request, digests record.Digests, reply llm.Opaque, number int, w *wire) error {
	body := &record.Background{
		Messages:   digests.Conversation,
		Request:    digests.Rest,
		Background: reply,
		Number:     number,
	}
	if to, sent, ok := w.first(); ok {
		body.Sent = record.NewSentRequest(to, m.wire, sent, req.Whole)
	}

	key := record.Numbered(req.Key, record.KindBackground, number)
	if err := m.session.add(record.KindBackground, key, body); err != nil {
		return err
	}
	return m.session.flush(nil)
}

// store stores a whole reply before its calls start. coming has the stored form of the request if
// an earlier process has sent it; nil means that it has not.
func (m *model) store(req *llm.Request, digests record.Digests, resp *llm.Response, w *wire,
	coming *record.Background) error {
	body, err := record.NewReply(resp)
	if err != nil {
		return m.session.fail(err)
	}
	body.Messages = digests.Conversation
	body.Request = digests.Rest

	if to, sent, ok := w.first(); ok {
		body.Sent = record.NewSentRequest(to, m.wire, sent, req.Whole)
		m.wire = sent
	} else if coming != nil && coming.Sent != nil {
		body.Sent = coming.Sent
		m.wire, err = coming.Sent.After(m.wire)
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

	// An intent takes the reply into its own commit. Calls that only read have no intent.
	if resp.Message.HasCalls() {
		m.session.commitSoon()
	}
	return nil
}

// compareBytes reads the sent bytes of a stored reply. If the replay compares bytes, it also builds
// the request again without sending it.
func (m *model) compareBytes(ctx context.Context, req *llm.Request, stored *record.Reply) error {
	if stored == nil || stored.Sent == nil {
		return nil
	}
	was, err := stored.Sent.After(m.wire)
	if err != nil {
		return fmt.Errorf("%w: %s: %v", ErrCorrupt, req.Key, err)
	}
	m.wire = was
	if !m.session.comparesBytes || stored.Messages == "" {
		return nil
	}

	to, is, ok := m.buildOnly(ctx, req, stored.Sent.Whole)
	if !ok {
		return nil // this model sends nothing, or not through Transport
	}
	m.session.bytesCompared++
	if to != stored.Sent.To || !bytes.Equal(was, is) {
		return &Mismatch{req.Key, stored.Sent.To, to, was, is}
	}
	return nil
}

// buildOnly lets the model build a request, and returns where it would go and its bytes. Nothing is
// sent.
func (m *model) buildOnly(ctx context.Context, req *llm.Request, whole bool) (to string, body []byte, ok bool) {
	same := *req
	same.Whole = whole
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	ctx, w := watch(ctx, true)
	for range m.inner.Stream(ctx, &same) {
		if _, _, ok := w.first(); ok {
			break
		}
	}
	return w.first()
}
