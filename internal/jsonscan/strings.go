package jsonscan

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// unquoted returns the text of a string whose content between the quotes is raw.
func unquoted(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	return string(appendUnquoted(nil, raw, false))
}

// appendValid appends raw, with each invalid byte of UTF-8 as U+FFFD.
func appendValid(dst, raw []byte) []byte {
	if utf8.Valid(raw) {
		return append(dst, raw...)
	}
	return append(dst, string([]rune(string(raw)))...)
}

// appendUnquoted appends raw, the content of a JSON string, with its escapes resolved. An unknown
// escape stands for the escaped character itself. piece means that the string continues another
// one, or goes on in another one: see AppendPiece.
func appendUnquoted(dst, raw []byte, piece bool) []byte {
	first := len(raw)
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 || k+1 == len(raw) {
			return appendValid(dst, raw)
		}
		dst = appendValid(dst, raw[:k])
		e := raw[k+1]
		raw = raw[k+2:]

		i := strings.IndexByte("bfnrt", e)
		switch {
		case i >= 0:
			dst = append(dst, "\b\f\n\r\t"[i])

		case e == 'u':
			r, ok := hex4(raw)
			if !ok {
				dst = utf8.AppendRune(dst, utf8.RuneError)
				continue
			}
			raw = raw[4:]
			if !utf16.IsSurrogate(r) {
				dst = utf8.AppendRune(dst, r)
				continue
			}

			// A first half at the end and a second half at the beginning belong to other pieces.
			outer := len(raw) == 0
			if r >= lowHalf {
				outer = len(raw)+len(`\ud83d`) == first
			}
			if piece && outer {
				dst = appendHalf(dst, r)
				continue
			}
			r, raw = pairOf(r, raw)
			dst = utf8.AppendRune(dst, r)

		default:
			dst = append(dst, e)
		}
	}
}

// pairOf returns the character whose first half is r, and what follows it in raw. The other half is
// an escape at the start of raw; without it the character is U+FFFD.
func pairOf(r rune, raw []byte) (rune, []byte) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return utf8.RuneError, raw
	}
	low, ok := hex4(raw[2:])
	pair := utf16.DecodeRune(r, low)
	if !ok || pair == utf8.RuneError {
		return utf8.RuneError, raw
	}
	return pair, raw[6:]
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	r, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(r), err == nil
}

// isPlain reports whether c is an ASCII character that stands for itself in a JSON string.
func isPlain(c byte) bool { return c >= ' ' && c <= '~' && c != '"' && c != '\\' }

// AppendString appends s to dst as a JSON string. It escapes only what JSON requires. Invalid UTF-8
// becomes U+FFFD.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	for i := range len(s) {
		if !isPlain(s[i]) {
			dst, _ = jsontext.AppendQuote(dst, s) // the error reports invalid UTF-8
			return dst
		}
	}
	return append(append(append(dst, '"'), s...), '"') // nothing to escape
}

// balance moves past an object or array, examining brackets and strings only.
func (c *Cursor) balance() {
	var small [32]byte
	stack := small[:0]
	for c.offset < len(c.data) {
		switch b := c.data[c.offset]; b {
		case '"':
			c.str()
			continue
		case '{', '[':
			if len(stack)+c.depth >= MaxDepth {
				c.fail("nested too deeply")
				return
			}
			stack = append(stack, b+2) // '{'+2 is '}', '['+2 is ']'
		case '}', ']':
			if stack[len(stack)-1] != b {
				c.fail("brackets do not match")
				return
			}
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				c.offset++
				return
			}
		}
		c.offset++
	}
	c.fail("unexpected end")
}
