//go:build linux && (amd64 || arm64)

package sandbox

// family.go: the processes that a program has started, as /proc lists them.
//
// The ID of a process that has ended may be given to a foreign process at once. What /proc
// says of an ID is therefore a measurement and no more. Only a pidfd names a process for good, and
// signals are sent through one.

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxFamily is the number of processes above which no more are looked for.
const maxFamily = 1 << 12

// process is a process of the program.
type process struct {
	pid   int
	tasks []string // the folders of its threads below /proc
}

// family returns the process and all its descendants. A process whose parent is none of
// them is a foreign one: it got the ID of a descendant that has ended.
func family(pid int) []process {
	all := []process{{pid: pid}}
	seen := map[int]bool{pid: true} // the set changes while it is listed

	// Children belong to the task that started them, so that each task has a list of its own.
	for i := 0; i < len(all) && len(all) < maxFamily; i++ {
		dir := "/proc/" + strconv.Itoa(all[i].pid) + "/task/"
		tasks, err := os.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}

		for _, t := range tasks {
			task := dir + t.Name()
			all[i].tasks = append(all[i].tasks, task)
			for _, child := range children(task) {
				if seen[child] || !seen[statOf(child).parent()] {
					continue
				}
				seen[child] = true
				all = append(all, process{pid: child})
			}
		}
	}
	return all
}

// children returns the IDs of the processes that a task has started and that have not been waited
// for.
func children(task string) (pids []int) {
	list, err := os.ReadFile(task + "/children")
	if err != nil {
		return nil
	}
	for _, field := range bytes.Fields(list) {
		pid, err := strconv.Atoi(string(field))
		if err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// dir returns a folder of /proc that describes the memory of a process. If its first thread has
// ended, the folder of the process does not.
func (p process) dir() string {
	dir := "/proc/" + strconv.Itoa(p.pid)
	if len(p.tasks) > 1 && !running(dir) {
		for _, t := range p.tasks {
			if running(t) {
				return t
			}
		}
	}
	return dir
}

// stat are the fields of a file stat of /proc from the state on. It is nil if there is no process.
type stat [][]byte

// statOf returns the stat of a process.
func statOf(pid int) stat { return readStat("/proc/" + strconv.Itoa(pid)) }

// readStat returns the stat of the process or thread with the folder dir.
func readStat(dir string) stat {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the name can have any character
}

// number returns a field, or 0 if there is none.
func (s stat) number(field int) uint64 {
	if len(s) <= field {
		return 0
	}
	n, _ := strconv.ParseUint(string(s[field]), 10, 64)
	return n
}

// parent returns the ID of the parent. It is 0 if there is no process.
func (s stat) parent() int { return int(s.number(1)) }

// ending is the flag of a process or thread that has begun to end (Linux: PF_EXITING). It has no
// memory any more, so its files belong to root and only root can examine it, although it can still
// be in the state of a process that runs.
const ending = 0x4

// running reports whether a process or thread runs: it exists, and has not begun to end.
func running(dir string) bool {
	s := readStat(dir)
	if len(s) < 7 {
		return false
	}
	ended := bytes.ContainsAny(s[0], "ZX")
	return !ended && s.number(6)&ending == 0
}

// maxPasses limits how often the processes are listed to stop them all. A program may pass its work
// from process to process faster than they can be listed.
const maxPasses = 64

// freeze stops the processes of a program, also new ones that start in the meantime, and returns a
// function that lets the stopped processes continue.
func freeze(first *os.Process) (thaw func()) {
	var stopped []int // pidfds
	seen := map[int]bool{}
	for range maxPasses {
		before := len(stopped)
		all := family(first.Pid)
		members := map[int]bool{}
		for _, p := range all {
			members[p.pid] = true
		}

		for _, p := range all {
			if seen[p.pid] {
				continue
			}
			fd, ok := openMember(p.pid, members, first)
			if !ok {
				continue
			}
			seen[p.pid] = true
			stopped = append(stopped, fd)
			_ = unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0)
		}
		if len(stopped) == before {
			break
		}
	}

	return func() {
		for _, fd := range stopped {
			_ = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
			unix.Close(fd)
		}
	}
}

// openMember returns a pidfd of a process of a family, whose first process was started as first. ok
// is false if the process has ended, or if its ID belongs to another one by now.
func openMember(pid int, members map[int]bool, first *os.Process) (fd int, ok bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, false
	}

	isMember := members[statOf(pid).parent()]
	if pid == first.Pid {
		// Its ID is reserved until it has been waited for.
		isMember = first.Signal(syscall.Signal(0)) == nil
	}

	// What was read above is about the process of fd only if that one still has the ID.
	isAlive := unix.PidfdSendSignal(fd, 0, nil, 0) == nil
	if !isMember || !isAlive {
		unix.Close(fd)
		return -1, false
	}
	return fd, true
}
