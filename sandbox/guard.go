//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// guards ends the programs of Standard when this process ends. The kernel does that only for the
// first process of each. One process, the guard, serves all programs, because its start costs as
// much as a program's. It ends after this process, when it has ended the programs.
type guards struct {
	mu     sync.Mutex
	conn   *os.File     // nil means that there is no guard
	groups map[int]bool // the process groups of the programs
}

var guard = guards{groups: map[int]bool{}}

// add sends a process group to the guard, which it starts if it does not run.
func (g *guards) add(group int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[group] = true
	if g.conn != nil {
		if _, err := fmt.Fprintln(g.conn, group); err == nil {
			return nil
		}
		g.conn.Close() // another process has ended the guard
		g.conn = nil
	}

	// The guard is a process of its own, in a session of its own: it outlives this process and ends
	// the groups.
	conn, childConn, err := socketPair()
	if err != nil {
		return err
	}
	defer childConn.Close()
	proc, err := os.StartProcess("/proc/self/exe", []string{guardName}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"GOMAXPROCS=1"},
		Files: []*os.File{childConn},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		conn.Close()
		return fmt.Errorf("sandbox: %w: the guard: %v", ErrUnenforced, err)
	}
	proc.Release()

	g.conn = conn
	for group := range g.groups {
		if _, err := fmt.Fprintln(conn, group); err != nil {
			return fmt.Errorf("sandbox: %w: the guard: %v", ErrUnenforced, err)
		}
	}
	return nil
}

// remove removes a process group that has ended.
func (g *guards) remove(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, group)
	if g.conn != nil {
		fmt.Fprintln(g.conn, -group)
	}
}

// guardGroups reads process groups until the parent has ended, and ends the groups that the parent
// did not remove.
func guardGroups(parent io.Reader) {
	groups := map[int]bool{}
	for n := 0; ; {
		if _, err := fmt.Fscan(parent, &n); err != nil {
			break
		}
		delete(groups, -n)
		if n > 1 {
			groups[n] = true
		}
	}
	for group := range groups {
		unix.Kill(-group, unix.SIGKILL)
	}
}
