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
		p.i = len("\uFEFF")
		p.note("removed a byte order mark")
	}
	if p.at(p.i) != '#' {
		p.space()
	}
	if p.has(p.i, "```") {
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
	if p.out[0] == '"' && (len(p.out) < 3 || p.out[1] != '{' && p.out[1] != '[') {
		return p.fail("it is a string that contains no JSON")
	}
	if !json.Valid(p.out) {
		return p.fail("it cannot be read as JSON")
	}
	return true
}

// openFence skips a code fence and its language.
func (p *parser) openFence() {
	p.i += len(fence)
	for c := p.at(p.i); c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'; c = p.at(p.i) {
		p.i++
	}
	p.space()
}

// prose skips text in front of an object.
func (p *parser) prose() bool {
	start := p.i
	if !p.brace() {
		p.i = start
		return p.fail("there is no JSON object in it: %s", clip(p.text[start:]))
	}
	before := bytes.TrimRight(p.text[start:p.i], " \t\r\n")
	p.steps += len(before)
	last := before[len(before)-1]
	switch {
	case last == ',' || last == '[' || last == '{',
		last == ':' && len(before) > 1 && (before[len(before)-2] == '"' || before[len(before)-2] == '\''):
		return p.fail("the text before the object is part of something")
	}
	p.fences += bytes.Count(before, fence)
	if p.fences > 1 {
		return p.fail("there are two fenced blocks")
	}
	name := before[len(bytes.TrimRightFunc(before, inWord)):]
	if len(name) > 0 && len(before) == p.i-start && !bytes.HasSuffix(before[:len(before)-len(name)], fence) {
		return p.fail("the word %s is glued to the object", clip(name))
	}
	p.note("removed the text before the object")
	return true
}

// inWord reports whether r is part of a word or a number.
func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// glued reports whether a word follows the object without a space, and sets err.
func (p *parser) glued() bool {
	r, _ := utf8.DecodeRune(p.text[p.i:])
	return inWord(r) && !p.fail("text is glued to the end of the object: %s", clip(p.text[p.i:]))
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
	for ; ; p.i++ {
		switch p.at(p.i) {
		case end:
			return false
		case '{':
			k := p.i + 1
			for inPlaceholder(p.at(k)) {
				k++
			}
			if k == p.i+1 || p.at(k) != '}' {
				return true
			}
			p.i = k
		case '}':
			return false
		}
	}
}

// rest reads the text after the value, which must not contain further information.
func (p *parser) rest() bool {
	first := p.out[:len(p.out):len(p.out)]
	object := first[0] == '{'
	if object && p.glued() {
		return false
	}

	after := bytes.Count(p.text[p.i:], fence)
	p.steps += len(p.text) - p.i
	opens := p.fences == 0 && after%2 == 0 // whether the next fence opens a block
	for {
		p.space()
		c := p.at(p.i)
		switch {
		case c == end:
			return true

		case object && (c == '}' || c == ']' || c == ')'):
			p.note("removed a closing bracket after the end")
			p.i++

		case c == ',' || c == ';':
			p.note("removed a comma after the end")
			p.i++
			p.space()
			if p.at(p.i) != end && p.at(p.i) != '{' && !p.has(p.i, "```") {
				return p.fail("more text follows after its end")
			}

		case p.has(p.i, "```"):
			if !p.fenceAfter(opens, object) {
				return false
			}
			opens = !opens

		case c == '{' && object:
			if !p.again(first) {
				return false
			}

		case !object || closing(p.first()) != 0 || c == ':' || c == '[':
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
		p.i += len(fence)
		return true
	}
	p.openFence()
	if p.at(p.i) != end && (p.at(p.i) != '{' || !object) {
		return p.fail("there are two fenced blocks")
	}
	return true
}

// textAfter removes the text after the object, up to the next object or fence. The text must not
// contain members of an object.
func (p *parser) textAfter() bool {
	start := p.i
	found := p.brace()
	p.steps += p.i - start
	if after := p.text[start:p.i]; !found && p.i < len(p.text) || bytes.Contains(after, []byte(`":`)) {
		return p.fail("more text follows after its end")
	}
	if n := bytes.Index(p.text[start:p.i], fence); n > 0 {
		p.i = start + n
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
	k := p.i + 1
	for c := p.at(k); c == ' ' || c == '\\' && p.at(k+1) == 'n'; c = p.at(k) {
		k++
		if c == '\\' {
			k++
		}
	}
	return p.has(k, `\"`)
}

// unescape reads a document in which every quote is escaped, as if it were the content of a string.
func (p *parser) unescape() bool {
	text := bytes.TrimSpace(p.text[p.i:])
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
