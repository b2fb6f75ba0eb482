package jsonrepair

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// value reads the value at the cursor.
func (p *parser) value() bool {
	p.space()
	r, _ := p.rune(p.pos)
	switch {
	case r == end:
		return p.cut("an object or a list")
	case r == '{':
		return p.nested(p.object)
	case r == '[':
		return p.nested(p.array)
	case closing(r) != 0:
		return p.str()
	case '0' <= r && r <= '9', r == '-', r == '+', r == '.':
		return p.number()
	case r == ',' || r == '}' || r == ']':
		return p.fail("a value is missing")
	}
	return p.word()
}

func (p *parser) nested(read func() bool) bool {
	p.depth++
	if p.depth > maxDepth {
		return p.fail("it is nested too deeply")
	}
	p.pos++
	ok := read()
	p.depth--
	return ok
}

// object reads members up to the closing brace.
func (p *parser) object() bool {
	p.out = append(p.out, '{')
	values := map[string][]byte{}
	for n := 0; ; n++ {
		_, line := p.space()
		comma := false
		for p.peek(p.pos) == ',' {
			if comma || n == 0 {
				p.note("removed a surplus comma")
			}
			comma = true
			p.pos++
			p.space()
		}

		switch p.peek(p.pos) {
		case end:
			return p.cut("an object")
		case '}':
			if comma && n > 0 {
				p.note("removed a trailing comma")
			}
			p.pos++
			p.out = append(p.out, '}')
			return true
		}

		start := len(p.out)
		if n > 0 {
			p.out = append(p.out, ',')
		}
		nameAt := len(p.out)
		bare := closing(p.first()) == 0
		if !p.name() {
			return false
		}
		p.space()
		switch p.peek(p.pos) {
		case ':':
		case end:
			return p.cut("an object")
		default:
			return p.fail("there is no colon after the name %s", clip(p.out[nameAt:]))
		}

		name := ""
		if json.Unmarshal(p.out[nameAt:], &name) != nil {
			return p.fail("a name cannot be read")
		}
		if n > 0 && !comma {
			// A stray quote inside a string can look like this, unless a complete "name": follows.
			if name == "" || bare && !line {
				return p.fail("there is no comma before the name %q", name)
			}
			p.note("added a missing comma")
		}

		p.pos++
		p.out = append(p.out, ':')
		valueAt := len(p.out)
		if !p.value() {
			return false
		}

		// A member that is repeated unchanged is dropped. Of two values, neither is certainly
		// meant.
		if old, ok := values[name]; ok {
			if !bytes.Equal(old, p.out[valueAt:]) {
				return p.fail("the name %q occurs twice, with different values", name)
			}
			p.out = p.out[:start]
			p.note("removed a repeated member")
			continue
		}
		values[name] = p.out[valueAt:len(p.out):len(p.out)]
	}
}

func (p *parser) first() rune {
	r, _ := p.rune(p.pos)
	return r
}

// name reads the name of a member: a string, or a word without quotes.
func (p *parser) name() bool {
	start := p.pos
	if closing(p.first()) != 0 {
		if !p.quoted() {
			return false
		}
		p.steps += p.pos - start
		if bytes.ContainsAny(p.text[start:p.pos], "\r\n") {
			return p.fail("a name has a line break in it")
		}
		return true
	}

	for {
		r, n := p.rune(p.pos)
		if !inWord(r) && !strings.ContainsRune("$-.", r) {
			break
		}
		p.pos += n
	}
	name := p.text[start:p.pos]
	if p.peek(p.pos) == end {
		return p.cut("an object")
	}
	if len(name) == 0 || name[0] == '.' || name[0] == '-' {
		p.pos = start
		return p.fail("a name was wanted")
	}
	p.out = jsonscan.AppendString(p.out, name)
	p.note("quoted the name %s", clip(name))
	return true
}

