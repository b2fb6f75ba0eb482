package pawltest_test

import (
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
)

func TestAgentsPassTheSuite(t *testing.T) {
	pawltest.TestRunner(t, func(_ *testing.T, a *pawl.Agent) pawl.Runner { return pawltest.InMemory(a) })
}

// The suite finds each fault.
func TestScoreOfRunners(t *testing.T) {
	score := pawltest.ScoreRunner(t, func(_ *testing.T, a *pawl.Agent) pawl.Runner { return pawltest.InMemory(a) })
	if len(score.Survived)+len(score.LeftOut) > 0 {
		t.Errorf("%s", score)
	}
}
