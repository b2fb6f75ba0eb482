package code

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// pool starts children before programs need them. A child serves one program and is never returned
// to the pool.
type pool struct {
	want  int           // number of waiting children
	idle  time.Duration // maximum waiting time of a child
	start func() (*child, error)

	mu       sync.Mutex
	ready    []*waitingChild
	busy     map[*child]bool
	starting int
	closed   bool
	work     sync.WaitGroup
}

type waitingChild struct {
	*child
	expiry *time.Timer
}

var errClosed = errors.New("the interpreter is closed")

// take returns a waiting child, or a new one. It also starts replacements in the background.
func (p *pool) take() (*child, error) {
	c, err := p.waiting()
	if err != nil {
		return nil, err
	}
	if c == nil {
		if c, err = p.start(); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		c.end()
		return nil, errClosed
	}
	if p.busy == nil {
		p.busy = map[*child]bool{}
	}
	p.busy[c] = true
	p.mu.Unlock()
	p.fill()
	return c, nil
}

// waiting returns a waiting child. Nil means that there is none.
func (p *pool) waiting() (*child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	for len(p.ready) > 0 {
		w := p.ready[0]
		p.ready = slices.Delete(p.ready, 0, 1)
		if !w.expiry.Stop() {
			continue // it is being ended
		}
		p.work.Done()
		select {
		case <-w.gone: // it has already been ended from outside
			w.wire.close()
		default:
			return w.child, nil
		}
	}
	return nil, nil
}

// done ends a child that has served its program.
func (p *pool) done(c *child) {
	c.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, c)
}

// fill starts children until the wanted number waits. A failure to start is reported when a program
// needs a child.
func (p *pool) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.ready)+p.starting < p.want {
		p.starting++
		p.work.Go(p.add)
	}
}

// add starts a child that waits for a program.
func (p *pool) add() {
	c, err := p.start()
	p.mu.Lock()
	p.starting--
	if err != nil || p.closed {
		p.mu.Unlock()
		if err == nil {
			c.end()
		}
		return
	}
	w := &waitingChild{child: c}
	p.work.Add(1)
	w.expiry = time.AfterFunc(p.idle, func() { p.expire(w) })
	p.ready = append(p.ready, w)
	p.mu.Unlock()
}

// expire ends a child that has waited too long. It is replaced when the next program runs.
func (p *pool) expire(w *waitingChild) {
	defer p.work.Done()
	p.mu.Lock()
	p.ready = slices.DeleteFunc(p.ready, func(o *waitingChild) bool { return o == w })
	p.mu.Unlock()
	w.end()
}

// close ends all children. It waits for the end of the children that no program is using.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	ready := p.ready
	p.ready = nil
	for c := range p.busy {
		c.kill()
	}
	p.mu.Unlock()
	for _, w := range ready {
		if w.expiry.Stop() {
			w.end()
			p.work.Done()
		}
	}
	p.work.Wait()
}
