// Package origin says where a value of a conversation comes from, and whether the user stands behind
// it. It reads the messages of a conversation into an Index, and what it needs of a tool into a
// Conduct. Index.Judge then says why a call needs a question. The package knows nothing of approvals,
// modes and middleware: package policy decides with its answers.
package origin

// index.go: what a conversation has said: the user's words, records, and untrusted text.

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl/llm"
)

// Bounds of an index. Text beyond them is untrusted, and no record counts any more.
const (
	maxText      = 32 << 20 // bytes of results
	maxSpots     = 200_000
	maxSame      = 64   // places of one value
	maxAddresses = 1000 // of one document
)

// Index is what the messages of a conversation say. It grows with the conversation: each message is
// read once. All texts in it are plain.
type Index struct {
	outer *Index // of the conversation around a nested agent; nil means none
	inner bool   // the task of the agent comes from another agent

	mu      sync.Mutex
	msgs    []llm.Message
	calls   map[string]llm.ToolCall // of the last reply, by ID
	words   []string                // the user's
	own     map[string]*origin      // the ids that writes returned
	origins []*origin               // of the results that were read
	all     []spot                  // in their order
	last    map[string]int          // the last spot of a value in all
	texts   []passage
	private []string
	unread  []unread
	scanned int  // how many of them have no private value
	tainted bool // an untrusted result is there
	full    bool
	bytes   atomic.Int64
	seen    map[string]*sighting
}

// origin is the result that a value stands in.
type origin struct {
	of  *Conduct
	seq int // its place in index.origins
	// The names and values of the arguments of the call that the user did not say.
	args  []string
	vast  bool // there are more
	keyed bool // the user said all of them
	web   bool // the call went to an address

	document bool // the call reads one document, by its path or address
	named    bool // and the user said that path or address
}

// spot is a place of a short value in a result.
type spot struct {
	*origin
	noun          string  // of its field
	record        *record // nil means an item of a plain text
	before, count int     // the spot of the same value before it, or -1, and how many there are
}

// spots yields the places of v, the last first, except those after a call that had v as an
// argument: a tool may return what the model gave it, then or later.
func (ix *Index) spots(v string) iter.Seq[*spot] {
	return func(yield func(*spot) bool) {
		ix.load()
		at, ok := ix.last[v]
		for ok && at >= 0 && (ix.given(v, ix.all[at].origin) || yield(&ix.all[at])) {
			at = ix.all[at].before
		}
	}
}

// standsAlone reports whether v is a whole value of a result.
func (ix *Index) standsAlone(v string) bool { return ix.anySpot(v, func(*spot) bool { return true }) }

// anySpot reports whether f holds for a place of v.
func (ix *Index) anySpot(v string, f func(*spot) bool) bool {
	for s := range ix.spots(v) {
		if f(s) {
			return true
		}
	}
	return false
}

// given reports whether the call of o, or one before it, had v as an argument, as a whole or in
// parts. v has the origin of that argument then.
func (ix *Index) given(v string, o *origin) bool {
	if o.of.pure && !o.of.trusted {
		return true
	}
	s := ix.sighting(v)
	if s.asked == 0 {
		s.parts = strings.FieldsFunc(bareLink(v), func(r rune) bool { return !wordRune(r) || r == '@' })
	}
	for ; s.asked <= o.seq && !ix.origins[s.asked].gave(bareLink(v), s.parts); s.asked++ {
	}
	return s.asked <= o.seq
}

// standsIn reports whether v is a whole value of the result o.
func (ix *Index) standsIn(v string, o *origin) bool {
	at, ok := ix.last[v]
	for ; ok && at >= 0; at = ix.all[at].before {
		if ix.all[at].origin == o {
			return true
		}
	}
	return false
}

func (o *origin) gave(v string, parts []string) bool {
	lacks := func(w string) bool {
		return !slices.ContainsFunc(o.args, func(a string) bool {
			return len(w) > 4 && strings.Contains(a, w) || find(a, w, 0) >= 0
		})
	}
	return o.vast || !lacks(v) || len(parts) > 1 && !slices.ContainsFunc(parts, lacks)
}

