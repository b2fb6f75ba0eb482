package durable_test

import (
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/store"
)

// The state of a stopped run follows the class of its stop reason. A run that repeats itself would
// do so again, so it is over. A cancelled run with an error only lost its process.
func TestStateAfterStop(t *testing.T) {
	for _, text := range []string{"", "the process ends"} {
		cancelled := store.JournalOver
		if text != "" {
			cancelled = store.JournalOpen
		}
		want := map[pawl.StopClass]string{
			pawl.ClassAnswered:  store.JournalOver,
			pawl.ClassWaiting:   store.JournalWaiting,
			pawl.ClassLimited:   store.JournalOver,
			pawl.ClassCancelled: cancelled,
			pawl.ClassFailed:    store.JournalFailed,
		}
		except := map[pawl.StopReason]string{pawl.StopStalled: store.JournalOver}
		runtest.Stops(t, want, except, func(res *pawl.Result) string { return durable.StateOf(res, text) })
	}
}
