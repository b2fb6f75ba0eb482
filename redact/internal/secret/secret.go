// Package secret finds secrets in text, in the forms in which they travel. The text may be complete
// or arrive in fragments.
//
//	secret    s3cr3t/key
//	forms     s3cr3t/key · czNjcjN0L2tle (base64, at each of three offsets) · s3cr3t%2Fkey · …
//	text      Authorization: Basic dXNlcjpzM2NyM3Qva2V5
//	redacted  Authorization: Basic dXNlcjp[redacted]
//
// A Matcher looks for all forms of all secrets. A Stream does the same for text in fragments: it
// holds back text that may be the start of a secret.
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
	// The encoding of a text depends on its offset modulo 3.
	for at := range 3 {
		padded := append(make([]byte, at), s...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(padded)
			forms = append(forms, text[(at*8+5)/6:len(padded)*8/6])
		}
	}

	query := url.QueryEscape(s)
	for _, esc := range []string{query, url.PathEscape(s), strings.ReplaceAll(query, "+", "%20")} {
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

	// Short forms would occur by chance, and hide innocent text.
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

// Matcher looks for forms. A nil Matcher finds nothing. It is safe for concurrent use.
type Matcher struct {
	forms [256][]string // by their first byte
}

// New returns a Matcher of forms, or nil if there are none.
func New(forms []string) *Matcher {
	if len(forms) == 0 {
		return nil
	}
	m := new(Matcher)
	for _, f := range forms {
		m.forms[f[0]] = append(m.forms[f[0]], f)
	}
	return m
}

// longest returns the length of the longest form at the start of s, 0 if there is none. open
// reports whether s is the start of a longer form.
func (m *Matcher) longest(s string) (n int, open bool) {
	for _, f := range m.forms[s[0]] {
		if strings.HasPrefix(s, f) {
			n = max(n, len(f))
		} else if strings.HasPrefix(f, s) {
			open = true
		}
	}
	return n, open
}

// Find reports whether s contains a form.
func (m *Matcher) Find(s string) bool {
	for i := 0; m != nil && i < len(s); i++ {
		if n, _ := m.longest(s[i:]); n > 0 {
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
	st := Stream{forms: m, held: s}
	return st.Flush()
}

// Stream replaces forms in text that arrives in fragments. The zero value holds nothing back.
type Stream struct {
	forms  *Matcher
	held   string // not emitted yet
	masked int    // the bytes of held that belong to a form whose Mask was emitted
}

// Stream returns a Stream that looks for the forms of m.
func (m *Matcher) Stream() *Stream { return &Stream{forms: m} }

// Write accepts a fragment and returns the text that may be emitted: everything except the longest
// suffix that starts a form.
func (s *Stream) Write(text string) string {
	if s.forms == nil {
		return text
	}
	s.held += text
	return s.emit(false)
}

// Flush returns the text that is held back, at the end of the text.
func (s *Stream) Flush() string { return s.emit(true) }

// emit releases the text up to the first place where a form may begin. all means that no text
// follows.
func (s *Stream) emit(all bool) string {
	var b strings.Builder
	i := 0
	for ; i < len(s.held); i++ {
		n, open := s.forms.longest(s.held[i:])
		if open && !all {
			break
		}
		// Overlapping forms are one secret, with one mask.
		if n > 0 && i >= s.masked {
			b.WriteString(Mask)
		}
		s.masked = max(s.masked, i+n)
		if i >= s.masked {
			b.WriteByte(s.held[i])
		}
	}
	s.held = s.held[i:]
	s.masked = max(0, s.masked-i)
	return b.String()
}