// owned reports whether a write of this run returned the id v, and no call had it before.
func (ix *Index) owned(v string) bool { return ix.own[v] != nil && !ix.given(v, ix.own[v]) }

// record is an object of a result.
type record struct {
	texts []string
	up    *record // the object with this object as a member; nil for an element of an array
}

// passage is running text.
type passage struct {
	*origin
	text   string
	shadow bool // the text of a result whose data are indexed, too

	listed    bool // addresses is known
	addresses []string
}

// sighting is where a value stands in passages.
type sighting struct {
	next  int // the first passage that was not searched
	asked int // the first origin whose call had the value, or that was not searched
	parts []string
	tool  string // of the first passage with the value; empty means none
	stray bool   // it stands in the text of an untrusted result
	asID  bool   // a text names it as an identifier
	doc   bool   // it stands in a document that the user named
	sure  bool   // it stands in the text of a trusted result
	fresh bool   // it stands in a text before a call had it
	local bool   // and that text is of a call that went to no address
}

// NewIndex returns the index of a conversation without messages. outer is the index of the
// conversation around the agent; nil means that there is none, or that it is not known. inner means
// that the task of the agent comes from another agent. words count as the user's.
func NewIndex(outer *Index, inner bool, words string) *Index {
	ix := &Index{outer: outer, inner: inner, own: map[string]*origin{}, last: map[string]int{},
		seen: map[string]*sighting{}}
	ix.tainted = inner && (outer == nil || outer.locked(func() bool { return outer.tainted }))
	if words != "" {
		ix.words = append(ix.words, plainText(words))
	}
	return ix
}

// Begins reports whether the messages of ix are the first of msgs. Texts of one process are shared,
// so that equal ones compare without being read.
func (ix *Index) Begins(msgs []llm.Message) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.msgs) > len(msgs) || len(ix.msgs) == 0 {
		return false
	}
	return slices.EqualFunc(ix.msgs, msgs[:len(ix.msgs)], func(a, b llm.Message) bool {
		return a.Role == b.Role && slices.EqualFunc(a.Parts, b.Parts, samePart)
	})
}

func samePart(a, b llm.Part) bool {
	switch a := a.(type) {
	case llm.Text:
		b, ok := b.(llm.Text)
		return ok && a.Text == b.Text
	case llm.ToolCall:
		b, ok := b.(llm.ToolCall)
		return ok && a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Args, b.Args)
	case llm.ToolResult:
		b, ok := b.(llm.ToolResult)
		return ok && a.CallID == b.CallID && a.IsError == b.IsError && bytes.Equal(a.Data, b.Data) &&
			slices.EqualFunc(a.Parts, b.Parts, samePart)
	}
	return true // reasoning and media are not read
}

// Bytes returns the size of the texts that were read.
func (ix *Index) Bytes() int { return int(ix.bytes.Load()) }

// Distrust makes the conversation count as one with an untrusted result, for a conversation whose
// messages are not known.
func (ix *Index) Distrust() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.tainted = true
}

// Read reads the messages that are new. tool returns the conduct of a tool by its name.
func (ix *Index) Read(msgs []llm.Message, tool func(string) *Conduct) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(msgs) <= len(ix.msgs) {
		return // another call of the step was first
	}
	for _, m := range msgs[len(ix.msgs):] {
		switch m.Role {
		case llm.RoleUser, llm.RoleSystem, llm.RoleDeveloper:
			text := m.Text()
			ix.bytes.Add(int64(len(text)))
			if ix.inner && m.Role == llm.RoleUser {
				o := &origin{seq: -1, of: &Conduct{name: "the agent that gave the task"}}
				ix.texts = append(ix.texts, passage{origin: o, text: plainText(text)})
			} else {
				ix.words = append(ix.words, plainText(text))
			}
		case llm.RoleAssistant:
			ix.calls = map[string]llm.ToolCall{}
			for _, c := range m.Calls() {
				ix.calls[c.ID] = c
			}
		case llm.RoleTool:
			for _, p := range m.Parts {
				if r, ok := p.(llm.ToolResult); ok {
					ix.admit(r, tool)
				}
			}
		}
	}
	ix.msgs = msgs
}

