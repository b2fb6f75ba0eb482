package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-go/pawl/eval/internal/stats"
	"github.com/pawl-go/pawl/eval/internal/suite"
)

// gate.go: what must hold, and the baseline that an eval is compared with.

// GateReport is a demand on the results, and whether it holds.
type GateReport struct {
	// Name is the key of the gate, with the variant and the case: case note-anna (now).
	Name string `json:"name"`

	// Pass is true if it holds.
	Pass bool `json:"pass"`

	// Text has the figures.
	Text string `json:"text"`
}

// Change is a case that differs from the baseline.
type Change struct {
	// Case is the ID of the case.
	Case string `json:"case"`

	// Variant is the name of the variant.
	Variant string `json:"variant"`

	// Was is passed of judged trials in the baseline, such as 4/4. Empty means that it has no such
	// case.
	Was string `json:"was"`

	// Is is passed of judged trials now.
	Is string `json:"is"`

	// Why is the most frequent failure. Empty means none.
	Why string `json:"why,omitzero"`
}

// Baseline is what a later eval is compared with: a small file without times, to be committed.
type Baseline struct {
	// Form is "pawl baseline 1".
	Form string `json:"form"`

	// Suite is the name of the suite.
	Suite string `json:"suite"`

	// Cases are the results by variant and case.
	Cases map[string]map[string]BaselineCase `json:"variants"`
}

// BaselineCase is the result of a case by a variant.
type BaselineCase struct {
	// Digest is of the content of the case.
	Digest string `json:"digest"`

	// Cluster names the cases that depend on it.
	Cluster string `json:"cluster,omitzero"`

	// Judged counts the trials with a verdict.
	Judged int `json:"judged"`

	// Passed counts the trials that passed.
	Passed int `json:"passed"`

	// Failed are the names of the checks that trials failed.
	Failed []string `json:"failed,omitzero"`
}

const baselineForm = "pawl baseline 1"

// Baseline returns the results as a baseline. The error says that trials have no verdict.
func (r *Report) Baseline() (*Baseline, error) {
	if r.Errors > 0 || r.Skipped > 0 {
		return nil, fmt.Errorf("%d trials are errors and %d were skipped: a baseline wants a verdict of each",
			r.Errors, r.Skipped)
	}
	b := &Baseline{Form: baselineForm, Suite: r.Suite, Cases: map[string]map[string]BaselineCase{}}
	for _, v := range r.Variants {
		b.Cases[v.Name] = map[string]BaselineCase{}
		for _, c := range v.Cases {
			if c.Draft {
				continue
			}
			one := BaselineCase{Digest: c.Digest, Cluster: c.Cluster, Judged: c.Judged, Passed: c.Passed}
			for _, f := range c.Failures {
				one.Failed = append(one.Failed, f.Check)
			}
			slices.Sort(one.Failed)
			b.Cases[v.Name][c.ID] = one
		}
	}
	return b, nil
}

// Write writes the baseline into a file.
func (b *Baseline) Write(file string) error { return writeJSON(file, b) }

// cases returns the cases of a variant.
func (b *Baseline) cases(variant string) (all []CaseReport) {
	of := b.Cases[variant]
	for _, id := range slices.Sorted(maps.Keys(of)) {
		c := of[id]
		all = append(all, CaseReport{ID: id, Digest: c.Digest, Cluster: c.Cluster, Judged: c.Judged, Passed: c.Passed})
	}
	return all
}

// BaselineFile returns the name of the baseline of the suite. Empty means none.
func (s *Suite) BaselineFile() string {
	name := s.read.File.Baseline
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(s.read.Path), name)
}

// baseline reads the baseline of an eval. Nil means none. A file that the suite names and that does
// not exist yet is none either.
func (p *plan) baseline() (*Baseline, error) {
	name := p.options.Baseline
	isStated := name != ""
	if !isStated {
		name = p.suite.BaselineFile()
	}
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !isStated {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the baseline: %w", err)
	}
	b := new(Baseline)
	if err := json.Unmarshal(text, b); err != nil || b.Form != baselineForm {
		return nil, fmt.Errorf("%s is no file of the form %q", name, baselineForm)
	}
	if b.Suite != p.suite.Name() {
		return nil, fmt.Errorf("%s is the baseline of the suite %s, not of %s", name, b.Suite, p.suite.Name())
	}
	return b, nil
}

// judge judges the gates of the suite.
func (r *Report) judge(p *plan, base *Baseline) {
	gate := p.suite.read.File.Gate
	if gate == nil {
		gate = defaultGate(base)
	}
	if base != nil {
		r.compare(base)
	}
	drops := r.drops()
	for i := range r.Variants {
		v := &r.Variants[i]
		r.rates(gate, v)
		if base != nil {
			r.against(gate, base, v, drops[v.Name])
		}
	}
	r.errors(p.suite.read.File)
}

// compare compares each variant with the baseline.
func (r *Report) compare(base *Baseline) {
	for i := range r.Variants {
		v := &r.Variants[i]
		v.Baseline = compared("baseline", base.cases(v.Name), v.Cases)
	}
}

// drops returns the one-sided p value of a drop by variant. The gate tests all variants, so that
// the values are adjusted: otherwise one of many equal variants would often seem to be worse.
func (r *Report) drops() map[string]float64 {
	var names []string
	var single []float64
	for _, v := range r.Variants {
		if v.Baseline != nil {
			names = append(names, v.Name)
			single = append(single, v.Baseline.Drop)
		}
	}

	adjusted := map[string]float64{}
	for i, p := range stats.Holm(single) {
		adjusted[names[i]] = p
	}
	return adjusted
}

