package mcp

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/schema"
)

// Verdict is the treatment of something that a server sent. docs/mcp.md has a row for each attack
// and its verdict.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted" // a tool is offered unchanged
	Cleaned  Verdict = "cleaned"  // invisible characters were removed; the rest is accepted
	// Cut: a text that is too long was shortened with a mark; the rest is accepted.
	Cut Verdict = "cut"
	// Suspect: a tool is left out until it is accepted, because its text instructs the model beyond
	// the tool.
	Suspect     Verdict = "suspect"
	Quarantined Verdict = "quarantined" // a tool is left out, and no lock admits it
	// Drifted: a tool differs from tools.lock; it is left out until it is accepted.
	Drifted Verdict = "drifted"
	Refused Verdict = "refused" // a call, a question or a request is refused
	// Dropped: part of a result is not trusted and left out; the rest is accepted.
	Dropped Verdict = "dropped"
	Ignored Verdict = "ignored" // it is not read
	// the connection was lost, or the server is away
	Disconnected Verdict = "disconnected"
)

// Limits for a definition.
const (
	maxTools       = 2000
	maxName        = 128
	maxDescription = 8 << 10
	maxSchema      = 128 << 10
)

// Listed is a tool of a server with its verdict.
type Listed struct {
	Definition
	As      string   `json:"as,omitempty"`      // the model's name for it
	Verdict Verdict  `json:"verdict"`           // Accepted, Cleaned and Cut are offered
	Why     string   `json:"why,omitempty"`     // reason, for a person
	Changes []string `json:"changes,omitempty"` // rewritten parts of its schema
	// Parts that are not read, such as an annotation of another type, or a pattern that cannot be
	// checked here. The tool is offered without them.
	Ignored []string   `json:"ignored,omitempty"`
	Tool    *pawl.Tool `json:"-"` // nil means that it is not offered
}

// own lists names that pawl uses itself.
var own = []string{
	"result_read", "tool_search", "final_answer", "execute_plan", "execute_code",
	"decision_extraction", "decision_validation",
}

// inspect examines tools as they were decoded, and decides which are offered. run returns the
// function that executes the calls of one.
func (s *Server) inspect(tools []Listed, o *Options, run func(Definition) pawl.ToolFunc) []Listed {
	if len(tools) > maxTools {
		tools = tools[:maxTools]
	}
	names := make([]string, len(tools))
	for i, l := range tools {
		names[i] = l.Name
	}
	foreign := slices.DeleteFunc(slices.Clone(o.OtherTools), func(n string) bool { return slices.Contains(names, n) })

	out := make([]Listed, 0, len(tools))
	seen := map[string]bool{}
	for i, as := range s.distinct(names, o.OtherServers) {
		l := tools[i]
		if !s.wanted(l.Name) {
			continue
		}
		l.As = as
		l.Verdict = Accepted
		if seen[l.Name] {
			l.Verdict = Quarantined
			l.Why = "the server lists two tools of this name"
		} else {
			s.judge(&l, o, foreign, run)
		}
		seen[l.Name] = true
		out = append(out, l)
	}
	return out
}

