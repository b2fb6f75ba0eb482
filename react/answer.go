package react

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// opening is the beginning of a reply that can only be the answer: in format JSON thought and type,
// final_answer, before the answer's text; in format XML nothing but closed thoughts before the
// answer's tag. The text of such an answer is valid for any rest of the reply, so it can be emitted
// early. The other formats have no such beginning: a recorded model wrote an action after its
// "Final Answer:" and meant the action, and in format plain a call may follow any words.
type opening struct {
	thought string
	body    int    // where the answer's text begins
	end     string // XML: the tag that ends it; empty means JSON
}

// decisionStart matches the beginning of a decision in any format. Thinking without its first tag
// begins in another way.
var decisionStart = regexp.MustCompile("(?i)^\\s*(?:```[a-z]*\\s*)?(?:" + strings.Join([]string{
	`\{`,
	`<(?:thought|tool|action|answer|final_answer)>`,
	"\\**thought[ \t]*:",
	"\\**final answer[ \t]*:",
}, "|") + ")")

// open returns the opening of text, which has no thinking before it. Once it has returned an
// opening, it returns the same for any longer text.
func open(text string, f Format) (opening, bool) {
	switch f {
	case JSON:
		return openJSON(text)
	case XML:
		return openXML(text)
	}
	return opening{}, false
}

func openJSON(text string) (o opening, ok bool) {
	i := 0
	if loc := fenceOpen.FindStringIndex(text); loc != nil {
		i = loc[1]
	}
	c := jsonscan.New([]byte(text[i:]))
	if c.Kind() != jsonscan.Object {
		return o, false
	}

	seen := map[string]bool{}
	for name := range c.Members() {
		key := string(name)
		kind := c.Kind()
		// Of two members of one name, the second might be what the model meant. So nothing is
		// certain.
		if seen[key] {
			return o, false
		}
		seen[key] = true

		switch key {
		case answerNames[0]:
			o.body = i + c.Offset() + 1
			// The answer is certain only in the order of the prompt: thought and type are known,
			// and no call can follow them.
			return o, kind == jsonscan.String && seen[typeNames[0]] && seen[thoughtNames[0]]
		case thoughtNames[0]:
			if kind != jsonscan.String {
				return o, false
			}
			o.thought = strings.TrimSpace(c.String())
		case typeNames[0]:
			if Type(c.String()) != FinalAnswer {
				return o, false
			}
		}
	}
	return o, false
}

func skipSpace(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		i++
	}
	return i
}

func openXML(text string) (o opening, ok bool) {
	for pos := 0; ; {
		pos = skipSpace(text, pos)
		loc := xmlOpen.FindStringSubmatchIndex(text[pos:])
		if loc == nil || loc[0] != 0 || loc[2] < 0 {
			return o, false
		}

		name := text[pos+loc[2] : pos+loc[3]]
		body := pos + loc[1]
		switch strings.ToLower(name) {
		case "answer", "final_answer":
			o.body = body
			o.end = "</" + name + ">"
			return o, true
		case "thought":
			// A thought that goes on may still contain a tag that only looks like the answer.
			n := strings.Index(text[body:], "</"+name+">")
			if n < 0 {
				return o, false
			}
			o.thought = strings.TrimSpace(o.thought + "\n" + strings.TrimSpace(text[body:body+n]))
			pos = body + n + len("</"+name+">")
		default:
			return o, false
		}
	}
}

// readText reads the answer's text up to its uncertain part. n is the number of bytes read from
// raw, and ended means that no more will be certain. With last, raw is the end of the reply.
func (o opening) readText(raw string, last bool) (text string, n int, ended bool) {
	if o.end == "" {
		return readJSONText(raw, last)
	}
	return o.readXMLText(raw, last)
}

func readJSONText(raw string, last bool) (text string, n int, ended bool) {
	var b strings.Builder
	for n < len(raw) {
		c := raw[n]
		switch {
		case c == '"':
			// Models forget to escape quotes in long answers. What follows a quote says whether it
			// ends the text.
			switch closes(raw[n+1:], last) {
			case yes:
				return b.String(), n, true
			case unknown:
				return b.String(), n, false
			}
			b.WriteByte(c) // the model forgot that it has to be escaped
			n++

		case c == '\\':
			r, size, ok := unescape(raw[n:], last)
			if !ok {
				return b.String(), n, true
			}
			if size == 0 {
				return b.String(), n, false
			}
			b.WriteRune(r)
			n += size

		case c < utf8.RuneSelf:
			b.WriteByte(c)
			n++

		default:
			// A fragment may end within a character.
			if !last && !utf8.FullRuneInString(raw[n:]) {
				return b.String(), n, false
			}
			r, size := utf8.DecodeRuneInString(raw[n:])
			b.WriteRune(r)
			n += size
		}
	}
	return b.String(), n, last
}

