// Package runerr reads the errors of runs for the packages that store or forward them.
package runerr

import "github.com/pawl-go/pawl"

// Cause returns the error that is recorded with the result of a run: err without the *StopError. It
// is the error of a failed run, the cause of an interruption, and nil for all other runs.
func Cause(err error) error {
	if stop, ok := err.(*pawl.StopError); ok {
		return stop.Err
	}
	return err
}
