package http1

import (
	"sync"
	"time"
)

// pool keeps the connections that nobody uses. The one that was used last is taken first, so that those which are too many grow old; one timer ends
// them all, and there is none while there are no connections.
type pool struct {
	mu    sync.Mutex
	idle  map[string][]*conn // by host, in the order of their last use
	n     int
	timer *time.Timer // nil: none runs
}

const (
	maxIdle = 16384
	idleFor = 90 * time.Second
)

// take returns a connection to host that is alive, or nil.
func (p *pool) take(host string) *conn {
	for {
		c := p.pop(host)
		if c == nil || c.alive() {
			return c
		}
		c.close()
	}
}

func (p *pool) pop(host string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[host]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	p.idle[host] = list[:len(list)-1] // an empty list goes with the next sweep
	p.n--
	return c
}

// put keeps c, within the bounds of t.
func (p *pool) put(c *conn, t *Transport) {
	most, last := t.MaxIdle, t.IdleFor
	if most == 0 {
		most = maxIdle
	}
	if last == 0 {
		last = idleFor
	}
	c.release()
	if c.limited {
		c.limited = false
		c.nc.SetReadDeadline(time.Time{})
	}
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n >= most {
		c.close()
		return
	}
	if p.idle == nil {
		p.idle = map[string][]*conn{}
	}
	p.idle[c.host] = append(p.idle[c.host], c)
	p.n++
	if p.timer == nil {
		p.timer = time.AfterFunc(last, func() { p.sweep(last) })
	}
}

// sweep closes what nobody has used for long enough, and comes again as long as something is left.
func (p *pool) sweep(last time.Duration) {
	left := p.closeIdle(time.Now().Add(-last))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer = nil; left {
		p.timer = time.AfterFunc(last/2, func() { p.sweep(last) })
	}
}

// closeIdle closes the connections that were not used since a time, and reports whether some are left.
func (p *pool) closeIdle(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for host, list := range p.idle {
		old := 0
		for old < len(list) && list[old].since.Before(since) {
			list[old].close()
			old++
		}
		p.n -= old
		if old == len(list) {
			delete(p.idle, host)
			continue
		}
		p.idle[host] = append([]*conn(nil), list[old:]...)
	}
	if p.n == 0 && p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	return p.n > 0
}
