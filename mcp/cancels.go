package mcp

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// cancels counts the calls of a session that their callers gave up, and what the server was told of them. The SDK tells it on a goroutine of its own, after the call has
// returned: a session that is closed at once would leave the server at work. It may be used concurrently.
type cancels struct {
	mu    sync.Mutex
	owed  int
	moved chan struct{} // closed when owed has changed; nil: nobody waits
}

// tellTime is how long a session waits before it closes, so that its server hears of the calls that were given up.
const tellTime = 2 * time.Second

func (c *cancels) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed += n; c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

// wait returns when the server was told of all calls that were given up, when gone is closed, or after tellTime.
func (c *cancels) wait(gone <-chan struct{}) {
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

// isCancel reports whether a request tells the server of a call that was given up.
func isCancel(r *http.Request) bool {
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
