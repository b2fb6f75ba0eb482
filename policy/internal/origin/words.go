package origin

// words.go: how texts compare: whole words, addresses and amounts.

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainText returns s in lower case, with one space for each run of white space and none at the
// ends.
func plainText(s string) string {
	if isPlain(s) {
		return s // most fields of results
	}

	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if r <= ' ' || r >= utf8.RuneSelf && unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}

		switch {
		case r >= utf8.RuneSelf:
			b.WriteRune(unicode.ToLower(r))
		case r >= 'A' && r <= 'Z':
			b.WriteByte(byte(r) + 'a' - 'A')
		default:
			b.WriteByte(byte(r))
		}
	}
	return b.String()
}

// isPlain reports whether plainText changes nothing in s. It knows texts of ASCII alone.
func isPlain(s string) bool {
	for i := range len(s) {
		b := s[i]
		switch {
		case b == ' ':
			between := i > 0 && i < len(s)-1 && s[i+1] > ' '
			if !between {
				return false
			}
		case b < ' ', b >= utf8.RuneSelf, b >= 'A' && b <= 'Z':
			return false
		}
	}
	return true
}

// maxValue is the length in bytes of values that are looked for. Longer values have no origin.
const maxValue = 512

// find returns the place of v as a whole word in text, from start on; -1 means none. Both are plain
// texts.
func find(text, v string, start int) int {
	if v == "" || len(v) > maxValue {
		return -1
	}
	for i := start; i < len(text); {
		n := strings.Index(text[i:], v)
		if n < 0 {
			break
		}
		i += n
		if apart(text[:i], v, text[i+len(v):]) {
			return i
		}
		// From the next word on: v begins at no place within this word.
		i = wordEnd(text, i+1)
	}
	return -1
}

// wordEnd returns the end of the word that reaches to start in text, or start if none does.
func wordEnd(text string, start int) int {
	end := start
	for end < len(text) && wordByte(text[end-1]) && wordByte(text[end]) {
		end++
	}
	return end
}

// wordByte reports whether b is part of a word. All bytes of other letters than ASCII count.
func wordByte(b byte) bool {
	switch {
	case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b == '_', b >= utf8.RuneSelf:
		return true
	}
	return false
}

