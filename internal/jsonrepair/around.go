package jsonrepair

import (
	"bytes"
	"encoding/json"
	"reflect"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/jsonform"
)

var fence = []byte("```")

// document reads the whole text: one value, and the text that may surround it.
func (p *parser) document() bool {
	if p.has(0, "\uFEFF") {
		p.pos = len("\uFEFF")
		p.note("removed a byte order mark")
	}
	if p.peek(p.pos) != '#' {
		p.space()
	}
	if p.has(p.pos, "```") {
		p.openFence()
		p.fences = 1
		p.note("removed a code fence")
	}

	r := p.first()
	switch {
	case r == end:
		return p.fail("there is nothing in it")
	case r == '{' && p.escaped():
		return p.unescape()
	case r == '{' || r == '[' || closing(r) != 0:
	case !p.prose():
		return false
	}

	if !p.value() || !p.rest() {
		return false
	}
	// Some models write the object as a string.
	if p.out[0] == '"' && !bytes.HasPrefix(p.out, []byte(`"{`)) && !bytes.HasPrefix(p.out, []byte(`"[`)) {
		return p.fail("it is a string that contains no JSON")
	}
	if !json.Valid(p.out) {
		return p.fail("it cannot be read as JSON")
	}
	return true
}

// openFence skips a code fence and its language.
func (p *parser) openFence() {
	p.pos += len(fence)
	for c := p.peek(p.pos); inPlaceholder(c) && c != '_'; c = p.peek(p.pos) {
		p.pos++
	}
	p.space()
}

// prose skips text in front of an object.
func (p *parser) prose() bool {
	start := p.pos
	if !p.brace() {
		p.pos = start
		return p.fail("there is no JSON object in it: %s", clip(p.text[start:]))
	}
	before := bytes.TrimRight(p.text[start:p.pos], " \t\r\n")
	p.steps += len(before)
	for _, open := range []string{",", "[", "{", `":`, `':`} {
		if bytes.HasSuffix(before, []byte(open)) {
			return p.fail("the text before the object is part of something")
		}
	}

	p.fences += bytes.Count(before, fence)
	if p.fences > 1 {
		return p.fail("there are two fenced blocks")
	}
	name := before[len(bytes.TrimRightFunc(before, inWord)):]
	if len(name) > 0 && len(before) == p.pos-start && !bytes.HasSuffix(before[:len(before)-len(name)], fence) {
		return p.fail("the word %s is glued to the object", clip(name))
	}
	p.note("removed the text before the object")
	return true
}

// inWord reports whether r is part of a word or a number.
func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// glued reports whether a word follows the object without a space, and sets err.
func (p *parser) glued() bool {
	r, _ := utf8.DecodeRune(p.text[p.pos:])
	return inWord(r) && !p.fail("text is glued to the end of the object: %s", clip(p.text[p.pos:]))
}

// inPlaceholder reports whether c is a byte of a name in a template.
func inPlaceholder(c int) bool {
	switch {
	case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '_':
		return true
	}
	return false
}

// brace moves to the next { that may begin an object. It skips placeholders like {name}.
func (p *parser) brace() bool {
	for ; ; p.pos++ {
		switch p.peek(p.pos) {
		case end:
			return false
		case '{':
			k := p.pos + 1
			for inPlaceholder(p.peek(k)) {
				k++
			}
			if k == p.pos+1 || p.peek(k) != '}' {
				return true
			}
			p.pos = k
		case '}':
			return false
		}
	}
}

// isClosing reports whether c is a bracket that closes something.
func isClosing(c int) bool { return c == '}' || c == ']' || c == ')' }

// rest reads the text after the value, which must not contain further information.
func (p *parser) rest() bool {
	first := p.out[:len(p.out):len(p.out)]
	object := first[0] == '{'
	if object && p.glued() {
		return false
	}

	after := bytes.Count(p.text[p.pos:], fence)
	p.steps += len(p.text) - p.pos
	opens := p.fences == 0 && after%2 == 0 // whether the next fence opens a block
	for {
		p.space()
		c := p.peek(p.pos)
		switch {
		case c == end:
			return true

		case object && isClosing(c):
			p.note("removed a closing bracket after the end")
			p.pos++

		case c == ',' || c == ';':
			p.note("removed a comma after the end")
			p.pos++
			p.space()
			if p.peek(p.pos) != end && p.peek(p.pos) != '{' && !p.has(p.pos, "```") {
				return p.fail("more text follows after its end")
			}

		case p.has(p.pos, "```"):
			if !p.fenceAfter(opens, object) {
				return false
			}
			opens = !opens

		case c == '{' && object:
			if !p.again(first) {
				return false
			}

		case !object, closing(p.first()) != 0, c == ':', c == '[':
			return p.fail("more text follows after its end")

		case !p.textAfter():
			return false
		}
	}
}

// fenceAfter reads a code fence after the value. A fence that opens a block may only be followed by
// a copy of the object.
func (p *parser) fenceAfter(opens, object bool) bool {
	p.note("removed a code fence")
	if !opens {
		p.pos += len(fence)
		return true
	}
	p.openFence()
	if p.peek(p.pos) != end && (p.peek(p.pos) != '{' || !object) {
		return p.fail("there are two fenced blocks")
	}
	return true
}

// textAfter removes the text after the object, up to the next object or fence. The text must not
// contain members of an object.
func (p *parser) textAfter() bool {
	start := p.pos
	found := p.brace()
	p.steps += p.pos - start
	if after := p.text[start:p.pos]; !found && p.pos < len(p.text) || bytes.Contains(after, []byte(`":`)) {
		return p.fail("more text follows after its end")
	}
	if n := bytes.Index(p.text[start:p.pos], fence); n > 0 {
		p.pos = start + n
	}
	p.note("removed the text after the object")
	return true
}

// again reads a further object, which must equal the first.
func (p *parser) again(first []byte) bool {
	p.out = p.out[len(p.out):]
	if !p.value() || p.glued() {
		return false
	}
	if !bytes.Equal(first, p.out) {
		a, errA := jsonform.Value(first)
		b, errB := jsonform.Value(p.out)
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			return p.fail("there are two objects, and they differ")
		}
	}
	p.out = first
	p.note("removed a copy of the object")
	return true
}

// escaped reports whether the object's first name begins with \".
func (p *parser) escaped() bool {
	k := p.pos + 1
	for c := p.peek(k); c == ' ' || c == '\\' && p.peek(k+1) == 'n'; c = p.peek(k) {
		k++
		if c == '\\' {
			k++
		}
	}
	return p.has(k, `\"`)
}

// unescape reads a document in which every quote is escaped, as if it were the content of a string.
func (p *parser) unescape() bool {
	text := bytes.TrimSpace(p.text[p.pos:])
	p.steps += len(text)
	quoted := append(append([]byte{'"'}, text...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil || !json.Valid([]byte(s)) {
		return p.fail("its quotes are escaped, but not all")
	}
	p.out = []byte(s)
	p.note("removed one level of escapes")
	return true
}