// said reports whether the user's words have v.
func (ix *Index) said(v string) bool { return ix.saidIn(ix.words, v) }

func (ix *Index) saidIn(words []string, v string) bool {
	if ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.said(v) }) {
		return true
	}
	v = bareLink(v)
	return slices.ContainsFunc(words, func(w string) bool { return find(w, v, 0) >= 0 })
}

// locked calls f with the lock of ix. An index locks only those around it, so that locks are
// always taken in the same order.
func (ix *Index) locked(f func() bool) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return f()
}

func (ix *Index) sighting(v string) *sighting {
	s := ix.seen[v]
	if s == nil {
		if len(ix.seen) > 10_000 {
			clear(ix.seen)
		}
		s = &sighting{}
		ix.seen[v] = s
	}
	return s
}

// see returns where v stands in passages.
func (ix *Index) see(v string) *sighting {
	ix.load()
	s, bare := ix.sighting(v), bareLink(v)
	for ; s.next < len(ix.texts); s.next++ {
		p := &ix.texts[s.next]
		at := find(p.text, bare, 0)
		if at < 0 || p.shadow && ix.standsIn(v, p.origin) {
			continue
		}
		fresh := !ix.given(v, p.origin)
		s.fresh, s.local = s.fresh || fresh, s.local || fresh && !p.web
		if s.tool == "" {
			s.tool = p.of.name
		}
		if p.of.trusted {
			s.sure = s.sure || fresh
			continue
		}
		s.stray = true
		s.doc = s.doc || p.named && fresh
		for ; at >= 0 && !s.asID; at = find(p.text, bare, at+1) {
			s.asID = identifies(p.text[max(0, at-16):at])
		}
	}
	return s
}

// identifies reports whether the text before a value names it as an identifier: with id 13.
func identifies(before string) bool {
	return find(before, "id", 0) >= 0 || find(before, "ids", 0) >= 0 || strings.HasSuffix(before, "#") ||
		find(before, "number", 0) >= 0
}

// named reports whether r holds a text that the user said.
func (ix *Index) named(r *record) bool {
	for ; r != nil; r = r.up {
		if slices.ContainsFunc(r.texts, ix.said) {
			return true
		}
	}
	return false
}

// trusts reports whether a trusted result has v, other than as the echo of its own call.
func (ix *Index) trusts(v string) bool {
	return ix.see(v).sure || ix.anySpot(v, func(s *spot) bool { return s.of.trusted })
}

// endorsed reports whether v may have the role r in a call of c.
func (ix *Index) endorsed(c *Conduct, r role, v string) bool {
	if ix.said(v) {
		return true
	}
	ix.load()
	if r == roleObject && ix.owned(v) || !c.final && !c.takes && ix.trusts(v) {
		return true
	}
	if ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.endorsed(c, r, v) }) {
		return true
	}
	where := ix.see(v)
	for s := range ix.spots(v) {
		if s.record == nil || ix.full {
			break
		}
		n := s.noun
		id := nounRole(n) == roleObject || n == "name" || n == "key" || n == "filename" || n == "path"
		named := ix.named(s.record)
		switch {
		case c.final:
			if named && s.of.trusted {
				return true
			}
		case r == roleObject && id && c.takes:
			if named && !where.asID {
				return true
			}
		case r == roleObject && id:
			if named || !where.asID && (s.keyed || !c.out) {
				return true
			}
		case r == roleParty && !c.takes && !where.stray && (partyWords[n] || identityWords[n] || n == ""):
			if named || s.keyed || addressKind(v) == "" {
				return true
			}
		}
	}
	return r == roleParty && ix.soleInDocument(c, v)
}

