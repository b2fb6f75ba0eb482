//go:build !unix

package pawl_test

import (
	"testing"
	"time"
)

// countCPU counts allocations only: there is no way to ask for CPU time that the standard library
// knows here.
func countCPU(b *testing.B) { b.ReportAllocs() }

// cpuTime is the time by the clock in place of it.
func cpuTime(*testing.B) int64 { return time.Now().UnixNano() }
