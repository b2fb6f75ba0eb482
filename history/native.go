package history

// native.go: models whose provider shortens long conversations itself.

import (
	"slices"

	"github.com/pawl-go/pawl/llm"
)

const (
	nativeHigh = 0.95 // High with Native, so that the provider comes first
	nativeText = "[Earlier steps were put away. A summary of them follows.]"
)

// lastSummary returns the number of the last reply that begins with a summary of the provider, from
// reply folded on; 0 means none.
func (p *planner) lastSummary(folded int) int {
	if p.provider == nil {
		return 0
	}
	for n := len(p.rounds.Replies) - 1; n > max(0, folded-1); n-- {
		if slices.ContainsFunc(p.rounds.Reply(n).Parts, p.provider.Compacted) {
			return n
		}
	}
	return 0
}

// adopt returns d without what the provider has summarized since the last edit. With another model,
// the record takes the place of the summary.
func (p *planner) adopt(d draft, size sizes) draft {
	m := d.mark
	m.Folded = p.summary
	m.Stubbed = max(p.summary, m.Stubbed)
	m.Edited = max(p.summary, m.Edited)
	m.Turn = min(p.rounds.Turn(), p.summary)
	m.LimitBytes = int(size.room)

	adopted := p.draft(m)
	adopted.mark.Why = "native"
	return adopted
}
