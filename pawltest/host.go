package pawltest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// host is an HTTP server on loopback.
type host struct {
	server  *http.Server
	cancel  context.CancelFunc
	done    chan struct{}
	serving sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// start listens at addr and returns the URL.
func (h *host) start(addr string, serve http.HandlerFunc) (string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("pawltest: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel, h.done = cancel, make(chan struct{})
	h.server = &http.Server{
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !h.enter() {
				panic(http.ErrAbortHandler)
			}
			defer h.serving.Done()
			serve(w, r)
		}),
	}
	go func() {
		defer close(h.done)
		h.server.Serve(l) // ends with ErrServerClosed
	}()
	return "http://" + l.Addr().String(), nil
}

// enter counts a request that is being served, unless the host is closed.
func (h *host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.serving.Add(1)
	}
	return !h.closed
}

func (h *host) close() error {
	if h.server == nil {
		return nil
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	err := h.server.Close()
	<-h.done
	h.serving.Wait()
	return err
}
