package openai

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/background"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// The intervals at which a Model asks for a reply that the server computes in the background: from
// pollFirst on, each half as long again as the one before, up to pollGrowth times the first.
const (
	pollFirst  = 2 * time.Second
	pollGrowth = 15
)

// cancelTimeout limits the request that cancels a reply.
const cancelTimeout = 5 * time.Second

// errWaiting ends an exchange whose reply is not complete. The server still computes it.
var errWaiting = errors.New("the server computes the reply")

// inBackground reports whether the server is to compute the reply to req in the background. The
// request's options override the Model's.
func (d *dialect) inBackground(req *llm.Request) bool {
	if d.path != "responses" {
		return false
	}
	if own := wire.Member(d.options(req), "background"); own != nil {
		return string(own) == "true"
	}
	return d.background
}

// waiter is the decoder of a reply that the server computes in the background. It reads the reply
// from several exchanges.
type waiter struct {
	*responseDecoder
	id     string // of the response; "" until the server has given it
	at     int64  // the number of the last event; noIndex means none
	stream bool   // the request asked for a stream, so that the reply can be fetched as one
	moved  bool   // the last exchange had an event
}

// Event reads an event. The first event has the id of the response.
func (w *waiter) Event(data []byte) error {
	// Any event counts as progress: poll starts to count failures again.
	w.moved = true
	c := jsonscan.New(data)
	for k := range c.Members() {
		switch string(k) {
		case "sequence_number":
			if n, ok := c.Int(); ok {
				w.at = max(w.at, n)
			}
		case "response":
			// A response that is not in the background cannot be fetched later, so its id is not
			// emitted: an engine would store it and wait for it.
			if raw := c.Raw(); w.id == "" && string(wire.Member(raw, "background")) == "true" {
				if err := w.begun(wire.MemberText(raw, "id")); err != nil {
					return err
				}
			}
		}
	}
	return w.responseDecoder.Event(data)
}

// Whole reads the response object, which may not be complete.
func (w *waiter) Whole(body []byte) error {
	switch wire.MemberText(body, "status") {
	case "queued", "in_progress":
		if err := w.begun(wire.MemberText(body, "id")); err != nil {
			return err
		}
		return errWaiting
	}
	return w.responseDecoder.Whole(body)
}

// End ends a stream. A stream that breaks off is continued.
func (w *waiter) End() error {
	if w.id != "" && !w.ended {
		return errWaiting
	}
	return w.responseDecoder.End()
}

// begun emits the id of the response, once.
func (w *waiter) begun(id string) error {
	switch {
	case w.id != "":
		return nil
	// The id becomes a segment of a path. One with other characters could name another resource of
	// the server.
	case strings.Trim(id, wire.Alphanumeric+"-_.") != "" || strings.Trim(id, ".") == "":
		return w.broken("the response in the background has no id that can be asked for: %q", id)
	}
	w.id = id
	data := append(jsonscan.AppendString([]byte(`{"id":`), id), `,"stream":`...)
	data = append(strconv.AppendBool(data, w.stream), '}')
	text := "the server computes the reply in the background: " + id
	if !w.Yield(llm.Delta{Background: &llm.Opaque{Provider: w.tag, Data: data},
		Notice: &llm.Notice{Code: "background", Text: text, Data: data}}, nil) {
		return wire.ErrStopped
	}
	return nil
}

