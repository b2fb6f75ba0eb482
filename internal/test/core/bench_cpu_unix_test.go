//go:build unix

package core_test

import (
	"syscall"
	"testing"
)

// countCPU makes b report allocations and the CPU time of the process for each operation. Elapsed
// time depends on the load of the machine.
func countCPU(b *testing.B) {
	b.ReportAllocs()
	begin := cpuTime(b)
	b.Cleanup(func() { b.ReportMetric(float64(cpuTime(b)-begin)/float64(b.N), "cpu-ns/op") })
}

// cpuTime returns the CPU time of the process in nanoseconds.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
