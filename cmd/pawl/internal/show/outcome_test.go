package show

import (
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/constants"
)

// Each outcome of package pawl has a mark.
func TestOutcomeMarks(t *testing.T) {
	all, err := constants.Of("../../../..", "Outcome")
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range all {
		if _, ok := outcomeMarks[pawl.Outcome(outcome)]; !ok {
			t.Errorf("%s has no mark", outcome)
		}
	}
	if len(all) != len(outcomeMarks) {
		t.Errorf("package pawl has %d outcomes, the table %d", len(all), len(outcomeMarks))
	}
}