// judge decides about one tool. foreign lists names of tools that are not the server's.
func (s *Server) judge(l *Listed, o *Options, foreign []string, run func(Definition) pawl.ToolFunc) {
	defer func() { // a definition must not end the program
		if v := recover(); v != nil {
			l.Verdict = Quarantined
			l.Why = clip(fmt.Sprintf("it cannot be read: panic: %v", v), 200)
			l.Tool = nil
		}
	}()
	t := &pawl.Tool{
		Name:        l.As,
		Description: l.Description,
		Effect:      l.effect(s.Trust),
		Timeout:     s.callTime(),
		Concurrent:  s.Concurrent,
		Address:     s.identity(),
		Server:      s.Name,

		StatesSending: true,
	}

	// A text is suspicious only if neither the lock nor the operator vouches for it.
	verdict, why := s.form(l, t, o)
	pinned := Verdict("")
	if verdict == "" {
		pinned, why = o.Lock.compare(s, &l.Definition)
		if pinned == Drifted {
			verdict = Drifted
		}
	}
	if verdict == "" && pinned == "" && !s.Trust {
		why = suspicious(&l.Definition, foreign)
		if why != "" {
			verdict = Suspect
		}
	}
	if verdict != "" {
		l.Verdict = verdict
		l.Why = why
		return
	}

	// The tool is offered. What a reader of its text would not see is removed.
	l.Why = ""
	if text := clean(t.Description); text != t.Description {
		l.Verdict = Cleaned
		l.Why = "its description had characters that a reader does not see"
		t.Description = text
	}
	if text := cleanJSON(t.Input); string(text) != string(t.Input) {
		l.Verdict = Cleaned
		l.Why = "its schema had characters that a reader does not see"
		t.Input = text
	}
	if len(t.Description) > maxDescription {
		l.Verdict = Cut
		l.Why = fmt.Sprintf("its description has %d bytes", len(t.Description))
		t.Description = clip(t.Description, maxDescription)
	}

	// The schema is checked again, because it was cleaned.
	t.Run = run(l.Definition)
	if err := t.Check(); err != nil {
		l.Verdict = Quarantined
		l.Why = strings.TrimPrefix(err.Error(), "tool "+t.Name+": ")
		return
	}
	l.Tool = t
}

// form rejects a definition that cannot be a tool, and sets the schema of t.
func (s *Server) form(l *Listed, t *pawl.Tool, o *Options) (Verdict, string) {
	if why := badName(l, o); why != "" {
		return Quarantined, why
	}
	if n := len(l.Input) + len(l.Output); n > maxSchema {
		return Quarantined, fmt.Sprintf("its schema has %d bytes", n)
	}

	// Before the schema is compiled: some that are short take very long.
	for _, foreign := range []json.RawMessage{l.Input, l.Output} {
		if len(foreign) > 0 && foreign[0] == '{' {
			if err := schema.Bounds(foreign); err != nil {
				return Quarantined, "its schema: " + err.Error()
			}
		}
	}

	// Models read the texts in a schema, too.
	for _, text := range append(texts(l.Input), append(texts(l.Output), l.Description, l.Title)...) {
		if smuggles(text) {
			return Quarantined, "it hides text from readers: " + clip(show(text), 200)
		}
	}

	if len(l.Input) > 0 && string(l.Input) != "null" {
		input, changes, err := dialect.Normalize(l.Input)
		if err != nil {
			return Quarantined, "its schema: " + err.Error()
		}
		for _, c := range changes {
			l.Changes = append(l.Changes, c.String())
		}
		input, unchecked, err := dialect.Unchecked(input, dialect.ForeignPattern)
		if err != nil {
			return Quarantined, "its schema: " + err.Error()
		}
		for _, c := range unchecked {
			l.Ignored = append(l.Ignored, c.String())
		}
		t.Input = input
	}
	if len(l.Output) > 0 && json.Valid(l.Output) && l.Output[0] == '{' {
		t.Output = l.Output
	}
	if err := (&pawl.Tool{Name: t.Name, Input: t.Input, Passive: true}).Check(); err != nil {
		return Quarantined, strings.TrimPrefix(err.Error(), "tool "+t.Name+": ")
	}
	return "", ""
}

// badName returns why a tool cannot have its name. Empty means that it can.
func badName(l *Listed, o *Options) string {
	switch {
	case len(l.Name) > maxName:
		return fmt.Sprintf("its name has %d bytes", len(l.Name))
	case strings.IndexFunc(l.Name, unseen) >= 0:
		return "its name has characters that a reader does not see: " + show(l.Name)
	case lookalike(l.Name):
		return "its name has letters that look like others: " + asASCII(l.Name)
	case slices.Contains(own, l.As):
		return "it shadows a name that pawl uses itself"
	case slices.Contains(o.OtherTools, l.As):
		return "it shadows a tool that is there already"
	}
	return ""
}

