// Package evaltest runs a suite of evaluations as a test of Go.
//
//	func TestClerk(t *testing.T) { evaltest.Run(t, "clerk.eval.yaml", nil) }
//
// Each case of each variant is a subtest, so that go test -run TestClerk/note-anna runs one case.
// The rules of pawl eval run hold: a check that cannot fail fails the test, and so does a tool that
// could change something outside of the world of its trial.
package evaltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/eval"
)

// Run runs the suite of this file. A subtest CASE/VARIANT fails by the gates of the suite, and if a
// trial has no verdict. Nil options mean the settings of the suite, with a temporary folder.
func Run(t *testing.T, file string, o *eval.Options) {
	t.Helper()
	s, err := eval.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o == nil {
		o = new(eval.Options)
	}
	for _, id := range s.Cases() {
		t.Run(id, func(t *testing.T) {
			one := *o
			one.Only = id
			if one.Dir == "" {
				one.Dir = t.TempDir()
			}
			r, err := eval.Run(t.Context(), s, &one)
			if err != nil {
				t.Fatal(err)
			}
			report(t, r)
		})
	}
}

// report fails a subtest for each variant whose gates do not hold.
func report(t *testing.T, r *eval.Report) {
	for _, v := range r.Variants {
		t.Run(v.Name, func(t *testing.T) {
			for _, g := range r.Gates {
				if strings.HasSuffix(g.Name, fmt.Sprintf("(%s)", v.Name)) && !g.Pass {
					t.Errorf("%s: %s", g.Name, g.Text)
				}
			}
			for _, c := range v.Cases {
				logFailures(t, &c)
			}
		})
	}
	if !r.Passed() && !slices.ContainsFunc(r.Gates, func(g eval.GateReport) bool { return !g.Pass }) {
		t.Errorf("%d trials have no verdict, %d were skipped", r.Errors, r.Skipped)
	}
}

func logFailures(t *testing.T, c *eval.CaseReport) {
	for _, f := range c.Failures {
		t.Logf("%d trials: %s: %s", f.Trials, f.Check, f.Reason)
	}
}
