// Package procgroup starts programs that lead a process group, and ends the group with them.
//
// The ID of a group is the process ID of its leader. When the leader has been waited for, the
// system may give this ID to another process, and a signal to the group would end that one. The
// rest of a group is therefore ended before its leader is waited for, and never afterwards.
package procgroup

import (
	"os/exec"
	"sync"
)

// Group is a program with all processes that it starts and that stay in its process group. Its
// methods may be called from several goroutines.
type Group struct {
	cmd *exec.Cmd

	mu    sync.Mutex
	ended bool // the ID of the group may belong to another process
}

// New makes cmd, which has not been started, the leader of a group. When the context of cmd ends,
// the group is killed. On a system without process groups, the group is the program alone.
func New(cmd *exec.Cmd) *Group {
	g := &Group{cmd: cmd}
	lead(cmd)
	if cmd.Cancel != nil {
		cmd.Cancel = g.Kill
	}
	return g
}

// Start starts the program.
func (g *Group) Start() error { return g.cmd.Start() }

// Wait waits until the program has ended, kills the rest of its group, and returns what
// [exec.Cmd.Wait] returns. It is called once. On a system that can only release the ID of a program
// that has ended, the rest of the group stays.
func (g *Group) Wait() error {
	hasEnded := AwaitEnd(g.cmd.Process.Pid)

	g.mu.Lock()
	if hasEnded {
		_ = kill(g.cmd) // the rest of the group, usually empty
		g.ended = true
	}
	g.mu.Unlock()

	err := g.cmd.Wait()
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	return err
}

// Kill ends all processes of the group. It does nothing if the program has ended.
func (g *Group) Kill() error { return g.signal(kill) }

// Terminate asks all processes of the group to end.
func (g *Group) Terminate() error { return g.signal(terminate) }

func (g *Group) signal(send func(*exec.Cmd) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil
	}
	return send(g.cmd)
}
