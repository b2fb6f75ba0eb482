//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// The intervals at which a program's memory and disk usage are measured: shorter when the program
// could reach its limit soon.
const (
	fillPerSecond  = 4 << 30 // bytes
	filesPerSecond = 1 << 18
	lookSoonest    = 2 * time.Millisecond
	lookLatest     = 250 * time.Millisecond
)

// nextLook returns the time until the next measurement of a program that uses used of total, and
// can fill perSecond.
func nextLook(used, total, perSecond int64) time.Duration {
	left := time.Duration(float64(max(total-used, 0)) / float64(perSecond) * float64(time.Second))
	return min(max(left, lookSoonest), lookLatest)
}

// exceeded returns the limit that the program has exceeded, or "", and the time until the next
// look.
func (l *launch) exceeded(filled *disk) (over End, next time.Duration) {
	over, next = filled.exceeded()
	if l.group.full() {
		return UsedMemory, 0
	}
	if l.group == nil && l.spec.Level == Strict { // only there can all processes be found
		total := l.spec.Limits.MemoryInAll
		used := memoryOf(l.proc.Pid, total)
		if used > total {
			return UsedMemory, 0
		}
		next = min(next, nextLook(used, total, fillPerSecond))
	}
	return over, next
}

// memoryOf returns the memory of the process and all its descendants; shared pages count once. In a
// process namespace these are all processes that were started, because orphans become children of
// the first process. Mapped files do not count, because the kernel can evict them. Each Unix socket
// counts with the size of its send buffer.
//
// The exact sum is expensive for large processes. It is computed only if the approximate sum, which
// is never smaller, exceeds total.
func memoryOf(pid int, total int64) int64 {
	all := family(pid)
	sockets := buffered(pid)
	rough := sockets
	for _, p := range all {
		rough += p.resident()
	}
	if rough <= total {
		return rough
	}
	sum := sockets
	for _, p := range all {
		sum += p.share()
	}
	return sum
}

// buffered returns the bytes that the Unix sockets of a network namespace can hold. The filter
// prevents larger buffers than the usual ones.
func buffered(pid int) int64 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/unix")
	return max(int64(bytes.Count(b, []byte("\n")))-1, 0) * 208 << 10
}

// resident returns the resident memory of a process.
func (p process) resident() int64 {
	b, err := os.ReadFile(p.dir() + "/statm")
	if f := bytes.Fields(b); err == nil && len(f) > 1 {
		pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

// share returns a process's share of its memory that belongs to no file. If the process hides it,
// all of its memory counts.
func (p process) share() int64 {
	dir := p.dir()
	if b, err := os.ReadFile(dir + "/smaps_rollup"); err == nil {
		return fields(b, "Pss_Anon:", "Pss_Shmem:", "SwapPss:")
	}
	b, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0
	}
	return fields(b, "RssAnon:", "RssShmem:", "VmSwap:")
}

// fields adds up the named lines, which are in kB.
func fields(b []byte, names ...string) (sum int64) {
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		for _, name := range names {
			if len(f) > 1 && string(f[0]) == name {
				kb, _ := strconv.ParseInt(string(f[1]), 10, 64)
				sum += kb << 10
			}
		}
	}
	return sum
}
