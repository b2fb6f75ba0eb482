package derivation

// check.go: Transcript, which verifies derivations.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-go/pawl/llm"
)

// Transcript is a conversation up to a call, and what its reader knows of the tools.
type Transcript struct {
	// Messages end before the results of the reply with the call.
	Messages []llm.Message
	// Words are texts of the operator that are not among the messages, such as instructions.
	Words []string
	// Trusted reports whether the operator trusts the results of a tool. nil trusts none.
	Trusted func(tool string) bool
	// Outer is the conversation around the agent. nil means none, or unknown.
	Outer *Transcript
}

// Check verifies the derivations of a call: each of them holds, and each argument that is an
// address has one. The error names what does not hold.
func (t *Transcript) Check(call llm.ToolCall, all []Value) error {
	leaves := leavesOf(call.Args)
	for _, d := range all {
		if d.Ground == Clean {
			if len(all) > 1 {
				return fmt.Errorf("%s: clean stands with other grounds", call.Name)
			}
			return t.clean()
		}
		if !slices.ContainsFunc(leaves, func(v string) bool { return same(v, d.Value) || has(v, d.Value) }) {
			return fmt.Errorf("%s: %q is not a value of the call", call.Name, d.Value)
		}
		if !t.holds(call, d, all) {
			return fmt.Errorf("%s: %s %q: the ground %q does not hold", call.Name, d.Arg, d.Value, d.Ground)
		}
	}

	// An address within a text may stay inside, which the name of a tool does not say.
	for _, v := range leaves {
		isAddress := v != "" && addresses.FindString(strings.ToLower(v)) == strings.ToLower(v)
		if isAddress && !slices.ContainsFunc(all, func(d Value) bool { return has(d.Value, v) }) {
			return fmt.Errorf("%s: the address %q has no derivation", call.Name, v)
		}
	}
	return nil
}

var addresses = regexp.MustCompile(`https?://[^\s<>"'()\[\]{}\\|]+|[\w.+%-]+@[\w-]+\.[\w.-]*\w`)

// holds reports whether the ground of d is in the transcript. all are the derivations of call.
func (t *Transcript) holds(call llm.ToolCall, d Value, all []Value) bool {
	switch d.Ground {
	case User:
		return t.said(d.Value)
	case Outer:
		return t.Outer != nil && (t.Outer.said(d.Value) || t.Outer.somewhere(d.Value))
	case Host:
		isItsHost := hostOf(d.Value) == d.Name
		return isItsHost && (t.said(d.Name) || d.Call != "" && t.anyResult(d, t.isTrusted, d.Name))
	case Party:
		if _, err := strconv.ParseFloat(d.Value, 64); err != nil {
			return false // amounts alone follow from who gets them
		}
		return slices.ContainsFunc(all, func(other Value) bool { return other.Value != d.Value && t.chosen(other) })
	case Reached:
		return t.reached(call.Name, d)

	case Trusted:
		return t.anyResult(d, t.isTrusted, d.Value)
	case Write:
		return t.anyResult(d, notGiven(d.Value), d.Value)
	case Request, Link:
		return t.anyResult(d, func(m made) bool { return t.requested(m) || t.isTrusted(m) }, d.Value)
	case Record:
		inRecord := func(m made) bool { return inOneRecord(m.result, d.Value, d.Name) }
		return t.said(d.Name) && t.anyResult(d, inRecord, d.Value)
	case Found, Whole:
		return t.anyResult(d, notGiven(d.Value), d.Value)
	case Document:
		if d.Call == "" {
			return t.attached(d.Value)
		}
		named := func(m made) bool { return d.Name != "" && hasAny(leavesOf(m.call.Args), d.Name) }
		return t.said(d.Name) && t.anyResult(d, named, d.Value)
	}
	return false
}

// chosen reports whether d is a party that the user chose, by words or by a document.
func (t *Transcript) chosen(d Value) bool {
	switch d.Ground {
	case User, Document:
		return true
	case Outer:
		return t.Outer != nil && t.Outer.said(d.Value)
	}
	return false
}

