package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/eval/internal/running"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/store"
)

// controls.go: checks that cannot fail or cannot pass, found by playing the checks on runs that are
// made up.

// controls are the controls of a suite.
type controls struct {
	suite    *suite.Suite
	cases    []*suite.LoadedCase // that are controlled
	getenv   func(string) string
	strict   bool
	runner   *running.Runner
	warnings []string
	played   int // numbers the runs that are made up
}

func newControls(s *Suite, strict bool) *controls {
	return &controls{
		suite:  s.read,
		cases:  s.read.Cases,
		getenv: s.getenv,
		strict: strict,
		runner: &running.Runner{
			Engine: &durable.Engine{Journal: new(store.MemoryJournal)},
			Getenv: s.getenv,
		},
	}
}

// run plays all controls, and reports the faults of all cases to the suite. The error says why they
// could not be played.
func (x *controls) run(ctx context.Context) error {
	for _, v := range x.suite.Variants {
		for _, c := range x.cases {
			if err := x.leaks(ctx, v, c); err != nil {
				return err
			}
		}
	}
	tools, err := x.variantTools(ctx)
	if err != nil {
		return err
	}
	for _, c := range x.cases {
		x.tools(c, tools)
		x.limits(c)
	}

	// Runs are played only where nothing leaks.
	if x.suite.Err() != nil {
		return nil
	}
	for _, c := range x.cases {
		if err := x.play(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// leaks reports tools that could change something outside of the world.
func (x *controls) leaks(ctx context.Context, v *suite.Variant, c *suite.LoadedCase) error {
	tools, err := running.Leaks(ctx, v, c, x.getenv)
	if err != nil {
		return err
	}
	for _, name := range tools {
		c.Report("world", "a fake under world.tools, or its name in world.real if it may happen",
			fmt.Sprintf("case %s: %s of the variant %s may change something outside of the trial", c.ID, name, v.Name))
	}
	return nil
}

// variantTools are the tools of a variant.
type variantTools struct {
	variant *suite.Variant
	names   []string
	all     bool // there are no others
}

// variantTools returns the tools of each variant.
func (x *controls) variantTools(ctx context.Context) (each []variantTools, err error) {
	for _, v := range x.suite.Variants {
		names, all, err := running.ToolNames(ctx, v, x.getenv)
		if err != nil {
			return nil, err
		}
		each = append(each, variantTools{v, names, all})
	}
	return each, nil
}

// tools reports expected tools that a variant lacks, and forbidden ones that no variant has.
func (x *controls) tools(c *suite.LoadedCase, each []variantTools) {
	var functions []string
	for _, f := range c.Where.Functions {
		functions = append(functions, f.Name)
	}
	everywhere := functions
	complete := true
	for _, t := range each {
		complete = complete && t.all
		everywhere = slices.Concat(everywhere, t.names)
		t.names = slices.Concat(t.names, functions)
		if t.all {
			x.lacking(c, t)
		}
	}
	if !complete {
		return
	}

	for _, one := range c.Judges {
		calls := one.Definition.Calls
		if calls == nil {
			continue
		}
		for i, value := range calls.Forbid {
			call, err := check.ReadCall(value)
			has := func(name string) bool { return match.Named(call.Tool, name) }
			if err == nil && !slices.ContainsFunc(everywhere, has) {
				x.report(c, fmt.Sprintf("%s.calls.forbid[%d]", one.Path, i), "the name of a tool of the agent",
					call.Tool+" is forbidden, and no variant has it, so that this cannot fail")
			}
		}
	}
}

// lacking reports the expected tools that a variant does not have.
func (x *controls) lacking(c *suite.LoadedCase, t variantTools) {
	for _, one := range c.Judges {
		calls := one.Definition.Calls
		if calls == nil || calls.Expect == nil {
			continue
		}
		for i, call := range *calls.Expect {
			has := func(name string) bool { return match.Named(call.Tool, name) }
			if !slices.ContainsFunc(t.names, has) {
				x.report(c, fmt.Sprintf("%s.calls.expect[%d]", one.Path, i), "the name of a tool of the agent",
					fmt.Sprintf("%s is expected, and the variant %s lacks it, so that this cannot pass", call.Tool, t.variant.Name))
			}
		}
	}
}

// limits reports bounds that the limits of the case keep anyway.
func (x *controls) limits(c *suite.LoadedCase) {
	kept := map[string]float64{}
	for name, n := range map[string]*int{"rounds": c.Bounds.Rounds, "calls": c.Bounds.Calls, "tokens": c.Bounds.Tokens} {
		if n != nil {
			kept[name] = float64(*n)
		}
	}
	if cost := c.Bounds.Cost; cost != nil {
		kept["cost"] = *cost
	}
	for _, one := range c.Judges {
		for name, r := range one.Definition.Spent {
			limit, has := kept[name]
			if has && r.Max != nil && r.Min == nil && *r.Max >= limit {
				x.report(c, one.Path+".spent."+name, fmt.Sprintf("less than %g", limit),
					fmt.Sprintf("a max of %g is not below the limit of the case, so that this cannot fail", *r.Max))
			}
		}
	}
}

// play plays the checks of a case on runs that are made up.
func (x *controls) play(ctx context.Context, c *suite.LoadedCase) error {
	if c.Draft {
		return nil
	}
	world, err := running.NewWorld(&c.Where)
	if err != nil {
		c.Report("world", "", err.Error())
		return nil
	}
	files, err := world.Files()
	world.Close()
	if err != nil {
		return err
	}

	silent := trial.Silent()
	silent.Input = c.Text
	silent.Before = files
	silent.After = files
	echo := silent
	echo.Answer = c.Text
	switch {
	case c.MayDoNothing:
	case passes(silent, c.Judges):
		c.Report("", "a check of what must be said or done, or may_do_nothing: true",
			fmt.Sprintf("a run of %s that says and does nothing passes all checks", c.ID))
	case passes(echo, c.Judges):
		x.warn(c, fmt.Sprintf("a run of %s that repeats the input passes all checks", c.ID))
	}

	for i := range c.Counterexamples {
		path := fmt.Sprintf("counterexamples[%d]", i)
		record, err := x.made(ctx, c, &c.Counterexamples[i])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			c.Report(path, "", err.Error())
			continue
		}
		if passes(*record, c.Judges) {
			c.Report(path, "add a check that fails on it", "the checks do not see this fault")
		}
	}
	return x.reference(ctx, c)
}

// report adds a fault of a check of a case, which may be one of the defaults.
func (x *controls) report(c *suite.LoadedCase, path, hint, message string) {
	if strings.HasPrefix(path, "defaults.") {
		x.suite.Report(path, hint, message)
		return
	}
	c.Report(path, hint, message)
}

// warn adds a warning, or a fault.
func (x *controls) warn(c *suite.LoadedCase, text string) {
	if x.strict {
		c.Report("", "", text)
		return
	}
	x.warnings = append(x.warnings, text)
}

// made plays a run of a suite in the world of its case, by the first variant.
func (x *controls) made(ctx context.Context, c *suite.LoadedCase, ref *suite.Reference) (*trial.Record, error) {
	x.played++
	return x.runner.Play(ctx, c, x.suite.Variants[0], ref, fmt.Sprintf("control-%d", x.played))
}

// passes reports whether a record passes all gating checks.
func passes(r trial.Record, checks []*check.Check) bool {
	check.Judge(&r, checks)
	return r.Verdict == trial.Pass
}

// reference plays the reference, which must pass, and its mutants, on which each check must fail at
// least once.
func (x *controls) reference(ctx context.Context, c *suite.LoadedCase) error {
	if c.Reference == nil {
		return nil
	}
	record, err := x.made(ctx, c, c.Reference)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		c.Report("reference", "", err.Error())
		return nil
	}
	judged := *record
	check.Judge(&judged, c.Judges)
	if judged.Verdict != trial.Pass {
		c.Report("reference", "", "it must pass, and does not: "+strings.Join(failures(&judged), "; "))
		return nil
	}

	mutants := mutantsOf(record, c.Judges)
	for _, one := range c.Judges {
		sees := func(m trial.Record) bool { return !one.Judge(&m).Pass }
		if one.Gates && !slices.ContainsFunc(mutants, sees) {
			x.report(c, one.Path, "", fmt.Sprintf("the check %s passes the reference of %s and all %d mutants of it, so that "+
				"it sees no fault", one.Name, c.ID, len(mutants)))
		}
	}
	return nil
}

// failures returns the gating checks that a record does not pass.
func failures(r *trial.Record) (all []string) {
	for _, result := range r.Checks {
		if result.Gates && !result.Pass {
			all = append(all, result.Name+": "+result.Reason+result.Error)
		}
	}
	return all
}

// mutantsOf returns runs that differ from a good one by one fault.
func mutantsOf(good *trial.Record, checks []*check.Check) (all []trial.Record) {
	add := func(change func(*trial.Record)) {
		mutant := *good
		mutant.Calls = slices.Clone(good.Calls)
		mutant.Asked = slices.Clone(good.Asked)
		mutant.After = maps.Clone(good.After)
		if mutant.After == nil {
			mutant.After = map[string]trial.File{}
		}
		change(&mutant)
		all = append(all, mutant)
	}

	for i := range good.Calls {
		add(func(r *trial.Record) { r.Calls = slices.Delete(r.Calls, i, i+1) })
		add(func(r *trial.Record) { r.Calls = slices.Insert(r.Calls, i, r.Calls[i]) })
		for _, args := range changedArguments(good.Calls[i].Args) {
			add(func(r *trial.Record) { r.Calls[i].Args = args })
		}
		add(func(r *trial.Record) { r.Calls[i].State = "failed" })
		add(func(r *trial.Record) { r.Calls[i].State = "unknown" })
	}
	for _, one := range checks {
		calls := one.Definition.Calls
		if calls == nil {
			continue
		}
		for _, value := range calls.Forbid {
			add(func(r *trial.Record) { r.Calls = append(r.Calls, forbiddenCall(value)) })
		}
		for pattern, bound := range calls.Count {
			if bound.Max != nil {
				add(func(r *trial.Record) { r.Calls = append(r.Calls, often(pattern, int(*bound.Max)+1)...) })
			}
		}
	}
	add(func(r *trial.Record) {
		r.Calls = append(r.Calls, trial.Call{Tool: "another_write", Args: json.RawMessage("{}"), Outcome: "ok",
			Effect: "write", State: "completed"})
	})

	mutateWorld(good, add)
	mutateEnd(good, checks, add)
	return all
}

// forbiddenCall returns a call that a check forbids.
func forbiddenCall(value []byte) trial.Call {
	call, _ := check.ReadCall(value) // it was compiled before
	args := json.RawMessage(call.Args)
	if args == nil {
		args = json.RawMessage("{}")
	}
	return trial.Call{Tool: literal(call.Tool), Args: args, Outcome: "denied", Effect: "write"}
}

// literal returns a name that a pattern fits.
func literal(pattern string) string { return strings.NewReplacer("*", "x", "?", "x").Replace(pattern) }

// often returns so many calls of a pattern.
func often(pattern string, times int) (calls []trial.Call) {
	for range times {
		calls = append(calls, trial.Call{Tool: literal(pattern), Args: json.RawMessage("{}"), Outcome: "ok",
			Effect: "write", State: "completed"})
	}
	return calls
}

// changedArguments returns arguments in which one value is another.
func changedArguments(args json.RawMessage) (all []json.RawMessage) {
	var values map[string]json.RawMessage
	if json.Unmarshal(args, &values) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		other := maps.Clone(values)
		other[name] = json.RawMessage(`"another value"`)
		if text, err := json.Marshal(other); err == nil {
			all = append(all, text)
		}
	}
	return all
}

