package origin

// trust.go: the grounds on which the user stands behind a value.

import (
	"slices"
)

// endorsed reports whether v may have the role r in a call of c: whether the user stands behind v,
// and not only a text that someone else wrote. One ground is enough; a call with a value that has
// none gets a question. TestEndorsed has a row for each ground, and one for each part of it.
func (ix *Index) endorsed(c *Conduct, r role, v string) bool {
	// Most values are the user's own words. All other grounds need every result.
	if ix.said(v) {
		return true
	}
	ix.load()

	undoable := !c.final && !c.removes
	switch {
	case r == roleObject && ix.owned(v): // a write of this run returned it
	case undoable && ix.trusts(v): // a trusted tool wrote it
	case ix.endorsedOutside(c, r, v):
	case ix.recorded(c, r, v):
	case r == roleParty && ix.soleInDocument(c, v):
	default:
		return false
	}
	return true
}

// owned reports whether a write of this run returned the id v, and no call had it before.
func (ix *Index) owned(v string) bool {
	return ix.own[v] != nil && !ix.wasArgument(v, ix.own[v])
}

// trusts reports whether a trusted result has v, and no call before it had v as an argument.
func (ix *Index) trusts(v string) bool {
	return ix.search(v).sure || ix.anySpot(v, func(s *spot) bool { return s.tool.trusted })
}

// endorsedOutside reports whether the conversation around this agent endorses v.
func (ix *Index) endorsedOutside(c *Conduct, r role, v string) bool {
	return ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.endorsed(c, r, v) })
}

// recorded reports whether a record endorses v: the user named the record, or asked for it.
func (ix *Index) recorded(c *Conduct, r role, v string) bool {
	inTexts := ix.search(v)
	for s := range ix.spotsOf(v) {
		// An item of a plain text may be from anyone, and so may v.
		if s.record == nil || ix.full {
			return false
		}
		if ix.vouches(s, inTexts, c, r, v) {
			return true
		}
	}
	return false
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
	for ; r != nil; r = r.up {
		if slices.ContainsFunc(r.texts, ix.said) {
			return true
		}
	}
	return false
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
	case c.removes || ix.full:
		return false
	case !ix.search(v).doc || !ix.intended(c):
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
func (ix *Index) intended(c *Conduct) bool {
	for _, group := range intents {
		ofTool := func(verb string) bool { return slices.Contains(c.verbs, verb) }
		if slices.ContainsFunc(group, ofTool) && slices.ContainsFunc(group, ix.said) {
			return true
		}
	}
	return false
}

// chose reports whether the user chose the party v of a call of c, by a word or by a document.
func (ix *Index) chose(c *Conduct, v string) bool {
	return ix.said(v) || ix.soleInDocument(c, v)
}

// endorsedAmount reports whether a final act may have the amount s: the user said it, or it stands
// in a record that the user named, or in a document that the user named for such an act.
func (ix *Index) endorsedAmount(c *Conduct, s string) bool {
	n, ok := amount(s)
	if !ok {
		return false
	}

	saidAmount := func(words string) bool { return hasAmount(words, n) }
	inNamedRecord := func(s *spot) bool { return s.record != nil && ix.named(s.record) }
	plain := plainText(s)
	inNamedDocument := func(p passage) bool {
		return p.named && hasAmount(p.text, n) && !ix.wasArgument(plain, p.source)
	}

	switch {
	case slices.ContainsFunc(ix.words, saidAmount):
	case ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.endorsedAmount(c, s) }):
	case ix.anySpot(plain, inNamedRecord):
	case ix.intended(c) && slices.ContainsFunc(ix.texts, inNamedDocument):
	default:
		return false
	}
	return true
}

// reachable reports whether a read may go to the address v. An address that stands as a whole in
// the conversation reveals only that it was read. An address that the model has put together
// may carry data, unless the user said its host.
func (ix *Index) reachable(v string) bool { return ix.said(host(v)) || ix.complete(v) }

// complete reports whether the address v stands as a whole in the conversation.
func (ix *Index) complete(v string) bool {
	switch {
	case ix.said(v), ix.standsAlone(v), ix.owned(v), ix.trusts(v), ix.search(v).fresh:
		return true
	}
	return ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.complete(v) })
}

// mayLeave reports whether a text that leaves may have the address v: the user said it, a trusted
// tool wrote it, or a write of this run returned it.
func (ix *Index) mayLeave(v string) bool {
	switch {
	case ix.said(v), ix.trusts(v), ix.owned(v):
		return true
	}
	return ix.outer != nil && ix.outer.locked(func() bool { return ix.outer.trusts(v) || ix.outer.owned(v) })
}

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
