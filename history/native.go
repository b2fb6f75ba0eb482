package history

import (
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// compactor is a model whose provider shortens long conversations itself.
type compactor interface {
	// Compact returns req with the order to do so above tokens of input. ok is false if the model
	// cannot.
	Compact(req *llm.Request, tokens int) (r *llm.Request, ok bool)
	// Compacted reports whether p is the provider's summary of what stands before it.
	Compacted(p llm.Part) bool
}

const (
	nativeHigh = 0.95 // High with Native, so that the provider comes first
	nativeText = "[Earlier steps were put away. A summary of them follows.]"
)

// own returns the model as a compactor. It is nil if its provider cannot, or shall not, do so.
func (w *windowed) own(req *llm.Request) compactor {
	if m, ok := llm.As[compactor](w.inner); ok && w.o.Native {
		if _, ok := m.Compact(req, 0); ok {
			return m
		}
	}
	return nil
}

// summarized returns the number of the last reply that begins with a summary of the provider, or 0.
func (s *sending) summarized() int {
	for n := len(s.c.At) - 1; s.own != nil && n > max(0, s.p.Folded-1); n-- {
		if slices.ContainsFunc(s.c.Msgs[s.c.At[n]].Parts, s.own.Compacted) {
			return n
		}
	}
	return 0
}

// adopt leaves out what the provider has summarized since the last edit. With another model, the
// record takes the place of the summary.
func (s *sending) adopt(size sizes) {
	if s.native <= s.p.Folded {
		return
	}
	p, n := s.p, s.native
	p.Folded, p.Stubbed, p.Edited = n, max(n, p.Stubbed), max(n, p.Edited)
	p.Turn = min(s.c.Turn(), n)
	p.Limit = int(size.room)
	v, bytes := s.render(&p)
	s.take(p, v, bytes, size, "native")
}

// order adds to r the order to shorten the conversation at High.
func (s *sending) order(r *llm.Request) *llm.Request {
	if at := s.sizes(&s.p).native; s.own != nil && at > 0 {
		r, _ = s.own.Compact(r, at)
	}
	return r
}
