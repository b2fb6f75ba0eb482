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
	fillPerSecond = 4 << 30
	lookSoonest   = 5 * time.Millisecond
	lookLatest    = 250 * time.Millisecond
)

// nextLook returns the time until the next measurement of a program that uses used of total.
func nextLook(used, total int64) time.Duration {
	left := time.Duration(max(total-used, 0)) * time.Second / fillPerSecond
	return min(max(left, lookSoonest), lookLatest)
}

// memoryOf returns the memory of the process and all its descendants; shared pages count once. In a
// process namespace these are all processes that were started, because orphans become children of
// the first process. Mapped files do not count, because the kernel can evict them.
//
// The exact sum is expensive for large processes. It is computed only if the approximate sum, which
// is never smaller, exceeds total.
func memoryOf(pid int, total int64) int64 {
	all := family(pid)
	var rough int64
	for _, p := range all {
		rough += resident(p)
	}
	if rough <= total {
		return rough
	}
	var sum int64
	for _, p := range all {
		sum += shareOf(p)
	}
	return sum
}

// family returns the process and all its descendants.
func family(pid int) []int {
	all := []int{pid}
	seen := map[int]bool{pid: true} // the set changes while it is listed
	for i := 0; i < len(all) && len(all) < 1<<12; i++ {
		dir := "/proc/" + strconv.Itoa(all[i]) + "/task/"
		tasks, err := os.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}
		for _, t := range tasks {
			list, err := os.ReadFile(dir + t.Name() + "/children")
			if err != nil {
				continue
			}
			for _, f := range bytes.Fields(list) {
				if p, err := strconv.Atoi(string(f)); err == nil && !seen[p] {
					seen[p] = true
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// resident returns the resident memory of a process.
func resident(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if f := bytes.Fields(b); err == nil && len(f) > 1 {
		pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

// shareOf returns a process's share of its memory that belongs to no file. If the process hides it,
// all of its memory counts.
func shareOf(pid int) int64 {
	dir := "/proc/" + strconv.Itoa(pid)
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
