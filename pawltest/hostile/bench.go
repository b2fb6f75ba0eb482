package hostile

// bench.go: what the tools of one play share.

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Bench is the set-up of one play: the shared state of its tools, and the record of executed calls.
// It may be used concurrently.
type Bench struct {
	mu      sync.Mutex
	ran     []string
	running int
	peak    int
	store   map[string]string
	polls   int
	over    chan struct{} // closed at the end of the play, for tools that wait for nothing else
	end     func(why error)
}

func newBench(end func(error)) *Bench {
	return &Bench{store: map[string]string{}, over: make(chan struct{}), end: end}
}

// awaitSibling waits until another call has run and only the caller runs, or for two seconds.
func (b *Bench) awaitSibling(ctx context.Context) {
	end := time.Now().Add(2 * time.Second)
	for ; time.Now().Before(end) && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		alone := len(b.ran) > 1 && b.running == 1
		b.mu.Unlock()
		if alone {
			return
		}
	}
}

// stop ends the run from outside.
func (b *Bench) stop(why error) {
	b.mu.Lock()
	end := b.end
	b.mu.Unlock()
	end(why)
}

// Ran returns the calls so far, in the order of their start: NAME ARGUMENTS.
func (b *Bench) Ran() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ran)
}
