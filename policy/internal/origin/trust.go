package origin

// trust.go: what the grounds of a value consist of: owned, trusted, recorded, documented.

import (
	"math"
	"slices"
)

// owned reports whether a write of this run returned the id v, and no call had it before.
func (ix *Index) owned(v string) bool {
	return ix.own[v] != nil && !ix.wasArgument(v, ix.own[v])
}

// trusts reports whether a trusted result has v, and no call before it had v as an argument.
func (ix *Index) trusts(v string) bool {
	return ix.search(v).sure || ix.anySpot(v, func(s *spot) bool { return s.tool.trusted })
}

// vouches reports whether the record of s endorses v. inTexts are the running texts with v.
func (ix *Index) vouches(s *spot, inTexts *sighting, c *Conduct, r role, v string) bool {
	named := ix.named(s.record)
	switch {
	// What cannot be undone needs a record that the user named, of a trusted tool.
	case c.final:
		return named && s.tool.trusted
	case r == roleObject && s.identifies():
		return vouchesObject(c, s, named, inTexts.asID)

	// A party that also stands in running text may come from there.
	case r == roleParty && s.names() && !c.removes:
		certain := named || s.requested || addressKind(v) == ""
		return certain && !inTexts.stray
	}
	return false
}

// vouchesObject reports whether the record of s, which has the identifier of an object, endorses
// it. named means that the user named the record. asID means that a text calls the value an
// identifier, which may be an order: delete the file with id 13.
func vouchesObject(c *Conduct, s *spot, named, asID bool) bool {
	if c.removes {
		return named && !asID
	}
	asked := s.requested || !c.sends
	return named || asked && !asID
}

// named reports whether r, or an object around it, holds a text that the user said.
func (ix *Index) named(r *record) bool {
	_, ok := ix.nameOf(r)
	return ok
}

// nameOf returns the text of r, or of an object around it, that the user said.
func (ix *Index) nameOf(r *record) (name string, ok bool) {
	for ; r != nil; r = r.up {
		if i := slices.IndexFunc(r.texts, ix.said); i >= 0 {
			return r.texts[i], true
		}
	}
	return "", false
}

// identifies reports whether the field of s has an identifier.
func (s *spot) identifies() bool {
	switch s.noun {
	case "name", "key", "filename", "path":
		return true
	}
	return nounRole(s.noun) == roleObject
}

// names reports whether the field of s says who a person is, or where a message arrives.
func (s *spot) names() bool {
	return s.noun == "" || partyWords[s.noun] || identityWords[s.noun]
}

// soleInDocument reports whether v is the only address of its kind in the documents that the user
// named, and the user's words have a verb of c: the account of "pay the bill bill.txt". A second
// address, such as the address in an injected text, makes it a guess.
func (ix *Index) soleInDocument(c *Conduct, v string) bool {
	kind := addressKind(v)
	switch {
	case kind != kindMail && kind != kindAccount:
		return false
	case c.removes || ix.full || ix.strict:
		return false
	case !ix.search(v).doc || !ix.intendedFor(c, v):
		return false
	}

	another := func(a string) bool {
		return addressKind(a) == kind && bareLink(a) != bareLink(v) && !ix.said(a)
	}
	for i := range ix.texts {
		p := &ix.texts[i]
		if !p.named || p.tool.trusted {
			continue
		}
		found := p.list()
		// A list that is full may lack the second address.
		if len(found) == maxAddresses || slices.ContainsFunc(found, another) {
			return false
		}
	}
	return true
}

// list returns the first addresses of p, at most maxAddresses.
func (p *passage) list() []string {
	if !p.listed {
		p.listed = true
		p.addresses = addressesIn(p.text, maxAddresses)
	}
	return p.addresses
}

// intended reports whether the user's words have a verb of the tool, or a verb that means the same.
func (ix *Index) intended(c *Conduct) bool { return slices.ContainsFunc(c.intents(), ix.said) }

// intents returns the verbs by which a user asks for the act of the tool.
func (c *Conduct) intents() (verbs []string) {
	for _, group := range intents {
		ofTool := func(verb string) bool { return slices.Contains(c.verbs, verb) }
		if slices.ContainsFunc(group, ofTool) {
			verbs = append(verbs, group...)
		}
	}
	return verbs
}

// intendedFor reports whether the user asked for the act of c on a document that has v: to pay what
// the bill says, and not to mail a summary of it to others.
func (ix *Index) intendedFor(c *Conduct, v string) bool {
	verbs := c.intents()
	for i := range ix.texts {
		p := &ix.texts[i]
		if !p.named || find(p.text, bareLink(v), 0) < 0 {
			continue
		}
		if len(p.places) == 0 { // an attachment, which the words do not name by its place
			return ix.intended(c)
		}
		for _, words := range ix.words {
			asks := func(place string) bool { return actsOn(words, place, verbs) }
			if slices.ContainsFunc(p.places, asks) {
				return true
			}
		}
	}
	return false
}

// chose reports whether the user chose the party v of a call of c, by a word or by a document.
func (ix *Index) chose(c *Conduct, v string) bool {
	return ix.said(v) || ix.soleInDocument(c, v)
}

// Bounds of what a host may learn after something inside was read: the pages that are fetched from
// it for one message of the user, and the bits that their choice reveals.
const (
	maxPages = 3
	maxBits  = 12
)

// saidHost reports whether the user said an address at the host h.
func (ix *Index) saidHost(h string) bool {
	return slices.ContainsFunc(ix.words, func(words string) bool {
		at := func(a string) bool { return addressKind(a) == kindLink && host(a) == h }
		return slices.ContainsFunc(addressesIn(words, maxAddresses), at)
	})
}

// readInside reports whether a result that is not public was read, here or around this agent.
func (ix *Index) readInside() bool {
	ix.load()
	if slices.ContainsFunc(ix.sources, func(s *source) bool { return s.inside }) {
		return true
	}
	if slices.ContainsFunc(ix.texts, func(p passage) bool { return p.seq < 0 }) {
		return true // a message of others, or the task of another agent
	}
	return ix.full || outside(ix, (*Index).readInside)
}

// overBudget reports whether the reads of pages of v's host, for the last message of the user, use
// up what that host may learn. Each page is a choice among the pages that texts of others list.
func (ix *Index) overBudget(v string) bool {
	h := host(v)
	visited := map[string]bool{}
	for _, s := range ix.sources {
		for _, a := range s.visits {
			if s.turn == len(ix.words) && host(a) == h && !ix.said(a) {
				visited[bareLink(a)] = true
			}
		}
	}
	if visited[bareLink(v)] {
		return false // again
	}
	if len(visited) >= maxPages {
		return true
	}

	listed := map[string]bool{}
	for i := range ix.texts {
		all := ix.texts[i].list()
		if len(all) == maxAddresses {
			return true // there may be any number
		}
		for _, a := range all {
			if host(a) == h {
				listed[bareLink(a)] = true
			}
		}
	}
	// A choice among n pages can spell log2(n) bits of what was read.
	bits := math.Log2(float64(max(1, len(listed))))
	return bits*float64(len(visited)+1) > maxBits
}

// complete reports whether the address v stands as a whole in the conversation.
func (ix *Index) complete(v string) bool { return ix.said(v) || stands(ix.fromWhole(v)) }

// onlyProse reports whether v stands only in untrusted running text, outside of the documents that
// the user named.
func (ix *Index) onlyProse(v string) bool {
	if ix.said(v) {
		return false
	}
	inTexts := ix.search(v)
	if !inTexts.stray {
		return false
	}
	return !inTexts.doc && !inTexts.sure && !ix.standsAlone(v)
}