// array reads elements up to the closing bracket.
func (p *parser) array() bool {
	p.out = append(p.out, '[')
	for n := 0; ; n++ {
		some, line := p.space()
		comma := p.peek(p.pos) == ','
		if comma {
			if n == 0 {
				return p.fail("a value is missing before the comma")
			}
			p.pos++
			p.space()
		}

		switch p.peek(p.pos) {
		case end:
			return p.cut("a list")
		case ']':
			if comma {
				p.note("removed a trailing comma")
			}
			p.pos++
			p.out = append(p.out, ']')
			return true
		}

		if n > 0 && !comma {
			if !p.apart(some, line) {
				return p.fail("there is no comma between two values, or a quote inside a string is not escaped")
			}
			p.note("added a missing comma")
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		if !p.value() {
			return false
		}
	}
}

// apart reports whether the value just written and the value at the cursor are certainly two
// values, although no comma separates them.
func (p *parser) apart(some, line bool) bool {
	last := p.out[len(p.out)-1]
	next := p.first()
	switch {
	case next == '{' || next == '[':
		return last == '}' || last == ']'
	case last == '"': // not "a""b", which may be a doubled quote
		return some && closing(next) != 0
	case last >= '0' && last <= '9': // not 10 000 either
		return line && next >= '0' && next <= '9'
	}
	return false
}

// number reads a number, also in a notation that JSON does not allow.
func (p *parser) number() bool {
	start := p.pos
	for !p.delimiter() {
		p.pos++
	}
	raw := string(p.text[start:p.pos])
	t := strings.TrimPrefix(raw, "+")
	sign := ""
	if strings.HasPrefix(t, "-") && t == raw {
		sign = "-"
		t = t[1:]
	}
	if strings.HasPrefix(t, ".") {
		t = "0" + t
	}
	if strings.HasSuffix(t, ".") {
		t += "0"
	}
	t = sign + t

	if !json.Valid([]byte(t)) || t[len(t)-1] < '0' || t[len(t)-1] > '9' {
		p.pos = start
		if lost := strings.ToLower(strings.TrimLeft(raw, "+-")); lost == "infinity" || lost == "inf" || lost == "nan" {
			return p.fail("JSON has no %s", clip([]byte(raw)))
		}
		return p.fail("%s is not a JSON number, and text needs quotes", clip([]byte(raw)))
	}
	if t != raw {
		p.note("wrote the number %s as %s", clip([]byte(raw)), clip([]byte(t)))
	}
	p.out = append(p.out, t...)
	return true
}

// delimiter reports whether a number or word ends at the cursor.
func (p *parser) delimiter() bool {
	r, _ := p.rune(p.pos)
	switch r {
	case end, ' ', '\t', '\n', '\r', '\v', '\f', ',', ':', '[', ']', '{', '}', '"', '\'', '#', 0xA0, 0x3000, 0xFEFF:
		return true
	case '/':
		return p.peek(p.pos+1) == '/' || p.peek(p.pos+1) == '*'
	}
	return false
}

// literals maps the accepted literals to their JSON form.
var literals = map[string]string{
	"true": "true", "True": "true", "TRUE": "true",
	"false": "false", "False": "false", "FALSE": "false",
	"null": "null", "Null": "null", "NULL": "null", "None": "null",
}

// word reads a literal. Any other word is an undefined name or a string without quotes, which
// cannot be distinguished.
func (p *parser) word() bool {
	start := p.pos
	for !p.delimiter() {
		p.pos++
	}
	w := string(p.text[start:p.pos])
	lit := literals[w]
	if lit == "" {
		p.pos = start
		switch w {
		case "NaN", "nan", "Infinity", "inf", "undefined":
			return p.fail("JSON has no %s", w)
		}
		return p.fail("there is text without quotes: %s", clip(p.text[start:]))
	}
	switch p.first() {
	case '"', '\'', '{', '[', ':':
		return p.fail("there is text without quotes: %s", clip(p.text[start:]))
	}
	if w != lit {
		p.note("wrote %s as %s", w, lit)
	}
	p.out = append(p.out, lit...)
	return true
}

// clip returns the beginning of b on one line.
func clip(b []byte) string {
	const most = 40
	if cut, _, found := bytes.Cut(b[:min(len(b), most)], []byte("\n")); found {
		b = cut
	}
	if len(b) <= most {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	return strings.ToValidUTF8(string(b[:most]), "") + "…"
}

// Balanced returns the length of the part of s in which every bracket is closed, up to the bracket
// that closes the first one. Brackets within quotation marks do not count. open and end are the
// characters that open and close. 0 means that the part has no end.
func Balanced(s, open, end string) int {
	depth := 0
	inString := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case strings.IndexByte(open, c) >= 0:
			depth++
		case strings.IndexByte(end, c) >= 0:
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
