package code

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pool starts children before programs need them. A child serves one program and is never returned
// to the pool.
type pool struct {
	want   int           // number of waiting children
	idle   time.Duration // maximum waiting time of a child
	start  func() (*child, error)
	open   context.Context // ends when the pool is closed
	closed context.CancelFunc
	offers chan *child // from waiting children

	mu      sync.Mutex
	waiting int // children that wait or are being started
	work    sync.WaitGroup
}

func newPool(want int, idle time.Duration, start func() (*child, error)) *pool {
	p := &pool{want: want, idle: idle, start: start, offers: make(chan *child)}
	p.open, p.closed = context.WithCancel(context.Background())
	return p
}

var errClosed = errors.New("the interpreter is closed")

// acquire returns a waiting child, or a new one. It also starts replacements in the background.
func (p *pool) acquire() (c *child, err error) {
	if p.open.Err() != nil {
		return nil, errClosed
	}
	for c == nil && err == nil {
		select {
		case c = <-p.offers:
			p.count(-1)
		default:
			c, err = p.start()
			continue
		}

		select {
		// A waiting child may have been killed, by the system for its memory, for example.
		case <-c.gone: // it has been ended from outside
			c.stop()
			c = nil
		default:
		}
	}
	if err == nil {
		p.fill()
	}
	return c, err
}

func (p *pool) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting += n
}

// fill starts children until the wanted number waits. A failure to start is reported when a program
// needs a child.
func (p *pool) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; p.open.Err() == nil && p.waiting < p.want; p.waiting++ {
		p.work.Go(p.offer)
	}
}

// offer starts a child and offers it to a program. A child that waits too long is ended, and is
// replaced when the next program runs.
func (p *pool) offer() {
	c, err := p.start()
	if err == nil {
		expiry := time.NewTimer(p.idle)
		defer expiry.Stop()
		select {
		case p.offers <- c:
			return
		case <-expiry.C:
		case <-c.gone: // it has been ended from outside
		case <-p.open.Done():
		}
		c.stop()
	}
	p.count(-1)
}

// close ends all children. It waits for the end of the children that no program is using.
func (p *pool) close() {
	p.mu.Lock()
	p.closed()
	p.mu.Unlock()
	p.work.Wait()
}
