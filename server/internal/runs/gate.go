package runs

// gate.go: gate, by which a run whose last reader has left begins nothing more.

import (
	"context"
	"sync"
)

// gate counts the readers of a run, and holds the run when asked to while it has none.
type gate struct {
	mu      sync.Mutex
	readers int
	held    chan struct{} // closed when the run may go on; nil means that it is not held
}

// enter counts a reader, and lets the run go on.
func (g *gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers++
	g.open()
}

// leave ends a reader, and returns the number of the others.
func (g *gate) leave() (others int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers--
	return g.readers
}

// hold lets no call and no request begin until a reader enters. It does nothing while there is one.
func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.readers == 0 && g.held == nil {
		g.held = make(chan struct{})
	}
}

// letGo lets the run go on without a reader.
func (g *gate) letGo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open()
}

// open ends a hold. g.mu is locked.
func (g *gate) open() {
	if g.held != nil {
		close(g.held)
		g.held = nil
	}
}

// count returns the number of readers.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.readers
}

// wait returns when the run is not held, or the cause of the end of ctx: durable.Runner.Gate.
func (g *gate) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		held := g.held
		g.mu.Unlock()
		if held == nil {
			return nil
		}
		select {
		case <-held:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
