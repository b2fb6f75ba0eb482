package durabletest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Delivery is what a tool sends to the world, or an agent to its model.
type Delivery struct {
	Tool   string      `json:"tool"`
	Effect pawl.Effect `json:"effect"`
	Place  llm.Key     `json:"place"` // where in the run
	Key    string      `json:"key"`   // the call's idempotency key; of a request, its digest
}

// World is what the tools of a Case act on. Memory is one; a test that kills processes has one in another process.
type World interface {
	// Deliver is an act. With an error it may have happened, or not.
	Deliver(ctx context.Context, d Delivery) error
	// Happened reports whether something was delivered from a place.
	Happened(ctx context.Context, place llm.Key) (bool, error)
}

// Memory is a World that counts. The zero value is ready; it may be used concurrently.
type Memory struct {
	mu  sync.Mutex
	all []Delivery
}

var _ World = (*Memory)(nil)

// ErrDead is what those get who act after their process has died.
var ErrDead = errors.New("this process is dead")

// Deliver counts d.
func (m *Memory) Deliver(_ context.Context, d Delivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, d)
	return nil
}

// Happened reports whether something came from place.
func (m *Memory) Happened(_ context.Context, place llm.Key) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.all {
		if d.Place == place {
			return true, nil
		}
	}
	return false, nil
}

// All returns what was delivered, in order.
func (m *Memory) All() []Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Delivery(nil), m.all...)
}

// Violations compares what was delivered with crashes and without, and returns what must not be, one line each: a Write that is there twice or not at all, an
// Idempotent one with two keys, a request that differs from the one made before, a call that was never made without crashes. crashes is how often a process died.
func Violations(with, without []Delivery, crashes int) []string {
	type count struct {
		n    int
		keys map[string]bool
		Delivery
	}
	counted := func(all []Delivery) map[llm.Key]*count {
		out := map[llm.Key]*count{}
		for _, d := range all {
			c := out[d.Place]
			if c == nil {
				c = &count{keys: map[string]bool{}, Delivery: d}
				out[d.Place] = c
			}
			c.n++
			c.keys[d.Key] = true
		}
		return out
	}
	var bad []string
	got, want := counted(with), counted(without)
	for place, w := range want {
		g := got[place]
		switch {
		case g == nil:
			bad = append(bad, fmt.Sprintf("%s of %s never happened", place, w.Tool))
		case g.Effect == pawl.Write && g.n != 1:
			bad = append(bad, fmt.Sprintf("%s, a write of %s, happened %d times", place, g.Tool, g.n))
		case len(g.keys) != 1:
			bad = append(bad, fmt.Sprintf("%s of %s came with %d different keys", place, g.Tool, len(g.keys)))
		case g.n > 1+crashes:
			bad = append(bad, fmt.Sprintf("%s of %s happened %d times with %d crashes", place, g.Tool, g.n, crashes))
		}
	}
	for place, g := range got {
		if want[place] == nil {
			bad = append(bad, fmt.Sprintf("%s of %s should never have happened", place, g.Tool))
		}
	}
	return bad
}
