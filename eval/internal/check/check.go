package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/tools/outside"
)

// Check judges trials. It is safe for concurrent use.
type Check struct {
	// Name is the name in reports.
	Name string

	// Path is the place in the suite.
	Path string

	// Definition is what the suite states.
	Definition *Definition

	// Weight is the weight in the score.
	Weight float64

	// Gates is true for a check that decides the verdict.
	Gates bool

	judge func(*trial.Record) verdict
}

// verdict is what a check says.
type verdict struct {
	reason string   // why the trial does not pass; "" means that it does
	fault  string   // why the check cannot judge; "" means that it can
	f1     *float64 // of expected calls
}

func (v verdict) passes() bool { return v.reason == "" && v.fault == "" }

// Judge judges a trial. A check that panics cannot judge.
func (c *Check) Judge(r *trial.Record) (out trial.Result) {
	out = trial.Result{Name: c.Name, Gates: c.Gates}
	defer func() {
		if v := recover(); v != nil {
			out.Pass = false
			out.Error = fmt.Sprintf("the check failed: %v", v)
		}
	}()
	v := c.judge(r)
	out.Pass = v.passes()
	out.Reason = v.reason
	out.Error = v.fault
	out.F1 = v.f1
	return out
}

// Judge sets the verdict, the score and the results of a record by checks. A record with an error
// keeps its verdict.
func Judge(r *trial.Record, checks []*Check) {
	if r.Error != "" || r.Verdict == trial.Skipped {
		return
	}
	r.Verdict = trial.Pass
	r.Checks = nil
	earned := 0.0
	possible := 0.0
	for _, c := range checks {
		result := c.Judge(r)
		r.Checks = append(r.Checks, result)
		possible += c.Weight
		if result.Pass {
			earned += c.Weight
		}
		switch {
		case !c.Gates || result.Pass:
		case result.Error != "":
			r.Verdict = trial.Error
		case r.Verdict == trial.Pass:
			r.Verdict = trial.Fail
		}
	}
	r.Score = 1
	if possible > 0 {
		r.Score = earned / possible
	}
}

// Compiler makes Checks of Definitions.
type Compiler struct {
	// Report receives each fault of a definition: its place in the suite, what is wrong, and what
	// would be right.
	Report func(path, hint, message string)

	// ReadFile reads a file that a suite names.
	ReadFile func(name string) ([]byte, error)
}

func (c *Compiler) report(path, hint, format string, args ...any) {
	c.Report(path, hint, fmt.Sprintf(format, args...))
}

// kind is a kind of check.
type kind struct {
	name    string
	stated  func(*Definition) bool
	compile func(*Compiler, *Definition, string) func(*trial.Record) verdict
}

// kinds are all kinds of checks.
func kinds() []kind {
	return []kind{
		{"not", func(d *Definition) bool { return d.Not != nil }, (*Compiler).not},
		{"any", func(d *Definition) bool { return d.Any != nil }, (*Compiler).anyOf},
		{"at_least", func(d *Definition) bool { return d.AtLeast != nil }, (*Compiler).atLeast},
		{"answer", func(d *Definition) bool { return d.Answer != nil }, (*Compiler).answer},
		{"output", func(d *Definition) bool { return d.Output != nil }, (*Compiler).output},
		{"calls", func(d *Definition) bool { return d.Calls != nil }, (*Compiler).calls},
		{"effects", func(d *Definition) bool { return d.Effects != nil }, (*Compiler).effects},
		{"files", func(d *Definition) bool { return d.Files != nil }, (*Compiler).files},
		{"asked", func(d *Definition) bool { return d.Asked != nil }, (*Compiler).asked},
		{"stop", func(d *Definition) bool { return d.Stop != nil }, (*Compiler).stop},
		{"spent", func(d *Definition) bool { return d.Spent != nil }, (*Compiler).spent},
	}
}

// Kinds returns the names of all kinds.
func Kinds() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// Compile makes a check of a definition at a path. It returns nil for a faulty one, which it has
// reported.
func (c *Compiler) Compile(d *Definition, path string) *Check {
	var stated []kind
	for _, k := range kinds() {
		if k.stated(d) {
			stated = append(stated, k)
		}
	}
	if len(stated) != 1 {
		c.report(path, "one of "+strings.Join(Kinds(), ", ")+"; begin another check for each",
			"a check has one kind, and this has %d", len(stated))
		return nil
	}

	faults := 0
	inner := *c
	inner.Report = func(at, hint, message string) {
		faults++
		c.Report(at, hint, message)
	}
	k := stated[0]
	judge := k.compile(&inner, d, path+"."+k.name)
	if faults > 0 {
		return nil
	}

	out := &Check{
		Name:       cmp.Or(d.Name, k.name),
		Path:       path,
		Definition: d,
		Weight:     1,
		Gates:      !d.Observe,
		judge:      judge,
	}
	if d.Weight != nil {
		out.Weight = *d.Weight
	}
	return out
}

