package turns

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/server/api"
)

// The finish of a reply follows the class of the stop reason. An end without an answer is an error.
func TestStopped(t *testing.T) {
	want := map[pawl.StopClass]string{
		pawl.ClassAnswered:  "stop",
		pawl.ClassWaiting:   "tool_calls",
		pawl.ClassLimited:   "length",
		pawl.ClassCancelled: "model_failed",
		pawl.ClassFailed:    "model_failed",
	}
	runtest.Stops(t, want, nil, func(res *pawl.Result) string {
		var out Reply
		err := new(Turn).stopped(pawl.Event{Kind: pawl.EventRunEnded, Result: res}, &out)
		if fault, ok := errors.AsType[*api.Error](err); ok {
			return fault.Code
		}
		return out.Finish
	})
}
