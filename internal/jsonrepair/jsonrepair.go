// Package jsonrepair repairs text that a model wrote where JSON was requested. It never invents a
// value: the result has the meaning of the text, or it returns an error.
//
//	{path: 'a.txt', "lines": [1, 2,], "force": True}   // as you asked
//	{"path":"a.txt","lines":[1,2],"force":true}
//
// It repairs text with exactly one interpretation:
//
//   - additional or missing commas; closing brackets after the end;
//   - single, typographic and back quotes; names without quotes;
//   - Python's True, False and None; numbers written +1, .5 or 2.;
//   - comments, byte order marks, unusual spaces, code fences, and prose around one object;
//   - raw line breaks and tabs in strings, unknown escapes, "strings" + "joined";
//   - a document that was escaped once too often.
//
// It refuses text with no interpretation or several: text that ends too early (ErrCut), missing
// values (undefined, NaN, an ellipsis, words without quotes), quotes inside strings that may or may
// not end them, two different objects, two fenced blocks, a word glued to an object, one name with
// two values. A string that contains JSON stays a string: only a schema can decide whether its
// content was meant.
//
// No function panics on any input, and every function takes time linear in the size of its input.
package jsonrepair

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// ErrCut is wrapped by the error for text that ends inside a value. The missing part is unknown, so
// it is never repaired.
var ErrCut = errors.New("it ends too early")

// maxDepth is the maximum nesting of repaired text.
const maxDepth = 1000

// maxNotes is the maximum number of different repairs that are named.
const maxNotes = 16

// Repair returns text as one valid JSON value, and the repairs in short sentences for the record.
// Valid JSON is returned unchanged, with no repairs. Repaired JSON is returned compact, without
// white space between values. An error says why the text has no interpretation, or more than one,
// in words for a model. It wraps ErrCut if the text ends too early.
func Repair(text []byte) (fixed []byte, repairs []string, err error) {
	if json.Valid(text) {
		return text, nil, nil
	}
	p := parser{text: text}
	if !p.document() {
		return nil, nil, p.err
	}
	return p.out, p.notes, nil
}

// parser reads text once, from left to right, and writes the values as JSON. Its methods return
// false after a failure; err is then set.
type parser struct {
	text  []byte
	pos   int    // the next byte
	out   []byte // the values read so far, as JSON
	notes []string
	err   error
	depth int

	fences int // code fences before the value
	steps  int // how often a byte was examined, for the test of linear time
}

const end = -1

// peek returns the byte at i, or end.
func (p *parser) peek(i int) int {
	p.steps++
	if i >= len(p.text) {
		return end
	}
	return int(p.text[i])
}

// rune returns the character at i and its size. After the last character it returns end and 0.
func (p *parser) rune(i int) (rune, int) {
	p.steps++
	if i >= len(p.text) {
		return end, 0
	}
	if c := p.text[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRune(p.text[i:])
}

func (p *parser) has(i int, word string) bool {
	p.steps += len(word)
	return len(p.text)-i >= len(word) && string(p.text[i:i+len(word)]) == word
}

func (p *parser) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	switch {
	case slices.Contains(p.notes, s):
	case len(p.notes) < maxNotes:
		p.notes = append(p.notes, s)
	case len(p.notes) == maxNotes:
		p.notes = append(p.notes, "repaired more of the kind")
	}
}

func (p *parser) fail(format string, args ...any) bool {
	if p.err == nil {
		p.err = fmt.Errorf("%s, at byte %d", fmt.Sprintf(format, args...), p.pos)
	}
	return false
}

func (p *parser) cut(what string) bool {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s is not closed", ErrCut, what)
	}
	return false
}

// space skips white space and comments. It reports whether there was any, and whether it contained
// a line break.
func (p *parser) space() (some, line bool) {
	for start := p.pos; ; {
		r, n := p.rune(p.pos)
		switch {
		case r == '\n' || r == '\r':
			line = true
			p.pos += n
		case r == ' ', r == '\t', r == '\v', r == '\f':
			p.pos += n
		case oddSpace(r):
			p.note("removed an odd space")
			p.pos += n
		case p.comment(r):
			p.note("removed a comment")
		default:
			return p.pos > start, line
		}
	}
}

// oddSpace reports whether r is a space, or has no width, and JSON does not allow it.
func oddSpace(r rune) bool {
	switch r {
	case 0xA0, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return 0x2000 <= r && r <= 0x200B
}

// comment skips a comment that begins with r, in one of the three forms of programs.
func (p *parser) comment(r rune) bool {
	switch {
	case r == '#', r == '/' && p.peek(p.pos+1) == '/':
		for c := p.peek(p.pos); c != '\n' && c != end; c = p.peek(p.pos) {
			p.pos++
		}
	case r == '/' && p.peek(p.pos+1) == '*':
		p.pos += len("/*")
		for p.peek(p.pos) != end && !p.has(p.pos, "*/") {
			p.pos++
		}
		p.pos = min(p.pos+len("*/"), len(p.text))
	default:
		return false
	}
	return true
}