// mutateWorld adds a file, removes each file that was written, and changes the others.
func mutateWorld(good *trial.Record, add func(func(*trial.Record))) {
	add(func(r *trial.Record) { r.After["another file"] = textFile("another text") })
	for name, f := range good.After {
		before, had := good.Before[name]
		isNew := !had || before.SHA256 != f.SHA256
		if isNew {
			add(func(r *trial.Record) { delete(r.After, name) })
		}
		add(func(r *trial.Record) { r.After[name] = textFile("another text") })
	}
	for name, f := range good.Before {
		if _, kept := good.After[name]; !kept {
			add(func(r *trial.Record) { r.After[name] = f })
		}
	}
}

// textFile is a file with a text.
func textFile(text string) trial.File {
	return trial.File{SHA256: trial.Digest([]byte(text)), Text: &text}
}

// mutateEnd changes the answer, the stop, the questions and the figures.
func mutateEnd(good *trial.Record, checks []*check.Check, add func(func(*trial.Record))) {
	add(func(r *trial.Record) {
		r.Answer = ""
		r.Output = nil
	})
	add(func(r *trial.Record) { r.Answer = "another answer: " + excluded(checks) })
	add(func(r *trial.Record) { r.Stop = "limit" })
	add(func(r *trial.Record) { r.Stop = "answer" })
	add(func(r *trial.Record) { r.Asked = append(r.Asked, trial.Question{Tool: "another_write"}) })
	add(func(r *trial.Record) { r.Asked = nil })
	add(func(r *trial.Record) {
		huge := 1e9
		r.Spent = trial.Spent{Cost: &huge, Time: 1 << 60, Rounds: 1 << 30, Requests: 1 << 30, Calls: 1 << 30,
			Input: 1 << 30, Output: 1 << 30, Corrections: 1 << 30, Invalid: 1 << 30, Repairs: 1 << 30}
	})
	add(func(r *trial.Record) {
		free := 0.0
		r.Spent = trial.Spent{Cost: &free}
	})
}

// excluded returns the texts that checks exclude from the answer.
func excluded(checks []*check.Check) string {
	var all []string
	for _, one := range checks {
		if answer := one.Definition.Answer; answer != nil {
			texts, _ := check.Texts(answer.Excludes) // it was compiled before
			all = append(all, texts...)
		}
	}
	return strings.Join(all, " ")
}
