package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unseen reports whether a reader does not see r where a model reads it: control characters, marks of direction, spaces without width, and the
// letters of other planes that stand for ASCII.
func unseen(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r == 0x00AD || r == 0x034F || r == 0x061C || r == 0x115F || r == 0x1160 || r == 0x17B4 || r == 0x17B5 || r == 0x3164 || r == 0xFFA0:
		return true
	case r >= 0x180B && r <= 0x180F || r >= 0x200B && r <= 0x200F || r >= 0x2028 && r <= 0x202E || r >= 0x2060 && r <= 0x206F || r == 0xFEFF:
		return r != 0x200C && r != 0x200D // joiners belong to some scripts, and to pictures
	case r >= 0xFFF0 && r <= 0xFFFB, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	case unicode.Is(unicode.Co, r):
		return true
	}
	return false
}

// smuggles reports whether s has characters that nobody writes by accident: a text in letters that cannot be seen, turned directions, commands to a terminal.
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
	return strings.Count(s, "\u200b")+strings.Count(s, "\u2060")+strings.Count(s, "\u200c\u200d")+strings.Count(s, "\ufeff") > 8 // bits
}

// clean takes out what a reader does not see. Line ends of other systems become plain ones.
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

// clip returns the beginning of s, of at most n bytes, and says what it left out.
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

// show writes s for a person who decides: what cannot be seen is spelled out.
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
