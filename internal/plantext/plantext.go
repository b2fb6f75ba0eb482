// Package plantext renders the plan of a run for the system prompt.
package plantext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	planHeading = "STRATEGIC PLAN:\n"
	mostOfPlan  = 1500 // characters, with the heading and the notes
)

// Block returns the text of a plan for the model: JSON indented by two spaces, at most 1500
// characters. A longer plan loses whole phases from the end. If its other members take more than
// half of the space, it also loses those from the end. Notes at the end of the text name the
// dropped parts. The rest remains valid JSON.
func Block(plan json.RawMessage) (string, error) {
	whole := jsontext.Value(slices.Clone(plan))
	// Only the escapes that JSON requires.
	err := whole.Format(jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err == nil && whole.Kind() != '{' {
		err = errors.New("got " + whole.Kind().String())
	}
	if err != nil {
		return "", fmt.Errorf("want a JSON object: %w", err)
	}
	if block := planHeading + string(whole); utf8.RuneCountInString(block) <= mostOfPlan {
		return block, nil
	}

	members := membersOf(json.RawMessage(whole))
	phases := slices.IndexFunc(members, member.isPhases)
	room := mostOfPlan - len(planHeading) - len("{\n\n}") - 2*mostOfNote
	forOthers := room
	if phases >= 0 {
		forOthers /= 2
	}

	texts := make([]string, len(members))
	var left []string
	for i, m := range members {
		if i == phases {
			continue
		}
		text := m.text()
		n := utf8.RuneCountInString(text) + len(",\n")
		if len(left) > 0 || n > forOthers {
			left = append(left, m.name) // with all after it: a plan is cut at one place
			continue
		}
		forOthers -= n
		room -= n
		texts[i] = text
	}

	note := ""
	if phases >= 0 {
		texts[phases], note = members[phases].phasesWithin(room)
	}
	if len(left) > 0 {
		names := strings.Join(left, ", ")
		if utf8.RuneCountInString(names) > mostOfNote-30 {
			names = fmt.Sprintf("%d members", len(left))
		}
		note += "\n(Left out, for the length: " + names + ".)"
	}

	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	return planHeading + "{\n" + strings.Join(texts, ",\n") + "\n}" + note, nil
}

const mostOfNote = 100 // characters

// member is a member of a JSON object. Members keep their order.
type member struct {
	name  string
	value json.RawMessage
}

// isPhases reports whether the member lists the phases of the plan.
func (m member) isPhases() bool { return (m.name == "phases" || m.name == "steps") && m.items() != nil }

// phasesWithin returns the first phases, as many as fit in room characters, and a note if there are
// more.
func (m member) phasesWithin(room int) (text, note string) {
	items := m.items()
	shown := 0
	room -= utf8.RuneCountInString(m.list(nil)) + len("\n\n  ")
	for ; shown < len(items); shown++ {
		room -= utf8.RuneCountInString(items[shown]) + len(",\n")
		if room < 0 {
			break
		}
	}

	if shown < len(items) {
		note = fmt.Sprintf("\n(The first %d of %d phases; the others are left out, for the length.)",
			shown, len(items))
	}
	return m.list(items[:shown]), note
}

// membersOf returns the members of a valid object.
func membersOf(object json.RawMessage) (out []member) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token()
	for d.More() {
		var m member
		name, _ := d.Token()
		m.name, _ = name.(string)
		if d.Decode(&m.value) != nil {
			break
		}
		out = append(out, m)
	}
	return out
}

// text returns the member, indented as part of an object.
func (m *member) text() string {
	var b bytes.Buffer
	_ = json.Indent(&b, m.value, "  ", "  ") // valid: it was decoded before
	return "  " + m.key() + ": " + b.String()
}

func (m *member) key() string {
	b, _ := jsontext.AppendQuote(nil, m.name)
	return string(b)
}

// items returns the elements of a list, each indented, or nil if the member is not a list.
func (m *member) items() []string {
	var list []json.RawMessage
	if json.Unmarshal(m.value, &list) != nil {
		return nil
	}
	out := make([]string, len(list))
	for i, one := range list {
		var b bytes.Buffer
		_ = json.Indent(&b, one, "    ", "  ")
		out[i] = "    " + b.String()
	}
	return out
}

// list returns the member with the given items.
func (m *member) list(items []string) string {
	if len(items) == 0 {
		return "  " + m.key() + ": []"
	}
	return "  " + m.key() + ": [\n" + strings.Join(items, ",\n") + "\n  ]"
}