// speaks matches phrases that a tool's description does not need: instructions to the model beyond
// calling the tool, requests to hide something from the person, and places of secrets. They detect
// observed attacks and nothing more subtle.
var speaks = sync.OnceValue(func() []phrase {
	return []phrase{
		{regexp.MustCompile(`(?i)\b(ignore|disregard|forget|override)\s+(all\s+|any\s+|the\s+|your\s+)*(previous|` +
			`prior|earlier|above|other|system)\s+(instructions?|prompts?|rules|messages?|context)`),
			"it asks to set instructions aside"},
		{regexp.MustCompile(`(?i)\b(do\s+not|don'?t|never|without)\s+(ever\s+)?(tell(ing)?|mention(ing)?|` +
			`inform(ing)?|reveal(ing)?|notify(ing)?|disclose|ask(ing)?|show(ing)?)\s+(it\s+|this\s+|that\s+|` +
			`anything\s+)*(to\s+)?(the\s+)?(user|person|human|anyone|anybody)\b`),
			"it asks to keep something from the person"},
		{regexp.MustCompile(`(?i)<\s*/?\s*(important|system|instructions?|assistant|admin|secret)\s*>|` +
			`\[\s*(system|inst)\s*\]|<\|im_(start|end)\|>`), "it has marks that stand for another voice"},
		{regexp.MustCompile(`(?is)<!--.*?-->`), "it has a comment that is not shown"},
		{regexp.MustCompile(`(?i)\b(before|after|whenever|each\s+time)\s+(you\s+)?(us(e|ing)|call(ing)?|invok(e|` +
			`ing))\s+(any|every|all|other)\s+(other\s+)?tools?`), "it speaks of other tools"},
		{regexp.MustCompile(`(?i)(~|\$HOME|/home/\w+|/root)?/?\.(ssh|aws|gnupg|kube)/|\bid_(rsa|ed25519)\b|` +
			`\bmcp\.json\b|/etc/(passwd|shadow)\b`), "it names where secrets lie"},
		{regexp.MustCompile(`(?i)\b(system\s+prompt|developer\s+message|chat\s+history|conversation\s+history|` +
			`previous\s+messages)\b.{0,80}\b(pass|send|include|copy|put|provide|as)\b|\b(pass|send|include|copy|` +
			`put)\b.{0,60}\b(system\s+prompt|(entire|whole|full)\s+conversation|chat\s+history)`),
			"it wants the conversation passed on"},
		{regexp.MustCompile(`(?i)\b(user|person|human)\s+(has\s+)?(already\s+|pre-?)(approved|confirmed|` +
			`authori[sz]ed|consented)|\bno\s+(approval|confirmation)\s+(is\s+)?(needed|required|necessary)`),
			"it says that it was approved"},
		{regexp.MustCompile(`(?i)\b(this|it)\s+(tool\s+)?must\s+be\s+used\s+instead\s+of\b|\bthis\s+(tool|` +
			`function|server)\s+(replaces|supersedes)\b|\b(this|it)\s+(replaces|supersedes)\s+(([a-z]+\s+){0,` +
			`4}tools?\b|(the\s+)?[a-z]+_[a-z_]+)|\binstead\s+of\s+(the\s+)?[a-z]+_[a-z_]+\s*(tool)?\b|\b(is|` +
			`are)\s+(deprecated|broken|disabled|unsafe)\b.{0,40}\buse\s+this\b`),
			"it draws calls from other tools"},
	}
})

type phrase struct {
	pattern *regexp.Regexp
	what    string
}

