package evaltest_test

import (
	"testing"

	"github.com/pawl-go/pawl/eval"
	"github.com/pawl-go/pawl/eval/evaltest"
)

// begin test

// TestClerk runs each case of the suite as a subtest.
func TestClerk(t *testing.T) {
	evaltest.Run(t, "../testdata/clerk/clerk.eval.yaml", &eval.Options{Trials: 1})
}

// end test

func ExampleRun() {
	// In a test: go test -run TestClerk/note-anna runs one case.
	test := func(t *testing.T) { evaltest.Run(t, "clerk.eval.yaml", nil) }
	_ = test
	// Output:
}
