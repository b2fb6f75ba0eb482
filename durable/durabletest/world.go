package durabletest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Delivery is the message of a tool to the world, or of an agent to its model.
type Delivery struct {
	Tool   string      `json:"tool"`
	Effect pawl.Effect `json:"effect"`
	Place  llm.Key     `json:"place"` // in the run
	Key    string      `json:"key"`   // the call's idempotency key, or the digest of a request
}

// World is the target of the side effects of a Case's tools. Memory is one in this process, and
// Remote one in another process, for tests that kill processes.
type World interface {
	// Deliver is a side effect. With an error it may or may not have happened.
	Deliver(ctx context.Context, d Delivery) error
	// Happened reports whether a delivery came from a place.
	Happened(ctx context.Context, place llm.Key) (bool, error)
}

// Memory is a World that counts. The zero value is ready to use. It is safe for concurrent use.
type Memory struct {
	mu  sync.Mutex
	all []Delivery
}

var _ World = (*Memory)(nil)

// ErrDead is the error of a side effect after the death of its process.
var ErrDead = errors.New("this process is dead")

// Deliver counts d.
func (m *Memory) Deliver(_ context.Context, d Delivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, d)
	return nil
}

// Happened reports whether a delivery came from place.
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

// All returns the deliveries in order.
func (m *Memory) All() []Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Delivery(nil), m.all...)
}

// Violations compares the deliveries with and without crashes, and returns the forbidden
// differences, one line each: a Write that is repeated or missing, an Idempotent call with two
// keys, a request that differs from the earlier one, a call that did not occur without crashes.
// crashes is the number of deaths of processes.
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
		case g.Effect == pawl.EffectWrite && g.n != 1:
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
