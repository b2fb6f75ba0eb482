package fold

// repeats.go: results that repeat an earlier result of the same call.

import (
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/internal/contents"
	"github.com/pawl-go/pawl/llm"
)

// leastRepeat is the size in bytes from which a line takes the place of a repeated result.
const leastRepeat = 400

// place is a result: of the call at an index of a round.
type place struct{ round, index int }

// repeats are the results in sight that have the content of an earlier one of the same call. They
// depend on two fields of the mark.
type repeats struct {
	stubbed, cutBytes int

	of   map[place]place // the first result with the content, which is sent whole
	next map[place]place // the next result with the content
}

// equals are results of equal calls with equal content.
type equals struct{ first, last place }

// repeatsIn returns the repeats in state m. An edit that puts the first result away brings the next
// one back, so that the content stays in sight. The request changes before it in any case, so that
// prompt caches lose nothing.
func (r *Rounds) repeatsIn(m *Mark) *repeats {
	if known := r.repeated; known != nil && known.stubbed == m.Stubbed && known.cutBytes == m.CutBytes {
		return known
	}

	found := &repeats{
		stubbed:  m.Stubbed,
		cutBytes: m.CutBytes,
		of:       map[place]place{},
		next:     map[place]place{},
	}
	r.repeated = found
	if m.Brief() {
		return found
	}

	whole := map[uint64][]equals{} // by call
	for n := m.Stubbed; n < len(r.Replies); n++ {
		limit, _ := r.CutOf(n, m)
		for i, call := range r.Reply(n).Calls() {
			result, ok := r.step(n).Result(i)
			if !ok || !r.onlyReads(call.Name) || len(result.Text()) < leastRepeat {
				continue
			}

			here := place{n, i}
			hash := contents.CallHash(call)
			at := slices.IndexFunc(whole[hash], func(e equals) bool { return r.sameContent(e.first, &result) })
			switch {
			case at >= 0:
				found.add(&whole[hash][at], here)
			case limit == 0:
				whole[hash] = append(whole[hash], equals{here, here})
			}
		}
	}
	return found
}

// add adds the result at here, which repeats e.
func (rs *repeats) add(e *equals, here place) {
	rs.of[here] = e.first
	rs.next[e.last] = here
	e.last = here
}

// sameContent reports whether the result at p has the content of another.
func (r *Rounds) sameContent(p place, other *llm.ToolResult) bool {
	result, _ := r.step(p.round).Result(p.index)
	if len(result.Parts) != len(other.Parts) || result.IsError != other.IsError {
		return false
	}
	for i := range result.Parts {
		a, isText := result.Parts[i].(llm.Text)
		b, alsoText := other.Parts[i].(llm.Text)
		if !isText || !alsoText || a.Text != b.Text {
			return false
		}
	}
	return true
}

// withoutRepeats returns the results of round n with a line in place of each that repeats an
// earlier one in state m.
func (r *Rounds) withoutRepeats(results llm.Message, n int, m *Mark) llm.Message {
	return r.lines(results, n, r.repeatsIn(m).of)
}

// lines returns the results of round n with a line in place of each that has the content of an
// other result, which the line names.
func (r *Rounds) lines(results llm.Message, n int, other map[place]place) llm.Message {
	out := results
	for i, p := range results.Parts {
		of, ok := other[place{n, i}]
		if !ok {
			continue
		}
		if &out.Parts[0] == &results.Parts[0] {
			out.Parts = slices.Clone(results.Parts) // the transcript shares the parts
		}
		result := p.(llm.ToolResult)
		first, _ := r.step(of.round).Result(of.index)
		line := fmt.Sprintf("[The same %d bytes as the result %s of the same call, which was made before. Do not repeat it.]",
			len(result.Text()), r.step(of.round).ResultID(&first, of.index))
		result.Parts = []llm.Part{llm.Text{Text: line}}
		result.Data = nil
		out.Parts[i] = result
	}
	return out
}

// count counts the calls that have only read what an equal call before them has read.
type count struct {
	progress
	seen map[uint64]place // the last result of each call
	all  int
	now  int // in the last round that was read
}

// add counts round n, which follows the rounds that were counted.
func (c *count) add(r *Rounds, n int) {
	c.now = 0
	for i, call := range r.Reply(n).Calls() {
		result, ok := r.step(n).Result(i)
		if !ok || !r.onlyReads(call.Name) {
			continue
		}
		hash := contents.CallHash(call)
		if before, ok := c.seen[hash]; ok && r.sameContent(before, &result) {
			c.now++
		}
		c.seen[hash] = place{n, i}
	}
	c.all += c.now
}

// CountRepeats returns how many calls before the reply to come have only read what an equal call
// before them has read, in all and in the last round. It reads each round once while the transcript
// grows.
func (l *Ledger) CountRepeats(r *Rounds) (all, last int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	c := &l.repeated
	if c.seen == nil || !c.hasRead(r, len(r.Replies)) {
		*c = count{seen: map[uint64]place{}}
	}
	for c.replies < len(r.Replies) {
		c.add(r, c.next(r))
	}
	return c.all, c.now
}
