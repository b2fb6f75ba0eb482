package react

import (
	"encoding/json"
	"errors"
	"html"
	"regexp"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonrepair"
	"github.com/pawl-go/pawl/llm"
)

// Read returns the decision in text, written in format f or nearly so. It does not know the tools,
// so it does not check whether the decision can be executed. An error describes the missing part,
// in words for the model.
//
// In every format the first decision counts. Text after an action, such as an observation that the
// model wrote itself, is cut off, unless it is a further action of the same decision without an
// observation between. An observation at the beginning of text is skipped. An action and a final
// answer with nothing between them are no decision.
func Read(text string, f Format) (Decision, error) {
	_, text = cutThinking(text)
	if d, ok := readOpened(text, f); ok {
		return d, nil
	}
	return readAny(text, f)
}

// readAny is Read of text that has no thinking before it.
func readAny(text string, f Format) (Decision, error) {
	switch f {
	case Plain:
		return readPlain(text)
	case XML:
		if xmlTag.MatchString(text) {
			return assemble(xmlSections(text), text)
		}
	}

	// JSON and labels are read in both formats: models that see their history with labels write
	// labels, even if they should not. The first one is the decision.
	label := firstLabel(text)
	if at, d, err := readJSON(text); at >= 0 && (label < 0 || at < label) {
		return d, err
	}
	if label >= 0 {
		return assemble(labelSections(text, labels), text)
	}
	if d, ok := inlineAnswer(text); ok {
		return d, nil
	}
	return Decision{}, noDecision(text, f)
}

// noDecision says what is missing in text, for the model.
func noDecision(text string, f Format) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the reply is empty")
	case f == XML:
		return errors.New("the reply holds neither <tool> nor <answer>")
	case f == Text:
		return errors.New("the reply has neither an Action: line nor a Final Answer: line")
	}
	if i := strings.IndexByte(text, '{'); i >= 0 {
		if _, _, err := jsonrepair.Repair([]byte(text[i:])); err != nil {
			return errors.New("the reply is no JSON object that can be read: " + err.Error())
		}
	}
	return errors.New("the reply holds no JSON object that is a decision")
}

// inlineFinal matches the label of a final answer behind other text on its line.
var inlineFinal = regexp.MustCompile(`[^\s>*_#-][ \t]+[*_]*(Final Answer[*_]*:)`)

// inlineAnswer reads an answer whose only label follows the thought on the same line.
func inlineAnswer(text string) (d Decision, ok bool) {
	found := inlineFinal.FindAllStringSubmatchIndex(text, 2)
	if len(found) != 1 {
		return d, false
	}
	text = strings.TrimRight(text[:found[0][2]], " \t*_") + "\n" + text[found[0][2]:]
	d, err := assemble(labelSections(text, labels), text)
	d.Notes = append(d.Notes, "read the final answer on the line of the thought")
	return d, err == nil && d.Type == FinalAnswer
}

// kind is what a section of a reply is.
type kind int

const (
	noKind kind = iota
	thoughtKind
	actionKind
	inputKind
	callKind // a call in one line: NAME with args: {…}
	observationKind
	answerKind
)

// section is a labelled piece of a reply.
type section struct {
	kind  kind
	text  string
	start int // of the label in the reply
	body  int // of what follows the label
}

var (
	labels = regexp.MustCompile(`(?im)^[ \t>*_#-]*` +
		`(thought|action[ _]?input|action|observation|final[ _]answer|answer|calling tool|tool result)` +
		`[ \t]*(?:#?\d+)?[ \t]*[*_]*:[*_]*[ \t]*`)
	plainLabels = regexp.MustCompile(`(?im)^[ \t>*_#-]*(calling tool|tool result|observation)[ \t]*:[*_]*[ \t]*`)
	fenceOpen   = regexp.MustCompile("^[ \t\r\n]*```[a-zA-Z]*[ \t]*\r?\n")
	observed    = regexp.MustCompile(`(?i)[ \t\r\n][>*_#-]*(observation|tool result)[*_]*:`)
)

// kinds are the sections by the label or the tag that begins them.
var kinds = map[string]kind{
	"thought":      thoughtKind,
	"action":       actionKind,
	"tool":         actionKind,
	"action input": inputKind,
	"actioninput":  inputKind,
	"tool input":   inputKind,
	"args":         inputKind,
	"calling tool": callKind,
	"observation":  observationKind,
	"tool result":  observationKind,
	"answer":       answerKind,
	"final answer": answerKind,
}

