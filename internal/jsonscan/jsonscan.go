// Package jsonscan reads and writes JSON text byte by byte for the wire adapters, because decoding
// is most of the cost of a run. It builds no tree, uses no reflection and allocates only the
// strings that its caller requests.
//
// A Cursor walks a document once, from left to right. The caller reads the values that it knows; a
// value that was not read is skipped.
//
//	c := jsonscan.New(data)
//	if c.Object() {
//		for key, ok := c.Key(); ok; key, ok = c.Key() {
//			switch string(key) {
//			case "id":
//				id = c.String()
//			case "choices":
//				for c.Array(); c.More(); {
//					…
//				}
//			}
//		}
//	}
//	if err := c.End(); err != nil { … }
//
// A Cursor is lenient where reading a provider's answer is better than refusing it: a value of an
// unexpected kind reads as the zero value, a string may contain raw control characters, and skipped
// values are checked for balanced brackets only. json.Valid is strict.
//
// No function panics on any input, and every function takes time linear in the size of its input.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
)

// MaxDepth is the maximum nesting of objects and arrays, the same as in encoding/json.
const MaxDepth = 10000

// Kind is the kind of a JSON value, named by its first byte.
type Kind byte

// The kinds of values. None means no value: the end of the text, or text that is not JSON.
const (
	None   Kind = 0
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	Number Kind = '0'
	True   Kind = 't'
	False  Kind = 'f'
	Null   Kind = 'n'
)

// ErrSyntax is wrapped by every error of a Cursor.
var ErrSyntax = errors.New("not valid JSON")

// Cursor reads one JSON document. After an error every method reports no value, so that callers
// check for errors once, at the end. The zero Cursor reads the empty text.
type Cursor struct {
	data    []byte
	offset  int  // of the next byte
	value   int  // offset plus one of the value that Key or More announced; 0 means none
	first   bool // an object or array was entered and none of its content was read
	depth   int
	fault   string // the first fault; empty means none; it becomes an error only on request
	at      int    // offset of the fault
	scratch []byte // for keys with escapes
}

// New returns a Cursor at the start of data. Slices that the Cursor returns refer to data.
func New(data []byte) Cursor { return Cursor{data: data} }

// Offset returns the position of the Cursor in the data.
func (c *Cursor) Offset() int { return c.offset }

// Since returns the data from an offset to the position of the Cursor.
func (c *Cursor) Since(offset int) []byte { return c.data[offset:c.offset] }

// Err returns the first error, or nil.
func (c *Cursor) Err() error {
	if c.fault == "" {
		return nil
	}
	return fmt.Errorf("%w: %s at offset %d", ErrSyntax, c.fault, c.at)
}

// End returns the first error, or an error if anything but white space follows.
func (c *Cursor) End() error {
	if c.fault == "" {
		c.space()
		if c.offset < len(c.data) {
			c.fail("text after the value")
		}
	}
	return c.Err()
}

func (c *Cursor) fail(what string) {
	if c.fault == "" {
		c.fault = what
		c.at = c.offset
	}
	c.offset = len(c.data)
}

func (c *Cursor) space() {
	for c.offset < len(c.data) {
		switch c.data[c.offset] {
		case ' ', '\n', '\r', '\t':
			c.offset++
		default:
			return
		}
	}
}

