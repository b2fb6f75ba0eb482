package origin

// quoted.go: ownWords, which separates the user's own words from what the user quotes.

import (
	"strings"
)

// headerWords begin the lines of a forwarded mail. Their text up to the colon is compared without
// case. In other languages the lines count as the user's own.
var headerWords = set("from to cc subject date sent reply-to von an betreff datum gesendet de para asunto objet")

// ownWords returns the lines of a text that its author has written, and the lines that others have:
// fenced blocks, lines that begin with ">", what stands between two rules, and all lines from the
// headers of a mail on.
func ownWords(text string) (own, quoted string) {
	if !strings.ContainsAny(text, "\n>") {
		return text, "" // most messages
	}

	var mine, theirs strings.Builder
	lines := strings.SplitAfter(text, "\n")
	fence := ""
	ruled := false
	mail := false
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		marks := fenceOf(trimmed)
		rule := isRule(trimmed) && (ruled || anyRule(lines[i+1:]))
		mail = mail || headersBegin(lines[i:])

		within := mail || ruled || fence != ""
		if within || strings.HasPrefix(trimmed, ">") {
			theirs.WriteString(line)
		} else {
			mine.WriteString(line)
		}

		switch {
		case fence == "":
			fence = marks
		case marks == fence:
			fence = ""
		}
		// A rule within a fence belongs to the quoted text.
		if rule && fence == "" {
			ruled = !ruled
		}
	}
	return mine.String(), theirs.String()
}

// fenceOf returns the marks of a line that begins or ends a fenced block; empty means none.
func fenceOf(line string) string {
	for _, marks := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, marks) {
			return marks
		}
	}
	return ""
}

// isRule reports whether a line is a rule: three signs or more, all equal.
func isRule(line string) bool {
	return len(line) >= 3 && strings.ContainsAny(line[:1], "-=_*#~") && strings.Trim(line, line[:1]) == ""
}

func anyRule(lines []string) bool {
	for _, line := range lines {
		if isRule(strings.TrimSpace(line)) {
			return true
		}
	}
	return false
}

// headersBegin reports whether lines begin with the headers of a mail. One line of that form, such
// as "To: the team", also occurs in a user's own words.
func headersBegin(lines []string) bool {
	return len(lines) > 1 && isHeader(strings.TrimSpace(lines[0])) && isHeader(strings.TrimSpace(lines[1]))
}

// isHeader reports whether a line is a header of a mail, such as Subject: Budget.
func isHeader(line string) bool {
	word, _, ok := strings.Cut(line, ":")
	return ok && headerWords[strings.ToLower(strings.Trim(word, " *"))]
}
