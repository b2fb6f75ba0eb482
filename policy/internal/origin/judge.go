package origin

// judge.go: Judge, which decides whether a call needs a question.

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// maxWords bounds the words of one argument that are looked for. Each costs a search in all
// results.
const maxWords = 64

// maxPrivate bounds the private values that a text that leaves is compared with.
const maxPrivate = 64 * 64

// maxLeaving bounds the addresses of one text that leaves.
const maxLeaving = 200

// Judge returns why a call of c with args needs a question; empty means that it does not. It judges
// each argument by its role, the amounts together, and nothing before the first untrusted result.
func (ix *Index) Judge(c *Conduct, args []Argument) string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if !ix.tainted {
		return ""
	}

	q := &question{}
	for _, a := range args {
		ix.judge(q, c, a)
	}
	ix.judgeAmounts(q, c, args)

	// Conduct.Arguments gives one argument more if there were too many.
	if len(args) > maxArguments {
		q.reasons = append(q.reasons, fmt.Sprintf("the call has more than %d values", maxArguments))
	}
	return q.text()
}

// judge adds the reasons that the argument a gives. An amount depends on the other arguments and is
// not looked at.
func (ix *Index) judge(q *question, c *Conduct, a Argument) {
	switch a.role {
	case roleParty, roleObject, roleSecret:
		if !ix.endorsed(c, a.role, a.plain) {
			q.add(a, ix.describe(a.plain))
		}
	case roleAddress:
		ix.judgeAddress(q, a)
	case roleTarget:
		if ix.onlyProse(a.plain) {
			q.add(a, ix.describe(a.plain))
		}
	case roleContent:
		ix.judgeContent(q, a)
	case roleSink:
		ix.judgeContent(q, a)
		ix.judgeWords(q, a, a.plain, false)
	}
}

// judgeAmounts adds the amounts that the user does not stand behind. To a party that the user
// chose, any amount may go.
func (ix *Index) judgeAmounts(q *question, c *Conduct, args []Argument) {
	isAmount := func(a Argument) bool { return a.role == roleAmount }
	if !slices.ContainsFunc(args, isAmount) {
		return
	}
	chosen := func(a Argument) bool { return a.role == roleParty && ix.chose(c, a.plain) }
	if slices.ContainsFunc(args, chosen) {
		return
	}

	for _, a := range args {
		if isAmount(a) && !ix.endorsedAmount(c, a.value) {
			q.add(a, ix.describe(a.plain))
		}
	}
}

// judgeAddress adds an address that the model put together, or what its query passes on.
func (ix *Index) judgeAddress(q *question, a Argument) {
	if !ix.reachable(a.plain) {
		q.add(a, "is put together: neither the user nor a result has this address")
		return
	}

	_, query, ok := strings.Cut(a.plain, "?")
	if !ok || ix.complete(a.plain) {
		return
	}
	if decoded, err := url.QueryUnescape(query); err == nil {
		query = decoded
	}
	ix.judgeWords(q, a, plainText(query), true)
}

// judgeWords adds a word of text, which a read sends to its address, that a result has or that may
// be encoded, and that the user did not say. local leaves out encoded words and the words of
// results that came from an address.
func (ix *Index) judgeWords(q *question, a Argument, text string, local bool) {
	words := strings.FieldsFunc(text, func(r rune) bool { return !wordRune(r) })
	asked := 0
	for _, v := range append([]string{text}, words...) {
		if len(v) < 4 || wireWords[v] || ix.said(v) {
			continue
		}

		asked++
		if asked > maxWords {
			q.add(a, "has too many words that the user did not say")
			return
		}
		if ix.comesFromResult(v, local) {
			q.add(a, fmt.Sprintf("sends %q, which %s", clipped(v), ix.describe(v)))
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
func (ix *Index) judgeContent(q *question, a Argument) {
	found := addressesIn(a.plain, maxLeaving)
	if len(found) == maxLeaving {
		q.add(a, fmt.Sprintf("has more than %d addresses", maxLeaving))
	}
	for _, v := range found {
		if addressKind(v) != "" && !ix.mayLeave(v) {
			q.add(a, fmt.Sprintf("has the address %q, which %s", clipped(v), ix.describe(v)))
		}
	}

	ix.loadPrivate()
	for _, v := range ix.private[:min(len(ix.private), maxPrivate)] {
		if find(a.plain, v, 0) >= 0 && !ix.said(v) {
			q.add(a, "has a private value")
			return
		}
	}
}
