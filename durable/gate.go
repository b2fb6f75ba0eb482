package durable

// gate.go: gate, which lets the intents of concurrent calls share a commit.

import (
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// gate combines the intents of concurrent calls into one commit: it holds them until all have
// arrived, but no longer than gather.
type gate struct {
	mu       sync.Mutex
	coming   map[llm.Key]bool
	complete chan struct{} // closed when no further call can arrive
}

// expect opens the gate for tasks, and returns the function that removes it.
func (s *session) expect(tasks []pawl.Task) (done func()) {
	g := &gate{coming: map[llm.Key]bool{}, complete: make(chan struct{})}
	for _, t := range tasks {
		if tool := t.Tool(); tool != nil && tool.Effect != pawl.EffectCompose && t.Refuse == "" {
			g.coming[t.Key] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tasks {
		s.waiters[t.Key] = g
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range tasks {
			delete(s.waiters, t.Key)
		}
	}
}

// arrive waits for the other calls.
func (g *gate) arrive(key llm.Key) {
	if g == nil {
		return
	}
	g.withdraw(key)
	t := time.NewTimer(gather)
	defer t.Stop()
	select {
	case <-g.complete:
	case <-t.C:
	}
}

// withdraw records that the call at key will not arrive any more.
func (g *gate) withdraw(key llm.Key) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.coming[key] {
		return
	}
	delete(g.coming, key)
	if len(g.coming) == 0 {
		close(g.complete)
	}
}
