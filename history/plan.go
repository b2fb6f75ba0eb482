package history

// plan.go: planner, which decides what a request has of the transcript.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/internal/contents"
	"github.com/pawl-go/pawl/llm"
)

const (
	shareStubs = 0.15 // of the room: above it, stubs are folded
	roundSpan  = 3    // rounds that have WindowOptions.Round together
	shareWhole = 0.35 // of the room: what an edit can free for the results of a round
	shareEach  = 0.08 // of the room: a longer result has a share if the window is filling
	leastGain  = 0.10 // of the room: an edit that frees less waits until it must be
	nearHigh   = 0.90 // of High: a request above it after an edit is nearly full again

	leastWindow       = 2_000 // tokens; below it no state is stored if the window is unknown
	mostBytesPerToken = 12    // a count with more bytes a token is of another request
)

// planner decides what a request has of the transcript. It depends on the transcript, the options
// and what the model says about itself, so that a run that is resumed or replayed sends the same
// requests. It sends nothing. A planner serves one request.
type planner struct {
	rounds  *fold.Rounds
	options *WindowOptions
	ledger  *fold.Ledger
	window  window

	provider llm.Compactor // nil means that the model's provider cannot summarize, or must not
	onDemand bool          // the provider summarizes when a request asks for it
	summary  summary       // set by next
}

// sizes returns the sizes in state m.
func (p *planner) sizes(m *fold.Mark) sizes { return p.window.sizes(m) }

// draft is a request in the state of a mark.
type draft struct {
	mark  fold.Mark
	view  fold.View
	tools []*llm.ToolSpec
	bytes int // of the messages and the tools
}

// render returns the request in the state m. It stores in the state when result_read is first
// shown.
func (p *planner) render(m fold.Mark) draft {
	// The tool appears with the first result that is put away. The state remembers it, because a
	// tool that disappears again would cost the prompt cache.
	if p.hidesReader() && m.Shown == 0 && p.namesReader(&m) {
		m.Shown = len(p.rounds.Replies) + 1
	}

	head := fold.Head{}
	switch {
	case m.Folded == 0:
	case m.Folded == p.summary.replaces:
		head = p.afterSummary(&m)
	default:
		head.Record = p.ledger.Record(p.rounds, &m, p.options.Pinned)
	}

	d := draft{
		mark:  m,
		view:  p.rounds.View(&m, p.options.Stub, head),
		tools: p.tools(&m),
	}
	d.bytes = fold.Weight(d.view.Messages, d.tools)
	return d
}

// hidesReader reports whether result_read is left out until something is put away. With a provider
// that shortens by itself it is always offered: nothing says beforehand when that happens.
func (p *planner) hidesReader() bool {
	return p.options.HideReader && p.rounds.HasReader && p.provider == nil
}

// namesReader reports whether the request in state m names result_read.
func (p *planner) namesReader(m *fold.Mark) bool {
	if m.Stubbed+m.CutBytes > 0 {
		return true
	}
	n := len(p.rounds.Replies)
	if m.Brief() || n == 0 {
		return false
	}

	// The run has cut a new result, and stored the whole.
	results := p.rounds.Results(n - 1)
	return results != nil && slices.ContainsFunc(results.Parts, func(part llm.Part) bool {
		result, ok := part.(llm.ToolResult)
		return ok && result.LeftOut > 0
	})
}

// tools returns the tools that are offered in state m.
func (p *planner) tools(m *fold.Mark) []*llm.ToolSpec {
	tools := p.rounds.Request.Tools
	if !p.hidesReader() || m.Shown > 0 {
		return tools
	}
	isReader := func(t *llm.ToolSpec) bool { return t.Name == contents.ReadTool }
	return slices.DeleteFunc(slices.Clone(tools), isReader)
}

