package durable_test

import (
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/store"
)

func TestDurableRunsPassTheSuite(t *testing.T) {
	pawltest.TestRunner(t, func(_ *testing.T, a *pawl.Agent) pawl.Runner {
		return (&durable.Engine{Journal: new(store.MemoryJournal)}).Runner("r", a)
	})
}