// reached reports whether a call of tool, which ran since the last words of the user, had what d
// names: the value, or its host.
func (t *Transcript) reached(tool string, d Value) bool {
	if d.Name == "" || !same(d.Name, d.Value) && hostOf(d.Value) != d.Name {
		return false
	}
	turn := 0
	for i, m := range t.Messages {
		text, ok := m.Label()
		if m.Role == llm.RoleUser && ok && text.By >= llm.Typed {
			turn = i
		}
	}
	since := Transcript{Messages: t.Messages[turn:]}
	for m := range since.results {
		ran := m.result.Key != "" && !m.result.IsError
		if ran && m.call.Name == tool && hasAny(leavesOf(m.call.Args), d.Name) {
			return true
		}
	}
	return false
}

// clean reports a part that others than the user, the operator and trusted tools may have written.
func (t *Transcript) clean() error {
	foreign := 0
	for m := range t.results {
		if t.isTrusted(m) {
			continue
		}
		text := textOf(m.result)

		// The text repeats the data, as a rule.
		foreign += max(len(m.result.Text()), len(m.result.Data))
		hasMedia := slices.ContainsFunc(m.result.Parts, func(p llm.Part) bool { _, is := p.(llm.Media); return is })
		if hasMedia || foreign > 16 || addresses.MatchString(strings.ToLower(text)) {
			return fmt.Errorf("the result of %s was written by others", m.call.Name)
		}
	}
	for _, m := range t.Messages {
		for _, p := range m.Parts {
			text, ok := p.(llm.Text)
			if !ok || by(text.Label) >= llm.Trusted {
				continue
			}
			foreign += len(text.Text)
			if foreign > 16 {
				return fmt.Errorf("a message of the %s was written by others", m.Role)
			}
		}
	}
	return nil
}

// made is a call with its result.
type made struct {
	call   llm.ToolCall
	result llm.ToolResult
}

// results yields the calls of the transcript with their results, in order.
func (t *Transcript) results(yield func(made) bool) {
	calls := map[string]llm.ToolCall{}
	for _, m := range t.Messages {
		for _, c := range m.Calls() {
			calls[c.ID] = c
		}
		for _, p := range m.Parts {
			r, ok := p.(llm.ToolResult)
			if ok && !yield(made{calls[r.CallID], r}) {
				return
			}
		}
	}
}

// anyResult reports whether is holds for a result of the call of d that has v.
func (t *Transcript) anyResult(d Value, is func(made) bool, v string) bool {
	for m := range t.results {
		if m.result.CallID == d.Call && !m.result.IsError && is(m) && has(textOf(m.result), v) {
			return true
		}
	}
	return false
}

// somewhere reports whether any result has v.
func (t *Transcript) somewhere(v string) bool {
	for m := range t.results {
		if has(textOf(m.result), v) {
			return true
		}
	}
	return false
}

func (t *Transcript) isTrusted(m made) bool {
	label, _ := llm.Results(m.result).Label()
	return label.By >= llm.Trusted || t.Trusted != nil && t.Trusted(m.call.Name)
}

// requested reports whether the user said all texts in the arguments of m.
func (t *Transcript) requested(m made) bool {
	for _, v := range leavesOf(m.call.Args) {
		if !t.said(v) {
			return false
		}
	}
	return true
}

// notGiven reports whether the call of a result did not have v as an argument.
func notGiven(v string) func(made) bool {
	return func(m made) bool { return !hasAny(leavesOf(m.call.Args), v) }
}

// said reports whether typed or operator's words have v, outside of what they quote.
func (t *Transcript) said(v string) bool {
	if v == "" {
		return false
	}
	if hasAny(t.Words, v) {
		return true
	}
	for _, m := range t.Messages {
		if m.Role == llm.RoleAssistant || m.Role == llm.RoleTool {
			continue
		}
		for _, p := range m.Parts {
			text, ok := p.(llm.Text)
			if ok && by(text.Label) >= llm.Typed && has(unquoted(text.Text), v) {
				return true
			}
		}
	}
	return t.Outer != nil && t.Outer.said(v)
}

// attached reports whether something that the user attached or quoted has v.
func (t *Transcript) attached(v string) bool {
	for _, m := range t.Messages {
		for _, p := range m.Parts {
			text, ok := p.(llm.Text)
			if ok && m.Role == llm.RoleUser && by(text.Label) >= llm.Attached && has(text.Text, v) {
				return true
			}
		}
	}
	return false
}

// unquoted returns the lines of a text outside of fenced blocks and without a > in front.
func unquoted(text string) string {
	var own strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		isFence := strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")
		fenced = fenced != isFence
		if !fenced && !isFence && !strings.HasPrefix(trimmed, ">") {
			own.WriteString(line)
		}
	}
	return own.String()
}

