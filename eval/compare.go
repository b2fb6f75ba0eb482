package eval

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/text"
)

// compare.go: which cases of two evals have other results, and why.

// Changes are the differences of two evals.
type Changes struct {
	// Before is the ID of the first eval.
	Before string `json:"before"`

	// After is the ID of the other one.
	After string `json:"after"`

	// Variants are the differences of the variants that both have.
	Variants []VariantChanges `json:"variants"`
}

// VariantChanges are the differences of a variant.
type VariantChanges struct {
	// Before is the name of the variant in the first eval.
	Before string `json:"before"`

	// After is the name of the variant in the other eval.
	After string `json:"after"`

	// Comparison compares the rates. Nil means that no case is in both with the same content.
	Comparison *Comparison `json:"comparison"`

	// Cases are the cases with another rate, the largest drop first.
	Cases []CaseChange `json:"cases"`

	// Added are the cases that only the other eval has.
	Added []string `json:"added,omitzero"`

	// Removed are the cases that only the first eval has.
	Removed []string `json:"removed,omitzero"`

	// Edited are the cases whose content differs. They are not compared.
	Edited []string `json:"edited,omitzero"`
}

// CaseChange is a case with another rate.
type CaseChange struct {
	// Case is the ID of the case.
	Case string `json:"case"`

	// Before is the result in the first eval.
	Before CaseOutcome `json:"before"`

	// After is the result in the other eval.
	After CaseOutcome `json:"after"`

	// Call is the first call that differs, between a trial that passed and a trial that did not.
	// Nil means that the calls are equal.
	Call *CallChange `json:"call,omitzero"`
}

// CaseOutcome is the result of a case in one of two evals.
type CaseOutcome struct {
	// Judged counts the trials with a verdict.
	Judged int `json:"judged"`

	// Passed counts the trials that passed.
	Passed int `json:"passed"`

	// Failures are the checks that trials failed, the most frequent first.
	Failures []Failure `json:"failures,omitzero"`

	// Run is the run of the trial that Call is about. Empty means none.
	Run string `json:"run,omitzero"`
}

// CallChange is a call that differs.
type CallChange struct {
	// Number counts the calls of the agent itself from 1.
	Number int `json:"number"`

	// Before is the call in the first eval. Empty means that there is none.
	Before string `json:"before"`

	// After is the call in the other eval. Empty means that there is none.
	After string `json:"after"`
}

// Compare compares two evals of a suite. Variants are paired by their names; if each eval has only
// one variant, by nothing else. Cases are compared if their content is the same.
func Compare(before, after *Eval) (*Changes, error) {
	out := &Changes{Before: before.Report.ID, After: after.Report.ID, Variants: []VariantChanges{}}
	if before.Report.Suite != after.Report.Suite {
		return nil, fmt.Errorf("the evals are of the suites %s and %s", before.Report.Suite, after.Report.Suite)
	}
	areSingle := len(before.Report.Variants) == 1 && len(after.Report.Variants) == 1
	for _, b := range after.Report.Variants {
		for _, a := range before.Report.Variants {
			if areSingle || a.Name == b.Name {
				out.Variants = append(out.Variants, changesOf(before, after, &a, &b))
			}
		}
	}
	if len(out.Variants) == 0 {
		return nil, fmt.Errorf("the evals have no variant in common")
	}
	return out, nil
}

// Only returns the eval with one of its variants.
func (e *Eval) Only(variant string) (*Eval, error) {
	i := slices.IndexFunc(e.Report.Variants, func(v VariantReport) bool { return v.Name == variant })
	if i < 0 {
		return nil, fmt.Errorf("the eval %s has no variant %s", e.Report.ID, variant)
	}
	r := *e.Report
	r.Variants = r.Variants[i : i+1]
	return &Eval{Report: &r, trials: e.trials}, nil
}

// changesOf compares two variants.
func changesOf(before, after *Eval, a, b *VariantReport) VariantChanges {
	out := VariantChanges{
		Before:     a.Name,
		After:      b.Name,
		Comparison: compared(before.Report.ID, a.Cases, b.Cases),
		Cases:      []CaseChange{},
	}
	for _, c := range b.Cases {
		was := caseNamed(a.Cases, c.ID)
		switch {
		case was == nil:
			out.Added = append(out.Added, c.ID)
		case was.Digest != c.Digest:
			out.Edited = append(out.Edited, c.ID)
		case !was.hasRateOf(&c):
			out.Cases = append(out.Cases, changeOf(before, after, a.Name, b.Name, was, &c))
		}
	}
	for _, c := range a.Cases {
		if caseNamed(b.Cases, c.ID) == nil {
			out.Removed = append(out.Removed, c.ID)
		}
	}
	slices.SortStableFunc(out.Cases, func(x, y CaseChange) int { return x.rise().cmp(y.rise()) })
	return out
}

