package stored

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// case.go: the case of a run: messages, fakes, answers, checks.

// Wish is what a person says about a run.
type Wish struct {
	// ID is the name of the case.
	ID string

	// Forbid are calls that are not asked for: the key of a call of the run, a name or a pattern
	// of tools, or TOOL=ARGS.
	Forbid []string

	// Want are calls that are done: TOOL, or TOOL=ARGS.
	Want []string

	// Answer are texts in the answer.
	Answer []string

	// Good is true for a run that must pass. Its writes, stop and output become checks.
	Good bool

	// Files is the folder of the files of the world. Empty means that the tools of files are faked.
	Files string

	// Servers is true if the agent has tools of servers, whose names are unknown.
	Servers bool

	// Output is the schema of the agent's output. Nil means none.
	Output json.RawMessage
}

// Tool is a tool of the agent.
type Tool struct {
	// Name is the name of the tool.
	Name string

	// Effect is what a call may do, by the words of pawl.Effect.
	Effect string

	// InWorld is true for a tool that works on the files and the database of the trial alone.
	InWorld bool
}

// composes reports whether its calls are calls of other tools.
func (t Tool) composes() bool { return t.Effect == "compose" }

// writes reports whether its calls may change something.
func (t Tool) writes() bool { return t.Effect == "write" || t.Effect == "idempotent" }

// making is a case that is made.
type making struct {
	run     *Run
	record  *trial.Record // of the run; its ledger alone says what calls may have done
	wish    *Wish
	tools   map[string]Tool
	out     *suite.Case
	wanted  []check.Call
	missing []string // what the case cannot have
}

// Case makes the case of a run. missing says what the run had and the case cannot have.
func (r *Run) Case(w *Wish, tools []Tool) (c *suite.Case, missing []string, err error) {
	m := &making{run: r, record: r.Record(nil), wish: w, tools: map[string]Tool{}, out: &suite.Case{ID: w.ID}}
	for _, t := range tools {
		m.tools[t.Name] = t
	}
	digest, err := r.Digest()
	if err != nil {
		return nil, nil, err
	}
	m.out.From = map[string]string{"run": r.ID, "digest": digest}
	if !r.Date.IsZero() {
		m.out.From["date"] = r.Date.UTC().Format(time.RFC3339)
	}

	if err := errors.Join(m.input(), m.checks()); err != nil {
		return nil, nil, err
	}
	m.limits()
	m.world()
	m.answers()
	m.played()
	m.rest()
	return m.out, m.missing, nil
}

// miss notes once what the case cannot have.
func (m *making) miss(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(m.missing, text) {
		m.missing = append(m.missing, text)
	}
}

// input sets what the user says: a text, or all messages.
func (m *making) input() (err error) {
	all := m.run.Export.Messages
	faults := llm.Check(all)
	switch {
	case len(all) == 0:
		return errors.New("the run has no messages")
	case len(faults) > 0:
		return fmt.Errorf("the messages of the run are no input: %v", faults[0])
	}
	one := all[0]
	if len(all) == 1 && len(one.Parts) == 1 && one.Role == llm.RoleUser {
		if said, isText := one.Parts[0].(llm.Text); isText {
			m.out.Input, err = jsonOf(said.Text)
			return err
		}
	}
	m.out.Input, err = jsonOf(all)
	return err
}

// jsonOf writes a value as a suite has it. YAML has no pairs of surrogates, which the canonical
// form does not have either.
func jsonOf(v any) (outside.JSON, error) {
	text, err := jsonform.Marshal(v)
	return outside.JSON(jsonform.Canonical(text)), err
}

// limits sets the limits that the command line of the run stated.
func (m *making) limits() {
	given := m.run.Limits
	if given == nil {
		return
	}
	whole := func(n int) *int {
		if n <= 0 {
			return nil
		}
		return &n
	}
	l := &agentfile.Limits{Rounds: whole(given.Rounds), Calls: whole(given.Calls), Tokens: whole(given.Tokens)}
	if given.Cost > 0 {
		l.Cost = &given.Cost
	}
	if *l != (agentfile.Limits{}) {
		m.out.Limits = l
	}
}

