package origin

// index.go: what a conversation has said: the user's words, records, and untrusted text.

import (
	"bytes"
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
	maxSame      = 64     // spots of one value
	maxNames     = 64     // texts of one record
	maxAddresses = 1000   // of one document
	maxSightings = 10_000 // values that are remembered
)

// Index is what the messages of a conversation say. It grows with the conversation: each message is
// read once.
//
// Exported methods lock mu; the others need it locked. An index asks the index around it, whose
// lock is then taken too, and never the other way.
type Index struct {
	outer *Index // of the conversation around a nested agent; nil means none
	inner bool   // the task of the agent comes from another agent

	mu      sync.Mutex
	msgs    []llm.Message           // that were read
	calls   map[string]llm.ToolCall // of the last reply, by ID
	words   []string                // the user's
	tainted bool                    // an untrusted result is there: before it, nothing is judged
	full    bool                    // the bounds are passed
	bytes   atomic.Int64

	unread  []unread // the results that no value was looked for in
	scanned int      // how many of them have no private value

	// What load has read of the results.
	sources []*source          // in their order
	own     map[string]*source // the ids that writes returned
	spots   []spot             // in their order
	last    map[string]int     // the index in spots of the last spot of a value
	texts   []passage
	private []string // values that must not leave

	seen map[string]*sighting // by value
}

// source is the result that a value stands in.
type source struct {
	tool *Conduct
	seq  int // its place in Index.sources

	// The names and values of the arguments of the call that the user did not say.
	args      []string
	truncated bool // there are more
	requested bool // the user said all of them
	web       bool // the call went to an address

	document bool // the call reads one document, by its path or address
	named    bool // and the user said that path or address
}

// spot is a place of a short value in a result.
type spot struct {
	*source
	noun   string  // of its field
	record *record // nil means an item of a plain text
	before int     // the spot of the same value before this one; -1 means none
	count  int     // how many spots of the value are before this one
}

// record is an object of a result.
type record struct {
	texts []string
	up    *record // the object with this object as a member; nil for an element of an array
}

// passage is running text of a source.
type passage struct {
	*source
	text   string
	shadow bool // the text of a result whose data are indexed, too

	listed    bool // addresses is known
	addresses []string
}

// sighting is where a value stands in passages. It grows with the index: each passage is searched
// once for a value.
type sighting struct {
	nextPassage int      // the first passage that was not searched
	nextSource  int      // the first source whose call had the value, or that was not searched
	parts       []string // the words of the value; set with the first search of sources

	// What the passages before nextPassage say.
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
	ix := &Index{
		outer: outer,
		inner: inner,
		own:   map[string]*source{},
		last:  map[string]int{},
		seen:  map[string]*sighting{},
	}
	ix.tainted = inner && (outer == nil || outer.locked(func() bool { return outer.tainted }))
	if words != "" {
		ix.words = append(ix.words, plainText(words))
	}
	return ix
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

// Begins reports whether the messages of ix are the first of msgs. Texts of one process are shared,
// so that equal ones compare without being read.
func (ix *Index) Begins(msgs []llm.Message) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.msgs) > len(msgs) || len(ix.msgs) == 0 {
		return false
	}
	return slices.EqualFunc(ix.msgs, msgs[:len(ix.msgs)], func(a, b llm.Message) bool {
		return a.Role == b.Role && slices.EqualFunc(a.Parts, b.Parts, equalPart)
	})
}

// equalPart reports whether a and b say the same to an index. It does not read reasoning and media.
func equalPart(a, b llm.Part) bool {
	switch a := a.(type) {
	case llm.Text:
		b, ok := b.(llm.Text)
		return ok && a.Text == b.Text
	case llm.ToolCall:
		b, ok := b.(llm.ToolCall)
		return ok && equalCall(a, b)
	case llm.ToolResult:
		b, ok := b.(llm.ToolResult)
		return ok && equalResult(a, b)
	}
	return true
}

func equalCall(a, b llm.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Args, b.Args)
}

func equalResult(a, b llm.ToolResult) bool {
	if a.CallID != b.CallID || a.IsError != b.IsError {
		return false
	}
	return bytes.Equal(a.Data, b.Data) && slices.EqualFunc(a.Parts, b.Parts, equalPart)
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
			ix.readWords(m)
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

// readWords reads a message that is no reply. The task that another agent gave is untrusted text.
func (ix *Index) readWords(m llm.Message) {
	text := m.Text()
	ix.bytes.Add(int64(len(text)))
	if !ix.inner || m.Role != llm.RoleUser {
		ix.words = append(ix.words, plainText(text))
		return
	}
	task := &source{seq: -1, tool: &Conduct{name: "the agent that gave the task"}}
	ix.texts = append(ix.texts, passage{source: task, text: plainText(text)})
}

// locked calls f with the lock of ix, for the index of a conversation within this one.
func (ix *Index) locked(f func() bool) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return f()
}

