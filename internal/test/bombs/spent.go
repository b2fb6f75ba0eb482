package bombs

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/pawl-go/pawl/internal/test/machine"
)

// The most that a reader may spend on one bomb.
const (
	MaxCPU    = time.Second
	MaxMemory = 64 << 20
)

// Spent runs f and returns its CPU time and the growth of the heap's peak.
func Spent(f func()) (cpu time.Duration, mem int64) {
	heap := func() int64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return int64(s[0].Value.Uint64())
	}
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // little garbage in the figure
	runtime.GC()
	before, begin := heap(), machine.CPU()
	stop, ended := make(chan struct{}), make(chan int64)
	go func() {
		peak := before
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				ended <- max(peak, heap())
				return
			case <-tick.C:
				peak = max(peak, heap())
			}
		}
	}()
	f()
	close(stop)
	return machine.CPU() - begin, <-ended - before
}