// list compiles the checks of a composed one.
func (c *Compiler) list(all []Definition, path string) (checks []*Check) {
	if len(all) == 0 {
		c.report(path, "", "the list of checks is empty")
	}
	for i := range all {
		checks = append(checks, c.Compile(&all[i], fmt.Sprintf("%s[%d]", path, i)))
	}
	return checks
}

func (c *Compiler) not(d *Definition, path string) func(*trial.Record) verdict {
	inner := c.Compile(d.Not, path)
	return func(r *trial.Record) verdict {
		v := inner.judge(r)
		switch {
		case v.fault != "":
			return v
		case v.reason == "":
			return verdict{reason: "it passes " + inner.Name}
		}
		return verdict{}
	}
}

func (c *Compiler) anyOf(d *Definition, path string) func(*trial.Record) verdict {
	return some(c.list(d.Any, path), 1)
}

func (c *Compiler) atLeast(d *Definition, path string) func(*trial.Record) verdict {
	checks := c.list(d.AtLeast.Of, path+".of")
	if d.AtLeast.N > len(checks) {
		c.report(path+".n", "", "%d of %d checks cannot pass", d.AtLeast.N, len(checks))
	}
	return some(checks, d.AtLeast.N)
}

// some passes if so many checks do. A check that cannot judge matters only if the others do not
// decide.
func some(checks []*Check, wanted int) func(*trial.Record) verdict {
	return func(r *trial.Record) verdict {
		passed := 0
		var reasons, faults []string
		for _, one := range checks {
			v := one.judge(r)
			switch {
			case v.passes():
				passed++
			case v.fault != "":
				faults = append(faults, v.fault)
			default:
				reasons = append(reasons, v.reason)
			}
		}
		switch {
		case passed >= wanted:
			return verdict{}
		case passed+len(faults) >= wanted:
			return verdict{fault: strings.Join(faults, "; ")}
		}
		return verdict{reason: fmt.Sprintf("%d of %d pass: %s", passed, len(checks), strings.Join(reasons, "; "))}
	}
}

// Texts reads a text, or a list of texts. Nothing is an empty list.
func Texts(value []byte) (many []string, err error) {
	var one string
	switch {
	case value == nil:
		return nil, nil
	case json.Unmarshal(value, &one) == nil:
		return []string{one}, nil
	}
	err = json.Unmarshal(value, &many)
	return many, err
}

// texts reads a text, or a list of texts, none of which is empty.
func (c *Compiler) texts(value outside.JSON, path string) []string {
	many, err := Texts(value)
	switch {
	case err != nil:
		c.report(path, "", "want a text, or a list of texts")
		return nil
	case value != nil && len(many) == 0, slices.Contains(many, ""):
		c.report(path, "remove it", "every text contains an empty one, so that this cannot fail")
	}
	return many
}

// bound reports a range that every number is in, or none.
func (c *Compiler) bound(r Range, path string) {
	switch {
	case r.Min == nil && r.Max == nil:
		c.report(path, "{min: 1}, {max: 3} or both", "there is neither min nor max, so that this cannot fail")
	case r.Max == nil && *r.Min <= 0:
		c.report(path, "a min of at least 1, or a max", "min: 0 alone cannot fail")
	case r.Max != nil && *r.Max < 0, r.Min != nil && r.Max != nil && *r.Min > *r.Max:
		c.report(path, "", "no number is in this range, so that this cannot pass")
	}
}

// outside says how a number misses a range. Empty means that it is in it.
func (r Range) outside(n float64) string {
	switch {
	case r.Min != nil && n < *r.Min:
		return fmt.Sprintf("%g, want at least %g", n, *r.Min)
	case r.Max != nil && n > *r.Max:
		return fmt.Sprintf("%g, want at most %g", n, *r.Max)
	}
	return ""
}

// bounds reports the wrong ranges of a map.
func (c *Compiler) bounds(all map[string]Range, path string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c.bound(all[name], path+"."+name)
	}
}