func wordRune(r rune) bool { return r == '_' || r == '@' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// apart reports whether v is a value of its own between the texts before and after it. 13 is none
// in 2024-05-13 and in 13.5, nor bob@x.com in jim.bob@x.com and bob@x.com.org.
func apart(before, v, after string) bool {
	left, leftSize := utf8.DecodeLastRuneInString(before)
	right, rightSize := utf8.DecodeRuneInString(after)
	if wordRune(left) || wordRune(right) {
		return false
	}

	// Only numbers and addresses go on after a sign.
	number := v[0] >= '0' && v[0] <= '9'
	if strings.Contains(v, " ") || !number && !strings.ContainsAny(v, "@.") {
		return true
	}

	signs := ".-/+"
	if number {
		signs = ".-/+:,"
	}
	joins := func(r rune) bool { return strings.ContainsRune(signs, r) }
	beforeLeft, _ := utf8.DecodeLastRuneInString(before[:len(before)-leftSize])
	if joins(left) && wordRune(beforeLeft) {
		return false
	}
	afterRight, _ := utf8.DecodeRuneInString(after[rightSize:])
	return !joins(right) || !wordRune(afterRight)
}

// The kinds of addresses.
const (
	kindMail    = "mail"
	kindLink    = "link"
	kindAccount = "account"
)

var addresses = regexp.MustCompile(`(?:https?|wss?|ftp)://[^\s<>"'()\[\]{}\\|]+|\bwww\.[a-z0-9-]+\.[^\s<>"'()\[\]{}\\|]+` +
	`|\b(?:[a-z0-9-]+\.)+[a-z]{2,}/[^\s<>"'()\[\]{}\\|]+|[\w.+%-]+@[\w-]+\.[\w.-]*\w|\b[a-z]{2}\d{2}[a-z0-9]{8,30}\b`)

// addressesIn returns the addresses in a plain text, at most n.
func addressesIn(text string, n int) []string {
	if !tenDigits(text) && !strings.ContainsAny(text, "@/") && !strings.Contains(text, "www.") {
		return nil
	}
	all := addresses.FindAllString(text, n)
	for i, a := range all {
		all[i] = strings.TrimRight(a, ".,;:!?*_`")
	}
	return all
}

// tenDigits reports whether s has ten digits or more.
func tenDigits(s string) bool {
	n := 0
	for i := 0; i < len(s) && n < 10; i++ {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n == 10
}

// addressKind returns the kind of address that the whole of v is; empty means none. An account has
// ten digits or more, as an IBAN.
func addressKind(v string) string {
	if !mayBeAddress(v) || addresses.FindString(v) != v {
		return ""
	}

	mail := strings.Contains(v, "@")
	switch {
	case strings.Contains(v, "://"), strings.HasPrefix(v, "www."), !mail && strings.Contains(v, "/"):
		return kindLink
	case mail:
		return kindMail
	case tenDigits(v):
		return kindAccount
	}
	return ""
}

// mayBeAddress reports whether v has a part that an address has. Most values are words, and need no
// expression.
func mayBeAddress(v string) bool {
	switch {
	case strings.Contains(v, " "):
		return false
	case strings.ContainsAny(v, "@/"), strings.HasPrefix(v, "www."):
		return true
	}
	isDigit := func(b byte) bool { return b >= '0' && b <= '9' }
	return len(v) >= 12 && isDigit(v[2]) && isDigit(v[3]) // an IBAN
}

// opaque reports whether a word may be data in an encoding: it is long, or mixes letters and
// digits.
func opaque(v string) bool {
	const digits = "0123456789"
	switch {
	case strings.Contains(v, " "):
		return false
	case len(v) >= 20:
		return true
	}
	mixed := strings.ContainsAny(v, digits) && strings.Trim(v, digits) != ""
	return len(v) >= 8 && mixed
}

// bareLink returns a link without its scheme and without a slash or fragment at its end.
func bareLink(v string) string {
	if scheme, rest, ok := strings.Cut(v, "://"); ok && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz") == "" {
		v = rest
	}
	if i := strings.IndexByte(v, '#'); i > 0 && strings.Contains(v[:i], ".") {
		v = v[:i]
	}
	return strings.TrimSuffix(strings.TrimPrefix(v, "mailto:"), "/")
}

// host returns the host of a link without its port. A user before the host is part of it, so that
// no user said such a link. A dot at its end is no part: example.com. is example.com.
func host(v string) string {
	h := bareLink(v)
	if i := strings.IndexAny(h, "/?"); i >= 0 {
		h = h[:i]
	}
	if !strings.ContainsAny(h, `@\`) {
		h, _, _ = strings.Cut(h, ":")
	}
	return strings.TrimSuffix(h, ".")
}

var figure = regexp.MustCompile(`\d[\d.,']*`)

// amount returns a number as written by people: 1,100.50, 1.100,50 and 1100.5 are equal.
func amount(s string) (float64, bool) {
	s = strings.ReplaceAll(strings.TrimRight(s, ".,'"), "'", "")
	dot := strings.LastIndexByte(s, '.')
	comma := strings.LastIndexByte(s, ',')
	switch {
	case dot >= 0 && comma > dot:
		s = strings.Replace(strings.ReplaceAll(s, ".", ""), ",", ".", 1)
	case strings.Count(s, ",") == 1 && dot < 0 && len(s)-comma != 4: // 1,100 is no fraction
		s = strings.Replace(s, ",", ".", 1)
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	return f, err == nil
}

// hasAmount reports whether text has the number n.
func hasAmount(text string, n float64) bool {
	return slices.ContainsFunc(figure.FindAllString(text, -1), func(s string) bool {
		f, ok := amount(s)
		return ok && f == n
	})
}
