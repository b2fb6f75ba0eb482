package origin

// grounds.go: what stands behind a value. One function for each kind of value decides, and says
// why.

import (
	"slices"

	"github.com/pawl-go/pawl/llm/derivation"
)

// clean are the grounds of a call before others wrote anything.
var clean = []derivation.Value{{Ground: derivation.Clean}}

// none is the ground of a value that nothing stands behind.
var none derivation.Value

// stands reports whether something stands behind the value of d.
func stands(d derivation.Value) bool { return d.Ground != "" }

// rule is a ground that a value may have.
type rule struct {
	applies bool
	ground  func() derivation.Value
}

// first returns the ground of the first rule that applies and has one.
func first(rules ...rule) derivation.Value {
	for _, r := range rules {
		if !r.applies {
			continue
		}
		if d := r.ground(); stands(d) {
			return d
		}
	}
	return none
}

// groundOf returns what stands behind v in the role r in a call of c: whether the user does, and
// not only a text that someone else wrote. One ground is enough; a call with a value that has none
// gets a question. TestGroundOf has a row for each ground, and one for each part of it.
func (ix *Index) groundOf(c *Conduct, r role, v string) derivation.Value {
	// Most values are the user's own words. All other grounds need every result.
	if d := ix.fromWords(v); stands(d) {
		return d
	}
	ix.load()

	undoable := !c.final && !c.removes
	return first(
		rule{r == roleObject, func() derivation.Value { return ix.fromWrite(v) }},
		rule{undoable, func() derivation.Value { return ix.fromTrusted(v) }},
		rule{true, func() derivation.Value { return ix.fromOutside(c, r, v) }},
		rule{true, func() derivation.Value { return ix.fromRecord(c, r, v) }},
		rule{r == roleParty, func() derivation.Value { return ix.fromDocument(c, v) }},
		rule{r == roleParty && undoable, func() derivation.Value { return ix.fromReached(c, v) }},
	)
}

// groundOfAmount returns what stands behind the amount s of a final act: the user said it, or chose
// who gets it, or it stands in a record that the user named, or in a document that the user named
// for such an act. chosen means that the user chose the party.
func (ix *Index) groundOfAmount(c *Conduct, chosen bool, s string) derivation.Value {
	n, isNumber := amount(s)
	hasIt := func(words string) bool { return isNumber && hasAmount(words, n) }
	plain := plainText(s)
	ground := func(is bool, g derivation.Ground) derivation.Value {
		if !is {
			return none
		}
		return derivation.Value{Ground: g}
	}

	return first(
		rule{isNumber, func() derivation.Value {
			return ground(slices.ContainsFunc(ix.words, hasIt), derivation.User)
		}},
		rule{chosen, func() derivation.Value { return ground(true, derivation.Party) }},
		rule{isNumber, func() derivation.Value {
			saidOutside := func(outer *Index) bool { return stands(outer.groundOfAmount(c, false, s)) }
			return ground(outside(ix, saidOutside), derivation.Outer)
		}},
		rule{isNumber, func() derivation.Value { return ix.fromNamedRecord(plain) }},
		rule{isNumber && ix.intended(c), func() derivation.Value {
			// An amount that was an argument of the call before does not count: the model may have
			// written it there to make it known.
			return ix.inDocument(func(p *passage) bool { return hasIt(p.text) && !ix.wasArgument(plain, p.source) })
		}},
	)
}

