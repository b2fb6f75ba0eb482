package pawltest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Replay serves recorded responses in order, whatever is asked: status, content type, Retry-After
// and body as they were. Every request is looked through by Check; the answer does not depend on
// what it finds. A request beyond the recording gets status 410. A Replay may be used concurrently,
// but who gets which response is then a matter of chance.
type Replay struct {
	URL  string // where it is, ending in /v1
	Root string // the same without /v1

	host      host
	exchanges []Exchange
	mu        sync.Mutex
	log       []*Received
}

// NewReplay starts a Replay of exchanges on a free port of loopback. Close it.
func NewReplay(exchanges []Exchange) (*Replay, error) {
	r := &Replay{exchanges: exchanges}
	url, err := r.host.start("127.0.0.1:0", r.serve)
	r.URL, r.Root = url+"/v1", url
	return r, err
}

// Close ends what is being answered and waits for it.
func (r *Replay) Close() error { return r.host.close() }

// Received returns what was received so far, in order. It must not be changed.
func (r *Replay) Received() []*Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// Left returns how many responses were not served.
func (r *Replay) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, len(r.exchanges)-len(r.log))
}

func (r *Replay) serve(w http.ResponseWriter, req *http.Request) {
	got, err := receive(req)
	if err != nil {
		return // the client left
	}
	r.mu.Lock()
	n := len(r.log)
	r.log = append(r.log, got)
	r.mu.Unlock()
	if n >= len(r.exchanges) {
		e := &apiError{Status: http.StatusGone, Message: fmt.Sprintf("request %d, but only %d are recorded", n+1, len(r.exchanges))}
		e.write(w, got.API, &Fault{})
		return
	}
	e := &r.exchanges[n]
	body, err := e.Body()
	if err != nil {
		(&apiError{Status: 500, Message: err.Error()}).write(w, got.API, &Fault{})
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
