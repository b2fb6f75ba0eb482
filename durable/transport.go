package durable

// transport.go: requests as bytes, for the comparison by Replay.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/background"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// Transport returns a RoundTripper for the models of durable runs. It passes requests to next (nil
// means http.DefaultTransport) and stores each with its reply in the journal, byte for byte as it
// was sent. Replay can then compare it, and report where another request differs.
//
//	openai.New("gpt-6.1-terra", &openai.Options{HTTP: durable.Transport(nil)})
//
// Headers are not stored, and therefore no keys. Each request contains the whole conversation; only
// the difference from the previous request is stored. If one request of the run becomes several on
// the wire, such as a retry for an invalid reply or a fallback model, the first is stored. Outside
// of durable runs, the RoundTripper only passes requests on.
func Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return transport{next}
}

type transport struct{ next http.RoundTripper }

// RoundTrip records the request and sends it. In a replay, it sends nothing.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w, _ := r.Context().Value(wireKey{}).(*wire)
	if w == nil {
		return t.next.RoundTrip(r) // outside of durable runs
	}
	if background.IsAside(r.Context()) { // no request of the run, such as the check of a text
		if w.only {
			return nil, errPlayed
		}
		return t.next.RoundTrip(r)
	}

	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	w.note(r, body)
	if w.only {
		return nil, errPlayed
	}

	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return t.next.RoundTrip(r)
}

// bodyOf reads the body of a request, and closes it. Nil means that it has none.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return body, r.Body.Close()
}

// errPlayed ends a request that is only compared. It is not retried.
var errPlayed = &llm.ProviderError{Code: llm.CodeInvalidRequest, Message: "the run is played back, and nothing is sent"}

type wireKey struct{}

// wire is the form of a run's request on the way to a provider.
type wire struct {
	only bool // nothing is sent

	mu   sync.Mutex
	sent bool
	to   string // method and path
	body []byte // of the first request
}

// watch returns the context of a model request whose bytes are recorded.
func watch(ctx context.Context, only bool) (context.Context, *wire) {
	w := &wire{only: only}
	return context.WithValue(ctx, wireKey{}, w), w
}

// note keeps the first request that is a POST. A GET asks for a reply in the background.
func (w *wire) note(r *http.Request, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent || r.Method != http.MethodPost {
		return
	}
	w.sent = true
	w.to = r.Method + " " + r.URL.Path
	w.body = body
}

// first returns the first recorded request. ok is false if there is none.
func (w *wire) first() (to string, body []byte, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to, w.body, w.sent
}

// Mismatch is the error of Replay for the first request whose bytes differ from the sent ones.
// ErrChanged is in its tree.
type Mismatch struct {
	Key   llm.Key // of the request
	WasTo string  // the method and the path of the sent request
	IsTo  string  // the method and the path of the new request
	Was   []byte  // the body of the sent request
	Is    []byte  // the body of the new request
}

// Error describes the first difference, with the text around it.
func (m *Mismatch) Error() string {
	if m.WasTo != m.IsTo {
		return fmt.Sprintf("%v: the request %s went to %s, and would go to %s", ErrChanged, m.Key, m.WasTo, m.IsTo)
	}

	differs := fmt.Sprintf("%v: the request %s differs from the request that was sent", ErrChanged, m.Key)
	at := m.At()
	if at == len(m.Was) && at == len(m.Is) { // after Redacted
		return differs + ", in what is hidden here"
	}
	return fmt.Sprintf("%s: from byte %d on it was %s, and is %s", differs, at, around(m.Was, at), around(m.Is, at))
}

// At returns the index of the first byte that differs.
func (m *Mismatch) At() int {
	return text.Common(m.Was, m.Is)
}

// Unwrap returns ErrChanged.
func (m *Mismatch) Unwrap() error { return ErrChanged }

// Redacted returns m without the secrets of r. If the two requests are equal then, they differ in
// secrets.
func (m *Mismatch) Redacted(r *redact.Redactor) *Mismatch {
	hide := func(body []byte) []byte {
		return []byte(r.String(strings.ToValidUTF8(string(body), "\uFFFD")))
	}
	return &Mismatch{
		Key:   m.Key,
		WasTo: r.String(m.WasTo),
		IsTo:  r.String(m.IsTo),
		Was:   hide(m.Was),
		Is:    hide(m.Is),
	}
}

// around quotes the text around a byte of a request.
func around(b []byte, at int) string {
	const before, behind = 40, 60
	from := max(0, at-before)
	to := min(len(b), at+behind)
	for from > 0 && !utf8.RuneStart(b[from]) {
		from--
	}
	said := "`" + strings.ToValidUTF8(string(b[from:to]), "\uFFFD") + "`"
	if from > 0 {
		said = "…" + said
	}
	if to < len(b) {
		said += "…"
	}
	return said
}
