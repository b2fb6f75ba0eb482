package jsonrepair

import (
	"unicode"
	"unicode/utf8"
)

// closing returns the quote that ends a string begun with r. It returns 0 if r begins no string.
func closing(r rune) rune {
	switch r {
	case '"', '\'', '`':
		return r
	case '“':
		return '”'
	case '‘':
		return '’'
	}
	return 0
}

// str reads a string, and the strings joined to it with +.
func (p *parser) str() bool {
	if !p.quoted() {
		return false
	}
	for {
		after := p.pos
		p.space()
		if p.peek(p.pos) != '+' {
			p.pos = after // the caller needs to know about line breaks
			return true
		}
		p.pos++
		p.space()
		if r := p.first(); r == end {
			return p.cut("an object or a list")
		} else if closing(r) == 0 {
			return p.fail("a value that is not a string is joined to a string")
		}
		p.out = p.out[:len(p.out)-1] // its closing quote
		at := len(p.out)
		if !p.quoted() {
			return false
		}
		p.out = append(p.out[:at], p.out[at+1:]...)
		p.note("joined strings written with +")
	}
}

// quoted reads one string with any kind of quotes.
func (p *parser) quoted() bool {
	open, n := p.rune(p.pos)
	shut := closing(open)
	switch open {
	case '\'':
		p.note("replaced single quotes")
	case '“', '‘':
		p.note("replaced typographic quotes")
	case '`':
		if p.has(p.pos, "```") {
			return p.fail("there is a code fence in the middle")
		}
		p.note("replaced back quotes")
	}

	p.pos += n
	p.out = append(p.out, '"')
	var before rune // the previous character
	// control: an escape that produces a control character; unknown: an escape that JSON lacks
	var control, unknown bool
	for {
		r, n := p.rune(p.pos)
		switch {
		case r == end:
			return p.cut("a string")
		case r == shut && !p.apostrophe(before, p.pos+n):
			p.pos += n
			p.out = append(p.out, '"')
			if control && unknown { // C:\Users\new
				return p.fail("a string has backslashes that may or may not be escapes; write \\\\ for a backslash")
			}
			return true

		case r == '\\':
			c, u, ok := p.escape(shut)
			if !ok {
				return false
			}
			control = control || c
			unknown = unknown || u
			before = r
			continue

		case r == '"':
			p.out = append(p.out, '\\', '"')
		case r == '$' && open == '`' && p.peek(p.pos+1) == '{':
			return p.fail("a template is not a value")
		case r < 0x20 && controls[r] == "":
			return p.fail("there is a control character in a string")
		case r < 0x20:
			p.out = append(p.out, controls[r]...)
			p.note("escaped a line break or a tab in a string")
		default:
			p.out = append(p.out, p.text[p.pos:p.pos+n]...)
		}
		before = r
		p.pos += n
	}
}

// apostrophe reports whether a quote is inside a word. Such a quote ends no string, because no
// valid text could follow.
func (p *parser) apostrophe(before rune, next int) bool {
	if p.text[next-1] == '"' || p.text[next-1] == '`' || !unicode.IsLetter(before) {
		return false
	}
	after, _ := p.rune(next)
	return unicode.IsLetter(after)
}

// hexEscape reads \u and its four digits.
func (p *parser) hexEscape() bool {
	for k := range 4 {
		c := p.peek(p.pos + 2 + k)
		switch {
		case c == end:
			return p.cut("a string")
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'f':
		default:
			return p.fail("\\u needs four hexadecimal digits; write \\\\ for a backslash")
		}
	}
	p.out = append(p.out, p.text[p.pos:p.pos+6]...)
	p.pos += 6
	return true
}

// escape reads a backslash and the following characters, in a string that shut ends.
func (p *parser) escape(shut rune) (control, unknown, ok bool) {
	r, n := p.rune(p.pos + 1)
	switch r {
	case end:
		return false, false, p.cut("a string")
	case '"', '\\', '/':
		p.out = append(p.out, '\\', byte(r))
	case 'b', 'f', 'n', 'r', 't':
		p.out = append(p.out, '\\', byte(r))
		control = true
	case 'u':
		return true, false, p.hexEscape()

	case '\'', '`', '’', '”':
		if r != '\'' && r != shut {
			return false, false, p.fail("JSON has no escape \\%c", r)
		}
		p.out = utf8.AppendRune(p.out, r)
		p.note("removed the backslash from an escaped quote")

	default:
		if !literal(r) {
			return false, false, p.fail("JSON has no escape \\%c, and it may mean two things; "+
				"write \\\\ for a backslash", r)
		}
		p.out = append(p.out, '\\', '\\', byte(r))
		p.note("wrote an unknown escape as the backslash it is")
		unknown = true
	}
	p.pos += 1 + n
	return control, unknown, true
}

// literal reports whether a backslash before r can only mean a backslash, as in regular expressions
// and paths. Before other characters it is an escape in some language (\x41 \0 \e \v, a line
// continuation), or the notation of Markdown and the shell for the character itself.
func literal(r rune) bool {
	switch r {
	case 'a', 'e', 'v', 'x', 'o', 'N', 'U':
		return false
	case '.', '(', ')', '[', ']', '{', '}', '?', '^', '|':
		return true
	}
	return r|0x20 >= 'a' && r|0x20 <= 'z'
}

// controls holds how the control characters are written that have a place in text.
var controls = [0x20]string{'\n': `\n`, '\t': `\t`, '\r': `\r`, '\f': `\f`, '\b': `\b`}
