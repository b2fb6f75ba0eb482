//go:build unix

package pawl_test

import (
	"syscall"
	"testing"
)

// countCPU has b report the CPU time of the process for each operation, from now on: on a machine that others use too, elapsed time says little.
func countCPU(b *testing.B) {
	cpu := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	b.ReportAllocs()
	begin := cpu()
	b.Cleanup(func() { b.ReportMetric(float64(cpu()-begin)/float64(b.N), "cpu-ns/op") })
}
