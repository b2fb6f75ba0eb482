package transport

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// Cancels counts the cancelled calls of a session, and the cancellations that the server has
// received. The SDK sends a cancellation on its own goroutine after the call has returned, so a
// session closed at once would leave the server working. It is safe for concurrent use.
type Cancels struct {
	mu    sync.Mutex
	owed  int
	moved chan struct{} // closed when owed has changed; nil means that nothing waits
}

// tellTime is the maximum time that a session waits before it closes, so that its server receives
// the cancellations.
const tellTime = 2 * time.Second

// Add adds n to the number of cancellations that the server has not received.
func (c *Cancels) Add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed += n
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

// Wait returns when the server has received all cancellations, when gone is closed, or after
// tellTime.
func (c *Cancels) Wait(gone <-chan struct{}) {
	over := time.NewTimer(tellTime)
	defer over.Stop()
	for {
		c.mu.Lock()
		owed := c.owed
		if c.moved == nil {
			c.moved = make(chan struct{})
		}
		moved := c.moved
		c.mu.Unlock()
		if owed <= 0 {
			return
		}
		select {
		case <-moved:
		case <-gone:
			return
		case <-over.C:
			return
		}
	}
}

// IsCancel reports whether a request sends a cancellation to the server.
func IsCancel(r *http.Request) bool {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	head, _ := io.ReadAll(io.LimitReader(body, 256))
	return bytes.Contains(head, []byte(`"method":"notifications/cancelled"`))
}
