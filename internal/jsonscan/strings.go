package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

func unquoted(raw []byte, escaped bool) string {
	if !escaped {
		if utf8.Valid(raw) {
			return string(raw)
		}
		return string(appendValid(nil, raw))
	}
	b := appendUnquoted(make([]byte, 0, len(raw)), raw)
	return unsafe.String(unsafe.SliceData(b), len(b)) // b is never changed afterwards
}

// appendValid appends raw, with each invalid byte of UTF-8 as U+FFFD.
func appendValid(dst, raw []byte) []byte {
	if utf8.Valid(raw) {
		return append(dst, raw...)
	}
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		dst = utf8.AppendRune(dst, r)
		raw = raw[n:]
	}
	return dst
}

// appendUnquoted appends raw, the content of a JSON string, with its escapes resolved. An unknown
// escape stands for the escaped character itself.
func appendUnquoted(dst, raw []byte) []byte {
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 || k+1 == len(raw) {
			return appendValid(dst, raw)
		}
		dst = appendValid(dst, raw[:k])
		e := raw[k+1]
		raw = raw[k+2:]
		switch e {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			r, ok := hex4(raw)
			if !ok {
				dst = utf8.AppendRune(dst, utf8.RuneError)
				continue
			}
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
					low, ok = hex4(raw[2:])
				}
				pair := utf16.DecodeRune(r, low)
				if r = utf8.RuneError; ok && pair != utf8.RuneError {
					r = pair
					raw = raw[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, e)
		}
	}
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, d := range b[:4] {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// AppendString appends s to dst as a JSON string. It escapes only what JSON requires. Invalid UTF-8
// becomes U+FFFD.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	var b []byte
	switch s := any(s).(type) {
	case string:
		b = unsafe.Slice(unsafe.StringData(s), len(s)) // only read
	case []byte:
		b = s
	}
	if need := len(b) + 2; cap(dst)-len(dst) < need {
		// grow once, because a long text would otherwise grow the slice many times
		dst = slices.Grow(dst, need+need/8)
	}
	return append(appendInside(append(dst, '"'), b), '"')
}

const hexDigits = "0123456789abcdef"

// appendInside appends b as the content of a JSON string.
func appendInside(dst, b []byte) []byte {
	for len(b) > 0 {
		n := plain(b)
		dst = append(dst, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			break
		}
		switch c := b[0]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRune(b)
			dst = utf8.AppendRune(dst, r)
			b = b[n:]
			continue
		}
		b = b[1:]
	}
	return dst
}

// stop returns the number of bytes before the first quote or backslash of b.
func stop(b []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote := w ^ ones*'"'
		slash := w ^ ones*'\\'
		// The lowest high bit belongs to the first zero byte.
		if hit := ((quote-ones)&^quote | (slash-ones)&^slash) & high; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] == '"' || b[i] == '\\' {
			break
		}
	}
	return i
}

// plain returns the number of bytes at the start of b that need no escaping: ASCII without control
// characters, quotes and backslashes. It examines eight bytes at a time, because quoting is most of
// the cost of encoding a long history.
func plain(b []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote := w ^ ones*'"'
		slash := w ^ ones*'\\'
		// The high bit of a byte is set if the byte is below 0x20, equals the searched byte, or is
		// not ASCII. Borrows propagate upwards, so the lowest such bit is always correct.
		if hit := (w | (w - ones*0x20) | (quote - ones) | (slash - ones)) & high; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// balance moves past an object or array, examining brackets and strings only.
func (c *Cursor) balance() {
	var small [32]byte
	stack := small[:0]
	for c.i < len(c.b) {
		switch b := c.b[c.i]; b {
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
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				c.i++
				return
			}
		}
		c.i++
	}
	c.fail("unexpected end")
}