// groundOfAddress returns what allows a read to go to the address v. Without a ground, class and
// why say what is wrong.
//
// Before anything inside was read, an address that stands as a whole in the conversation reveals
// only that it was read. Afterwards the choice of an address may spell out what was read, so that
// the host has to be known, and learns a few bits only.
func (ix *Index) groundOfAddress(c *Conduct, v string) (d derivation.Value, class, why string) {
	const putTogether = "is put together: neither the user nor a result has this address"
	if d = ix.fromWords(v); stands(d) {
		return d, "", ""
	}

	if !ix.readInside() {
		d = first(
			rule{true, func() derivation.Value { return ix.fromHost(v) }},
			rule{true, func() derivation.Value { return ix.fromWhole(v) }},
		)
		if !stands(d) {
			return none, classMadeUp, putTogether
		}
		return d, "", ""
	}

	if d = ix.fromLink(v); stands(d) {
		return d, "", ""
	}
	d = ix.fromHost(v)
	if !stands(d) && !stands(ix.fromWhole(v)) {
		return none, classMadeUp, putTogether
	}
	if !stands(d) {
		d = ix.fromReached(c, host(v))
	}
	switch {
	case !stands(d):
		return none, classLeaves, "is at a host that neither the user nor a trusted result names, " +
			"and which address is read may reveal what was read"
	case ix.overBudget(v):
		return none, classLeaves, "is one of many pages of this host, and which pages are read may reveal what was read"
	}
	return d, "", ""
}

// groundOfLeaving returns what allows a text that leaves to have the address v: the user said it, a
// trusted tool wrote it, or a write of this run returned it.
func (ix *Index) groundOfLeaving(v string) derivation.Value {
	return first(
		rule{true, func() derivation.Value { return ix.fromWords(v) }},
		rule{true, func() derivation.Value { return ix.fromTrusted(v) }},
		rule{true, func() derivation.Value { return ix.fromWrite(v) }},
		rule{true, func() derivation.Value {
			return ix.whereOutside(func(outer *Index) bool { return outer.trusts(v) || outer.owned(v) })
		}},
	)
}

// whereOutside is the ground of a value for which is holds in the conversation around this agent.
func (ix *Index) whereOutside(is func(outer *Index) bool) derivation.Value {
	if !outside(ix, is) {
		return none
	}
	return derivation.Value{Ground: derivation.Outer}
}

// fromWords: the words of the user or of the operator have v, here or around this agent.
func (ix *Index) fromWords(v string) derivation.Value {
	switch {
	case anyHas(ix.words, v):
		return derivation.Value{Ground: derivation.User}
	case ix.said(v):
		return derivation.Value{Ground: derivation.Outer}
	}
	return none
}

// fromWrite: a write of this run returned v.
func (ix *Index) fromWrite(v string) derivation.Value {
	if !ix.owned(v) {
		return none
	}
	return derivation.Value{Ground: derivation.Write, Call: ix.own[v].call}
}

// fromTrusted: a trusted result has v.
func (ix *Index) fromTrusted(v string) derivation.Value {
	if !ix.trusts(v) {
		return none
	}
	return ix.at(derivation.Trusted, v, func(s *source) bool { return s.tool.trusted })
}

// at returns the ground g at the first source with v for which is holds.
func (ix *Index) at(g derivation.Ground, v string, is func(*source) bool) derivation.Value {
	d := derivation.Value{Ground: g}
	if s := ix.sourceOf(v, is); s != nil {
		d.Call = s.call
	}
	return d
}

// sourceOf returns the first source with v for which is holds; nil means none.
func (ix *Index) sourceOf(v string, is func(*source) bool) *source {
	for s := range ix.spotsOf(v) {
		if is(s.source) {
			return s.source
		}
	}
	bare := bareLink(v)
	for i := range ix.texts {
		p := &ix.texts[i]
		if is(p.source) && find(p.text, bare, 0) >= 0 && !ix.wasArgument(v, p.source) {
			return p.source
		}
	}
	return nil
}

// fromOutside: something stands behind v in the conversation around this agent.
func (ix *Index) fromOutside(c *Conduct, r role, v string) derivation.Value {
	return ix.whereOutside(func(outer *Index) bool { return stands(outer.groundOf(c, r, v)) })
}

