//go:build !unix

package pawl_test

import "testing"

// countCPU counts allocations only: there is no way to ask for CPU time that the standard library knows here.
func countCPU(b *testing.B) { b.ReportAllocs() }
