package client_test

import (
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
)

// A run through a server yields the same events as a run in the same process.
func TestRunsOfAServerPassTheSuite(t *testing.T) {
	pawltest.TestRunner(t, func(t *testing.T, a *pawl.Agent) pawl.Runner {
		c, _ := serve(t, a, nil)
		return c.Runner("r", "clerk")
	})
}