// checks sets the checks that a person stated, or the checks of a good run.
func (m *making) checks() error {
	calls := &check.Calls{}
	for _, text := range m.wish.Forbid {
		value, err := m.forbidden(text)
		if err != nil {
			return err
		}
		calls.Forbid = append(calls.Forbid, value)
	}
	for _, text := range m.wish.Want {
		call, err := callOf(text)
		if err != nil {
			return err
		}
		m.wanted = append(m.wanted, call)
	}

	// What is forbidden says nothing of what must be done: a run that does nothing is right.
	onlyForbids := calls.Forbid != nil && m.wanted == nil && m.wish.Answer == nil
	if onlyForbids {
		m.out.MayDoNothing = true
		m.miss("what must be done: a run that does nothing passes (may_do_nothing)")
	}
	if calls.Forbid != nil {
		m.out.Checks = append(m.out.Checks, check.Definition{Calls: calls})
	}
	if m.wanted != nil {
		m.out.Checks = append(m.out.Checks, check.Definition{Calls: &check.Calls{Expect: &m.wanted}})
	}
	for _, text := range m.wish.Answer {
		contains, err := jsonOf(text)
		if err != nil {
			return err
		}
		m.out.Checks = append(m.out.Checks, check.Definition{Answer: &check.Answer{Contains: contains, Fold: true}})
	}
	if m.wish.Good {
		return m.good()
	}
	return nil
}

// good adds the writes, the stop and the output of the run as checks.
func (m *making) good() error {
	expect := []check.Call{}
	for i := range m.record.Calls {
		c := &m.record.Calls[i]
		isDone := c.Outcome == string(pawl.OutcomeOK) && c.Writes() && c.Depth == 0
		if isDone && !m.tools[c.Tool].composes() {
			expect = append(expect, check.Call{Tool: c.Tool, Args: literal(c.Args)})
		}
	}
	writes := &check.Calls{Expect: &expect}
	if len(expect) == 0 {
		writes = &check.Calls{None: "writes"}
	}
	stop, err := jsonOf(m.record.Stop)
	m.out.Checks = append(m.out.Checks, check.Definition{Stop: stop}, check.Definition{Calls: writes})
	if m.record.Output != nil && m.wish.Output != nil {
		output := &check.Output{Schema: outside.JSON(m.wish.Output)}
		m.out.Checks = append(m.out.Checks, check.Definition{Output: output})
	}
	return err
}

// forbidden reads a call that is not asked for.
func (m *making) forbidden(text string) (outside.JSON, error) {
	if strings.Contains(text, "/") && !strings.Contains(text, "=") {
		var keys []string
		for _, c := range m.run.Export.Calls {
			if string(c.Key) == text {
				x := c.Execution.Call
				return jsonOf(check.Call{Tool: x.Name, Args: literal(x.Args)})
			}
			keys = append(keys, string(c.Key))
		}
		return nil, fmt.Errorf("the run has no call %s; it has %s", text, cmp.Or(strings.Join(keys, ", "), "none"))
	}
	call, err := callOf(text)
	if err == nil && call.Args == nil {
		return jsonOf(call.Tool)
	}
	form, marshalErr := jsonOf(call)
	return form, cmp.Or(err, marshalErr)
}

// callOf reads TOOL, or TOOL=ARGS. A person states the arguments that matter: a call may have more.
func callOf(text string) (call check.Call, err error) {
	name, args, hasArgs := strings.Cut(text, "=")
	call.Tool = name
	if !hasArgs {
		return call, nil
	}
	if _, err := match.Parse(json.RawMessage(args)); err != nil {
		return call, fmt.Errorf("%s: the arguments: %w", text, err)
	}
	subset := outside.JSON(`{"$subset":` + args + `}`)
	if _, err := match.Parse(json.RawMessage(subset)); err == nil {
		call.Args = outside.JSON(jsonform.Canonical(json.RawMessage(subset)))
		return call, nil
	}
	call.Args = outside.JSON(jsonform.Canonical(json.RawMessage(args))) // {}, or another value
	return call, nil
}

