// Package imports reads the cases of other tools.
//
//	bfcl ─┐
//	tau  ─┤
//	adk  ─┼▶ rows ─▶ cases of a suite, and what does not map
//	promptfoo ┘
//
// Each row of a file is taken, is a draft because a part of it does not map, or is left out. No row
// is lost: Import counts them.
package imports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/tools/outside"
)

// Import is what was read.
type Import struct {
	// Cases are the cases, in the order of the rows.
	Cases []*suite.Case

	// Models are the models of the file, by the name of a variant. Nil means that it has none.
	Models map[string]string

	// Rows is the number of rows of the file, Drafts the number of cases that are drafts, and
	// LeftOut the number of rows without a case.
	Rows    int
	Drafts  int
	LeftOut int

	// Reasons are what does not map, in the order in which it was found.
	Reasons []*Reason

	own bool // the agent has its own tools
}

// Reason is a part of a form that does not map.
type Reason struct {
	// Text says what it is, and what was done.
	Text string

	// Rows is the number of rows, and First the first of them.
	Rows  int
	First string
}

// forms are the readers of all forms.
func forms() map[string]func(*Import, []byte) error {
	return map[string]func(*Import, []byte) error{
		"bfcl":      (*Import).bfcl,
		"tau":       (*Import).tau,
		"adk":       (*Import).adk,
		"promptfoo": (*Import).promptfoo,
	}
}

// Forms returns the names of all forms, sorted.
func Forms() []string { return slices.Sorted(maps.Keys(forms())) }

// Read reads the cases of a file in a form. With own, the agent of the suite has its own tools, so
// that no tools are declared. The error says that the file has another form.
func Read(form string, text []byte, own bool) (*Import, error) {
	read := forms()[form]
	if read == nil {
		return nil, fmt.Errorf("there is no form %s: %s", form, nearest.Hint(form, Forms()))
	}
	m := &Import{own: own}
	if err := read(m, text); err != nil {
		return nil, err
	}
	if m.Rows == 0 {
		return nil, fmt.Errorf("the file has no row of the form %s", form)
	}
	return m, nil
}

// lines calls do with each line of JSON Lines, as a value of type T.
func lines[T any](text []byte, do func(*T) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	for n := 1; ; n++ {
		row := new(T)
		err := d.Decode(row)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = do(row)
		}
		if err != nil {
			return fmt.Errorf("value %d: %w", n, err)
		}
	}
}

// because notes a reason of a row.
func (m *Import) because(row, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, r := range m.Reasons {
		if r.Text == text {
			r.Rows++
			return
		}
	}
	m.Reasons = append(m.Reasons, &Reason{Text: text, Rows: 1, First: row})
}

// leaveOut leaves a row out.
func (m *Import) leaveOut(row, format string, args ...any) {
	m.Rows++
	m.LeftOut++
	m.because(row, "left out: "+format, args...)
}

// add adds the case of a row. With reasons, the case is a draft.
func (m *Import) add(c *suite.Case, reasons ...string) {
	m.Rows++
	m.Cases = append(m.Cases, c)
	reasons = append(reasons, m.compile(c)...)
	if len(c.Checks) == 0 {
		reasons = append(reasons, "it has no checks")
	}
	if len(reasons) == 0 {
		return
	}
	c.Draft = true
	m.Drafts++
	for _, text := range reasons {
		m.because(c.ID, "draft: %s", text)
	}
}

// compile removes the checks that a suite refuses, and returns the reasons. A case whose checks a
// run passes that does nothing may do nothing.
func (m *Import) compile(c *suite.Case) (reasons []string) {
	compiler := &check.Compiler{Report: func(_, _, message string) { reasons = append(reasons, message) }}
	var kept []check.Definition
	var judges []*check.Check
	for i := range c.Checks {
		if one := compiler.Compile(&c.Checks[i], "checks"); one != nil {
			kept = append(kept, c.Checks[i])
			judges = append(judges, one)
		}
	}
	c.Checks = kept

	silent := trial.Silent()
	check.Judge(&silent, judges)
	if silent.Verdict == trial.Pass && len(kept) > 0 && !c.MayDoNothing {
		c.MayDoNothing = true
		m.because(c.ID, "may_do_nothing: a run that does nothing passes there, too")
	}
	return reasons
}

// Line returns a case as a line of JSON, which a suite reads.
func Line(c *suite.Case) ([]byte, error) {
	var value outside.JSON
	if err := yaml.Unmarshal(agentfile.WriteDocument(c), &value); err != nil {
		return nil, err
	}
	return append(jsonform.Canonical(json.RawMessage(value)), '\n'), nil
}

// Suite returns the text of a suite with a variant for each model. Its cases are in NAME.jsonl.
func (m *Import) Suite(name, agent string) []byte {
	f := &suite.File{
		Eval:  name,
		Agent: jsonOf(agent),
		Cases: []suite.Case{{Files: name + ".jsonl"}},
	}
	for _, variant := range slices.Sorted(maps.Keys(m.Models)) {
		f.Variants = append(f.Variants, map[string]outside.JSON{
			"name":  jsonOf(variant),
			"model": jsonOf(m.Models[variant]),
		})
	}
	return agentfile.WriteDocument(f)
}

// idOf returns the ID of a case for the name of a row.
func idOf(name string) string {
	id := suite.IDOf(name)
	return id[:min(len(id), 100)]
}

var noTool = regexp.MustCompile(`[^A-Za-z0-9_]`)

// toolOf returns the name of a tool that every provider takes.
func toolOf(name string) string { return noTool.ReplaceAllString(name, "_") }

// jsonOf writes a value that can be written: texts, numbers, lists and maps of them.
func jsonOf(v any) outside.JSON {
	text, err := jsonform.Marshal(v)
	if err != nil {
		panic(err) // of values that are made here
	}
	return outside.JSON(jsonform.Canonical(text))
}

// literal returns the matcher of arguments that are equal.
func literal(args json.RawMessage) outside.JSON {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	text, err := match.Literal(args)
	if err != nil {
		panic(err) // it was read as JSON
	}
	return outside.JSON(jsonform.Canonical(text))
}

// expects is the check that calls are done.
func expects(calls []check.Call, order, extra string) check.Definition {
	return check.Definition{Calls: &check.Calls{Expect: &calls, Order: order, Extra: extra}}
}

// declare adds a faked tool to the world of a case. The first declaration counts.
func (m *Import) declare(c *suite.Case, f suite.Function, fakes ...suite.Fake) {
	if m.own {
		return
	}
	if c.World == nil {
		c.World = &suite.World{Tools: map[string][]suite.Fake{}}
	}
	named := func(other suite.Function) bool { return other.Name == f.Name }
	if !slices.ContainsFunc(c.World.Functions, named) {
		if f.Description == "" {
			f.Description = f.Name
		}
		if f.Input == nil {
			f.Input = outside.JSON(`{"type":"object"}`)
		}
		c.World.Functions = append(c.World.Functions, f)
	}
	c.World.Tools[f.Name] = append(c.World.Tools[f.Name], fakes...)
}

// done is the result of a call whose result is unknown.
func done() suite.Fake { return suite.Fake{Result: outside.JSON(`"done"`)} }
