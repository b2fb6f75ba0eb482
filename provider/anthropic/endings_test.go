package anthropic_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// The table of stop reasons has a row for each that the official SDK knows.
func TestStopReasons(t *testing.T) {
	const sdk = "github.com/anthropics/anthropic-sdk-go"
	wiretest.CheckRows(t, anthropic.StopReasons,
		wiretest.Enumeration{Module: sdk, Type: "StopReason"},
		wiretest.Enumeration{Module: sdk, Type: "BetaStopReason"})
}