// fraction is a difference of rates.
type fraction struct{ over, under int }

func (f fraction) cmp(g fraction) int { return f.over*g.under - g.over*f.under }

// rise is how much higher the rate is afterwards.
func (c *CaseChange) rise() fraction {
	a := max(1, c.Before.Judged)
	b := max(1, c.After.Judged)
	return fraction{c.After.Passed*a - c.Before.Passed*b, a * b}
}

// changeOf says how a case changed, and why.
func changeOf(before, after *Eval, a, b string, was, is *CaseReport) CaseChange {
	out := CaseChange{
		Case:   is.ID,
		Before: CaseOutcome{Judged: was.Judged, Passed: was.Passed, Failures: was.Failures},
		After:  CaseOutcome{Judged: is.Judged, Passed: is.Passed, Failures: is.Failures},
	}
	fell := out.rise().over < 0
	x := pick(before.recordsOf(is.ID, a), fell)
	y := pick(after.recordsOf(is.ID, b), !fell)
	if x == nil || y == nil {
		return out
	}
	out.Before.Run = x.Run
	out.After.Run = y.Run
	out.Call = firstDifference(callsOf(x), callsOf(y))
	return out
}

// pick returns the first trial that passed, or that failed. If there is none, it returns the first
// trial. Nil means that there is no trial.
func pick(all []*trial.Record, passed bool) *trial.Record {
	for _, r := range all {
		if r.Judged() && passed == (r.Verdict == trial.Pass) {
			return r
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// callsOf are the calls of the agent itself, as texts.
func callsOf(r *trial.Record) (all []string) {
	for _, c := range r.Calls {
		if c.Depth == 0 {
			all = append(all, c.Tool+string(jsonform.Canonical(c.Args)))
		}
	}
	return all
}

// firstDifference returns the first call that differs. Nil means that there is none.
func firstDifference(before, after []string) *CallChange {
	for i := range max(len(before), len(after)) {
		var a, b string
		if i < len(before) {
			a = before[i]
		}
		if i < len(after) {
			b = after[i]
		}
		if a != b {
			return &CallChange{Number: i + 1, Before: a, After: b}
		}
	}
	return nil
}

// Text writes the changes for a terminal of this width.
func (c *Changes) Text(w io.Writer, width int) error {
	p := &page{width: width}
	for i, v := range c.Variants {
		if i > 0 {
			p.blank()
		}
		name := v.After
		if v.Before != v.After {
			name = v.Before + " and " + v.After
		}
		p.line("", "%s: %s and %s", name, c.Before, c.After)
		if v.Comparison == nil {
			p.line("", "no case is in both with the same content")
		} else {
			p.line("", "%s", v.Comparison.sentence())
		}
		for _, one := range v.Cases {
			p.blank()
			one.lines(p)
		}
		v.others(p)
	}
	return p.write(w)
}

// others writes the cases that are not compared.
func (v *VariantChanges) others(p *page) {
	first := true
	for _, row := range []struct {
		word string
		ids  []string
	}{{"added", v.Added}, {"removed", v.Removed}, {"edited, not compared", v.Edited}} {
		if row.ids == nil {
			continue
		}
		if first {
			p.blank()
			first = false
		}
		p.line(row.word+": ", "%s", strings.Join(row.ids, ", "))
	}
}

// lines writes a case, and why it changed.
func (c *CaseChange) lines(p *page) {
	p.line("", "%s: %d/%d → %d/%d", c.Case, c.Before.Passed, c.Before.Judged, c.After.Passed, c.After.Judged)
	for _, side := range []struct {
		label string
		of    *CaseOutcome
	}{{"  before  ", &c.Before}, {"  after   ", &c.After}} {
		for _, f := range side.of.Failures {
			p.line(side.label, "%s: %s", counted(f.Trials, "trial"), f.sentence(300))
		}
	}
	if c.Call == nil {
		p.line("  calls   ", "equal")
		return
	}
	from := 0 // where long calls part
	if min(len(c.Call.Before), len(c.Call.After)) > 2*p.width {
		from = text.Parting(c.Call.Before, c.Call.After, p.width/2)
	}
	for _, side := range []struct{ word, call string }{{"was", c.Call.Before}, {"is", c.Call.After}} {
		call := side.call[min(from, len(side.call)):]
		switch {
		case side.call == "":
			call = "not made"
		case from > 0:
			call = "…" + call
		}
		p.line(fmt.Sprintf("  call %-3d", c.Call.Number), "%s %s", side.word, call)
	}
	if c.Before.Run != "" && c.After.Run != "" {
		p.line("  runs    ", "%s and %s", c.Before.Run, c.After.Run)
	}
}