// answers sets what a person said. One answer stands for all calls of a tool that got the same one,
// so that it also fits the calls of an agent that does better.
func (m *making) answers() {
	var tools []string
	byTool := map[string][]suite.Answer{}
	add := func(tool string, a suite.Answer) {
		if byTool[tool] == nil {
			tools = append(tools, tool)
		}
		byTool[tool] = append(byTool[tool], a)
	}
	for _, c := range m.run.Export.Calls {
		if d := c.Execution.Decision; isOfPerson(d) {
			a := suite.Answer{Tool: c.Call.Name, Args: literal(c.Call.Args), Do: wordOf(d)}
			a.With = m.with(d)
			add(c.Call.Name, a)
		}
	}

	// The command line of the run allowed other writes, and no suite inherits that. The answer to
	// wanted writes is unknown.
	for _, name := range m.unasked() {
		if byTool[name] == nil {
			add(name, suite.Answer{Tool: name, Do: "approve"})
		}
	}
	for _, tool := range tools {
		all := byTool[tool]
		others := func(a suite.Answer) bool { return a.Do != all[0].Do || string(a.With) != string(all[0].With) }
		if !slices.ContainsFunc(all, others) && all[0].Do != "edit" {
			all[0].Args = nil
			all = all[:1]
		}
		m.out.Answers = append(m.out.Answers, all...)
	}
}

// unasked returns the tools that wrote, or whose writes are wanted, sorted.
func (m *making) unasked() (names []string) {
	for _, c := range m.run.Export.Calls {
		x := c.Execution
		if stateOf(&x) != "" && m.tools[x.Call.Name].writes() {
			names = append(names, x.Call.Name)
		}
	}
	for _, call := range m.wanted {
		for name, t := range m.tools {
			if t.writes() && match.Named(call.Tool, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// with returns what a decision says besides yes or no.
func (m *making) with(d *llm.Decision) outside.JSON {
	var value any = d.Reason
	switch {
	case d.Result != nil:
		value = d.Result.Text()
	case d.Args != nil:
		value = d.Args
	case d.Approve || d.Reason == "":
		return nil
	}
	text, err := jsonOf(value)
	if err != nil {
		m.miss("the answer to a call: %v", err)
	}
	return text
}

// played sets the run itself, as the reference or as a counterexample.
func (m *making) played() {
	var ref suite.Reference
	if e := m.run.Export.End; e != nil && e.Answer != nil {
		ref.Answer = e.Answer.Text
	}
	for i, c := range m.run.Export.Calls {
		if m.record.Calls[i].Depth > 0 {
			continue
		}
		if !json.Valid(c.Call.Args) && len(c.Call.Args) > 0 {
			m.miss("the call %s: its arguments are no JSON", c.Key)
			continue
		}
		ref.Calls = append(ref.Calls, suite.ReferenceCall{
			Tool: c.Call.Name,
			Args: outside.JSON(jsonform.Canonical(c.Call.Args)),
		})
	}
	if m.wish.Good {
		m.out.Reference = &ref
		return
	}
	m.out.Counterexamples = []suite.Reference{ref}
}

// rest lists what else the run had.
func (m *making) rest() {
	x := m.run.Export
	if len(x.Steered) > 0 {
		m.miss("messages that arrived during the run (%d)", len(x.Steered))
	}
	for _, q := range x.Pending {
		m.miss("the answer to %s (%s), which was open", q.Key, q.Call.Name)
	}
	if x.Forked != nil {
		m.miss("what the run %s had done before the fork", x.Forked.Run)
	}
}