func kindOf(label string) kind { return kinds[strings.ToLower(strings.ReplaceAll(label, "_", " "))] }

// firstLabel returns where the first label stands that makes a decision; -1 if there is none.
func firstLabel(text string) int {
	for _, s := range labelSections(text, labels) {
		switch s.kind {
		case actionKind, callKind, answerKind:
			return s.start
		}
	}
	return -1
}

// labelSections cuts text at its labels. JSON right after a label is skipped whole, with all its
// strings. Text before the first label is a section without a kind.
func labelSections(text string, re *regexp.Regexp) []section {
	var out []section
	pos := 0
	last := section{}
	failed := 0 // each costs a look at the rest of the text
	for {
		loc := re.FindStringSubmatchIndex(text[pos:])
		if loc == nil {
			break
		}

		start := pos + loc[0]
		body := pos + loc[1]
		// A label within the JSON of an argument is a part of a text and starts no section. So the
		// JSON is skipped.
		last.text = text[last.body:start]
		out = append(out, last)
		last = section{kind: kindOf(text[pos+loc[2] : pos+loc[3]]), start: start, body: body}
		pos = body
		from, ok := last.valueStart(text)
		if !ok || failed == maxFailed {
			continue
		}
		_, n := leadingJSON(text[from:])
		if n == 0 {
			failed++
			continue
		}
		pos = from + n
	}
	last.text = text[last.body:]
	return append(out, last)
}

// valueStart returns where JSON may stand in the section s of text. ok is false if s has none.
func (s *section) valueStart(text string) (start int, ok bool) {
	switch s.kind {
	case inputKind, actionKind:
		return s.body, true
	case callKind:
		line, _, _ := strings.Cut(text[s.body:], "\n")
		return s.body + max(0, strings.IndexByte(line, '{')), true
	}
	return 0, false
}

// leadingJSON returns the object or list at the start of s, without fences, and its end; 0 means
// that there is none that can be read.
func leadingJSON(s string) (value string, end int) {
	start := len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	if loc := fenceOpen.FindStringIndex(s); loc != nil {
		start = loc[1]
	}
	start += len(s[start:]) - len(strings.TrimLeft(s[start:], " \t\r\n"))
	if start == len(s) || s[start] != '{' && s[start] != '[' {
		return "", 0
	}
	n := jsonrepair.Balanced(s[start:], "{[", "}]")
	if n == 0 {
		return "", 0
	}
	value = s[start : start+n]
	// Brackets that match may also be prose or code.
	if !json.Valid([]byte(value)) {
		if _, _, err := jsonrepair.Repair([]byte(value)); err != nil {
			return "", 0
		}
	}
	return value, start + n
}

// inputOf reads what stands after "Action Input:".
func inputOf(text string, fenced bool, d *Decision) json.RawMessage {
	if value, n := leadingJSON(text); n > 0 {
		return json.RawMessage(value)
	}
	if loc := observed.FindStringIndex(" " + text); loc != nil { // on the line of the input
		text = text[:max(0, loc[0]-1)]
		d.Notes = append(d.Notes, cutObservation)
	}
	raw := strings.TrimSpace(text)
	if fenced && !strings.HasPrefix(raw, "```") {
		raw = strings.TrimSpace(strings.TrimSuffix(raw, "```"))
	}
	return json.RawMessage(raw)
}

// lineCall reads "NAME with args: {…}".
func lineCall(text string, d *Decision) Call {
	line, _, _ := strings.Cut(text, "\n")
	i := strings.Index(strings.ToLower(line), " with arg")
	if i < 0 {
		if j := strings.IndexByte(line, '{'); j >= 0 {
			return Call{strings.Trim(line[:j], " \t:\"'`*("), inputOf(text[j:], false, d)}
		}
		return Call{Tool: strings.Trim(callNumber.ReplaceAllString(line, ""), " \t\r\"'`*.")}
	}
	_, rest, _ := strings.Cut(text[i:], ":")
	if _, n := leadingJSON(rest); n == 0 {
		rest = callNumber.ReplaceAllString(strings.TrimSpace(rest), "")
	}
	return Call{strings.Trim(line[:i], " \t\"'`*"), inputOf(rest, false, d)}
}

var callNumber = regexp.MustCompile(`[ \t]*\(#\d+\)[ \t\r]*$`)

