//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// How often a program's memory and disk are looked at: as often as it could fill, at that pace, what it has left.
const (
	fillPerSecond = 4 << 30
	lookSoonest   = 5 * time.Millisecond
	lookLatest    = 250 * time.Millisecond
)

// nextLook says when to look again at a program that uses so much of total.
func nextLook(used, total int64) time.Duration {
	left := time.Duration(max(total-used, 0)) * time.Second / fillPerSecond
	return min(max(left, lookSoonest), lookLatest)
}

// memoryOf returns how much memory the process and all below it have, pages that they share counted once. In a process namespace these are all that were
// started: what its parent has left is the first one's child. Files that are mapped do not count, since the kernel can let them go.
//
// The exact sum takes the kernel a while for large processes, so it is asked for only where the rough one, which is never less, is over total.
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

// family returns the process and all below it.
func family(pid int) []int {
	all := []int{pid}
	seen := map[int]bool{pid: true} // while they are listed they come and go
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

// resident is all that a process has in memory.
func resident(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if f := bytes.Fields(b); err == nil && len(f) > 1 {
		pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

// shareOf is a process's share of what it has in memory and is no file's. A process that hides it is charged with the whole.
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