// defaultGate is the gate of a suite that has none.
func defaultGate(base *Baseline) *suite.Gate {
	all := 1.0
	g := &suite.Gate{Case: &suite.MinGate{Min: &all}}
	if base != nil {
		none := 0
		g.NewlyFailing = &none
		g.Drop = &suite.DropGate{By: "shown"}
	}
	return g
}

func (r *Report) gate(pass bool, name, format string, args ...any) {
	r.Gates = append(r.Gates, GateReport{Name: name, Pass: pass, Text: fmt.Sprintf(format, args...)})
}

// rates judges the gates of the rates of a variant. A rate of no trial passes none.
func (r *Report) rates(g *suite.Gate, v *VariantReport) {
	if g.Pass != nil {
		value := v.Rate
		if g.Pass.By == "lower" {
			value = v.Low
		}
		r.gate(reaches(value, *g.Pass.Min), "pass ("+v.Name+")", "%s, want %g", shown(value), *g.Pass.Min)
	}
	if g.Case != nil {
		for _, c := range v.Cases {
			if c.Draft || c.Judged == 0 {
				continue
			}
			rate := float64(c.Passed) / float64(c.Judged)
			r.gate(rate >= *g.Case.Min, fmt.Sprintf("case %s (%s)", c.ID, v.Name), "%d/%d, want %g", c.Passed, c.Judged,
				*g.Case.Min)
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(g.Tags)) {
		var tagged []CaseReport
		for _, c := range v.Cases {
			if slices.Contains(c.Tags, tag) {
				tagged = append(tagged, c)
			}
		}
		if len(tagged) == 0 {
			continue // none of them was selected
		}
		value := figure(stats.Mean(stats.Groups(counts(tagged))))
		want := *g.Tags[tag].Min
		r.gate(reaches(value, want), fmt.Sprintf("tag %s (%s)", tag, v.Name), "%s, want %g", shown(value), want)
	}
	if g.All != nil {
		value := figure(stats.Over(counts(v.Cases), g.All.K, stats.PassAll))
		r.gate(reaches(value, *g.All.Min), fmt.Sprintf("pass^%d (%s)", g.All.K, v.Name), "%s, want %g", shown(value),
			*g.All.Min)
	}
}

func reaches(value *float64, want float64) bool { return value != nil && *value >= want }

// shown writes a rate, and - for an undefined one.
func shown(value *float64) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *value)
}

// against judges the gates that compare a variant with the baseline. drop is the adjusted p value
// of a drop.
func (r *Report) against(g *suite.Gate, base *Baseline, v *VariantReport, drop float64) {
	before := base.cases(v.Name)
	r.changes(before, v)
	if v.Baseline == nil {
		if len(before) > 0 {
			r.gate(false, "baseline ("+v.Name+")", "no case is the same as in the baseline: write a new one")
		}
		return
	}

	if g.Drop != nil {
		r.drop(g.Drop, v, drop)
	}
	if g.NewlyFailing != nil {
		newly := newlyFailing(before, v.Cases)
		r.gate(len(newly) <= *g.NewlyFailing, "newly failing ("+v.Name+")", "%d, want at most %d %v", len(newly),
			*g.NewlyFailing, newly)
	}
}

// drop judges the gate drop.
func (r *Report) drop(g *suite.DropGate, v *VariantReport, p float64) {
	c := v.Baseline
	name := "drop (" + v.Name + ")"
	if g.By == "shown" {
		r.gate(p >= significance, name, "difference %s, one-sided p %.3g", shown(c.Difference), p)
		return
	}
	isExcluded := c.Low != nil && *c.Low >= -g.Margin
	r.gate(isExcluded, name, "the lower end of the difference is %s, want at least %g", shown(c.Low), -g.Margin)
}

// significance is the level of the test of the gate drop.
const significance = 0.05

// newlyFailing returns the cases that passed all trials then and none now.
func newlyFailing(before, after []CaseReport) (ids []string) {
	for _, c := range after {
		was := same(before, c)
		if was == nil || c.Draft || c.Judged == 0 {
			continue
		}
		if was.Judged > 0 && was.Passed == was.Judged && c.Passed == 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// changes lists the cases of a variant that differ from the baseline.
func (r *Report) changes(before []CaseReport, v *VariantReport) {
	for _, c := range v.Cases {
		if c.Draft {
			continue
		}
		change := Change{Case: c.ID, Variant: v.Name, Is: fmt.Sprintf("%d/%d", c.Passed, c.Judged)}
		if was := same(before, c); was != nil {
			change.Was = fmt.Sprintf("%d/%d", was.Passed, was.Judged)
			if was.hasRateOf(&c) {
				continue
			}
		}
		if len(c.Failures) > 0 {
			change.Why = c.Failures[0].Check + ": " + c.Failures[0].Reason
		}
		r.Changes = append(r.Changes, change)
	}
}

// errors compares the number of errors with what the suite allows.
func (r *Report) errors(f *suite.File) {
	number, share, err := f.AllowedErrors()
	if err != nil {
		number = 0 // Load has reported it
	}
	trials := r.Errors + r.Skipped
	for _, v := range r.Variants {
		for _, c := range v.Cases {
			trials += c.Judged
		}
	}
	allowed := max(number, int(share*float64(trials)))
	r.TooManyErrors = r.Errors > allowed
}
