package origin

// judge.go: Judge, which decides whether a call needs a question.

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
)

// maxWords bounds the words of one argument that are looked for. Each costs a search in all
// results.
const maxWords = 64

// maxPrivate bounds the private values that a text that leaves is compared with. With more of them
// each text asks.
const maxPrivate = 64 << 10

// maxLeaving bounds the addresses of one text that leaves.
const maxLeaving = 200

// Program is what the program around a call has read. No message has it before the program ends.
// The zero Program has read nothing.
type Program struct {
	Tainted bool   // a part that others wrote
	Private string // the tool of a private result; empty means none
	Sealed  string // the tool of a sealed result; empty means none
}

// NewProgram returns the program of a call whose arguments have the label l. tool returns the
// conduct of a tool by its name.
func NewProgram(l llm.Label, tool func(string) *Conduct) Program {
	return Program{
		Tainted: l.By < llm.Trusted,
		Private: sourceIn(l, tool, (*Conduct).isPrivate),
		Sealed:  sourceIn(l, tool, (*Conduct).isSealed),
	}
}

// Judgement says why a call needs a question, or else what stands behind its values.
type Judgement struct {
	Question // empty means that the call needs none
	// Grounds are of each party, object, secret, amount and address, and of the addresses in a text
	// that leaves.
	Grounds []derivation.Value
}

// found adds what stands behind value, of the argument a.
func (j *Judgement) found(a Argument, value string, d derivation.Value) {
	d.Arg = a.name
	d.Value = value
	if !slices.Contains(j.Grounds, d) {
		j.Grounds = append(j.Grounds, d)
	}
}

// Judge returns whether a call of c with args needs a question. It judges each argument by its
// role, the amounts together, and nothing before the first untrusted result. p is the program
// around the call.
func (ix *Index) Judge(c *Conduct, args []Argument, p Program) Judgement {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if !ix.tainted && !p.Tainted {
		return Judgement{Grounds: clean}
	}

	j := &Judgement{}
	isContent := func(a Argument) bool { return a.role == roleContent || a.role == roleSink }
	if i := slices.IndexFunc(args, isContent); i >= 0 && p.Private != "" {
		j.add(args[i], ix.doubt(classLeaves), "may have a private value: the program has read what "+p.Private+" returned")
	}
	for _, a := range args {
		ix.judge(j, c, a)
	}
	ix.judgeAmounts(j, c, args)
	ix.judgeSealed(j, c, args, p)

	// Conduct.Arguments gives one argument more if there were too many.
	if len(args) > maxArguments {
		many := fmt.Sprintf("is one of more than %d values of the call", maxArguments)
		j.add(args[0], ix.doubt(classMadeUp), many)
	}
	return *j
}

// judge adds the reasons that the argument a gives. An amount depends on the other arguments and is
// not looked at.
func (ix *Index) judge(j *Judgement, c *Conduct, a Argument) {
	switch a.role {
	case roleParty, roleObject, roleSecret:
		if d := ix.groundOf(c, a.role, a.plain); stands(d) {
			j.found(a, a.value, d)
		} else {
			j.describe(ix, a, a.plain, "")
		}
	case roleAddress:
		ix.judgeAddress(j, c, a)
	case roleTarget:
		if ix.onlyProse(a.plain) {
			j.describe(ix, a, a.plain, "")
		}
	case roleContent:
		ix.judgeContent(j, a)
	case roleSink:
		ix.judgeContent(j, a)
		ix.judgeWords(j, a, a.plain, false)
	}
}

// judgeAmounts adds the amounts that the user does not stand behind. To a party that the user
// chose, any amount may go.
func (ix *Index) judgeAmounts(j *Judgement, c *Conduct, args []Argument) {
	isAmount := func(a Argument) bool { return a.role == roleAmount }
	if !slices.ContainsFunc(args, isAmount) {
		return
	}

	chosen := slices.ContainsFunc(args, func(a Argument) bool { return a.role == roleParty && ix.chose(c, a.plain) })
	for _, a := range args {
		if !isAmount(a) {
			continue
		}
		if d := ix.groundOfAmount(c, chosen, a.value); stands(d) {
			j.found(a, a.value, d)
			continue
		}
		if said := ix.saidAmounts(); said != "" {
			j.add(a, ix.doubt(classNotSaid), "is not the amount that you said, "+said)
			continue
		}
		j.describe(ix, a, a.plain, "")
	}
}