// await sends a request whose reply the server computes in the background, unless req names such a
// reply, and waits for the reply. If the request ends before, the reply is cancelled, unless an
// engine will fetch it. The server is asked again, once, for a reply that it has lost and of which
// no fragment was emitted.
func (m *Model) await(ctx context.Context, req *llm.Request, body []byte, out *wire.Emitter) error {
	earlier := req.Background
	first := *out
	lost := false
	return m.client.Retry(ctx, out, func() error {
		for {
			err := errWaiting
			sent := 0
			w := &waiter{at: noIndex, stream: !req.Whole,
				responseDecoder: &responseDecoder{dialect: &m.dialect, Emitter: out}}
			if earlier != nil && earlier.Provider == m.tag {
				w.id = wire.MemberText(earlier.Data, "id")
				w.stream = w.stream && string(wire.Member(earlier.Data, "stream")) == "true"
			}
			earlier = nil // a repeated request is for another reply
			if w.id == "" {
				err = m.client.Exchange(ctx, http.MethodPost, m.url, body, req.Whole, out, w)
				sent = 1
			} else if ctx.Err() == nil {
				err = m.fetch(ctx, w)
			}
			err = m.poll(ctx, w, err)
			// The server continues, and bills, a reply that no client waits for.
			if ctx.Err() != nil || err == wire.ErrStopped {
				m.cancel(ctx, w)
			}
			started := w.id != "" && !out.Began // and nothing of it was emitted

			// Once, so that a server that loses every reply ends the request with its error.
			mayAskAgain := started && !lost && ctx.Err() == nil
			if !mayAskAgain || !isGone(err) {
				return err
			}
			// Nothing of the reply was shown, so that the emitter can begin as if this were the
			// first request.
			lost = true
			*out = first
			if !out.Yield(llm.Delta{Requests: sent, Notice: &llm.Notice{Code: "background_lost",
				Text: "the server has no reply " + w.id + " any more, and is asked again"}}, nil) {
				return wire.ErrStopped
			}
		}
	})
}

// poll asks for the reply until it is complete. err is the end of the exchange before.
func (m *Model) poll(ctx context.Context, w *waiter, err error) error {
	failures := 0
	for wait := m.wait; ; wait = min(wait*3/2, pollGrowth*m.wait) {
		if w.moved {
			failures = 0
		}
		switch {
		case err == nil || err == wire.ErrStopped:
			return err
		case w.id == "" || ctx.Err() != nil: // nothing to ask for, or no time to ask
			return err
		case err == errWaiting && (w.moved || !w.stream):
			failures = 0
		case err != errWaiting && !w.passing(err):
			return err
		case failures == m.client.Retries, w.Next > 0 && w.at == noIndex:
			w.Began = true // a repeated request would be for another reply
			if err == errWaiting {
				err = w.responseDecoder.End()
			}
			return err
		default:
			failures++
		}
		if w.Next == 0 && !w.moved {
			w.stream = false // the server does not continue it
		}
		w.moved = false
		if err := wire.Sleep(ctx, wait); err != nil {
			return err
		}
		err = m.fetch(ctx, w)
	}
}

// fetch asks for the reply once: for the rest of a stream, or for the response object. Some servers
// have the object and no stream of it.
func (m *Model) fetch(ctx context.Context, w *waiter) error {
	u := m.url.JoinPath(w.id)
	if w.stream {
		q := u.Query()
		q.Set("stream", "true")
		if w.at != noIndex {
			q.Set("starting_after", strconv.FormatInt(w.at, 10))
		}
		u.RawQuery = q.Encode()
	}
	err := m.client.Exchange(ctx, http.MethodGet, u, nil, !w.stream, w.Emitter, w)
	// Only before the first part: a whole response would repeat parts that were emitted.
	if w.stream && w.Next == 0 && isGone(err) {
		w.stream = false
		return m.fetch(ctx, w)
	}
	return err
}

// cancel cancels a reply that is not complete. Its error has no consumer: the request has ended.
func (m *Model) cancel(ctx context.Context, w *waiter) {
	if w.id == "" || w.ended || background.Kept(ctx) {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer done()
	out := m.emitter(w.Tools, func(llm.Delta, error) bool { return true })
	_ = m.client.Exchange(ctx, http.MethodPost, m.url.JoinPath(w.id, "cancel"), []byte("{}"), true,
		out, &waiter{responseDecoder: &responseDecoder{dialect: &m.dialect, Emitter: out}, id: w.id})
}

// isGone reports whether the server does not know the response any more. A failed response, such as
// one for an unknown model, is known.
func isGone(err error) bool {
	e, is := errors.AsType[*llm.ProviderError](err)
	return is && e.Code == llm.CodeNotFound && e.Status >= 400
}

// passing reports whether err ended an exchange and not the reply. Some servers refuse to continue
// a stream.
func (w *waiter) passing(err error) bool {
	e, is := errors.AsType[*llm.ProviderError](err)
	switch {
	case !is:
		return false
	case e.Code == llm.CodeInvalidRequest && w.stream && w.Next == 0:
		// The reply may not exist as a stream.
		return true
	case !e.Retryable:
		return false
	case e.Status != 0: // the server answered
		return true
	}
	return e.Code == llm.CodeNetwork || e.Code == llm.CodeTimeout || e.Code == llm.CodeStream
}