// next returns the next request of a run whose last reply has the mark before: the transcript as
// before and what is new, or less if that is too long. The error ends the run.
func (p *planner) next(before fold.Mark) (d draft, notices []*llm.Notice, err error) {
	m := before

	// The mark before has these for its own reply alone.
	m.Notes = ""
	m.Why = ""

	size := p.sizes(&m)
	p.summary = p.lastSummary(m.Folded)
	d = p.renderCut(m, size)
	if !m.Brief() {
		notices = append(notices, p.repeatNotices()...)
	}

	if p.summary.replaces > m.Folded {
		adopted := p.adopt(d, size)
		notices = append(notices, editNotice(d, adopted, size))
		d = adopted
	}
	if size.room == 0 || float64(d.bytes) <= size.high {
		return d, notices, nil
	}

	d, more, err := p.edit(d, size)
	return d, append(notices, more...), err
}

// renderCut returns the request in the state m. The new results are cut to their share if the
// window is filling.
func (p *planner) renderCut(m fold.Mark, size sizes) draft {
	m.CutBytes = 0
	whole := p.render(m)
	if !m.Brief() && p.fitWhole(whole, size) {
		return whole
	}

	m.CutBytes = p.cutBytes(&m, size)
	if m.CutBytes == 0 {
		return whole
	}
	return p.render(m)
}

// fitWhole reports whether the new results stay whole in the request d, which has all of them.
func (p *planner) fitWhole(d draft, size sizes) bool {
	n := len(p.rounds.Replies)
	bytes := float64(d.bytes)
	if n == 0 || bytes <= size.low {
		return true // nothing is near its end
	}

	// A long result would fill the window, so that each request after it has another beginning.
	results := p.rounds.Results(n - 1)
	if results == nil {
		return true
	}
	for i := range results.Parts {
		if float64(fold.Weigh(results.Parts[i:i+1])) > shareEach*size.room {
			return false
		}
	}
	return bytes <= size.high || float64(p.resultBytes(n-1)) <= shareWhole*size.room
}

// cutBytes returns the bytes that the new results may have in state m. 0 means all. It is what the
// rounds before leave of their common share, and at least an equal part of it.
func (p *planner) cutBytes(m *fold.Mark, size sizes) int {
	if p.options.noCut {
		return 0
	}
	n := len(p.rounds.Replies)
	share := int(p.options.Round * size.room)

	rest := share
	last := 0
	for i := max(0, n-roundSpan); i < n; i++ {
		rest -= last
		last = p.resultBytes(i)
	}
	// Large results of the rounds before must not leave nothing for the new ones.
	rest = max(rest, share/roundSpan)

	switch {
	case last <= rest:
		return 0
	case p.rounds.CalledBefore(n-1, m.Folded):
		return share // the first result of the same call was too short for the model
	}
	return rest
}

// resultBytes returns the size of the results of round n, as far as they were sent.
func (p *planner) resultBytes(n int) int {
	results := p.rounds.Results(n)
	if results == nil {
		return 0
	}
	bytes := fold.Weigh(results.Parts)
	if limit, _ := p.rounds.CutOf(n, new(fold.Mark)); limit > 0 {
		bytes = min(bytes, limit)
	}
	return bytes
}

// edit makes d shorter, down to the low size. It returns d itself if that is not worth a new prefix
// yet.
func (p *planner) edit(d draft, size sizes) (shorter draft, notices []*llm.Notice, err error) {
	repeats := p.refilled(&d.mark) // asked first, since the ledger grows with the edit
	e := p.shortened(d, size)

	// Prompt caches do not know what an edit sends. So it must free enough, unless d does not fit.
	freed := float64(d.bytes - e.bytes)
	if freed < leastGain*size.room && float64(d.bytes) <= size.room {
		return d, nil, nil
	}

	if repeats || float64(e.bytes) > size.high {
		e.mark.Unhelpful = min(d.mark.Unhelpful+1, fold.EndAt)
	}
	switch e.mark.Unhelpful {
	case fold.LowerAt:
		notices = append(notices, thrashNotice(e.mark.Unhelpful))
	case fold.WarnAt:
		e = p.render(e.mark) // with the warning
		notices = append(notices, thrashNotice(e.mark.Unhelpful))
	case fold.EndAt:
		tokens := cmp.Or(size.window, size.tokens(int(size.room)))
		return d, nil, &limitError{fmt.Sprintf("the window of %d tokens is too small for this work", tokens)}
	}
	e.mark.Why = "full"
	return e, append(notices, editNotice(d, e, size)), nil
}

