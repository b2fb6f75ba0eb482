package imports

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/tools/outside"
)

// promptfoo.go: configurations of promptfoo, as files and as OpenAI's export of evals writes them.

type fooFile struct {
	Prompts   []json.RawMessage `json:"prompts"`
	Providers json.RawMessage   `json:"providers"`
	Targets   json.RawMessage   `json:"targets"`
	Default   fooTest           `json:"defaultTest"`
	Tests     json.RawMessage   `json:"tests"`
	Repeat    struct {
		Repeat int `json:"repeat"`
	} `json:"evaluateOptions"`
}

type fooTest struct {
	Description string                     `json:"description"`
	Vars        map[string]json.RawMessage `json:"vars"`
	Asserts     []fooAssert                `json:"assert"`
	Threshold   *float64                   `json:"threshold"`
}

type fooAssert struct {
	Type      string          `json:"type"`
	Value     json.RawMessage `json:"value"`
	Threshold *float64        `json:"threshold"`
	Weight    *float64        `json:"weight"`
	Asserts   []fooAssert     `json:"assert"`
}

func (m *Import) promptfoo(text []byte) error {
	var value outside.JSON
	if err := yaml.Unmarshal(text, &value); err != nil {
		return err
	}
	var f fooFile
	if err := json.Unmarshal(value, &f); err != nil {
		return err
	}
	var tests []fooTest
	if err := json.Unmarshal(f.Tests, &tests); err != nil {
		return fmt.Errorf("its tests are no list: %w", err)
	}
	m.providers(f.Providers)
	m.providers(f.Targets)
	for i, t := range tests {
		for j, prompt := range f.Prompts {
			id := fmt.Sprintf("test-%d", i+1)
			if len(f.Prompts) > 1 {
				id = fmt.Sprintf("test-%d.prompt-%d", i+1, j+1)
			}
			m.fooCase(&f, &t, id, prompt)
		}
	}
	return nil
}

// fooNames are the names of providers and of forms of their APIs.
var fooNames = regexp.MustCompile(`^(openai|anthropic|google|vertex):(?:(?:chat|responses|messages):)?([^:]+)$`)

// providers sets the models. Providers that are programs are not among them.
func (m *Import) providers(value json.RawMessage) {
	if value == nil {
		return
	}
	var all []json.RawMessage
	if json.Unmarshal(value, &all) != nil {
		all = []json.RawMessage{value}
	}
	for _, one := range all {
		var object struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(one, &object.ID) != nil && json.Unmarshal(one, &object) != nil {
			object.ID = string(one)
		}
		parts := fooNames.FindStringSubmatch(object.ID)
		if parts == nil {
			m.because(object.ID, "without the provider %s", object.ID)
			continue
		}
		name := map[string]string{"google": "gemini", "vertex": "gemini"}[parts[1]]
		if name == "" {
			name = parts[1]
		}
		if m.Models == nil {
			m.Models = map[string]string{}
		}
		m.Models[idOf(parts[2])] = name + ":" + parts[2]
	}
}

// fooCase adds the case of a test and a prompt.
func (m *Import) fooCase(f *fooFile, t *fooTest, id string, prompt json.RawMessage) {
	c := &suite.Case{ID: id, Note: t.Description}
	if f.Repeat.Repeat > 1 {
		c.Trials = f.Repeat.Repeat
	}
	text := promptText(prompt)
	if text == "" || strings.HasPrefix(text, "file://") {
		m.leaveOut(id, "its prompt is in another file, or made by a program")
		return
	}

	var reasons []string
	said, missing := filled(text, f.Default.Vars, t.Vars)
	if missing {
		reasons = append(reasons, "its prompt has expressions that are more than names of vars")
	}
	var messages []chat
	if json.Unmarshal([]byte(said), &messages) == nil && len(messages) > 0 {
		c.Input = inputOf(messages)
	} else {
		c.Input = jsonOf(said)
	}
	for _, a := range slices.Concat(f.Default.Asserts, t.Asserts) {
		d, why := a.check()
		if why != "" {
			reasons = append(reasons, why)
			continue
		}
		c.Checks = append(c.Checks, *d)
	}
	if t.Threshold != nil || f.Default.Threshold != nil {
		reasons = append(reasons, "the threshold of a test, because all checks gate")
	}
	m.add(c, reasons...)
}

// promptText is the text of a prompt. Empty means that it has none.
func promptText(prompt json.RawMessage) string {
	var text string
	if json.Unmarshal(prompt, &text) == nil {
		return text
	}
	var object struct {
		Raw string `json:"raw"`
	}
	_ = json.Unmarshal(prompt, &object) // another form has no text
	return object.Raw
}

