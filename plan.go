package pawl

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

// StrategicPlan names the value of a run that is a plan: a JSON object, with what is to be done in its member "phases" or "steps". A run that begins
// with it has it in its system text, after the instructions, under the heading STRATEGIC PLAN, and so have the runs that agents make inside its
// calls (Agent.Tool). Package team makes such plans. A run takes one from the Result that it is resumed from:
//
//	agent.Resume(ctx, &pawl.Result{Values: pawl.Values{pawl.StrategicPlan: plan}}, llm.User(task))
//
// A value that is no JSON object is an error before anything is sent.
const StrategicPlan = "strategic_plan"

const (
	planHeading = "STRATEGIC PLAN:\n"
	mostOfPlan  = 1500 // characters, with its heading and what is said of it
)

// planBlock is how a model is shown a plan: JSON with two spaces, at most mostOfPlan characters. A plan that is too long loses whole phases from the end, and, where its
// other members take more than half of the room, those from the end; last lines say so, and what is left is still JSON.
func planBlock(plan json.RawMessage) (string, error) {
	whole := jsontext.Value(slices.Clone(plan))
	err := whole.Format(jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // escapes stand only where JSON wants them
	if err == nil && whole.Kind() != '{' {
		err = errors.New("got " + whole.Kind().String())
	}
	if err != nil {
		return "", fmt.Errorf("value %q: want a JSON object: %w", StrategicPlan, err)
	}
	if block := planHeading + string(whole); utf8.RuneCountInString(block) <= mostOfPlan {
		return block, nil
	}
	members := membersOf(json.RawMessage(whole))
	phases, room := -1, mostOfPlan-len(planHeading)-len("{\n\n}")-2*mostOfNote
	for i, m := range members {
		if phases < 0 && (m.name == "phases" || m.name == "steps") && m.items() != nil {
			phases = i
		}
	}
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
		if n := utf8.RuneCountInString(text) + len(",\n"); len(left) == 0 && n <= forOthers {
			forOthers, room, texts[i] = forOthers-n, room-n, text
			continue
		}
		left = append(left, m.name)
	}
	note := ""
	if phases >= 0 {
		items, kept := members[phases].items(), 0
		room -= utf8.RuneCountInString(members[phases].list(nil)) + len("\n\n  ")
		for ; kept < len(items); kept++ {
			if room -= utf8.RuneCountInString(items[kept]) + len(",\n"); room < 0 {
				break
			}
		}
		texts[phases] = members[phases].list(items[:kept])
		if kept < len(items) {
			note = fmt.Sprintf("\n(The first %d of %d phases; the others are left out, for the length.)", kept, len(items))
		}
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

// member is a member of a JSON object, in the order in which it was written.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns those of an object that is known to be one.
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

// text is the member, indented as one of an object.
func (m *member) text() string {
	var b bytes.Buffer
	_ = json.Indent(&b, m.value, "  ", "  ") // it was read
	return "  " + m.key() + ": " + b.String()
}

func (m *member) key() string {
	b, _ := jsontext.AppendQuote(nil, m.name)
	return string(b)
}

// items are the elements of a list, each indented; nil where the member is none.
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

// list is the member with these items.
func (m *member) list(items []string) string {
	if len(items) == 0 {
		return "  " + m.key() + ": []"
	}
	return "  " + m.key() + ": [\n" + strings.Join(items, ",\n") + "\n  ]"
}

// planned returns the agent's instructions with the plan that the run has been given; a run inside a call has that of the run around it.
func (r *run) planned() (string, error) {
	plan, ok := r.res.Values[StrategicPlan]
	if !ok {
		switch {
		case r.inside != nil:
			plan, ok = r.inside.plan()
		case r.branch != nil:
			plan, ok = r.branch.Plan, r.branch.Plan != nil
		}
		if ok {
			r.res.Values = merged(r.res.Values, Values{StrategicPlan: plan})
		}
	}
	if !ok {
		return r.agent.Instructions, nil
	}
	block, err := planBlock(plan)
	if err != nil {
		return "", err
	}
	if r.agent.Instructions == "" {
		return block, nil
	}
	return strings.TrimRight(r.agent.Instructions, "\n") + "\n\n" + block, nil
}

// plan returns the plan that runs made inside the call are shown.
func (v *Invocation) plan() (json.RawMessage, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b, ok := v.set[StrategicPlan]; ok {
		return b, true
	}
	b, ok := v.pipe.task.Values[StrategicPlan]
	return b, ok
}
