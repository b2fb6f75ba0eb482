package origin

// index.go: what a conversation has said: the user's words, records, and untrusted text.

import (
	"bytes"
	"slices"
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
	asked   string                  // the last of them, for questions; empty means none
	tainted bool                    // a part of others is there: before it, nothing is judged
	foreign int                     // bytes of the texts of others that are harmless so far
	full    bool                    // the bounds are passed
	strict  bool                    // records and documents endorse no party
	sealed  string                  // the tool of the first sealed result; empty means none
	unheard bool                    // a result beyond the bounds is private
	bytes   atomic.Int64

	cut map[string]*Conduct // the tools of results that were too large, by the key of the call

	unread  []unread // the results that no value was looked for in
	scanned int      // how many of them have no private value

	// What load has read of the results.
	sources []*source           // in their order
	own     map[string]*source  // the ids that writes returned
	reached map[destination]int // when calls of this run reached it, in texts of the user
	spots   []spot              // in their order
	last    map[string]int      // the index in spots of the last spot of a value
	texts   []passage
	private []string        // values of words that must not leave
	secrets map[string]bool // tokens that must not leave

	seen map[string]*sighting // by value
}

// source is the result that a value stands in.
type source struct {
	tool *Conduct
	call string // the ID of its call; empty means that it is a message
	seq  int    // its place in Index.sources

	// The names and values of the arguments of the call that the user did not say.
	args      []string
	truncated bool     // there are more
	requested bool     // the user said all of them
	web       bool     // the call went to an address
	visits    []string // the addresses that the call went to
	inside    bool     // its result is not public: it came from no address, and no call made it
	turn      int      // how many texts of the user stood before it

	document bool     // the call reads one document, by its path or address
	named    bool     // and the user said that path or address
	places   []string // these paths and addresses
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
	raw    string // as it was written; empty means as text
	text   string // plain
	shadow bool   // the text of a result whose data are indexed, too

	listed    bool // addresses is known
	addresses []string
}

// NewIndex returns the index of a conversation without messages. outer is the index of the
// conversation around the agent; nil means that there is none, or that it is not known. inner means
// that the task of the agent comes from another agent. words count as the user's.
func NewIndex(outer *Index, inner bool, words string) *Index {
	ix := &Index{
		outer: outer,
		inner: inner,
		own:   map[string]*source{},

		reached: map[destination]int{},
		last:    map[string]int{},
		cut:     map[string]*Conduct{},

		secrets: map[string]bool{},
		seen:    map[string]*sighting{},
	}
	ix.tainted = inner && (outer == nil || outside(ix, func(outer *Index) bool { return outer.tainted }))
	if words != "" {
		ix.words = append(ix.words, plainText(words))
	}
	return ix
}

// AddForeign adds a text that others wrote, which stands before the conversation. what says in
// words where it stands.
func (ix *Index) AddForeign(what, text string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.addForeign(what, text, false)
	ix.taint(text)
}

// BeStrict makes records and documents endorse no party.
func (ix *Index) BeStrict() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.strict = true
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

// equalPart reports whether a and b say the same to an index. It does not read reasoning, and of
// media only the label.
func equalPart(a, b llm.Part) bool {
	switch a := a.(type) {
	case llm.Text:
		b, ok := b.(llm.Text)
		return ok && a.Text == b.Text && equalLabel(a.Label, b.Label)
	case llm.Media:
		b, ok := b.(llm.Media)
		return ok && equalLabel(a.Label, b.Label)
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

// equalResult compares all that an index reads of a result. The key says that the call ran here,
// and the label who may know the result: a client's copy of a conversation has neither.
func equalResult(a, b llm.ToolResult) bool {
	switch {
	case a.CallID != b.CallID || a.Key != b.Key:
		return false
	case a.IsError != b.IsError || a.LeftOut != b.LeftOut:
		return false
	case !equalLabel(a.Label, b.Label):
		return false
	}
	return bytes.Equal(a.Data, b.Data) && slices.EqualFunc(a.Parts, b.Parts, equalPart)
}

func equalLabel(a, b *llm.Label) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.By == b.By && slices.Equal(a.From, b.From) && slices.Equal(a.Readers, b.Readers)
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
			ix.taintBy(m.Parts)
			// Results refer to the last reply only, and some models use the ids again.
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

// readWords reads a message that is no reply. Only the user's own words and the operator's endorse:
// the task that another agent gave, and what the user has from others, is untrusted text.
func (ix *Index) readWords(m llm.Message) {
	inner := ix.inner && m.Role == llm.RoleUser
	ix.taintBy(m.Parts)
	for _, p := range m.Parts {
		t, ok := p.(llm.Text)
		if !ok {
			continue
		}
		ix.bytes.Add(int64(len(t.Text)))
		by := author(t.Label)
		switch {
		case inner:
			ix.addForeign("the task that another agent gave", t.Text, false)
		case by == llm.Typed:
			own, quoted := ownWords(t.Text)
			ix.words = append(ix.words, plainText(own))
			ix.asked = oneLine(own, maxSentence)
			if quoted != "" {
				ix.taint(quoted)
				ix.addForeign("the user's attachment", quoted, true)
			}
		case by == llm.Operator:
			ix.words = append(ix.words, plainText(t.Text))
		case by == llm.Attached:
			ix.addForeign("the user's attachment", t.Text, true)
		default:
			ix.addForeign("a message that is not the user's own", t.Text, false)
		}
	}
}

// addForeign adds a text of a message that others wrote. named means that the user chose it.
func (ix *Index) addForeign(what, text string, named bool) {
	s := &source{seq: -1, tool: &Conduct{name: what}, document: named, named: named}
	ix.texts = append(ix.texts, passage{source: s, raw: text, text: plainText(text)})
}

// author returns the author of a part with the label l.
func author(l *llm.Label) llm.Author {
	if l == nil {
		return llm.Stranger
	}
	return l.By
}

// taintBy notes the parts that others wrote. Media shows any text, so that it counts at once.
func (ix *Index) taintBy(parts []llm.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if author(p.Label) < llm.Trusted {
				ix.taint(p.Text)
			}
		case llm.Media:
			if author(p.Label) < llm.Trusted {
				ix.tainted = true
			}
		}
	}
}

// harmless is the number of bytes, over the whole conversation, in which texts of others ask for
// nothing, unless one of them has an address.
const harmless = 16

// taint notes a text of others. Short texts add up: an order may come in pieces.
func (ix *Index) taint(text string) {
	ix.foreign += len(text)
	if ix.foreign > harmless || len(addressesIn(plainText(text), 1)) > 0 {
		ix.tainted = true
	}
}
