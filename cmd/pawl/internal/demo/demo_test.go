package demo

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/runtest"
)

// The exit status of the demo follows the class of the stop reason.
func TestEnded(t *testing.T) {
	failed := fmt.Sprint(cli.StatusFailed)
	want := map[pawl.StopClass]string{
		pawl.ClassAnswered:  "0",
		pawl.ClassWaiting:   failed,
		pawl.ClassLimited:   failed,
		pawl.ClassCancelled: fmt.Sprint(cli.StatusInterrupted),
		pawl.ClassFailed:    failed,
	}
	runtest.Stops(t, want, nil, func(res *pawl.Result) string {
		err := ended(res, nil)
		if err == nil {
			return "0"
		}
		f, _ := errors.AsType[*cli.Failure](err)
		return fmt.Sprint(f.Status)
	})
}
