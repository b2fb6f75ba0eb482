package eval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-go/pawl/eval/internal/stats"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
)

// report.go: what an eval found, counted by variant and case.

// Report is what an eval found. It is plain data.
type Report struct {
	// Suite is the name of the suite.
	Suite string `json:"suite"`

	// ID is the name of the eval.
	ID string `json:"id"`

	// Dir is the folder of the eval.
	Dir string `json:"-"`

	// Variants are the results. The others are compared with the first.
	Variants []VariantReport `json:"variants"`

	// Errors is the number of trials that could not be judged. They are in no rate.
	Errors int `json:"errors"`

	// Skipped is the number of trials that did not run. They are in no rate.
	Skipped int `json:"skipped"`

	// Cost is the known cost of all trials in US dollars.
	Cost float64 `json:"cost"`

	// Unpriced is the number of trials whose cost is unknown.
	Unpriced int `json:"unpriced,omitzero"`

	// Gates are what had to hold.
	Gates []GateReport `json:"gates"`

	// Stopped is why trials were skipped: time, budget or interrupted. Empty means that no limit
	// stopped the eval.
	Stopped string `json:"stopped,omitzero"`

	// Changes are the cases that differ from the baseline.
	Changes []Change `json:"changes,omitzero"`

	// Warnings are remarks of the controls.
	Warnings []string `json:"warnings,omitzero"`

	// TooManyErrors is true for more errors than the suite allows.
	TooManyErrors bool `json:"too_many_errors,omitzero"`
}

// VariantReport is the result of a variant.
type VariantReport struct {
	// Name is the name of the variant.
	Name string `json:"name"`

	// Judged counts the trials of all cases without drafts that have a verdict.
	Judged int `json:"judged"`

	// Passed counts the trials that passed.
	Passed int `json:"passed"`

	// Rate is the mean of the rates of the cases. Nil means no judged case.
	Rate *float64 `json:"rate"`

	// Low is the lower end of the 95 % interval of Rate. Nil means no judged case.
	Low *float64 `json:"low"`

	// High is the upper end of the 95 % interval of Rate. Nil means no judged case.
	High *float64 `json:"high"`

	// PassAt is the probability that one of k trials passes, by k. Nil means that a case has fewer
	// trials.
	PassAt map[int]*float64 `json:"pass_at"`

	// PassAll is the probability that all of k trials pass, by k. Nil means that a case has fewer
	// trials.
	PassAll map[int]*float64 `json:"pass_all"`

	// Cost is the known cost of its trials in US dollars.
	Cost float64 `json:"cost"`

	// Cases are the results of the cases, in the order of the suite.
	Cases []CaseReport `json:"cases"`

	// Versus compares the variant with the first one. Nil for the first.
	Versus *Comparison `json:"versus,omitzero"`

	// Baseline compares the variant with the baseline. Nil means no baseline, or not in it.
	Baseline *Comparison `json:"baseline,omitzero"`
}

// CaseReport is the result of a case by a variant.
type CaseReport struct {
	// ID is the name of the case.
	ID string `json:"id"`

	// Digest is the digest of its content.
	Digest string `json:"digest"`

	// Tags are the tags of the case. Nil means none.
	Tags []string `json:"tags,omitzero"`

	// Cluster names the cases that are not independent of it. Empty means none.
	Cluster string `json:"cluster,omitzero"`

	// Draft is true for a case that counts in no rate and no gate.
	Draft bool `json:"draft,omitzero"`

	// Judged counts the trials with a verdict.
	Judged int `json:"judged"`

	// Passed counts the trials that passed.
	Passed int `json:"passed"`

	// Errors counts the trials that could not be judged.
	Errors int `json:"errors,omitzero"`

	// Skipped counts the trials that did not run.
	Skipped int `json:"skipped,omitzero"`

	// Failures are the checks that trials failed, or why they have no verdict, each with the number
	// of trials. The most frequent is first.
	Failures []Failure `json:"failures,omitzero"`

	// Means are the means of cost, tokens, rounds and time (seconds) of the judged trials.
	Means map[string]float64 `json:"means,omitzero"`
}

