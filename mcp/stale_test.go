package mcp

import (
	"runtime"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Reports of changed lists are joined while one of them waits, so that a server that sends them
// without end costs one goroutine. A later report counts again.
func TestChangesAreJoined(t *testing.T) {
	conn := new(sdk.ClientSession)
	c := &Client{turn: make(chan struct{}, 1), live: &session{conn: conn, fresh: true}}
	for range 2 {
		c.turn <- struct{}{} // a list is being fetched
		c.live.fresh = true
		before := runtime.NumGoroutine()
		for range 20_000 {
			c.stale(conn)
		}
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("%d goroutines wait", n)
		}
		c.release()
		for {
			c.turn <- struct{}{}
			fresh := c.live.fresh
			c.release()
			if !fresh {
				break
			}
			runtime.Gosched()
		}
	}
}
