// Package secret finds secrets in text, in the forms in which they travel, whole or as the text comes.
//
//	secret    s3cr3t/key
//	forms     s3cr3t/key · czNjcjN0L2tle (base64, at each of three places in what is encoded) · s3cr3t%2Fkey · …
//	text      Authorization: Basic dXNlcjpzM2NyM3Qva2V5
//	told      Authorization: Basic dXNlcjp[redacted]
//
// A Matcher looks for all forms of all secrets in one pass, so its cost does not grow with their number. A Stream does the same with text
// that comes in fragments: what may be the beginning of a secret is held back until it is known.
package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Mask stands where a secret was.
const Mask = "[redacted]"

// MinForm is how many bytes a form has at least: shorter ones are found everywhere.
const MinForm = 4

// Forms returns what is to be looked for so that s is found as it is, in base64 (of both alphabets, padded or not, wherever it begins in what was
// encoded), in URLs, and in JSON or Go source. The base64 forms leave out the character at either end that also depends on the byte beside the
// secret: at most 4 bits of it remain.
func Forms(s string) []string {
	forms := []string{s}
	for at := range 3 {
		padded := append(make([]byte, at), s...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(padded)
			forms = append(forms, text[(at*8+5)/6:len(padded)*8/6])
		}
	}
	for _, esc := range []string{url.QueryEscape(s), url.PathEscape(s), strings.ReplaceAll(url.QueryEscape(s), "+", "%20")} {
		forms = append(forms, esc, lowerHex(esc))
	}
	quoted, _ := json.Marshal(s)
	forms = append(forms, unquoted(string(quoted)), unquoted(strconv.Quote(s)), unquoted(strconv.QuoteToASCII(s)))
	var plain strings.Builder
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string
	forms = append(forms, unquoted(strings.TrimSpace(plain.String())))
	for _, f := range slices.Clone(forms) { // JSON inside of JSON
		if again, _ := json.Marshal(f); unquoted(string(again)) != f {
			forms = append(forms, unquoted(string(again)))
		}
	}
	slices.Sort(forms)
	return slices.DeleteFunc(slices.Compact(forms), func(f string) bool { return len(f) < MinForm })
}

func unquoted(s string) string { return s[1 : len(s)-1] }

// lowerHex writes percent escapes as %2f.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], strings.ToLower(s[i:i+3]))
		}
	}
	return string(b)
}

// Matcher looks for forms in one pass (Aho and Corasick's automaton). A nil Matcher finds nothing. It may be used concurrently.
type Matcher struct {
	root  [256]int32
	nodes []node
}

type node struct {
	next  []edge
	fail  int32 // the longest other suffix that begins a form
	depth int32 // bytes of a form that were read
	found int32 // bytes of the longest form that ends here; 0: none does
}

type edge struct {
	b  byte
	to int32
}

// New returns a Matcher of forms; nil when there are none.
func New(forms []string) *Matcher {
	if len(forms) == 0 {
		return nil
	}
	m := &Matcher{nodes: make([]node, 1)}
	for _, f := range forms {
		at := int32(0)
		for i := range len(f) {
			to := m.child(at, f[i])
			if to == 0 {
				to = int32(len(m.nodes))
				m.nodes = append(m.nodes, node{depth: int32(i + 1)})
				if at == 0 {
					m.root[f[i]] = to
				} else {
					m.nodes[at].next = append(m.nodes[at].next, edge{f[i], to})
				}
			}
			at = to
		}
		m.nodes[at].found = int32(len(f))
	}
	var queue []int32 // by depth
	for _, to := range m.root {
		if to != 0 {
			queue = append(queue, to)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		n := m.nodes[queue[0]]
		for _, e := range n.next {
			c := &m.nodes[e.to]
			c.fail = m.step(n.fail, e.b)
			c.found = max(c.found, m.nodes[c.fail].found)
			queue = append(queue, e.to)
		}
	}
	return m
}

// child returns the node after b at a node; 0: there is none.
func (m *Matcher) child(at int32, b byte) int32 {
	if at == 0 {
		return m.root[b]
	}
	for _, e := range m.nodes[at].next {
		if e.b == b {
			return e.to
		}
	}
	return 0
}

func (m *Matcher) step(at int32, b byte) int32 {
	for ; at != 0; at = m.nodes[at].fail {
		if to := m.child(at, b); to != 0 {
			return to
		}
	}
	return m.root[b]
}

// Find reports whether s has a form in it.
func (m *Matcher) Find(s string) bool {
	if m == nil {
		return false
	}
	at := int32(0)
	for i := range len(s) {
		if at = m.step(at, s[i]); at != 0 && m.nodes[at].found > 0 {
			return true
		}
	}
	return false
}

// Replace returns s with a Mask for each form in it. Forms that overlap have one Mask. Text without any is returned as it is.
func (m *Matcher) Replace(s string) string {
	if !m.Find(s) {
		return s
	}
	st := Stream{m: m}
	return st.Write(s) + st.Flush()
}

// Stream replaces forms in text that comes in fragments. The zero value holds nothing back.
type Stream struct {
	m     *Matcher
	at    int32
	held  []byte // not told yet
	spans []span // in held; a form each, or several that overlap
}

type span struct {
	from, to int
	told     bool // its Mask was
}

// Stream returns a Stream that looks for what m does.
func (m *Matcher) Stream() *Stream { return &Stream{m: m} }

// Write takes a fragment, and returns what may be told: all but the longest end that begins a form.
func (s *Stream) Write(text string) string {
	m := s.m
	if m == nil || len(s.held) == 0 && m.innocent(text) {
		return text
	}
	for i := range len(text) {
		s.held = append(s.held, text[i])
		if s.at = m.step(s.at, text[i]); s.at == 0 {
			continue
		}
		if n := int(m.nodes[s.at].found); n > 0 {
			s.mark(len(s.held)-n, len(s.held))
		}
	}
	return s.tell(len(s.held) - int(m.nodes[s.at].depth))
}

// innocent reports whether s neither has a form in it nor ends like the beginning of one.
func (m *Matcher) innocent(s string) bool {
	at := int32(0)
	for i := range len(s) {
		if at = m.step(at, s[i]); at != 0 && m.nodes[at].found > 0 {
			return false
		}
	}
	return at == 0
}

// Flush returns what is held back: the text is over.
func (s *Stream) Flush() string {
	s.at = 0
	return s.tell(len(s.held))
}

// mark notes a form, joined with those that it overlaps.
func (s *Stream) mark(from, to int) {
	told := false
	for n := len(s.spans); n > 0 && s.spans[n-1].to > from; n = len(s.spans) {
		last := s.spans[n-1]
		from, told = min(from, last.from), told || last.told
		s.spans = s.spans[:n-1]
	}
	s.spans = append(s.spans, span{from, to, told})
}

// tell lets the first n bytes go.
func (s *Stream) tell(n int) string {
	var b strings.Builder
	at, kept := 0, s.spans[:0]
	for _, p := range s.spans {
		if p.from >= n {
			kept = append(kept, span{p.from - n, p.to - n, p.told})
			continue
		}
		b.Write(s.held[at:p.from])
		if !p.told {
			b.WriteString(Mask)
		}
		if at = min(p.to, n); p.to > n {
			kept = append(kept, span{0, p.to - n, true})
		}
	}
	b.Write(s.held[at:n])
	s.spans = kept
	s.held = append(s.held[:0], s.held[n:]...)
	return b.String()
}
