package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Visible returns s with all characters that could control a terminal written as escapes: control
// characters except newline and tab, characters that change the direction of text, and bytes that
// are not UTF-8. Text of a model or a tool is shown and has no other effect.
func Visible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, Hidden) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\r' && strings.HasPrefix(s[n:], "\n"): // a Windows line end
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case Hidden(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case Hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Hidden reports whether r is a character that a terminal interprets or does not show. Newline and
// tab are not hidden.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r == 0x061C || r == 0x200E || r == 0x200F || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
		return true // marks of text direction
	case r == 0x2028 || r == 0x2029 || r == 0xFEFF || r >= 0xE0000 && r <= 0xE007F:
		return true // Unicode line ends and invisible characters
	}
	return false
}

// Exact is Visible for text that a person decides about: each character without a shape of its own
// is an escape, so that no text hides in it. The selectors and the joiners of an emoji stay.
func Exact(s string) string {
	var b strings.Builder
	last := '\n' // the character before that has a shape
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		after, _ := utf8.DecodeRuneInString(s[i+n:])
		emoji := last == 0xFE0F || unicode.In(last, unicode.So, unicode.Sk) && last > 0x203B && last != utf8.RuneError
		switch {
		case emoji && last != 0xFE0F && r == 0xFE0F,
			emoji && r == 0x200D && unicode.Is(unicode.So, after) && after != utf8.RuneError && !shapeless(after),
			!shapeless(r) && (!unicode.Is(unicode.M, r) || !unicode.IsSpace(last)):
			b.WriteString(s[i : i+n])
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
			r = '}'
		}
		last = r
	}
	return Visible(b.String())
}

// shapeless reports whether r is not a control character, and nothing of it is seen.
func shapeless(r rune) bool {
	return r == 0x2800 || r == 0x1D159 || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// Width returns the number of columns of plain text: 2 for a Chinese character or an emoji, 0 for a
// combining mark.
func Width(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return uniseg.StringWidth(s)
		}
	}
	return len(s)
}

// first splits off the first grapheme cluster, and returns its width.
func first(s string) (letter, rest string, width int) {
	if len(s) > 0 && s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1], s[1:], 1
	}
	letter, rest, width, _ = uniseg.FirstGraphemeClusterInString(s, -1)
	return letter, rest, width
}

// Cut returns plain text cut to width columns. Text that is cut ends in "…".
func Cut(s string, width int) string {
	if len(s) <= width || Width(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	used, rest := 0, s
	for rest != "" {
		_, more, w := first(rest)
		if used+w > width-1 {
			break
		}
		used, rest = used+w, more
	}
	return s[:len(s)-len(rest)] + "…"
}