// shortened returns d after an edit that counts as helpful.
func (p *planner) shortened(d draft, size sizes) draft {
	m := d.mark
	p.stamp(&m, size)
	m.Unhelpful = 0
	p.putAway(&m, d.bytes, size, p.options.Keep)
	e := p.render(m)

	// Where stubs alone nearly fill the window, all of them go into the record.
	near := float64(e.bytes) > nearHigh*size.high
	if near && e.mark.Folded < e.mark.Stubbed && !p.options.noFold {
		e.mark.Folded = e.mark.Stubbed
		e = p.render(e.mark)
	}
	return e
}

// stamp stores in m when and with what room an edit is made.
func (p *planner) stamp(m *fold.Mark, size sizes) {
	m.Edited = len(p.rounds.Replies)
	m.Turn = p.rounds.TurnStart()
	m.LimitBytes = int(size.room)
}

// putAway moves the limits of stubs and of the record until a request of so many bytes has the low
// size. The last keep rounds stay, unless they alone nearly reach the high size.
func (p *planner) putAway(m *fold.Mark, bytes int, size sizes, keep int) {
	n := len(p.rounds.Replies)
	left := float64(bytes)
	stubs := p.rounds.StubBytes(m, p.options.Stub)
	before := *m // the rounds weigh what they have in the request before the edit

	// The last round always stays: the model has not seen its results yet.
	for ; left > size.low && m.Stubbed < n-1; m.Stubbed++ {
		if m.Stubbed == n-keep && left <= nearHigh*size.high {
			break
		}
		whole, short := p.rounds.Cost(m.Stubbed, &before, p.options.Stub)
		left += float64(short - whole)
		stubs += short
	}

	p.foldStubs(m, float64(stubs), size)
	if m.Stubbed > 0 && m.Folded == 0 && p.hasPinned() {
		m.Folded = 1 // the record shows what the program pins
	}
}

// foldStubs moves stubs into the record if they take too much of the room.
func (p *planner) foldStubs(m *fold.Mark, stubs float64, size sizes) {
	o := p.options
	switch {
	case o.noStubs && o.noFold:
		m.Stubbed = 0
	case o.noStubs:
		m.Folded = m.Stubbed
	case o.noFold || stubs <= shareStubs*size.room:
	default:
		// The newest steps stay as stubs, which say more than a record.
		to := m.Folded + max(1, (m.Stubbed-m.Folded)*3/4)
		if p.notesExpected(m) {
			to = min(to, max(m.Folded, m.NotesTo)) // the rest has no notes yet
		}
		m.Folded = to
	}
}

// hasPinned reports whether the program pins a text that only a record can show.
func (p *planner) hasPinned() bool {
	o := p.options
	return o.Pinned != nil && !o.noFold && o.Pinned(p.rounds.Messages) != ""
}

// refilled reports whether the window is full again soon after the last edit, mostly of results of
// calls that were made before. m is the state of the request before an edit.
func (p *planner) refilled(m *fold.Mark) bool {
	since := len(p.rounds.Replies) - m.Edited
	if m.Edited == 0 || since > max(2, p.options.Keep) {
		return false
	}
	return p.ledger.MostlyRepeats(p.rounds, m)
}

// afterRefusal returns a request shorter than d, which the provider refused as too long. before is
// the mark of the last reply, and tries how many refusals there were before. ok is false if nothing
// can be put away.
func (p *planner) afterRefusal(d draft, before fold.Mark, tries int) (shorter draft, notices []*llm.Notice, ok bool) {
	m := d.mark

	// The last request that was answered shows what the provider accepts. If there is none, or its
	// size is refused too, half of the request is tried.
	if tries == 0 {
		m.RoomTokens = max(before.Tokens, p.sizes(&m).tokens(d.bytes)/2)
	} else {
		m.RoomTokens = d.mark.RoomTokens / 2
	}
	size := p.sizes(&m)
	size.low /= 2

	m.CutBytes = p.cutBytes(&m, size)
	p.stamp(&m, size)
	n := len(p.rounds.Replies)
	switch {
	case tries == 0:
		p.putAway(&m, d.bytes, size, 1)
	case n > 0 && !p.options.noFold:
		m.Folded = n - 1
		m.Stubbed = n - 1
	}

	e := p.render(m)
	if e.bytes >= d.bytes {
		return d, nil, false
	}
	e.mark.Why = "refused"
	refused := notice(NoticeWindowRefused,
		"the request was refused as too long; from here on the room is taken as %d tokens", m.RoomTokens)
	return e, []*llm.Notice{refused, editNotice(d, e, size)}, true
}

