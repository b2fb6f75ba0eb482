package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// invisible are the characters besides control characters that a person does not see and a model
// reads: direction marks, fillers, zero-width spaces, and tag letters that stand for ASCII. The
// joiners U+200C and U+200D belong to some scripts and to emoji, and are not among them.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00AD, Hi: 0x00AD, Stride: 1}, // soft hyphen
		{Lo: 0x034F, Hi: 0x034F, Stride: 1}, // combining grapheme joiner
		{Lo: 0x061C, Hi: 0x061C, Stride: 1}, // Arabic letter mark
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17B4, Hi: 0x17B5, Stride: 1}, // Khmer vowels
		{Lo: 0x180B, Hi: 0x180F, Stride: 1}, // Mongolian selectors
		{Lo: 0x200B, Hi: 0x200B, Stride: 1}, // zero-width space
		{Lo: 0x200E, Hi: 0x200F, Stride: 1}, // direction marks
		{Lo: 0x2028, Hi: 0x202E, Stride: 1}, // separators of lines, embedded directions
		{Lo: 0x2060, Hi: 0x206F, Stride: 1}, // word joiner, isolated directions
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xFEFF, Hi: 0xFEFF, Stride: 1}, // byte order mark
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // halfwidth Hangul filler
		{Lo: 0xFFF0, Hi: 0xFFFB, Stride: 1}, // specials
	},
	R32:         []unicode.Range32{{Lo: 0xE0000, Hi: 0xE0FFF, Stride: 1}}, // tags, selectors
	LatinOffset: 1,
}

// unseen reports whether r is invisible to a person but not to a model.
func unseen(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, invisible, unicode.Co) // Co is for private use
}

// smuggles reports whether s contains characters that do not occur by accident: text in invisible
// letters, changed writing directions, terminal escape sequences.
func smuggles(s string) bool {
	flag := false // the flags of England, Scotland and Wales are spelled in such letters
	for _, r := range s {
		switch {
		case r == 0x1F3F4:
			flag = true
			continue
		case r >= 0xE0000 && r <= 0xE007F:
			if !flag {
				return true
			}
			continue
		case r == 0x1B, r >= 0x80 && r <= 0x9F, r == 0x08,
			r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r >= 0xE0080 && r <= 0xE0FFF:
			return true
		}
		flag = false
	}
	// encoded bits
	return strings.Count(s, "\u200b")+strings.Count(s, "\u2060")+strings.Count(s, "\u200c\u200d")+strings.Count(s, "\ufeff") > 8
}

// clean removes invisible characters. Line endings of other systems become \n.
func clean(s string) string {
	if strings.IndexFunc(s, unseen) < 0 && utf8.ValidString(s) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return -1
		}
		return r
	}, s)
}

// clip returns the beginning of s, at most n bytes, with a mark that says how much was left out.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:cut], len(s)-cut)
}

// show formats s for a person who decides: invisible characters are spelled out.
func show(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unseen(r) {
			fmt.Fprintf(&b, "\\u{%x}", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
