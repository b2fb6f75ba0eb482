// Package suite has what the suites of package pawltest are made of: parts that run in time, and
// the Runner that other Runners are compared with.
package suite

import (
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl/pawltest/mutant"
)

// Part is a part of a suite.
type Part[TT any] struct {
	Name string
	Test func(t TT)
}

// Each returns a part for each case, in the order of their names. prefix stands before the name.
func Each[TT, Case any](prefix string, cases map[string]Case, test func(t TT, c Case)) []Part[TT] {
	var parts []Part[TT]
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		parts = append(parts, Part[TT]{Name: prefix + name, Test: func(t TT) { test(t, cases[name]) }})
	}
	return parts
}

// Run runs the parts of a suite, except for the parts in lacks.
func Run[TT mutant.T[TT]](t TT, parts []Part[TT], lacks []string) {
	t.Helper()
	for _, l := range lacks {
		if !slices.ContainsFunc(parts, func(p Part[TT]) bool { return mutant.LeftOut(p.Name, []string{l}) }) {
			t.Errorf("the suite has no part %q to leave out", l)
		}
	}
	for _, p := range parts {
		if mutant.LeftOut(p.Name, lacks) {
			t.Logf("%s is left out", p.Name)
			continue
		}
		t.Run(p.Name, func(t TT) { inTime(t, p.Test) })
	}
}

// inTime runs a part of a suite. A part that does not end in time is a failure, and its goroutine
// is abandoned: what it tests hangs.
func inTime[TT mutant.T[TT]](t TT, test func(t TT)) {
	ended := make(chan any, 1) // the panic of the part; nil means none
	go func() {
		defer func() { ended <- recover() }()
		test(t)
	}()

	limit := time.NewTimer(3 * Patience(t))
	defer limit.Stop()
	select {
	case v := <-ended:
		if v != nil {
			panic(v)
		}
	case <-limit.C:
		t.Errorf("it does not end within %v", 3*Patience(t))
	}
}

// Patience is the time limit of a suite for immediate events.
func Patience(t any) time.Duration {
	if r, ok := t.(*mutant.Recorder); ok {
		return r.Patience()
	}
	return mutant.Patience
}