// saidAmounts returns the first numbers of the user's words, for a question. Empty means none.
func (ix *Index) saidAmounts() string {
	for _, words := range ix.words {
		if all := figure.FindAllString(words, 3); len(all) > 0 {
			return strings.Join(all, ", ")
		}
	}
	return ""
}

// judgeAddress adds an address that the model put together, or what its query passes on.
func (ix *Index) judgeAddress(j *Judgement, c *Conduct, a Argument) {
	d, class, why := ix.groundOfAddress(c, a.plain)
	if !stands(d) {
		j.add(a, ix.doubt(class), why)
		return
	}
	j.found(a, a.value, d)

	_, query, ok := strings.Cut(a.plain, "?")
	if !ok || ix.complete(a.plain) {
		return
	}
	if decoded, err := url.QueryUnescape(query); err == nil {
		query = decoded
	}
	ix.judgeWords(j, a, plainText(query), true)
}

// judgeWords adds a word of text, which a read sends to its address, that a result has or that may
// be encoded, and that the user did not say. local leaves out encoded words and the words of
// results that came from an address.
func (ix *Index) judgeWords(j *Judgement, a Argument, text string, local bool) {
	words := strings.FieldsFunc(text, func(r rune) bool { return !wordRune(r) })
	asked := 0
	for _, v := range append([]string{text}, words...) {
		if len(v) < 4 || wireWords[v] || ix.said(v) {
			continue
		}

		asked++
		// Each unknown word costs a search through all results, and a long list of them can spell
		// anything.
		if asked > maxWords {
			j.add(a, ix.doubt(classLeaves), "has too many words that the user did not say")
			return
		}
		if ix.comesFromResult(v, local) {
			j.describe(ix, a, v, fmt.Sprintf("sends %q, which ", clipped(v)))
			return
		}
	}
}

// comesFromResult reports whether a result has v, before a call had it, or whether v may be encoded
// data. local leaves out encoded data and the results that came from an address.
func (ix *Index) comesFromResult(v string, local bool) bool {
	s := ix.search(v)
	switch {
	case s.local:
		return true
	case !local && (s.fresh || opaque(v)):
		return true
	}
	return ix.anySpot(v, func(s *spot) bool { return !local || !s.web })
}

// judgeContent adds the addresses and the private values in a text that leaves, as far as the user
// did not say them.
func (ix *Index) judgeContent(j *Judgement, a Argument) {
	found := addressesIn(a.plain, maxLeaving)
	if len(found) == maxLeaving {
		j.add(a, ix.doubt(classLeaves), fmt.Sprintf("has more than %d addresses", maxLeaving))
	}
	for _, v := range found {
		if addressKind(v) == "" {
			continue
		}
		if d := ix.groundOfLeaving(v); stands(d) {
			j.found(a, v, d)
			continue
		}
		j.describe(ix, a, v, fmt.Sprintf("has the address %q, which ", clipped(v)))
	}

	if ix.leaks(a.plain) {
		j.add(a, ix.doubt(classLeaves), "has a private value")
	}
}

// leaks reports whether text has a value of a private result that the user did not say: a token, or
// a whole value of words.
func (ix *Index) leaks(text string) bool {
	ix.loadPrivate()
	switch {
	// What cannot be checked counts as a leak.
	case ix.unheard, len(ix.private) > maxPrivate:
		return true
	case outside(ix, func(outer *Index) bool { return outer.leaks(text) }):
		return true
	}

	if len(ix.secrets) > 0 {
		said := map[string]bool{}
		for _, words := range ix.words {
			addTokens(said, words)
		}
		leaving := map[string]bool{}
		addTokens(leaving, text)
		for token := range leaving {
			if ix.secrets[token] && !said[token] {
				return true
			}
		}
	}

	return slices.ContainsFunc(ix.private, func(v string) bool { return find(text, v, 0) >= 0 && !ix.said(v) })
}
