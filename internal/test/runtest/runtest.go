// Package runtest has what tests of runs share.
package runtest

import (
	"fmt"

	"github.com/pawl-go/pawl"
)

// Ended takes the values of a run that may stop without a plain answer. It checks the error: nil
// for an answer, else the *StopError of the result or the error of the failure. It returns the
// result, and the cause of an interruption or of a failure: nil means that the run stopped by
// itself.
func Ended(res *pawl.Result, err error) (*pawl.Result, error) {
	stop, ok := err.(*pawl.StopError)
	switch {
	case res == nil || !ok && err != nil && res.Stop == pawl.StopFailed:
		return res, err
	case !ok && err != nil:
		return res, fmt.Errorf("a run that stopped with %s has an error that is no *StopError: %w", res.Stop, err)
	case !ok && res.Err() != nil:
		return res, fmt.Errorf("a run that stopped with %s has no error", res.Stop)
	case ok && (res.Err() == nil || stop.Reason != res.Stop || stop.Result == nil || stop.Result.Stop != res.Stop ||
		len(stop.Result.Pending) != len(res.Pending)):
		return res, fmt.Errorf("a run that stopped with %s has the error of another: %w", res.Stop, err)
	case ok:
		return res, stop.Err
	}
	return res, nil
}
