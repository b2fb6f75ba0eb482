package stored

import (
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// fakes.go: the world of the case of a run, in which tools answer as they did.

// world sets the files, and what each tool answered.
func (m *making) world() {
	w := &suite.World{Files: m.wish.Files, Tools: map[string][]suite.Fake{}}
	for i, c := range m.run.Export.Calls {
		name := c.Execution.Call.Name
		t, has := m.tools[name]
		switch {
		case m.run.composes(i), t.composes():
			continue // it runs, and its calls are answered
		case t.InWorld && m.wish.Files != "":
			continue
		case w.Tools[name] != nil:
			continue
		case !has && !m.wish.Servers:
			m.miss("the tool %s, which the model of the suite's agent does not call", name)
			continue
		}
		if lines := m.lines(name); lines != nil {
			w.Tools[name] = lines
		}
	}
	if len(w.Tools) == 0 {
		w.Tools = nil
	}
	if w.Files != "" || w.Tools != nil {
		m.out.World = w
	}
}

// recorded is a call of the run, with the answers that equal calls got.
type recorded struct {
	args    outside.JSON
	answers []suite.Fake
}

// lines returns what a tool answered, by the arguments of its calls. A wanted call gets the answer
// of the recorded one. Nil means that no call of the tool ran.
func (m *making) lines(tool string) (lines []suite.Fake) {
	var all []*recorded
	var best *suite.Fake
	for _, c := range m.run.Export.Calls {
		if c.Execution.Call.Name != tool {
			continue
		}
		answer, ran := m.answered(&c)
		if !ran {
			continue
		}
		args := literal(c.Execution.Call.Args)
		i := slices.IndexFunc(all, func(r *recorded) bool { return string(r.args) == string(args) })
		if i < 0 {
			i = len(all)
			all = append(all, &recorded{args: args})
		}
		all[i].answers = append(all[i].answers, answer)
		if best == nil || best.Error != "" && answer.Error == "" {
			best = &answer
		}
	}

	for _, r := range all {
		lines = append(lines, r.lines()...)
	}
	if best == nil {
		return nil
	}
	for _, call := range m.wanted {
		known := func(r *recorded) bool { return string(r.args) == string(call.Args) }
		if match.Named(call.Tool, tool) && !slices.ContainsFunc(all, known) {
			lines = append(lines, suite.Fake{Args: call.Args, Result: best.Result, Error: best.Error})
		}
	}
	return lines
}

// lines returns the answers of equal calls: one after the other, if they differ.
func (r *recorded) lines() (lines []suite.Fake) {
	for _, a := range r.answers {
		a.Args = r.args
		n := len(lines)
		if n > 0 && string(lines[n-1].Result) == string(a.Result) && lines[n-1].Error == a.Error {
			lines[n-1].Times++
			continue
		}
		a.Times = 1
		lines = append(lines, a)
	}
	lines[len(lines)-1].Times = 0 // the last one for all further calls
	return lines
}

// answered returns what a call answered. ran is false for a call that did not run, or whose result
// is unknown.
func (m *making) answered(c *journal.ExportedCall) (f suite.Fake, ran bool) {
	text := c.Execution.Result.Text()
	isOther := func(p llm.Part) bool {
		_, isText := p.(llm.Text)
		return !isText
	}
	if slices.ContainsFunc(c.Execution.Result.Parts, isOther) {
		m.miss("the images and files in the result of %s (%s)", c.Key, c.Call.Name)
	}
	switch c.Execution.Outcome {
	case pawl.OutcomeOK:
		result, err := jsonform.Marshal(text)
		return suite.Fake{Result: outside.JSON(result)}, err == nil
	case pawl.OutcomeError, pawl.OutcomeTimeout:
		if strings.TrimSpace(text) == "" {
			text = "it failed"
		}
		return suite.Fake{Error: text}, true
	}
	return f, false
}

// notRecorded is the answer of a tool that the run did not call.
const notRecorded = "this tool is not part of the recorded run"

// FakeOthers adds fakes for tools that the run did not call, and that could change something
// outside of a trial.
func FakeOthers(c *suite.Case, tools []string) {
	for _, name := range tools {
		if c.World == nil {
			c.World = &suite.World{}
		}
		if c.World.Tools == nil {
			c.World.Tools = map[string][]suite.Fake{}
		}
		c.World.Tools[name] = []suite.Fake{{Error: notRecorded}}
	}
}