// suspicious returns why the text of a tool must be reviewed first. Empty means no reason.
func suspicious(d *Definition, beside []string) string {
	all := append(texts(d.Input), clean(d.Description), clean(d.Title))
	for _, text := range all {
		for _, s := range speaks() {
			for _, m := range s.pattern.FindAllString(text, -1) {
				if ownField(d.Input, m) {
					continue
				}
				return s.what + ": " + clip(show(strings.Join(strings.Fields(m), " ")), 160)
			}
		}
		for _, name := range beside {
			if strings.Contains(name, "_") && len(name) > 5 && hasWord(text, name) {
				return "it speaks of the tool " + name + ", which is not its own"
			}
		}
	}
	return ""
}

var fieldName = regexp.MustCompile(`[A-Za-z]+_[A-Za-z_]+`)

// ownField reports whether the first name with an underscore in a phrase is an argument of the
// tool.
func ownField(input json.RawMessage, phrase string) bool {
	name := fieldName.FindString(phrase)
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return name != "" && json.Unmarshal(input, &schema) == nil && schema.Properties[name] != nil
}

// hasWord reports whether word stands in text as a whole name.
func hasWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		begins := i == 0 || !isWord(text[i-1])
		ends := end == len(text) || !isWord(text[end])
		if begins && ends {
			return true
		}
		from = end
	}
}

// texts returns all strings of a JSON value, including field names.
func texts(b json.RawMessage) []string {
	var v any
	if len(b) == 0 || json.Unmarshal(b, &v) != nil {
		return nil
	}

	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for k, e := range v {
				out = append(out, k)
				walk(e)
			}
		}
	}
	walk(v)

	// The verdict must not depend on the order of a map.
	slices.Sort(out)
	return out
}

var escaped = regexp.MustCompile(`\\\\|\\u[0-9a-fA-F]{4}`)

// cleanJSON removes invisible characters from the texts of a schema.
func cleanJSON(b json.RawMessage) json.RawMessage {
	s := clean(string(b))
	if strings.Contains(s, `\u`) {
		s = escaped.ReplaceAllStringFunc(s, func(e string) string {
			var r rune
			if _, err := fmt.Sscanf(e, `\u%04x`, &r); err == nil && unseen(r) && r >= 0x7F {
				return ""
			}
			return e
		})
	}
	return json.RawMessage(s)
}

// twins maps letters of other scripts to the ASCII letters that they resemble.
var twins = strings.NewReplacer("а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x", "і",
	"i", "ѕ", "s", "ј", "j", "ԁ", "d", "һ", "h", "ӏ", "l", "ԛ", "q", "ԝ", "w",
	"ο", "o", "ν", "v", "α", "a", "ι", "i", "ρ", "p", "τ", "t", "υ", "u", "κ", "k", "Α", "A", "Β", "B", "Ε",
	"E", "Ι", "I", "Κ", "K", "Μ", "M", "Ν", "N", "Ο", "O", "Ρ", "P", "Τ", "T", "Х", "X", "А", "A", "В", "B",
	"Е", "E", "К", "K", "М", "M", "Н", "H", "О", "O", "Р", "P", "С", "C", "Т", "T")

// asASCII replaces letters that resemble ASCII, and full-width letters, by ASCII.
func asASCII(s string) string {
	s = twins.Replace(s)
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0xFF01 && r <= 0xFF5E:
			return r - 0xFEE0
		case r >= 0x1D400 && r <= 0x1D419: // mathematical alphabets
			return r - 0x1D400 + 'A'
		case r >= 0x1D41A && r <= 0x1D433:
			return r - 0x1D41A + 'a'
		}
		return r
	}, s)
}

// lookalike reports whether a name imitates another: it mixes ASCII letters with twins, or consists
// of twins only, and reads as ASCII.
func lookalike(name string) bool {
	plain := asASCII(name)
	if plain == name {
		return false
	}
	return strings.IndexFunc(plain, func(r rune) bool { return r >= 0x80 }) < 0
}