// Failure is a reason why trials did not pass.
type Failure struct {
	// Check is the name of the check. Empty means that the trial has no verdict.
	Check string `json:"check,omitzero"`

	// Reason is the reason of the first of the trials.
	Reason string `json:"reason"`

	// Run is the ID of the run of this trial. Empty means none.
	Run string `json:"run,omitzero"`

	// Trials is the number of trials.
	Trials int `json:"trials"`
}

// Comparison compares the rates of cases that two results have in common.
type Comparison struct {
	// With names the other one.
	With string `json:"with"`

	// Cases is the number of cases that were compared.
	Cases int `json:"cases"`

	// Changed is the number of cases with another rate.
	Changed int `json:"changed"`

	// Difference is the mean of the differences. Nil means undefined.
	Difference *float64 `json:"difference"`

	// Low is the lower end of the 95 % interval of Difference. Nil means undefined.
	Low *float64 `json:"low"`

	// High is the upper end of the 95 % interval of Difference. Nil means undefined.
	High *float64 `json:"high"`

	// Either is the two-sided p value: exact, by flipping the signs of the differences.
	Either float64 `json:"p"`

	// Drop is the one-sided p value of a drop, made in the same way.
	Drop float64 `json:"drop"`

	// Detectable is the drop that would mostly have been seen. Nil means that these trials cannot
	// say.
	Detectable *float64 `json:"detectable"`
}

// Passed reports whether all gates hold and nothing stopped the eval.
func (r *Report) Passed() bool { return r.Status() == 0 }

// Status returns the exit status of the command: 0 for a passed gate, 1 for a failed one, 4 if time
// or budget stopped the eval, 5 for more errors than allowed, 130 if it was interrupted.
func (r *Report) Status() int {
	failed := func(g GateReport) bool { return !g.Pass }
	switch {
	case r.Stopped == stoppedInterrupted:
		return 130
	case r.Stopped != "":
		return 4
	case r.TooManyErrors:
		return 5
	case slices.ContainsFunc(r.Gates, failed):
		return 1
	}
	return 0
}

// newReport counts records.
func newReport(p *plan, records []*trial.Record) *Report {
	r := &Report{Suite: p.suite.Name()}
	byCase := map[trialKey][]*trial.Record{} // without numbers
	byVariant := map[string][]*trial.Record{}
	for _, x := range records {
		key := trialKey{caseID: x.Case, variant: x.Variant}
		byCase[key] = append(byCase[key], x)
		byVariant[x.Variant] = append(byVariant[x.Variant], x)
	}

	for _, v := range p.variants {
		one := VariantReport{Name: v.Name}
		for _, c := range p.cases {
			trials := byCase[trialKey{caseID: c.ID, variant: v.Name}]
			slices.SortStableFunc(trials, func(a, b *trial.Record) int { return cmp.Compare(a.Number, b.Number) })
			counted := countCase(c, trials)
			r.Errors += counted.Errors
			r.Skipped += counted.Skipped
			one.Cases = append(one.Cases, counted)
		}
		for _, x := range byVariant[v.Name] {
			one.Cost += costOf(x)
			if x.Spent.Cost == nil && x.Run != "" {
				r.Unpriced++
			}
		}
		r.Cost += one.Cost
		one.rate()
		r.Variants = append(r.Variants, one)
	}

	for i := range r.Variants {
		if i > 0 {
			r.Variants[i].Versus = compared(r.Variants[0].Name, r.Variants[0].Cases, r.Variants[i].Cases)
		}
	}
	return r
}

