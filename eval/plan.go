package eval

import (
	"path"
	"slices"
	"time"

	"github.com/pawl-go/pawl/eval/internal/running"
	"github.com/pawl-go/pawl/eval/internal/suite"
)

// plan.go: the options of an eval, and its trials in their order.

// Options configure Run. Nil and the zero value mean the settings of the suite.
type Options struct {
	// Dir is the folder of all evals. Empty means .pawl/evals.
	Dir string

	// Only selects cases by a pattern of their IDs, such as note-*. Empty means all.
	Only string

	// Tags selects cases with one of these tags. Nil means all.
	Tags []string

	// Variants selects variants by their names. Nil means all.
	Variants []string

	// Trials is how often each case runs. 0 means as the suite states.
	Trials int

	// Parallel is the number of trials at once. 0 means as the suite states.
	Parallel int

	// Budget is the most that all trials cost together, in US dollars. 0 means as the suite states.
	Budget float64

	// Time is the most time for all trials. 0 means as the suite states.
	Time time.Duration

	// Strict makes warnings of the controls faults.
	Strict bool

	// Replay is the folder of an eval whose recordings answer all requests. Empty means that models
	// are asked.
	Replay string

	// Resume is the ID of an eval that was cut. Its finished trials are not run again. Empty means
	// a new eval.
	Resume string

	// Baseline is the file that the gate compares with. Empty means the suite's.
	Baseline string

	// Progress receives each trial that has ended. It is called for one trial at a time. Nil means
	// that nothing is reported.
	Progress func(Progress)
}

// Progress is a trial that has ended.
type Progress struct {
	// Case is the ID of the case.
	Case string

	// Variant is the name of the variant.
	Variant string

	// Number counts the trials of the two from 1.
	Number int

	// Verdict is pass, fail, error or skipped.
	Verdict string

	// Reason says why it is not pass. Empty means that it is.
	Reason string

	// Done is the number of trials that have ended.
	Done int

	// Total is the number of all trials.
	Total int

	// Left is an estimate of the time that the others take.
	Left time.Duration
}

// UnsafeError says that a suite was not run because of a fault of the suite. It wraps the faults.
type UnsafeError struct {
	// Err has the faults.
	Err error
}

// Error returns the text of the faults.
func (e *UnsafeError) Error() string { return e.Err.Error() }

// Unwrap returns the faults.
func (e *UnsafeError) Unwrap() error { return e.Err }

// plan is the trials of an eval in their order: the first trial of all cases, then the second, so
// that an eval that is cut is an even sample.
type plan struct {
	suite    *Suite
	options  Options
	cases    []*suite.LoadedCase
	variants []*suite.Variant
	trials   []*running.Trial
}

func newPlan(s *Suite, o *Options) *plan {
	p := &plan{suite: s, options: *o}
	for _, c := range s.read.Cases {
		if p.selects(c) {
			p.cases = append(p.cases, c)
		}
	}
	for _, v := range s.read.Variants {
		if len(o.Variants) == 0 || slices.Contains(o.Variants, v.Name) {
			p.variants = append(p.variants, v)
		}
	}

	most := 0
	for _, c := range p.cases {
		most = max(most, p.times(c))
	}
	for number := 1; number <= most; number++ {
		for _, c := range p.cases {
			if number > p.times(c) {
				continue
			}
			for _, v := range p.variants {
				p.trials = append(p.trials, &running.Trial{Case: c, Variant: v, Number: number, Attempt: 1})
			}
		}
	}
	return p
}

// selects reports whether a case runs.
func (p *plan) selects(c *suite.LoadedCase) bool {
	if p.options.Only != "" {
		if named, err := path.Match(p.options.Only, c.ID); err != nil || !named {
			return false
		}
	}
	tagged := func(tag string) bool { return slices.Contains(p.options.Tags, tag) }
	return len(p.options.Tags) == 0 || slices.ContainsFunc(c.Tags, tagged)
}

// times is how often a case runs.
func (p *plan) times(c *suite.LoadedCase) int {
	switch {
	case p.options.Trials > 0:
		return p.options.Trials
	case c.Trials > 0:
		return c.Trials
	}
	return max(1, p.suite.read.File.Trials)
}
