package react

import (
	"html"
	"regexp"
	"strings"
)

// xmlTag matches the opening tags of format XML, and the tags that models write in their places.
var xmlTag = regexp.MustCompile(`(?i)<(tool|action|answer|final_answer)>`)

var xmlOpen = regexp.MustCompile(`(?i)<(thought|tool|action|args|action_input|tool_input|answer|final_answer|observation)>|\n[ \t]{0,16}Observation:`)

// xmlIndent is how far an observation may stand from the beginning of its line.
const xmlIndent = 16

// xmlSections cuts text at its tags. A tag that is not closed ends where the next one begins.
func xmlSections(text string) []section {
	var out []section
	pos, failed := 0, 0
	if loc := xmlOpen.FindStringIndex(text); loc != nil && loc[0] > 0 {
		out = append(out, section{text: text[:loc[0]]})
	}
	for {
		loc := xmlOpen.FindStringSubmatchIndex(text[pos:])
		if loc == nil {
			return out
		}
		s := section{kind: observationKind, start: pos + loc[0], body: pos + loc[1]}
		if loc[2] < 0 {
			if strings.TrimSpace(text[:s.start]) != "" {
				return append(out, s)
			}
			out, pos = append(out, s), s.body // at the beginning
			continue
		}
		name := text[pos+loc[2] : pos+loc[3]]
		s.kind = kindOf(name)
		rest := text[s.body:]
		value, n := "", 0
		if s.kind == inputKind && failed < maxFailed {
			if value, n = leadingJSON(rest); n == 0 {
				failed++
			}
		}
		end := -1
		if n == 0 && failed < maxFailed {
			if end = strings.Index(rest, "</"+name+">"); end < 0 {
				failed++
			}
		}
		if n > 0 {
			s.text, pos = value, s.body+n
		} else if end >= 0 {
			s.text, pos = rest[:end], s.body+end
		} else if next := xmlOpen.FindStringIndex(rest); next != nil {
			s.text, pos = rest[:next[0]], s.body+next[0]
		} else {
			s.text, pos = rest, len(text)
		}
		if s.kind == inputKind && n == 0 {
			if plain := html.UnescapeString(s.text); plain != s.text {
				if _, m := leadingJSON(plain); m > 0 {
					s.text = plain
				}
			}
		}
		out = append(out, s)
	}
}
