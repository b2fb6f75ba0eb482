package origin

// judge.go: decides about the values of a call, each by its role.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// Argument is a value of a call with its role.
type Argument struct {
	name  string // of the nearest member around it
	role  role
	value string // as written, and a number as its digits
	plain string
}

// maxArguments bounds the values of one call that are looked at.
const maxArguments = 256

// Arguments returns the values of args that the policy looks at, and one more than maxArguments if
// there are too many.
func (c *Conduct) Arguments(args json.RawMessage) (all []Argument) {
	if c.quiet && !bytes.Contains(args, []byte("/")) && !bytes.Contains(args, []byte("ww.")) {
		return nil
	}
	all = make([]Argument, 0, 4)
	w := walker{give: func(name, value string, _ bool) {
		plain := plainText(value)
		if r := c.role(name, plain); r != roleNone {
			all = append(all, Argument{name, r, value, plain})
		}
	}}
	cur := jsonscan.New(args)
	w.walk(&cur, "")
	if !c.act && slices.ContainsFunc(all, func(a Argument) bool { return a.role == roleAddress }) {
		all = append(all, c.sinks(args)...)
	}
	if w.n > maxArguments && len(all) > 0 && len(all) <= maxArguments {
		all = append(all, make([]Argument, maxArguments+1-len(all))...)
	}
	return all
}

// sinks returns what a read sends to its address: names and values within its arguments, except the
// address, choices and numbers.
func (c *Conduct) sinks(args json.RawMessage) (all []Argument) {
	top := ""
	add := func(v string) { all = append(all, Argument{top, roleSink, v, plainText(v)}) }
	w := walker{key: add, give: func(name, v string, _ bool) {
		if name != top || c.role(name, plainText(v)) != roleAddress {
			add(v)
		}
	}}
	cur := jsonscan.New(args)
	cur.Object()
	for key, ok := cur.Key(); ok; key, ok = cur.Key() {
		top = string(key)
		if c.closed[top] {
			cur.Skip()
			continue
		}
		w.walk(&cur, top)
	}
	if w.n > maxArguments {
		all = append(all, make([]Argument, maxArguments)...)
	}
	return all
}

// Judge returns why a call needs a question; empty means that it does not.
func (ix *Index) Judge(c *Conduct, args []Argument) string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if !ix.tainted {
		return ""
	}
	var why []string
	report := func(a Argument, text string) {
		if q := fmt.Sprintf("%s %q %s", a.name, clipped(a.value), text); !slices.Contains(why, q) {
			why = append(why, q)
		}
	}
	known := false // a party of the call is the user's
	for _, a := range args {
		switch v := a.plain; a.role {
		case roleParty, roleObject, roleSecret:
			if !ix.endorsed(c, a.role, v) {
				report(a, ix.where(v))
			} else if a.role == roleParty {
				known = known || ix.said(v) || ix.soleInDocument(c, v)
			}
		case roleAddress:
			if !ix.reachable(v) {
				report(a, "is put together: neither the user nor a result has this address")
			} else if _, query, ok := strings.Cut(v, "?"); ok && !ix.complete(v) {
				if plain, err := url.QueryUnescape(query); err == nil {
					query = plain
				}
				ix.passesOn(a, plainText(query), true, report)
			}
		case roleTarget:
			if ix.onlyProse(v) {
				report(a, ix.where(v))
			}
		case roleContent:
			ix.leaks(a, report)
		case roleSink:
			ix.leaks(a, report)
			ix.passesOn(a, a.plain, false, report)
		}
	}
	for _, a := range args {
		if a.role == roleAmount && !known && !ix.endorsedAmount(c, a.value) {
			report(a, ix.where(a.plain))
		}
	}
	if len(args) > maxArguments {
		why = append(why, fmt.Sprintf("the call has more than %d values", maxArguments))
	}
	if len(why) > 3 {
		why = append(why[:3], fmt.Sprintf("and %d more", len(why)-3))
	}
	return strings.Join(why, "; ")
}

// passesOn reports a word of text, which a read sends to its address, that a result has or that may
// be encoded, and that the user did not say. local leaves out encoded words and the words of
// results that came from an address.
func (ix *Index) passesOn(a Argument, text string, local bool, report func(Argument, string)) {
	words := strings.FieldsFunc(text, func(r rune) bool { return !wordRune(r) })
	asked := 0
	for _, v := range append([]string{text}, words...) {
		if len(v) < 4 || wireWords[v] || ix.said(v) {
			continue
		}
		asked++
		if asked > maxSame {
			report(a, "has too many words that the user did not say")
			return
		}
		s := ix.see(v)
		if s.local || !local && (s.fresh || opaque(v)) ||
			ix.anySpot(v, func(s *spot) bool { return !local || !s.web }) {
			report(a, fmt.Sprintf("sends %q, which %s", clipped(v), ix.where(v)))
			return
		}
	}
}

// clipped returns the start of a value, for a question.
func clipped(s string) string {
	if r := []rune(s[:min(len(s), 256)]); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
