// Package secret finds secrets in text, in the forms in which they travel. The text may be complete
// or arrive in fragments.
//
//	secret    s3cr3t/key
//	forms     s3cr3t/key · czNjcjN0L2tle (base64, at each of three offsets) · s3cr3t%2Fkey · …
//	text      Authorization: Basic dXNlcjpzM2NyM3Qva2V5
//	redacted  Authorization: Basic dXNlcjp[redacted]
//
// A Matcher looks for all forms of all secrets in one pass, so that its cost does not grow with
// their number. A Stream does the same for text in fragments: it holds back text that may be the
// start of a secret.
package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Mask replaces a secret.
const Mask = "[redacted]"

// MinForm is the minimum length of a form in bytes. Shorter forms would match everywhere.
const MinForm = 4

// Forms returns the byte strings to search for so that s is found verbatim, in base64 (both
// alphabets, with or without padding, at any offset of the encoded data), in URLs, and in JSON or
// Go source.
//
// The base64 forms omit the character at each end that also depends on the byte next to the secret.
// At most 4 bits of the secret remain there.
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
	_ = e.Encode(s) // s is a string: no error is possible
	forms = append(forms, unquoted(strings.TrimSpace(plain.String())))
	for _, f := range slices.Clone(forms) { // JSON nested in JSON
		if again, _ := json.Marshal(f); unquoted(string(again)) != f {
			forms = append(forms, unquoted(string(again)))
		}
	}
	slices.Sort(forms)
	return slices.DeleteFunc(slices.Compact(forms), func(f string) bool { return len(f) < MinForm })
}

func unquoted(s string) string { return s[1 : len(s)-1] }

// lowerHex writes percent escapes in lower case, such as %2f.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], strings.ToLower(s[i:i+3]))
		}
	}
	return string(b)
}

// Matcher looks for forms in one pass, with the automaton of Aho and Corasick. A nil Matcher finds
// nothing. It is safe for concurrent use.
type Matcher struct {
	root  [256]int32
	nodes []node
}

type node struct {
	next  []edge
	fail  int32 // the node of the longest proper suffix that starts a form
	depth int32 // the number of bytes read of a form
	found int32 // the bytes of the longest form that ends here; 0 means none
}

type edge struct {
	b  byte
	to int32
}

// New returns a Matcher of forms, or nil if there are none.
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

// child returns the node after b, or 0 if there is none.
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

// Find reports whether s contains a form.
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

// Replace returns s with a Mask for each form in it. Overlapping forms share one Mask. Text without
// a form is returned unchanged.
func (m *Matcher) Replace(s string) string {
	if !m.Find(s) {
		return s
	}
	st := Stream{m: m}
	return st.Write(s) + st.Flush()
}

// Stream replaces forms in text that arrives in fragments. The zero value holds nothing back.
type Stream struct {
	m     *Matcher
	at    int32
	held  []byte // not emitted yet
	spans []span // in held; one form each, or several that overlap
}

type span struct {
	from, to int
	emitted  bool // its Mask was emitted
}

// Stream returns a Stream that looks for the forms of m.
func (m *Matcher) Stream() *Stream { return &Stream{m: m} }

// Write accepts a fragment and returns the text that may be emitted: everything except the longest
// suffix that starts a form.
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

// innocent reports whether s neither contains a form nor ends with the start of a form.
func (m *Matcher) innocent(s string) bool {
	at := int32(0)
	for i := range len(s) {
		if at = m.step(at, s[i]); at != 0 && m.nodes[at].found > 0 {
			return false
		}
	}
	return at == 0
}

// Flush returns the text that is held back, at the end of the text.
func (s *Stream) Flush() string {
	s.at = 0
	return s.tell(len(s.held))
}

// mark records a form, joined with the forms that it overlaps.
func (s *Stream) mark(from, to int) {
	emitted := false
	for n := len(s.spans); n > 0 && s.spans[n-1].to > from; n = len(s.spans) {
		last := s.spans[n-1]
		from, emitted = min(from, last.from), emitted || last.emitted
		s.spans = s.spans[:n-1]
	}
	s.spans = append(s.spans, span{from, to, emitted})
}

// tell releases the first n bytes.
func (s *Stream) tell(n int) string {
	var b strings.Builder
	at, left := 0, s.spans[:0]
	for _, p := range s.spans {
		if p.from >= n {
			left = append(left, span{p.from - n, p.to - n, p.emitted})
			continue
		}
		b.Write(s.held[at:p.from])
		if !p.emitted {
			b.WriteString(Mask)
		}
		if at = min(p.to, n); p.to > n {
			left = append(left, span{0, p.to - n, true})
		}
	}
	b.Write(s.held[at:n])
	s.spans = left
	s.held = append(s.held[:0], s.held[n:]...)
	return b.String()
}
