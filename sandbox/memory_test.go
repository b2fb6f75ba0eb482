//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/sandbox"
)

// herd forks processes that each allocate memory, wait for each other, and stay for a while.
// Shared: the parent allocates the memory before it forks, and they share it.
const herd = `
import mmap, os, sys, time
n, mb, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def take():
    if how == "mapped":
        m = mmap.mmap(-1, mb << 20); m.write(b"x" * (mb << 20)); return m
    return bytearray(os.urandom(1 << 20) * mb)
if how == "shared": kept = take()
if how == "orphans" and os.fork(): time.sleep(0.2)
for i in range(n):
    if os.fork() == 0:
        if how == "orphans":
            if os.fork(): os._exit(0)
        if how != "shared": kept = take()
        time.sleep(float(sys.argv[4])); os._exit(0)
if how == "orphans": time.sleep(float(sys.argv[4]))
try:
    while True: os.wait()
except ChildProcessError: pass
print("done")
`

// The limit applies to all processes together. Many processes that are small individually are
// ended: children of the first process, orphans, and processes with a shared mapping. Processes
// within the limit are not ended, nor processes that share pages from before the fork.
func TestMemoryInAll(t *testing.T) {
	if p := sandbox.Probe().Level(sandbox.Strict); !p.OK {
		t.Log("strict cannot be enforced here, so nothing is tried: " + p.Reason)
		return
	}
	const python = "/usr/bin/python3"
	parts.Program(t, python, "python3")
	const mb = 1 << 20
	for _, test := range []struct {
		name  string
		n, mb int
		how   string
		total int64
		stays string
		want  sandbox.End
	}{
		{"a bomb", 16, 24, "own", 160 * mb, "20", sandbox.UsedMemory},
		{"the same with room", 16, 24, "own", 1024 * mb, "0.5", sandbox.Exited},
		{"left by their parents", 16, 24, "orphans", 160 * mb, "20", sandbox.UsedMemory},
		{"mappings", 16, 24, "mapped", 160 * mb, "20", sandbox.UsedMemory},
		{"one that all share", 16, 60, "shared", 160 * mb, "0.5", sandbox.Exited},
	} {
		t.Run(test.name, func(t *testing.T) {
			began := time.Now()
			res := run(t, sandbox.Spec{Args: []string{python, "-c", herd, fmt.Sprint(test.n),
				fmt.Sprint(test.mb), test.how, test.stays},
				Limits: sandbox.Limits{MemoryInAll: test.total, Time: 60 * time.Second}})
			if res.End != test.want || test.want == sandbox.Exited && res.Stdout.String() != "done\n" {
				t.Errorf("%s after %v, want %s: %s%s", res.End, time.Since(began), test.want, res.Stdout.String(), res.Stderr.String())
			}
		})
	}
}