func by(l *llm.Label) llm.Author {
	if l == nil {
		return llm.Stranger
	}
	return l.By
}

func textOf(r llm.ToolResult) string { return r.Text() + "\n" + string(r.Data) }

// inOneRecord reports whether an object of a JSON result has both values, the second also in an
// object around it.
func inOneRecord(r llm.ToolResult, v, name string) bool {
	data := r.Data
	if data == nil {
		data = json.RawMessage(r.Text())
	}
	var root any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(&root) == nil && pairs(root, v, name, false)
}

// pairs reports whether an object within x has v, and it or an object around it has the name.
func pairs(x any, v, name string, named bool) bool {
	switch x := x.(type) {
	case map[string]any:
		var texts []string
		for key, member := range x {
			texts = append(texts, plain(member)...)
			if addresses.MatchString(key) {
				texts = append(texts, key)
			}
		}
		named = named || hasAny(texts, name)
		if named && hasAny(texts, v) {
			return true
		}
		for _, member := range x {
			if pairs(member, v, name, named) {
				return true
			}
		}
	case []any:
		texts := plain(x)
		if hasAny(texts, v) && (named || hasAny(texts, name)) {
			return true
		}
		return slices.ContainsFunc(x, func(e any) bool { return pairs(e, v, name, named) })
	}
	return false
}

// plain returns the texts of a member, or of a list of plain values.
func plain(x any) (all []string) {
	switch x := x.(type) {
	case string:
		return []string{x}
	case json.Number:
		return []string{x.String()}
	case []any:
		for _, e := range x {
			if _, isObject := e.(map[string]any); !isObject {
				all = append(all, plain(e)...)
			}
		}
	}
	return all
}

// leavesOf returns the strings and numbers in arguments, and the names that are addresses.
func leavesOf(args json.RawMessage) []string {
	var root any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return nil
	}
	return leaves(root)
}

func leaves(x any) (all []string) {
	switch x := x.(type) {
	case string:
		return []string{x}
	case json.Number:
		return []string{x.String()}
	case []any:
		for _, e := range x {
			all = append(all, leaves(e)...)
		}
	case map[string]any:
		for name, member := range x {
			if addresses.MatchString(name) {
				all = append(all, name)
			}
			all = append(all, leaves(member)...)
		}
	}
	return all
}

func hasAny(texts []string, v string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return has(text, v) })
}

// same reports whether two values are equal, as texts without case or as numbers.
func same(a, b string) bool {
	if strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// has reports whether text has v as whole words, without case, schemes and ends of sentences.
func has(text, v string) bool {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	v = bare(strings.ToLower(strings.Join(strings.Fields(v), " ")))
	if v == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], v)
		if i < 0 {
			return hasNumber(text, v)
		}
		begin := from + i
		end := begin + len(v)
		before, _ := utf8.DecodeLastRuneInString(text[:begin])
		after, _ := utf8.DecodeRuneInString(text[end:])
		beginsWord := begin == 0 || !isWord(before)
		endsWord := end == len(text) || !isWord(after)
		if beginsWord && endsWord {
			return true
		}
		from = begin + 1
	}
}

// hasNumber reports whether text has the number v in another form, such as 1,100.50 for 1100.5.
func hasNumber(text, v string) bool {
	want, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return false
	}
	for _, figure := range figures.FindAllString(text, -1) {
		figure = strings.TrimRight(figure, ".,'")
		for _, marks := range []string{",'", ".'"} {
			plain := strings.NewReplacer(marks[:1], "", marks[1:], "").Replace(figure)
			n, err := strconv.ParseFloat(strings.ReplaceAll(plain, ",", "."), 64)
			if err == nil && n == want {
				return true
			}
		}
	}
	return false
}

var figures = regexp.MustCompile(`\d[\d.,']*`)

func isWord(r rune) bool { return r == '_' || r == '@' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// bare returns an address without its scheme, its fragment and a slash at its end.
func bare(v string) string {
	if _, rest, ok := strings.Cut(v, "://"); ok {
		v, _, _ = strings.Cut(rest, "#")
	}
	return strings.TrimSuffix(v, "/")
}

// hostOf returns the host of an address without its port.
func hostOf(v string) string {
	v, _, _ = strings.Cut(bare(strings.ToLower(v)), "/")
	v, _, _ = strings.Cut(v, "?")
	v, _, _ = strings.Cut(v, ":")
	return strings.TrimSuffix(v, ".")
}
