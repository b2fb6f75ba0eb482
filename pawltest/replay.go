package pawltest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// Replay serves recorded responses in order, for any request: status, content type, Retry-After and
// body are unchanged. Check examines every request; the answer does not depend on its result. A
// request beyond the recording gets status 410. A Replay is safe for concurrent use, but the
// assignment of responses to concurrent requests is random.
type Replay struct {
	URL  string // its address, which ends in /v1
	Root string // the address without /v1

	host      host
	exchanges []Exchange
	mu        sync.Mutex
	log       []*Received
}

// NewReplay starts a Replay of exchanges on a free port of loopback. Close it after use.
func NewReplay(exchanges []Exchange) (*Replay, error) {
	r := &Replay{exchanges: exchanges}
	url, err := r.host.start("127.0.0.1:0", r.serve)
	r.URL = url + "/v1"
	r.Root = url
	return r, err
}

// Close cancels active answers and waits for their end.
func (r *Replay) Close() error { return r.host.close() }

// Received returns the requests so far, in order. The caller must not change it.
func (r *Replay) Received() []*Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// Left returns the number of responses that were not served.
func (r *Replay) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, len(r.exchanges)-len(r.log))
}

func (r *Replay) serve(w http.ResponseWriter, req *http.Request) {
	got, err := receive(req)
	if err != nil {
		return // the client has left
	}
	r.mu.Lock()
	n := len(r.log)
	r.log = append(r.log, got)
	r.mu.Unlock()
	if n >= len(r.exchanges) {
		e := &wire.Error{Status: http.StatusGone, Message: fmt.Sprintf("request %d, but only %d are recorded", n+1, len(r.exchanges))}
		writeError(w, e, got.API, &Fault{})
		return
	}
	e := &r.exchanges[n]
	body, err := e.Body()
	if err != nil {
		writeError(w, &wire.Error{Status: 500, Message: err.Error()}, got.API, &Fault{})
		return
	}
	for _, name := range []string{"content-type", "retry-after", "retry-after-ms"} {
		if v := e.Response.Headers[name]; v != "" {
			w.Header().Set(name, v)
		}
	}
	if w.Header().Get("Content-Type") == "" && strings.HasPrefix(strings.TrimSpace(string(body)), "data:") {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(e.Response.Status)
	w.Write(body)
}