// Kind returns the kind of the next value without reading it.
func (c *Cursor) Kind() Kind {
	c.space()
	if c.offset >= len(c.data) || c.fault != "" {
		return None
	}
	switch b := c.data[c.offset]; b {
	case '{', '[', '"', 't', 'f', 'n':
		return Kind(b)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return None
}

// Object enters the next value and returns true if it is an object. Its members are read with Key
// until that returns false. Any other value is skipped.
func (c *Cursor) Object() bool { return c.enter('{') }

// Array enters the next value and returns true if it is an array. More must then be called until it
// returns false. Any other value is skipped, and More then returns false as well, so that `for
// c.Array(); c.More();` is safe.
func (c *Cursor) Array() bool { return c.enter('[') }

// notEntered makes More return false once after an Array that skipped another value.
const notEntered = -1

func (c *Cursor) enter(open Kind) bool {
	if c.Kind() != open {
		c.Skip()
		if open == '[' {
			c.value = notEntered
		}
		return false
	}
	c.depth++
	if c.depth > MaxDepth {
		c.fail("nested too deeply")
		return false
	}
	c.offset++
	c.first = true
	c.value = 0
	return true
}

// next moves past the comma before the next member or element, or past the closing byte.
func (c *Cursor) next(end byte) bool {
	if c.fault != "" {
		return false
	}
	if c.value == c.offset+1 {
		c.Skip() // the caller did not read the value
		if c.fault != "" {
			return false
		}
	}
	c.space()
	if c.offset >= len(c.data) {
		c.fail("unexpected end")
		return false
	}

	b := c.data[c.offset]
	switch {
	case b == end:
		c.offset++
		c.depth--
		c.first = false
		c.value = 0
		return false
	case c.first:
		c.first = false
	case b == ',':
		c.offset++
		c.space()
	default:
		c.fail("no comma")
		return false
	}
	return true
}

// Key reads the name of the next member of the object entered last, and moves to its value. It
// returns false at the end of the object. The bytes are valid until the next call.
func (c *Cursor) Key() (key []byte, ok bool) {
	if !c.next('}') {
		return nil, false
	}
	if c.offset >= len(c.data) || c.data[c.offset] != '"' {
		c.fail("no member name")
		return nil, false
	}
	raw := c.str()
	if c.fault != "" {
		return nil, false
	}

	c.space()
	if c.offset >= len(c.data) || c.data[c.offset] != ':' {
		c.fail("no colon")
		return nil, false
	}
	c.offset++
	c.space()
	c.value = c.offset + 1

	if bytes.IndexByte(raw, '\\') >= 0 {
		c.scratch = appendUnquoted(c.scratch[:0], raw, false)
		raw = c.scratch
	}
	return raw, true
}

// Members yields the names of the members of the next value if it is an object, each with the
// Cursor at its value. Any other value is skipped. A name is valid until the next iteration.
func (c *Cursor) Members() iter.Seq[[]byte] {
	return func(yield func(key []byte) bool) {
		if !c.Object() {
			return
		}
		for key, ok := c.Key(); ok && yield(key); key, ok = c.Key() {
		}
	}
}

// Numbers yields the numbers of a valid JSON value, at any depth and in their order, each with its
// offset in value.
func Numbers(value []byte) iter.Seq2[int, []byte] {
	return func(yield func(offset int, number []byte) bool) {
		c := New(value)
		for c.offset < len(c.data) {
			at := c.offset
			b := c.data[at]
			switch {
			case b == '"':
				c.str()
			case b == '-' || b >= '0' && b <= '9':
				if !yield(at, c.word()) {
					return
				}
			default:
				c.offset++
			}
		}
	}
}

// Word is the text of a short string, as Text returns it.
type Word []byte

// Fields reads the members of the next value, if it is an object, into pairs of a name and a
// target: *string as String, *Word as Text, *[]byte as Raw, *bool as Bool, *int and *int64 as Int,
// and *float64 as Float. It skips other members, and leaves the targets of missing ones unchanged.
// An *int is at least 0, and 0 for a value that is no number.
func (c *Cursor) Fields(pairs ...any) {
	if !c.Object() {
		return
	}
	for key, ok := c.Key(); ok; key, ok = c.Key() {
		for i := 0; i < len(pairs); i += 2 {
			if name, _ := pairs[i].(string); string(key) == name {
				c.into(pairs[i+1])
				break
			}
		}
	}
}

func (c *Cursor) into(target any) {
	switch p := target.(type) {
	case *string:
		*p = c.String()
	case *Word:
		*p = c.Text()
	case *[]byte:
		*p = c.Raw()
	case *bool:
		*p = c.Bool()
	case *int:
		n, _ := c.Int()
		*p = int(max(n, 0))
	case *int64:
		if n, ok := c.Int(); ok {
			*p = n
		}
	case *float64:
		*p, _ = c.Float()
	}
}

// More moves to the next element of the array entered last. It returns false at the end of the
// array.
func (c *Cursor) More() bool {
	if c.value == notEntered {
		c.value = 0
		return false
	}
	if !c.next(']') {
		return false
	}
	c.value = c.offset + 1
	return true
}

// str reads the string at the cursor and returns the text between the quotes.
func (c *Cursor) str() []byte {
	start := c.offset + 1
	for end := start; ; end++ {
		k := bytes.IndexByte(c.data[end:], '"')
		if k < 0 {
			c.fail("string without an end")
			return nil
		}
		end += k
		raw := c.data[start:end]
		// An odd number of backslashes before a quote escapes it.
		if (len(raw)-len(bytes.TrimRight(raw, `\`)))%2 == 0 {
			c.offset = end + 1
			return raw
		}
	}
}

// text is str for a value of any kind. It skips a value that is not a string and returns nil.
func (c *Cursor) text() []byte {
	if c.Kind() != String {
		c.Skip()
		return nil
	}
	return c.str()
}

// AppendString appends the next value to dst, unquoted, if it is a string. Escapes are resolved.
// Invalid UTF-8 or UTF-16 becomes U+FFFD, as in encoding/json. Any other value is skipped.
func (c *Cursor) AppendString(dst []byte) []byte {
	raw := c.text()
	return appendUnquoted(slices.Grow(dst, len(raw)), raw, false)
}

// String returns the next value, unquoted, if it is a string, and "" otherwise.
func (c *Cursor) String() string { return unquoted(c.text()) }

// Known is String without an allocation if the value is one of words, which maps each word to
// itself.
func (c *Cursor) Known(words map[string]string) string {
	raw := c.text()
	if w, ok := words[string(raw)]; ok {
		return w
	}
	return unquoted(raw)
}

// Bytes is AppendString into a new slice. A string gives at least an empty slice, any other value
// nil.
func (c *Cursor) Bytes() []byte {
	raw := c.text()
	if raw == nil {
		return nil
	}
	return appendUnquoted(make([]byte, 0, len(raw)), raw, false)
}

// Text returns the bytes between the quotes of the next value if it is a string. Without escapes
// the slice refers to the data; with escapes it is an unescaped copy. It returns nil for any other
// value. It serves short words that are compared: types, reasons, states.
func (c *Cursor) Text() []byte {
	raw := c.text()
	if bytes.IndexByte(raw, '\\') >= 0 {
		return appendUnquoted(nil, raw, false)
	}
	return raw
}

// Int returns the next value if it is a number, truncated to an integer within the range of int64.
// Any other value is skipped, and Int returns 0 and false.
func (c *Cursor) Int() (int64, bool) {
	if c.Kind() != Number {
		c.Skip()
		return 0, false
	}
	t := string(c.word())
	n, err := strconv.ParseInt(t, 10, 64)
	if err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(t, 64)

	// ParseFloat returns 0 for what is no number, and an infinity for a number that is too large.
	switch {
	case err != nil && f == 0:
		c.fail("number")
		return 0, false
	case f >= 1<<63:
		return 1<<63 - 1, true
	case f < -1<<63:
		return -1 << 63, true
	}
	return int64(f), true
}

// Float returns the next value if it is a number. Any other value is skipped, and Float returns 0
// and false.
func (c *Cursor) Float() (float64, bool) {
	if c.Kind() != Number {
		c.Skip()
		return 0, false
	}
	f, err := strconv.ParseFloat(string(c.word()), 64)
	if err != nil && f == 0 {
		c.fail("number")
		return 0, false
	}
	return f, true
}

// Bool reports whether the next value is true. Any other value is skipped.
func (c *Cursor) Bool() bool {
	is := c.Kind() == True
	c.Skip()
	return is
}

// Null reads the next value and returns true if it is null. It does not consume any other value.
func (c *Cursor) Null() bool {
	if c.Kind() != Null {
		return false
	}
	c.Skip()
	return true
}

// Raw skips the next value and returns its text, which refers to the data. Only its brackets are
// checked; use json.Valid before storing it as JSON.
func (c *Cursor) Raw() []byte {
	c.space()
	start := c.offset
	c.Skip()
	if c.fault != "" {
		return nil
	}
	return c.data[start:c.offset]
}

// Skip moves past the next value.
func (c *Cursor) Skip() {
	if c.fault != "" {
		return
	}
	switch c.Kind() {
	case None:
		if c.offset >= len(c.data) {
			c.fail("unexpected end")
		} else {
			c.fail("no value")
		}
	case String:
		c.str()
	case Object, Array:
		c.balance()
	default:
		c.word()
	}
}

// word reads a number or a literal: everything up to a delimiter.
func (c *Cursor) word() []byte {
	start := c.offset
	for c.offset < len(c.data) && inWord(c.data[c.offset]) {
		c.offset++
	}
	w := c.data[start:c.offset]
	if w[0] >= 'a' && !isLiteral(w) {
		c.fail("literal")
	}
	return w
}

func isLiteral(w []byte) bool {
	switch string(w) {
	case "true", "false", "null":
		return true
	}
	return false
}

func inWord(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || b == '-' || b == '+' || b == '.'
}

// IsObject reports whether data is one valid JSON object.
func IsObject(data []byte) bool {
	c := New(data)
	return c.Kind() == Object && json.Valid(data)
}
