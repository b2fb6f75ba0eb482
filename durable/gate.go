package durable

// gate.go: gate, which lets the intents of concurrent calls share a commit.

import (
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// gather is the time that a record waits for others in the same commit, if no goroutine waits for
// that record alone.
const gather = 2 * time.Millisecond

// gate combines the intents of concurrent calls into one commit: it holds them until all have
// arrived, but no longer than gather.
type gate struct {
	mu       sync.Mutex
	coming   map[llm.Key]bool
	complete chan struct{} // closed when no further call can arrive
}

// newGate returns a gate for the calls whose intents are stored. A call of an unknown tool has
// none, nor has a composition.
func newGate(tasks []pawl.Task) *gate {
	g := &gate{coming: map[llm.Key]bool{}, complete: make(chan struct{})}
	for _, t := range tasks {
		tool := t.Tool()
		if tool != nil && tool.Effect != pawl.EffectCompose && t.Refuse == "" {
			g.coming[t.Key] = true
		}
	}
	return g
}

// arrive waits for the other calls. A nil gate has none.
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

// withdraw records that the call at key will not arrive any more. g may be nil.
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