// soleInDocument reports whether v is the only address of its kind in the documents that the user
// named, and the user's words have a verb of c: the account of "pay the bill bill.txt". A second
// address, such as the address in an injected text, makes it a guess.
func (ix *Index) soleInDocument(c *Conduct, v string) bool {
	kind := addressKind(v)
	if kind != kindMail && kind != kindAccount || c.takes || ix.full || !ix.see(v).doc || !ix.intended(c) {
		return false
	}
	for i := range ix.texts {
		p := &ix.texts[i]
		if !p.named || p.of.trusted {
			continue
		}
		if !p.listed {
			p.listed, p.addresses = true, addressesIn(p.text, maxAddresses)
		}
		if len(p.addresses) == maxAddresses || slices.ContainsFunc(p.addresses, func(a string) bool {
			return addressKind(a) == kind && bareLink(a) != bareLink(v) && !ix.said(a)
		}) {
			return false
		}
	}
	return true
}

// endorsedAmount reports whether a final act may have the amount s: the user said it, or it stands
// in a record that the user named, or in a document that the user named for such an act.
func (ix *Index) endorsedAmount(c *Conduct, s string) bool {
	n, ok := amount(s)
	if !ok {
		return false
	}
	if slices.ContainsFunc(ix.words, func(w string) bool { return hasAmount(w, n) }) {
		return true
	}
	if ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.endorsedAmount(c, s) }) {
		return true
	}
	if ix.anySpot(plainText(s), func(s *spot) bool { return s.record != nil && ix.named(s.record) }) {
		return true
	}
	return ix.intended(c) &&
		slices.ContainsFunc(ix.texts, func(p passage) bool {
			return p.named && hasAmount(p.text, n) && !ix.given(plainText(s), p.origin)
		})
}

// reachable reports whether a read may go to the address v. An address that stands as a whole in
// the conversation reveals only that it was read. An address that the model has put together
// may carry data, unless the user said its host.
func (ix *Index) reachable(v string) bool { return ix.said(host(v)) || ix.complete(v) }

// complete reports whether the address v stands as a whole in the conversation.
func (ix *Index) complete(v string) bool {
	return ix.said(v) || ix.standsAlone(v) || ix.owned(v) || ix.trusts(v) || ix.see(v).fresh ||
		ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.complete(v) })
}

// onlyProse reports whether v stands only in untrusted running text, outside of the documents that
// the user named.
func (ix *Index) onlyProse(v string) bool {
	if ix.said(v) {
		return false
	}
	s := ix.see(v)
	return s.stray && !s.doc && !ix.standsAlone(v) && !s.sure
}

// leaks reports the addresses and the private values in a text that leaves, as far as the user did
// not say them.
func (ix *Index) leaks(a Argument, report func(Argument, string)) {
	text := a.plain
	const most = 200
	found := addressesIn(text, most)
	if len(found) == most {
		report(a, "has more than 200 addresses")
	}
	for _, v := range found {
		if addressKind(v) != "" && !ix.said(v) && !ix.trusts(v) && !ix.owned(v) &&
			(ix.outer == nil || !ix.outer.locked(func() bool { return ix.outer.trusts(v) || ix.outer.owned(v) })) {
			report(a, fmt.Sprintf("has the address %q, which %s", clipped(v), ix.where(v)))
		}
	}
	for ; ix.scanned < len(ix.unread); ix.scanned++ {
		if ix.unread[ix.scanned].private() {
			ix.load()
			break
		}
	}
	for i, v := range ix.private {
		if i == maxSame*maxSame {
			break
		}
		if find(text, v, 0) >= 0 && !ix.said(v) {
			report(a, "has a private value")
			break
		}
	}
}

// where says where v stands, for a question.
func (ix *Index) where(v string) string {
	if tool := ix.see(v).tool; tool != "" {
		return "stands only in text that " + tool + " returned"
	}
	for s := range ix.spots(v) {
		return "stands only in a record that " + s.of.name + " returned and the user's words do not name"
	}
	if _, ok := ix.last[v]; ok {
		return "stands in a result only after a call had it as an argument"
	}
	return "stands neither in the user's words nor in a result"
}
