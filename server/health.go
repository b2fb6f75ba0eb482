package server

// health.go: the endpoints by which a supervisor watches the server.

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// health handles GET /v1/health.
func (c *call) health() error {
	if c.Runs.IsClosing() {
		return c.Write(http.StatusServiceUnavailable, api.Health{Status: "closing"})
	}
	return c.Write(http.StatusOK, api.Health{Status: "ok"})
}

// ready handles GET /v1/ready.
func (c *call) ready() error {
	status := "ready"
	switch {
	case c.Runs.IsDraining():
		status = "draining"
	case !c.server.probe.works(c.server.journal):
		status = "no_store"
	default:
		return c.Write(http.StatusOK, api.Health{Status: status})
	}
	c.Writer.Header().Set("Retry-After", "1")
	return c.Write(http.StatusServiceUnavailable, api.Health{Status: status})
}

// probe is the last answer of the store, so that clients without a token cause one query a second.
type probe struct {
	mu sync.Mutex
	at time.Time
	ok bool
}

// works reports whether the store answers.
func (p *probe) works(j store.Journal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) <= time.Second {
		return p.ok
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := j.JournalRun(ctx, store.Scope{}, "ready") // a run that does not exist
	p.ok = err == nil || errors.Is(err, store.ErrNotFound)
	p.at = time.Now()
	return p.ok
}