// markToStore returns the mark of the reply to d. before is the mark of the reply before, and
// counted what the provider counted for d; 0 means unknown. ok is false as long as there is nothing
// to remember.
func (p *planner) markToStore(d draft, before fold.Mark, counted int) (m fold.Mark, ok bool) {
	m = d.mark
	size := p.sizes(&m)
	if counted > 0 {
		m.Tokens = counted
		m.Bytes = d.bytes
	}

	// Replies of short conversations have no mark: no edit is near, and no earlier mark goes on.
	idle := before.Version == 0 && m.Stubbed+m.CutBytes+m.Shown+m.RoomTokens+m.Unhelpful == 0
	least := cmp.Or(size.tokens(int(size.room))/4, leastWindow)
	return m, !idle || size.tokens(d.bytes) >= least
}

// countOf returns the input tokens of a usage if they can be the tokens of the request d alone,
// otherwise 0. more are the further requests that the usage includes: then it may be a sum.
func (p *planner) countOf(d draft, used llm.Usage, more int) int {
	tokens := used.Input
	guess := p.sizes(&d.mark).tokens(d.bytes)
	switch {
	case tokens <= d.bytes/mostBytesPerToken || tokens >= 2*d.bytes:
		return 0
	case more > 0 && tokens >= guess*3/2:
		return 0
	}
	return tokens
}

// repeatNotices says that the model reads again what it has read, if new results do.
func (p *planner) repeatNotices() []*llm.Notice {
	all, last := p.ledger.CountRepeats(p.rounds)
	if last == 0 {
		return nil
	}
	n := notice(NoticeWindowRepeated,
		"%d of the new results repeat earlier results of the same calls; %d did in all", last, all)
	n.Data = fmt.Appendf(nil, `{"new":%d,"repeats":%d}`, last, all)
	return []*llm.Notice{n}
}

// notice returns a notice with the text that format makes.
func notice(code, format string, args ...any) *llm.Notice {
	return &llm.Notice{Code: code, Text: fmt.Sprintf(format, args...)}
}

// editNotice says what to has in place of from.
func editNotice(from, to draft, size sizes) *llm.Notice {
	m := &to.mark
	n := notice(NoticeWindowEdited,
		"the request has about %d tokens in place of %d: %d steps are shortened, and %d are in a record",
		size.tokens(to.bytes), size.tokens(from.bytes), m.Stubbed-m.Folded, m.Folded)
	n.Data, _ = json.Marshal(map[string]any{ // numbers and a string: no error is possible
		"before": size.tokens(from.bytes),
		"after":  size.tokens(to.bytes),
		"stubs":  m.Stubbed - m.Folded,
		"folded": m.Folded,
		"why":    m.Why,
	})
	return n
}

// thrashNotice says how far a run is from the end that its window is too small. unhelpful is the
// number of edits in turn that did not help.
func thrashNotice(unhelpful int) *llm.Notice {
	n := notice(NoticeWindowThrash, "the window is filled again and again by results that were read before: "+
		"%d edits in turn did not help, and the run ends at %d", unhelpful, fold.EndAt)
	warned := unhelpful >= fold.WarnAt
	if warned {
		n.Text += "; the model is warned"
	}
	n.Data, _ = json.Marshal(map[string]any{ // numbers and a bool: no error is possible
		"edits":  unhelpful,
		"ends":   fold.EndAt,
		"warned": warned,
	})
	return n
}

// limitError ends a run whose window is too small for its work.
type limitError struct{ text string }

var _ pawl.LimitError = (*limitError)(nil)

func (e *limitError) Error() string { return e.text }

// LimitReached returns the cause of pawl.StopLimit.
func (e *limitError) LimitReached() (name pawl.LimitName, cause string) { return "window", e.text }
