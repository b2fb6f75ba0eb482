package jsonscan

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Gateways cut texts by units of UTF-16, as JavaScript does, so that a string may end with the
// first half of a pair, and the next string begins with the second. A half is kept as three bytes,
// which are no valid UTF-8 (WTF-8), until the halves are joined.

const (
	highHalf = 0xd800 // the smallest first half
	lowHalf  = 0xdc00 // the smallest second half
)

// HalfSize is the number of bytes of a half.
const HalfSize = 3

// AppendPiece is AppendString for a text that arrives in several strings. Half of a UTF-16 pair at
// the start or the end of the string is kept; JoinHalves joins it with the other half.
func (c *Cursor) AppendPiece(dst []byte) []byte {
	raw := c.text()
	if raw == nil {
		return dst
	}
	if dst == nil {
		dst = make([]byte, 0, len(raw))
	}
	return appendUnquoted(dst, raw, true)
}

func appendHalf(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0xbf, 0x80|byte(r)&0x3f)
}

// half returns the half of a pair at the start of b, or 0.
func half(b []byte) rune {
	if len(b) < HalfSize || b[0] != 0xed {
		return 0
	}

	// U+D800 to U+DFFF: the characters before them have a smaller second byte.
	isHalf := b[1] >= 0xa0 && b[1] <= 0xbf && b[2]&0xc0 == 0x80
	if !isHalf {
		return 0
	}
	return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f)
}

// EndsInHalf reports whether b ends with the first half of a pair.
func EndsInHalf(b []byte) bool {
	return len(b) >= HalfSize && isHigh(half(b[len(b)-HalfSize:]))
}

// BeginsWithHalf reports whether b begins with the second half of a pair.
func BeginsWithHalf(b []byte) bool { return half(b) >= lowHalf }

func isHigh(r rune) bool { return r >= highHalf && r < lowHalf }

// JoinHalves returns b with the pairs in it joined. A half without the other becomes U+FFFD. It
// returns b unchanged if it has no half.
func JoinHalves(b []byte) []byte {
	at := nextHalf(b)
	if at < 0 {
		return b
	}
	var out []byte
	for ; at >= 0; at = nextHalf(b) {
		out = append(out, b[:at]...)
		r := half(b[at:])
		b = b[at+HalfSize:]
		pair := utf16.DecodeRune(r, half(b))
		if pair != utf8.RuneError {
			b = b[HalfSize:]
		}
		out = utf8.AppendRune(out, pair)
	}
	return append(out, b...)
}

// HasHalf reports whether a half is in b.
func HasHalf(b []byte) bool { return nextHalf(b) >= 0 }

// nextHalf returns the position of the first half in b, or -1.
func nextHalf(b []byte) int {
	for at := 0; ; at++ {
		next := bytes.IndexByte(b[at:], 0xed)
		if next < 0 {
			return -1
		}
		at += next
		if half(b[at:]) != 0 {
			return at
		}
	}
}

// PairEscapes returns the JSON text b with each escape that is half of a UTF-16 pair without the
// other half replaced by the escape of U+FFFD. Many parsers refuse the whole text for it, or fail
// later when they encode the string. It returns b unchanged if it has no such escape.
func PairEscapes(b []byte) []byte {
	at := nextLoneEscape(b, 0)
	if at < 0 {
		return b
	}
	out := bytes.Clone(b)
	for ; at >= 0; at = nextLoneEscape(out, at) {
		copy(out[at:], `\ufffd`)
	}
	return out
}

// HasLoneEscape reports whether PairEscapes changes b.
func HasLoneEscape(b []byte) bool { return nextLoneEscape(b, 0) >= 0 }

// nextLoneEscape returns the position of the first escape at or after from that is half of a pair
// without the other, or -1. At from, an escape may begin.
func nextLoneEscape(b []byte, from int) int {
	const escape = len(`\ud83d`)
	for at := from; ; {
		next := bytes.IndexByte(b[at:], '\\')
		at += next
		if next < 0 || at+escape > len(b) {
			return -1
		}
		if b[at+1] != 'u' {
			at += 2 // also an escaped backslash
			continue
		}

		r, isUnit := hex4(b[at+2:])
		switch {
		case !isUnit:
			at += 2
		case !utf16.IsSurrogate(r):
			at += escape
		default:
			pair, _ := pairOf(r, b[at+escape:])
			if pair == utf8.RuneError {
				return at
			}
			at += 2 * escape
		}
	}
}