// countCase counts the trials of a case.
func countCase(c *suite.LoadedCase, records []*trial.Record) CaseReport {
	out := CaseReport{ID: c.ID, Digest: c.Digest, Tags: c.Tags, Cluster: c.Cluster, Draft: c.Draft}
	sums := map[string]float64{}
	found := map[string]*Failure{}
	for _, r := range records {
		switch r.Verdict {
		case trial.Pass:
			out.Judged++
			out.Passed++
		case trial.Fail:
			out.Judged++
		case trial.Error:
			out.Errors++
		default:
			out.Skipped++
		}
		if r.Judged() {
			sums["cost"] += costOf(r)
			sums["tokens"] += float64(r.Spent.Input + r.Spent.Output)
			sums["rounds"] += float64(r.Spent.Rounds)
			sums["time"] += r.Spent.Time.Seconds()
		}
		addFailures(found, r)
	}

	if out.Judged > 0 {
		out.Means = map[string]float64{}
		for name, sum := range sums {
			out.Means[name] = sum / float64(out.Judged)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out.Failures = append(out.Failures, *found[name])
	}
	slices.SortStableFunc(out.Failures, func(a, b Failure) int { return b.Trials - a.Trials })
	return out
}

// addFailures adds why a trial did not pass, by check.
func addFailures(found map[string]*Failure, r *trial.Record) {
	add := func(check, reason string) {
		if found[check] == nil {
			found[check] = &Failure{Check: check, Reason: reason, Run: r.Run}
		}
		found[check].Trials++
	}
	if r.Error != "" {
		add("", fmt.Sprintf("%s: %s", r.Verdict, r.Error))
		return
	}
	for _, one := range r.Checks {
		if one.Gates && !one.Pass {
			add(one.Name, cmp.Or(one.Reason, one.Error))
		}
	}
}

// counts returns the counts of cases that gate.
func counts(cases []CaseReport) (all []stats.Case) {
	for _, c := range cases {
		if !c.Draft {
			all = append(all, stats.Case{Cluster: c.Cluster, Judged: c.Judged, Passed: c.Passed})
		}
	}
	return all
}

// rate computes the rates of a variant from its cases.
func (v *VariantReport) rate() {
	cases := counts(v.Cases)
	most := 0
	for _, c := range cases {
		v.Judged += c.Judged
		v.Passed += c.Passed
		most = max(most, c.Judged)
	}
	rates := stats.Groups(cases)
	v.Rate = figure(stats.Mean(rates))
	low, high := stats.Interval(rates, v.Judged)
	v.Low = figure(low)
	v.High = figure(high)

	v.PassAt = map[int]*float64{}
	v.PassAll = map[int]*float64{}
	for k := 1; k <= most; k *= 2 {
		v.passes(cases, k)
	}
	if most > 0 {
		v.passes(cases, most)
	}
}

func (v *VariantReport) passes(cases []stats.Case, k int) {
	v.PassAt[k] = figure(stats.Over(cases, k, stats.PassAt))
	v.PassAll[k] = figure(stats.Over(cases, k, stats.PassAll))
}

// caseNamed returns the case with an ID. Nil means that there is none.
func caseNamed(cases []CaseReport, id string) *CaseReport {
	i := slices.IndexFunc(cases, func(c CaseReport) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &cases[i]
}

// same returns the case with the ID and the content of another one. Nil means that there is none.
func same(cases []CaseReport, other CaseReport) *CaseReport {
	c := caseNamed(cases, other.ID)
	if c == nil || c.Digest != other.Digest {
		return nil
	}
	return c
}

// hasRateOf reports whether two results of a case have the same rate.
func (c *CaseReport) hasRateOf(other *CaseReport) bool {
	return c.Passed*other.Judged == other.Passed*c.Judged
}

// compared compares cases that have one ID and one content. Nil means that there is none.
func compared(with string, before, after []CaseReport) *Comparison {
	var pairs []stats.Pair
	for _, c := range after {
		was := same(before, c)
		if was == nil || c.Draft {
			continue
		}
		pairs = append(pairs, stats.Pair{
			Cluster: c.Cluster,
			Before:  stats.Case{Judged: was.Judged, Passed: was.Passed},
			After:   stats.Case{Judged: c.Judged, Passed: c.Passed},
		})
	}
	d := stats.Compare(pairs)
	if d.Cases == 0 {
		return nil
	}
	out := &Comparison{
		With:       with,
		Cases:      d.Cases,
		Changed:    d.Changed,
		Difference: figure(d.Mean),
		Low:        figure(d.Low),
		High:       figure(d.High),
		Either:     d.Either,
		Drop:       d.Drop,
	}
	if d.Detectable > 0 {
		out.Detectable = &d.Detectable
	}
	return out
}