var fooVar = regexp.MustCompile(`\{\{-?\s*([A-Za-z_][A-Za-z0-9_]*)\s*-?\}\}`)

// filled returns a prompt with its vars. The last ones count first.
func filled(prompt string, all ...map[string]json.RawMessage) (text string, missing bool) {
	text = fooVar.ReplaceAllStringFunc(prompt, func(found string) string {
		name := fooVar.FindStringSubmatch(found)[1]
		for _, vars := range slices.Backward(all) {
			if value := vars[name]; value != nil {
				return varText(value)
			}
		}
		missing = true
		return found
	})
	return text, missing || strings.Contains(fooVar.ReplaceAllString(prompt, ""), "{{") || strings.Contains(prompt, "{%")
}

// varText is a value in a prompt: a text, or JSON.
func varText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// check returns the check of an assertion, or why there is none.
func (a *fooAssert) check() (d *check.Definition, why string) {
	kind, isNegated := strings.CutPrefix(a.Type, "not-")
	d = a.definition(kind)
	if d == nil {
		return nil, "assertions of the type " + kind
	}
	if isNegated {
		d = &check.Definition{Not: d}
	}
	d.Weight = a.Weight
	return d, ""
}

// definition returns the check of an assertion that is not negated. Nil means that it does not map.
func (a *fooAssert) definition(kind string) *check.Definition {
	switch kind {
	case "cost", "latency", "trajectory:tool-used", "assert-set", "is-json":
		return a.other(kind)
	}
	texts, err := check.Texts(a.Value)
	if err != nil || len(texts) == 0 || slices.Contains(texts, "") {
		return nil
	}
	if strings.HasPrefix(texts[0], "file://") || strings.Contains(string(a.Value), "{{") {
		return nil
	}
	answer := &check.Answer{}
	switch kind {
	case "equals":
		answer.Equals = texts[0]
	case "contains", "contains-all":
		answer.Contains = jsonOf(texts)
	case "contains-any":
		answer.ContainsAny = texts
	case "starts-with":
		answer.Starts = texts[0]
	case "regex":
		answer.Regex = texts[0]
	case "icontains", "icontains-any":
		answer.Regex = anyOf(texts)
	case "icontains-all":
		var all []check.Definition
		for _, text := range texts {
			all = append(all, check.Definition{Answer: &check.Answer{Regex: anyOf([]string{text})}})
		}
		return &check.Definition{AtLeast: &check.AtLeast{N: len(all), Of: all}}
	default:
		return nil
	}
	if answer.Regex != "" {
		compiled, err := regexp.Compile(answer.Regex)
		if err != nil || compiled.MatchString("") {
			return nil // not RE2, or an expression that cannot fail
		}
	}
	return &check.Definition{Answer: answer}
}

// anyOf is an expression that one of several texts matches, in any case.
func anyOf(texts []string) string {
	var quoted []string
	for _, text := range texts {
		quoted = append(quoted, regexp.QuoteMeta(text))
	}
	return "(?i)(" + strings.Join(quoted, "|") + ")"
}

// other returns the check of an assertion that is about no text.
func (a *fooAssert) other(kind string) *check.Definition {
	most := func(name string, unit float64) *check.Definition {
		if a.Threshold == nil {
			return nil
		}
		bound := *a.Threshold / unit
		return &check.Definition{Spent: map[string]check.Range{name: {Max: &bound}}}
	}
	switch kind {
	case "cost":
		return most("cost", 1)
	case "latency":
		return most("time", 1000) // of milliseconds
	case "is-json":
		schema := outside.JSON(`{"type":["object","array","string","number","boolean","null"]}`)
		if a.Value != nil && a.Value[0] == '{' {
			schema = outside.JSON(a.Value)
		}
		return &check.Definition{Answer: &check.Answer{JSON: &check.Output{Schema: schema}}}
	case "trajectory:tool-used":
		names, err := check.Texts(a.Value)
		if err != nil || len(names) == 0 {
			return nil
		}
		least := 1.0
		count := map[string]check.Range{}
		for _, name := range names {
			count[toolOf(name)] = check.Range{Min: &least}
		}
		return &check.Definition{Calls: &check.Calls{Count: count}}
	}

	// A set of assertions: all of them, since a threshold would be of their weighted mean.
	if a.Threshold != nil || len(a.Asserts) == 0 {
		return nil
	}
	set := &check.AtLeast{N: len(a.Asserts)}
	for _, one := range a.Asserts {
		d, why := one.check()
		if why != "" {
			return nil
		}
		set.Of = append(set.Of, *d)
	}
	return &check.Definition{AtLeast: set}
}
