// Package eval runs an agent on the cases of a suite, checks what it said, did and left, and says
// whether that is good enough, and whether it is worse than before.
//
//	suite, err := eval.Load("clerk.eval.yaml", nil)
//	report, err := eval.Run(ctx, suite, nil)
//	fmt.Println(report.Passed())
//
// A suite is a file with cases (what is asked, in which world, what must be true), variants (the
// agent, changed), checks and a gate; docs/eval.md describes it. A trial is one run of a case by
// a variant, in a folder, a database and with tools of its own. An eval is one execution of
// a suite. Its folder has a line for each trial, the journals of all runs and the recordings, so
// that Score judges it again without a request.
//
//	Load ─▶ Suite ─▶ Check (controls, without a model) ─▶ Run ─▶ Report ─▶ Text, JUnit, Markdown
//	                                                       │
//	                             .pawl/evals/SUITE/ID/ ◀───┘──▶ Score
//
// A check that cannot fail is an error, and so is a tool that could change something outside of the
// world of its trial: Run begins no trial then.
package eval

import (
	"context"
	"math"
	"os"
	"sync"

	"github.com/pawl-go/pawl/eval/internal/stats"
	"github.com/pawl-go/pawl/eval/internal/suite"
)

// Suite is a suite that was read. It may be used concurrently.
type Suite struct {
	read   *suite.Suite
	getenv func(string) string

	mu      sync.Mutex
	checked map[bool]*verdict // of Check, by strict
}

// verdict is what Check found.
type verdict struct {
	warnings []string
	err      error // faults of the suite; nil means none
}

// LoadOptions configure Load. Nil means the defaults.
type LoadOptions struct {
	// Getenv returns the value of a variable, and empty for a variable that is not set. Nil means
	// os.Getenv.
	Getenv func(name string) string
}

// Load reads the suite of this name, with its cases, its agent and its variants. The error has
// every fault that was found, each with its place; errors.As finds each as a *config.Finding.
func Load(name string, o *LoadOptions) (*Suite, error) { return loadWith(name, o, nil) }

// loadWith reads a suite with a further case. Nil means no further case.
func loadWith(name string, o *LoadOptions, more *suite.Addition) (*Suite, error) {
	getenv := os.Getenv
	if o != nil && o.Getenv != nil {
		getenv = o.Getenv
	}
	read, err := suite.Load(name, getenv, more)
	if err != nil {
		return nil, err
	}
	return &Suite{read: read, getenv: getenv, checked: map[bool]*verdict{}}, nil
}

// Name returns the name of the suite.
func (s *Suite) Name() string { return s.read.File.Eval }

// Cases returns the IDs of the cases, in the order of the suite.
func (s *Suite) Cases() (ids []string) {
	for _, c := range s.read.Cases {
		ids = append(ids, c.ID)
	}
	return ids
}

// Variants returns the names of the variants. The others are compared with the first.
func (s *Suite) Variants() (names []string) {
	for _, v := range s.read.Variants {
		names = append(names, v.Name)
	}
	return names
}

// Trials returns how many trials a Run without options has.
func (s *Suite) Trials() int {
	plan := newPlan(s, new(Options))
	return len(plan.trials)
}

// Check finds, without a model, checks that cannot fail or cannot pass, and tools that could change
// something outside of the world of a trial. The error has every fault with its place, in the form
// of Load. Run does the same. The warnings are texts; with strict they are faults. A suite is
// checked once: later calls return what the first one found.
func (s *Suite) Check(ctx context.Context, strict bool) (warnings []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.checked[strict]; known != nil {
		return known.warnings, known.err
	}

	x := newControls(s, strict)
	if err := x.run(ctx); err != nil {
		return nil, err
	}
	found := &verdict{x.warnings, s.read.Err()}
	s.checked[strict] = found
	return found.warnings, found.err
}

// Interval returns a 95 % interval for the mean of the pass rates of cases, which were measured by
// so many trials in all. With one rate the interval is about this case alone. The bounds are NaN
// without rates.
func Interval(rates []float64, trials int) (low, high float64) { return stats.Interval(rates, trials) }

// PassAt returns the probability that at least one of k trials passes, estimated from n trials of
// which c passed. It is NaN if n < k.
func PassAt(n, c, k int) float64 { return stats.PassAt(n, c, k) }

// PassAll returns the probability that all of k trials pass, estimated from n trials of which c
// passed. It is NaN if n < k.
func PassAll(n, c, k int) float64 { return stats.PassAll(n, c, k) }

// figure returns a number for JSON, which has no NaN. Nil means that it is undefined.
func figure(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}
