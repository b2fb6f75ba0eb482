package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unseen reports whether r is invisible to a person but not to a model: control characters,
// direction marks, zero-width spaces, and tag letters that stand for ASCII.
func unseen(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r == 0x00AD || r == 0x034F || r == 0x061C || r == 0x115F || r == 0x1160 || r == 0x17B4 || r == 0x17B5 ||
		r == 0x3164 || r == 0xFFA0:
		return true
	case r >= 0x180B && r <= 0x180F || r >= 0x200B && r <= 0x200F || r >= 0x2028 && r <= 0x202E || r >= 0x2060 &&
		r <= 0x206F || r == 0xFEFF:
		return r != 0x200C && r != 0x200D // joiners belong to some scripts and to emoji
	case r >= 0xFFF0 && r <= 0xFFFB, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	case unicode.Is(unicode.Co, r):
		return true
	}
	return false
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
