package history

// native.go: models whose provider shortens long conversations itself.

import (
	"slices"

	"github.com/pawl-go/pawl/history/internal/fold"
)

// nativeText takes the place of the record if a summary of the provider follows.
const nativeText = "[Earlier steps were put away. A summary of them follows.]"

// summary is a summary of the provider. The zero value means that there is none.
type summary struct {
	reply    int // the number of the reply that begins with it
	replaces int // the number of replies that it replaces
}

// lastSummary returns the last summary from reply folded on.
func (p *planner) lastSummary(folded int) summary {
	if p.provider == nil {
		return summary{}
	}
	for n := len(p.rounds.Replies) - 1; n > max(0, folded-1); n-- {
		if slices.ContainsFunc(p.rounds.Reply(n).Parts, p.provider.Compacted) {
			return summary{reply: n, replaces: p.replacedBy(n)}
		}
	}
	return summary{}
}

// replacedBy returns the number of replies that a summary at the beginning of reply n replaces. A
// summary on demand leaves the exchange that reply n answers: see llm.Compactor.
func (p *planner) replacedBy(n int) int {
	if p.onDemand && n > 0 && p.rounds.Results(n-1) != nil {
		return n - 1
	}
	return n
}

// afterSummary returns what is sent in place of the rounds that the summary replaces. Nothing
// stands before a summary on demand: its model would take it for a part of the exchange after it.
func (p *planner) afterSummary(m *fold.Mark) fold.Head {
	head := fold.Head{
		After:      p.ledger.AfterSummary(p.rounds, m, p.options.Pinned),
		AfterRound: p.summary.reply,
	}
	if !p.onDemand {
		head.Record = nativeText
	}
	return head
}

// adopt returns d without the rounds that the provider has summarized since the last edit. The
// rounds count as folded, so that another model gets the record of them.
func (p *planner) adopt(d draft, size sizes) draft {
	m := d.mark
	m.Folded = p.summary.replaces
	m.Stubbed = max(p.summary.replaces, m.Stubbed)
	m.Edited = max(p.summary.reply, m.Edited)
	m.Turn = min(p.rounds.TurnStart(), p.summary.replaces)
	m.LimitBytes = int(size.room)

	adopted := p.render(m)
	adopted.mark.Why = "native"
	return adopted
}

// asksForSummary reports whether the request d asks the provider for a summary: it has the size at
// which the provider's own means begin, and the summary frees enough to be worth its cost.
func (p *planner) asksForSummary(d draft, size sizes) bool {
	n := len(p.rounds.Replies)
	full := size.native > 0 && size.tokens(d.bytes) >= size.native
	if !p.onDemand || !full || p.replacedBy(n) <= d.mark.Folded {
		return false
	}

	exchange := p.rounds.InputStart(n)
	if p.replacedBy(n) < n {
		exchange = p.rounds.Index(n - 1)
	}
	freed := fold.Weight(d.view.Messages, nil) - fold.Weight(p.rounds.Messages[exchange:], nil)
	return float64(freed) >= leastGain*size.room
}