type verdict int

const (
	unknown verdict = iota
	yes
	no
)

var (
	closing     = regexp.MustCompile(`^\s*(?:,?\s*\}|,\s*"[A-Za-z_]{1,32}"\s*:)`)
	mayBeClosed = regexp.MustCompile(`^\s*(?:,\s*(?:"[A-Za-z_]{0,32}(?:"\s*)?)?)?$`)
)

// closes reports whether a quote before s ends the text: the end of the object or another field
// follows.
func closes(s string, last bool) verdict {
	s = s[:min(len(s), 128)]
	switch {
	case closing.MatchString(s):
		return yes
	case !mayBeClosed.MatchString(s):
		return no
	case last || len(s) == 128:
		return yes
	}
	return unknown
}

// unescape reads the escape at the start of s. size 0: more is needed; not ok: it is none.
func unescape(s string, last bool) (r rune, size int, ok bool) {
	if len(s) < 2 {
		return 0, 0, !last
	}
	if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2, true
	}
	r, ok = hexRune(s)
	switch {
	case s[1] != 'u' || len(s) >= 6 && !ok:
		return 0, 0, false
	case len(s) < 6:
		return 0, 0, !last
	case !utf16.IsSurrogate(r):
		return r, 6, true
	}
	rest := s[6:]
	if !last && len(rest) < 6 && strings.HasPrefix(`\u`, rest[:min(2, len(rest))]) {
		return 0, 0, true // the other half may follow
	}
	if low, ok := hexRune(rest); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12, true
		}
	}
	return utf8.RuneError, 6, true
}

// hexRune reads the escape of a code unit: \u and four hexadecimal digits.
func hexRune(s string) (rune, bool) {
	if len(s) < 6 || s[:2] != `\u` {
		return 0, false
	}
	v, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(v), err == nil
}

// readXMLText stops at the first tag that may end the answer, and at an observation.
func (o opening) readXMLText(raw string, last bool) (text string, n int, ended bool) {
	stop := len(raw)
	if i := strings.Index(raw, o.end); i >= 0 {
		stop = i
		ended = true
	}
	if loc := xmlOpen.FindStringIndex(raw[:stop]); loc != nil {
		stop = loc[0]
		ended = true
	}
	if ended || last {
		return raw[:stop], stop, true
	}
	// What stands at the end may be the beginning of either.
	const longest = len("</final_answer>")
	for i := max(0, stop-xmlIndent-len("\nObservation:")); i < stop; i++ {
		tail := raw[i:]
		switch tail[0] {
		case '<':
			if len(tail) < longest && !strings.ContainsAny(tail[1:], "<> \n") {
				return raw[:i], i, false
			}
		case '\n':
			word := strings.TrimLeft(tail[1:], " \t")
			if len(word) <= len("Observation") && strings.EqualFold(word, "Observation:"[:len(word)]) {
				return raw[:i], i, false
			}
		}
	}
	return raw, stop, false
}

// stands returns the certain part of the answer in text, whose opening is o.
func (o opening) stands(text string) string {
	answer, _, _ := o.readText(text[o.body:], true)
	if o.end != "" {
		answer = strings.TrimSpace(answer)
	}
	return answer
}

// readOpened reads a reply that opens as an answer. If the whole reply is an answer that continues
// the certain part, it is that answer; otherwise the certain part is the answer. ok is false if
// text does not open so, or if nothing is certain.
func readOpened(text string, f Format) (d Decision, ok bool) {
	o, ok := open(text, f)
	if !ok {
		return d, false
	}
	answer := o.stands(text)
	if strings.TrimSpace(answer) == "" {
		return d, false
	}

	// The certain part may have been emitted. A reading of the whole reply that contradicts it
	// would change a text that the reader has seen.
	whole, err := readAny(text, f)
	if err == nil && whole.Type == FinalAnswer && strings.HasPrefix(whole.Answer, answer) {
		whole.Thought = o.thought
		return whole, true
	}
	return Decision{
		Type:    FinalAnswer,
		Thought: o.thought,
		Answer:  answer,
		Notes:   []string{"read the answer as far as it was certain"},
	}, true
}