// said reports whether the user's words have v.
func (ix *Index) said(v string) bool { return ix.saidIn(ix.words, v) }

// saidIn reports whether words, or the user's words of the conversation around this one, have v.
func (ix *Index) saidIn(words []string, v string) bool {
	if ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.said(v) }) {
		return true
	}
	v = bareLink(v)
	return slices.ContainsFunc(words, func(w string) bool { return find(w, v, 0) >= 0 })
}

// spotsOf yields the places of v, the last first, except those after a call that had v as an
// argument: a tool may return what the model gave it, then or later.
func (ix *Index) spotsOf(v string) iter.Seq[*spot] {
	return func(yield func(*spot) bool) {
		ix.load()
		at, ok := ix.last[v]
		if !ok {
			return
		}
		for ; at >= 0; at = ix.spots[at].before {
			s := &ix.spots[at]
			if !ix.wasArgument(v, s.source) && !yield(s) {
				return
			}
		}
	}
}

// anySpot reports whether f holds for a place of v.
func (ix *Index) anySpot(v string, f func(*spot) bool) bool {
	for s := range ix.spotsOf(v) {
		if f(s) {
			return true
		}
	}
	return false
}

// standsAlone reports whether v is a whole value of a result.
func (ix *Index) standsAlone(v string) bool {
	return ix.anySpot(v, func(*spot) bool { return true })
}

// standsIn reports whether v is a whole value of the result of s.
func (ix *Index) standsIn(v string, s *source) bool {
	at, ok := ix.last[v]
	for ; ok && at >= 0; at = ix.spots[at].before {
		if ix.spots[at].source == s {
			return true
		}
	}
	return false
}

// wasArgument reports whether the call of s, or one before it, had v as an argument, as a whole or
// in parts. v has the origin of that argument then.
func (ix *Index) wasArgument(v string, s *source) bool {
	if s.tool.pure && !s.tool.trusted {
		return true
	}

	known := ix.sightingOf(v)
	bare := bareLink(v)
	if known.nextSource == 0 {
		known.parts = strings.FieldsFunc(bare, func(r rune) bool { return !wordRune(r) || r == '@' })
	}

	// It stays at the first source whose call had v.
	for known.nextSource <= s.seq && !ix.sources[known.nextSource].hadArgument(bare, known.parts) {
		known.nextSource++
	}
	return known.nextSource <= s.seq
}

// hadArgument reports whether the call of s had the value v, or all of its parts, as arguments that
// the user did not say.
func (s *source) hadArgument(v string, parts []string) bool {
	// A part of a word of an argument counts too, unless it is so short that many words have it.
	lacks := func(w string) bool {
		return !slices.ContainsFunc(s.args, func(arg string) bool {
			return len(w) > 4 && strings.Contains(arg, w) || find(arg, w, 0) >= 0
		})
	}
	if s.truncated || !lacks(v) {
		return true
	}
	return len(parts) > 1 && !slices.ContainsFunc(parts, lacks)
}

// sightingOf returns what is known about v, which may be nothing yet. search brings it up to date.
func (ix *Index) sightingOf(v string) *sighting {
	s := ix.seen[v]
	if s == nil {
		if len(ix.seen) > maxSightings {
			clear(ix.seen)
		}
		s = &sighting{}
		ix.seen[v] = s
	}
	return s
}

// search returns where v stands in passages.
func (ix *Index) search(v string) *sighting {
	ix.load()
	s := ix.sightingOf(v)
	bare := bareLink(v)
	for ; s.nextPassage < len(ix.texts); s.nextPassage++ {
		p := &ix.texts[s.nextPassage]
		at := find(p.text, bare, 0)
		if at < 0 {
			continue
		}

		// The text of a result repeats its data. A value of the data is no running text.
		if p.shadow && ix.standsIn(v, p.source) {
			continue
		}

		fresh := !ix.wasArgument(v, p.source)
		s.add(p, fresh)
		for ; !p.tool.trusted && !s.asID && at >= 0; at = find(p.text, bare, at+1) {
			s.asID = identifies(p.text[max(0, at-16):at])
		}
	}
	return s
}

// add adds a passage with the value. fresh means that no call before it had the value.
func (s *sighting) add(p *passage, fresh bool) {
	if s.tool == "" {
		s.tool = p.tool.name
	}
	if !p.tool.trusted {
		s.stray = true
	}
	if !fresh {
		return
	}

	s.fresh = true
	if !p.web {
		s.local = true
	}
	switch {
	case p.tool.trusted:
		s.sure = true
	case p.named:
		s.doc = true
	}
}

// identifies reports whether the text before a value names it as an identifier: with id 13.
func identifies(before string) bool {
	for _, noun := range []string{"id", "ids", "number"} {
		if find(before, noun, 0) >= 0 {
			return true
		}
	}
	return strings.HasSuffix(before, "#")
}
