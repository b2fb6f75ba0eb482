//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// group is a control group that contains the processes of one program and no others. The kernel
// bounds their memory in it, including the memory that the kernel itself takes for them, and their
// number. Nil means no group.
type group struct {
	dirs   []string // one in each hierarchy; version 2 has one hierarchy
	folder *os.File // for version 2: a child starts in the group; nil means that it is moved there
}

const (
	groups    = "/sys/fs/cgroup"
	groupName = "pawl-sandbox.%d." // the process that created it

	// leastMemory is enough memory for a child that sets up the sandbox.
	leastMemory    = 32 << 20
	leastProcesses = 16
)

// newGroup creates a control group with the limits of a program. The error says why this process
// cannot have one.
func newGroup(l Limits) (*group, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, errors.New("the kernel has no control groups")
	}

	own := map[string]string{} // the group of this process by controller; "" stands for version 2
	for line := range strings.Lines(string(b)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			for _, c := range strings.Split(f[1], ",") {
				own[c] = f[2]
			}
		}
	}

	g := new(group)
	// A machine with both versions has the memory controller in one of them.
	if path, ok := own["memory"]; ok {
		err = g.legacy(filepath.Join(groups, "memory", path), filepath.Join(groups, "pids", own["pids"]))
	} else {
		err = g.unified(own[""])
	}

	if err == nil {
		err = g.limit(l)
	}
	if err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// legacy creates the group in the hierarchies of version 1, which only root can do.
func (g *group) legacy(memory, pids string) error {
	if err := g.create(memory); err != nil {
		return err
	}
	sweep(pids)
	dir := filepath.Join(pids, filepath.Base(g.dirs[0]))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	g.dirs = append(g.dirs, dir)
	return nil
}

// unified creates the group in the hierarchy of version 2: in the nearest group above this process
// that this user may change and that can bound memory and processes.
func (g *group) unified(path string) error {
	for dir := filepath.Join(groups, path); strings.HasPrefix(dir, groups); dir = filepath.Dir(dir) {
		if unix.Access(dir+"/cgroup.procs", unix.W_OK) != nil || !controls(dir) || g.create(dir) != nil {
			continue
		}
		var err error
		g.folder, err = os.Open(g.dirs[0])
		return err
	}
	return errors.New("this user has none that can bound memory and processes; " +
		"systemd-run --user --scope starts a command in one")
}

// controls reports whether the groups in dir can bound memory and processes, and lets them if this
// process may.
func controls(dir string) bool {
	b, _ := os.ReadFile(dir + "/cgroup.subtree_control")
	if s := " " + strings.Join(strings.Fields(string(b)), " ") + " "; strings.Contains(s, " memory ") &&
		strings.Contains(s, " pids ") {
		return true
	}
	return dir != groups && write(dir, "cgroup.subtree_control", "+memory +pids") == nil
}

// create creates the group in parent.
func (g *group) create(parent string) error {
	sweep(parent)
	dir, err := os.MkdirTemp(parent, fmt.Sprintf(groupName, os.Getpid()))
	if err == nil {
		g.dirs = append(g.dirs, dir)
	}
	return err
}

// sweep removes the groups in parent that a process created and did not remove before its end.
func sweep(parent string) {
	list, _ := os.ReadDir(parent)
	for _, e := range list {
		var pid int
		if n, _ := fmt.Sscanf(e.Name(), groupName, &pid); n == 1 && unix.Kill(pid, 0) == unix.ESRCH {
			unix.Rmdir(filepath.Join(parent, e.Name()))
		}
	}
}

// limit sets the limits of the group.
func (g *group) limit(l Limits) error {
	memory := fmt.Sprint(max(l.MemoryInAll, leastMemory))
	processes := fmt.Sprint(max(l.Processes, leastProcesses))
	first := g.dirs[0]
	last := g.dirs[len(g.dirs)-1]
	if g.folder == nil {
		write(first, "memory.memsw.limit_in_bytes", memory) // only with swap
		return errors.Join(write(first, "memory.limit_in_bytes", memory), write(last, "pids.max", processes))
	}

	write(first, "memory.swap.max", "0") // only with swap
	return errors.Join(write(first, "memory.max", memory), write(first, "memory.oom.group", "1"),
		write(last, "pids.max", processes))
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

// place moves a child into the group.
func (g *group) place(pid int) error {
	if g == nil || g.folder != nil {
		return nil
	}
	var all []error
	for _, dir := range g.dirs {
		all = append(all, write(dir, "cgroup.procs", fmt.Sprint(pid)))
	}
	return errors.Join(all...)
}

// full reports whether the kernel has ended a process because the memory of the group was used up.
func (g *group) full() bool {
	if g == nil {
		return false
	}
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		b, _ := os.ReadFile(filepath.Join(g.dirs[0], file))
		if fields(b, "oom_kill") > 0 {
			return true
		}
	}
	return false
}

// remove ends what is left in the group, and removes it.
func (g *group) remove() {
	if g == nil {
		return
	}
	if g.folder != nil {
		g.folder.Close()
	}
	for _, dir := range g.dirs {
		// The kernel removes a process from its group some time after its end.
		for end := time.Now().Add(5 * time.Second); unix.Rmdir(dir) == unix.EBUSY && time.Now().Before(end); {
			if write(dir, "cgroup.kill", "1") != nil {
				b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
				for _, f := range bytes.Fields(b) {
					var pid int
					fmt.Sscan(string(f), &pid)
					if pid > 1 {
						unix.Kill(pid, unix.SIGKILL)
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
	}
}
