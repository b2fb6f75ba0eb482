// Package mutant measures what a suite finds. A mutant is a correct implementation with one planted
// fault. A suite that passes a mutant does not find that fault.
//
//	implementation ──▶ suite ──▶ passes
//	implementation ──▶ Plant ──▶ suite ──▶ must fail, for each Mutant
//
// The suites of pawltest and of storetest carry the lists of their mutants, and their Score
// functions plant them in any implementation: one of pawl, or your own. Each Mutant names the part
// of the suite that finds it. Only that part runs, so that a fault is not found by accident.
//
// The package does not import testing, as pawltest does not.
package mutant

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// T is the part of a test that the suites need. *testing.T implements it.
type T[Self any] interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
	Context() context.Context
	Run(name string, f func(t Self)) bool
}

// Mutant plants one fault in an implementation of the interface M.
type Mutant[M any] struct {
	Name  string      // the fault: "drops the tools"
	Part  string      // the part of the suite that finds it: "request/tools"
	Plant func(m M) M // returns m with the fault
}

// Score is what a suite found of its mutants, by their names.
type Score struct {
	Found    []string // the suite failed for them
	Survived []string // the suite passed them
	LeftOut  []string // their part does not apply to the implementation
}

// String returns "31 of 31 planted faults found".
func (s Score) String() string {
	text := fmt.Sprintf("%d of %d planted faults found", len(s.Found), len(s.Found)+len(s.Survived))
	if n := len(s.LeftOut); n > 0 {
		text += fmt.Sprintf(", %d left out", n)
	}
	return text
}

// Patience is the time limit of a suite for immediate events, which a slow machine keeps as well.
const Patience = 20 * time.Second

// patienceWithFault is the limit where a mutant may never do what it should. A slow machine that
// exceeds it finds the mutant, which has a fault in any case.
const patienceWithFault = time.Second

// Try runs a suite over each mutant, in a test of its own, and logs the score. A mutant that the
// suite passes is an error of t. So is a failure of the suite without a mutant, which runs first.
//
// suite runs the suite with r in place of a test. It gets the implementation from t, which is the
// test of this mutant, and passes it through plant. lacks names the parts of the suite that do not
// apply to the implementation.
func Try[TT T[TT], M any](t TT, mutants []Mutant[M], lacks []string,
	suite func(t TT, r *Recorder, plant func(M) M)) Score {

	t.Helper()
	t.Run("no fault", func(t TT) {
		r := newRecorder(t.Context(), "", Patience)
		suite(t, r, func(m M) M { return m })
		if failures := r.Failures(); len(failures) > 0 {
			t.Errorf("without a planted fault, the suite says: %s", strings.Join(failures, "\n"))
		}
	})

	var score Score
	for _, m := range mutants {
		if LeftOut(m.Part, lacks) {
			score.LeftOut = append(score.LeftOut, m.Name)
			continue
		}
		found := false
		t.Run("fault/"+m.Name, func(t TT) {
			r := newRecorder(t.Context(), m.Part, patienceWithFault)
			suite(t, r, m.Plant)

			failures := r.Failures()
			switch {
			case r.panicked():
				t.Errorf("the suite panics: %s", failures[0])
			case len(failures) > 0:
				found = true
				t.Logf("%s says: %.300s", m.Part, failures[0])
			default:
				t.Errorf("the part %s does not find that the implementation %s", m.Part, m.Name)
			}
		})
		if found {
			score.Found = append(score.Found, m.Name)
		} else {
			score.Survived = append(score.Survived, m.Name)
		}
	}
	t.Logf("%s", score)
	return score
}

// LeftOut reports whether the part of a suite is one of lacks, or belongs to one of them.
func LeftOut(part string, lacks []string) bool {
	for _, l := range lacks {
		if within(part, l) {
			return true
		}
	}
	return false
}

// within reports whether part is whole or a part of it.
func within(part, whole string) bool {
	return whole == "" || part == whole || strings.HasPrefix(part, whole+"/")
}
