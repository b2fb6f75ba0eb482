package origin

// lookup.go: where a value stands in what a conversation has said.

import (
	"iter"
	"slices"
	"strings"
)

// sighting is where a value stands in passages. It grows with the index: each passage is searched
// once for a value.
type sighting struct {
	nextPassage int      // the first passage that was not searched
	nextSource  int      // the first source whose call had the value, or that was not searched
	parts       []string // the words of the value; set with the first search of sources

	// What the passages before nextPassage say.
	where string // the first passage with the value, in words; empty means none
	first int    // its place in Index.texts
	stray bool   // it stands in the text of an untrusted result
	asID  bool   // a text names it as an identifier
	doc   bool   // it stands in a document that the user named
	sure  bool   // it stands in the text of a trusted result
	fresh bool   // it stands in a text before a call had it
	local bool   // and that text is of a call that went to no address
}

// outside asks the index of the conversation around ix, under its lock. Without one it returns the
// zero value.
func outside[T any](ix *Index, ask func(outer *Index) T) (answer T) {
	if ix.outer == nil {
		return answer
	}
	ix.outer.mu.Lock()
	defer ix.outer.mu.Unlock()
	return ask(ix.outer)
}

// said reports whether the user's words have v.
func (ix *Index) said(v string) bool { return ix.saidIn(ix.words, v) }

// saidIn reports whether words, or the user's words of the conversation around this one, have v.
func (ix *Index) saidIn(words []string, v string) bool {
	return outside(ix, func(outer *Index) bool { return outer.said(v) }) || anyHas(words, v)
}

// anyHas reports whether one of words has v.
func anyHas(words []string, v string) bool {
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

// add adds p, the next passage, which has the value. fresh means that no call before it had the
// value.
func (s *sighting) add(p *passage, fresh bool) {
	if s.where == "" {
		s.where = p.describe()
		s.first = s.nextPassage
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

// describe says in words where the text of s stands.
func (s *source) describe() string {
	if s.seq < 0 {
		return s.tool.name
	}
	return "text that " + s.tool.name + " returned"
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
