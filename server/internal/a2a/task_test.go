package a2a

import (
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
)

// A task that is over has the state of the class of its stop reason. A run that waits is not over.
func TestEndOf(t *testing.T) {
	want := map[pawl.StopClass]string{
		pawl.ClassAnswered:  string(a2a.TaskStateCompleted),
		pawl.ClassWaiting:   string(a2a.TaskStateFailed),
		pawl.ClassLimited:   string(a2a.TaskStateFailed),
		pawl.ClassCancelled: string(a2a.TaskStateCanceled),
		pawl.ClassFailed:    string(a2a.TaskStateFailed),
	}
	runtest.Stops(t, want, nil, func(res *pawl.Result) string { return string(endOf(res.Stop)) })
}
