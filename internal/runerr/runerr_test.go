package runerr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/runerr"
)

func TestCause(t *testing.T) {
	boom := errors.New("boom")
	wrapped := fmt.Errorf("step: %w", &pawl.StopError{Reason: pawl.StopCancelled, Err: boom})
	for _, test := range []struct{ err, want error }{
		{nil, nil},
		{boom, boom},
		{&pawl.StopError{Reason: pawl.StopPending}, nil},
		{&pawl.StopError{Reason: pawl.StopCancelled, Err: boom}, boom},
		{wrapped, wrapped}, // it is the error of something around the run
	} {
		if got := runerr.Cause(test.err); got != test.want {
			t.Errorf("%v: got %v, want %v", test.err, got, test.want)
		}
	}
}