// readPlain reads format Plain, in which a reply without a call is the answer.
func readPlain(text string) (Decision, error) {
	sections := labelSections(text, plainLabels)
	// A model may begin with an echo of the last result.
	first := 1 // the first section that is no observation at the beginning
	for strings.TrimSpace(sections[0].text) == "" && first < len(sections)-1 && sections[first].kind == observationKind {
		first++
	}
	if len(sections) > first && sections[first].kind == callKind {
		return assemble(sections, text)
	}
	d := Decision{Type: FinalAnswer, Answer: strings.TrimSpace(text)}
	if len(sections) > 1 {
		d.Answer = strings.TrimSpace(sections[0].text)
		d.Notes = []string{"cut off a result that the model wrote itself"}
	}
	if d.Answer == "" {
		return d, errors.New("the reply is empty")
	}
	return d, nil
}

// cutThinking splits off the model's thinking between <think> tags. Thinking without an end leaves
// nothing.
func cutThinking(text string) (thought, rest string) {
	s, opened := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), "<think>")
	i := strings.Index(s, "</think>")
	switch {
	case i < 0 && opened:
		return strings.TrimSpace(s), ""
	case i < 0:
		return "", text
	case !opened && (strings.Contains(s[:i], `{"`) || decisionStart.MatchString(s)):
		// a decision that speaks of the tag
		return "", text
	}
	return strings.TrimSpace(s[:i]), s[i+len("</think>"):]
}

// splitThinking returns what the model thought outside of its decision, and its text without that.
func splitThinking(m llm.Message) (thought, rest string) {
	thought, rest = cutThinking(m.Text())
	own := ""
	for _, p := range m.Parts {
		if r, ok := p.(llm.Reasoning); ok {
			own += r.Text
		}
	}
	return strings.TrimSpace(own + "\n" + thought), rest
}

// xmlTag matches the opening tags of format XML, and the tags that models write in their places.
var xmlTag = regexp.MustCompile(`(?i)<(tool|action|answer|final_answer)>`)

var xmlOpen = regexp.MustCompile(`(?i)` +
	`<(thought|tool|action|args|action_input|tool_input|answer|final_answer|observation)>` +
	`|\n[ \t]{0,16}Observation:`)

// xmlIndent is how far an observation may stand from the beginning of its line.
const xmlIndent = 16

// xmlSections cuts text at its tags. A tag that is not closed ends where the next one begins.
func xmlSections(text string) []section {
	var out []section
	pos := 0
	failed := 0
	if loc := xmlOpen.FindStringIndex(text); loc != nil && loc[0] > 0 {
		out = append(out, section{text: text[:loc[0]]})
	}
	for {
		loc := xmlOpen.FindStringSubmatchIndex(text[pos:])
		if loc == nil {
			return out
		}
		s := section{kind: observationKind, start: pos + loc[0], body: pos + loc[1]}
		// A line "Observation:", with no tag: the model has begun to write a result itself.
		if loc[2] < 0 {
			if strings.TrimSpace(text[:s.start]) != "" {
				return append(out, s)
			}
			out = append(out, s) // at the beginning
			pos = s.body
			continue
		}

		name := text[pos+loc[2] : pos+loc[3]]
		s.kind = kindOf(name)
		rest := text[s.body:]
		value := ""
		n := 0
		if s.kind == inputKind && failed < maxFailed {
			value, n = leadingJSON(rest)
			if n == 0 {
				failed++
			}
		}
		// JSON is read before its closing tag is looked for, because a text in it may contain that
		// tag.
		if n > 0 {
			s.text = value
			pos = s.body + n
			out = append(out, s)
			continue
		}

		end := -1
		if failed < maxFailed {
			end = strings.Index(rest, "</"+name+">")
			if end < 0 {
				failed++
			}
		}
		if end < 0 {
			end = len(rest)
			if next := xmlOpen.FindStringIndex(rest); next != nil {
				end = next[0]
			}
		}
		s.text = rest[:end]
		pos = s.body + end
		if s.kind == inputKind {
			s.text = unescapedJSON(s.text)
		}
		out = append(out, s)
	}
}

// unescapedJSON returns a text without the escapes of XML if that makes it JSON, otherwise the
// text.
func unescapedJSON(text string) string {
	plain := html.UnescapeString(text)
	if plain == text {
		return text
	}
	if _, n := leadingJSON(plain); n == 0 {
		return text
	}
	return plain
}