// fromRecord: a record has v, which the user named or asked for.
func (ix *Index) fromRecord(c *Conduct, r role, v string) derivation.Value {
	if ix.strict && r == roleParty {
		return none
	}
	inTexts := ix.search(v)
	for s := range ix.spotsOf(v) {
		// An item of a plain text may be from anyone, and so may v.
		if s.record == nil || ix.full {
			return none
		}
		if ix.vouches(s, inTexts, c, r, v) {
			return ix.recordOf(s)
		}
	}
	return none
}

// recordOf returns the ground of a value whose place is s: the record that the user named, or the
// call that the user worded, or else a record alone.
func (ix *Index) recordOf(s *spot) derivation.Value {
	d := derivation.Value{Ground: derivation.Found, Call: s.call}
	name, isNamed := ix.nameOf(s.record)
	switch {
	case isNamed:
		d.Ground = derivation.Record
		d.Name = name
	case s.requested:
		d.Ground = derivation.Request
	}
	return d
}

// fromNamedRecord: a record has v, which the user named.
func (ix *Index) fromNamedRecord(v string) derivation.Value {
	for s := range ix.spotsOf(v) {
		if s.record != nil && ix.named(s.record) {
			return ix.recordOf(s)
		}
	}
	return none
}

// fromDocument: v is the only address of a document that the user named for such an act.
func (ix *Index) fromDocument(c *Conduct, v string) derivation.Value {
	if !ix.soleInDocument(c, v) {
		return none
	}
	return ix.inDocument(func(p *passage) bool { return find(p.text, bareLink(v), 0) >= 0 })
}

// inDocument: a document that the user named is one for which has holds.
func (ix *Index) inDocument(has func(*passage) bool) derivation.Value {
	ix.load()
	for i := range ix.texts {
		p := &ix.texts[i]
		if !p.named || !has(p) {
			continue
		}
		d := derivation.Value{Ground: derivation.Document, Call: p.call}
		if at := slices.IndexFunc(p.places, ix.said); at >= 0 {
			d.Name = p.places[at]
		}
		return d
	}
	return none
}

// fromReached: a call of c in this turn has reached the party or host v, to which a person agreed.
func (ix *Index) fromReached(c *Conduct, v string) derivation.Value {
	if !ix.wasReached(c, v) {
		return none
	}
	return derivation.Value{Ground: derivation.Reached, Name: v}
}

// fromHost: the user, a trusted result or a write of this run named the host of v.
func (ix *Index) fromHost(v string) derivation.Value {
	h := host(v)
	byUser := anyHas(ix.words, h) || ix.saidHost(h)
	switch {
	case byUser:
		return derivation.Value{Ground: derivation.Host, Name: h}
	case ix.trusts(h):
		d := ix.fromTrusted(h)
		d.Ground = derivation.Host
		d.Name = h
		return d
	case ix.owned(v):
		return ix.fromWrite(v)
	}
	return ix.whereOutside(func(outer *Index) bool { return stands(outer.fromHost(v)) })
}

// fromWhole: the address v stands as a whole in the conversation.
func (ix *Index) fromWhole(v string) derivation.Value {
	anySource := func(*source) bool { return true }
	switch {
	case ix.owned(v):
		return ix.fromWrite(v)
	case ix.standsAlone(v), ix.trusts(v), ix.search(v).fresh:
		return ix.at(derivation.Whole, v, anySource)
	}
	return ix.whereOutside(func(outer *Index) bool { return outer.complete(v) })
}

// fromLink: the user asked for what is behind links, and for the result that has the address v.
func (ix *Index) fromLink(v string) derivation.Value {
	if !slices.ContainsFunc(linkWords, ix.said) {
		return none
	}
	wanted := func(s *source) bool { return s.seq >= 0 && (s.requested || s.tool.trusted) }
	if s := ix.sourceOf(v, wanted); s != nil {
		return derivation.Value{Ground: derivation.Link, Call: s.call}
	}
	return ix.fromNamedRecord(v)
}
