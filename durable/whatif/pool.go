package whatif

// pool.go: what is stored for calls, found by their tools and arguments.

import (
	"slices"

	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// pool has a stored value for each call of a run.
type pool[T any] struct{ calls map[string][]*pooled[T] }

// pooled is the value of one call.
type pooled[T any] struct {
	key   llm.Key
	value T
	used  bool
}

func newPool[T any]() *pool[T] { return &pool[T]{calls: map[string][]*pooled[T]{}} }

// callID returns equal texts for calls of one tool with equal arguments.
func callID(c llm.ToolCall) string { return c.Name + " " + string(jsonform.Canonical(c.Args)) }

// add adds the value of the call at key.
func (p *pool[T]) add(key llm.Key, c llm.ToolCall, value T) {
	id := callID(c)
	p.calls[id] = append(p.calls[id], &pooled[T]{key: key, value: value})
}

// sort brings equal calls into the order of the run.
func (p *pool[T]) sort() {
	for _, equal := range p.calls {
		slices.SortStableFunc(equal, func(a, b *pooled[T]) int { return journal.CompareKeys(a.key, b.key) })
	}
}

// take returns the value of an equal call: the one at key, or else the first that was not taken.
// again means that a value may be taken more than once.
func (p *pool[T]) take(key llm.Key, c llm.ToolCall, again bool) (value T, ok bool) {
	equal := p.calls[callID(c)]
	at := slices.IndexFunc(equal, func(o *pooled[T]) bool { return o.key == key && !o.used })
	if at < 0 {
		at = slices.IndexFunc(equal, func(o *pooled[T]) bool { return !o.used })
	}
	if at < 0 && again {
		at = len(equal) - 1
	}
	if at < 0 {
		return value, false
	}
	equal[at].used = true
	return equal[at].value, true
}
