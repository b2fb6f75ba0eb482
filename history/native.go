package history

// native.go: models whose provider shortens long conversations itself.

import "slices"

// nativeText takes the place of the record if a summary of the provider follows.
const nativeText = "[Earlier steps were put away. A summary of them follows.]"

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

// adopt returns d without the rounds that the provider has summarized since the last edit. The
// rounds count as folded, so that another model gets the record of them.
func (p *planner) adopt(d draft, size sizes) draft {
	m := d.mark
	m.Folded = p.summary
	m.Stubbed = max(p.summary, m.Stubbed)
	m.Edited = max(p.summary, m.Edited)
	m.Turn = min(p.rounds.TurnStart(), p.summary)
	m.LimitBytes = int(size.room)

	adopted := p.render(m)
	adopted.mark.Why = "native"
	return adopted
}
