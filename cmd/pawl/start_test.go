//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty opens a terminal and returns its two ends.
func pty(t *testing.T) (keeper, terminal *os.File) {
	t.Helper()
	keeper, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keeper.Close() })
	if err := unix.IoctlSetPointerInt(int(keeper.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keeper.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keeper, terminal
}

// startWork returns the CPU time of the start of the program.
func startWork(t *testing.T, name string) time.Duration {
	t.Helper()
	cmd := exec.Command(name, "version")
	cmd.Env = []string{"HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return work(cmd)
}

// work returns the CPU time of a program that has ended.
func work(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// The first output appears within 50 ms on an idle machine. The test measures CPU time and not
// elapsed time, which depends on the load of the machine. On a busy machine the same work costs up
// to twice as much. On a slower one the start of the program itself is the measure: the command
// that prints the version does nothing else.
func TestFirstOutput(t *testing.T) {
	limit := 100 * time.Millisecond
	if raced() {
		limit *= 20 // the race detector looks at each step
	}
	name, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"chat", "--model", "openai:sim", "--tools", "file,data,http"},
		{"run", "--model", "openai:sim", "--tools", "file", "task"}} {
		best, clock, start := time.Hour, time.Hour, time.Hour
		for range 5 {
			start = min(start, startWork(t, name))
			keeper, terminal := pty(t)
			cmd := exec.Command(name, args...)
			home := t.TempDir()
			cmd.Env = []string{"TERM=xterm", "HOME=" + home, "OPENAI_API_KEY=none-needed",
				"OPENAI_BASE_URL=http://127.0.0.1:9/v1", "GORACE=atexit_sleep_ms=0"}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
			begun := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			terminal.Close()
			if _, err := keeper.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			clock = min(clock, time.Since(begun))
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			best = min(best, work(cmd))
		}
		t.Logf("pawl %s: first output after %v of work, %v by the clock; its start takes %v", args[0], best, clock, start)
		if best > max(limit, 2*start) {
			t.Errorf("pawl %s: the first output took %v of work, want at most %v, or twice the %v of a start",
				args[0], best, limit, start)
		}
	}
}
