//go:build unix

package term

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const wakes = true // a read from a terminal can be interrupted

// escapeTime is the maximum pause between an escape byte and the other bytes of the same key.
const escapeTime = 40 * time.Millisecond

func notifyResize(c chan os.Signal) { signal.Notify(c, syscall.SIGWINCH) }

// Suspend stops the program, as Ctrl-Z does for a program that does not use raw mode. It returns
// when the program is resumed.
func (d *Device) Suspend() error {
	d.Release()
	err := syscall.Kill(0, syscall.SIGTSTP)
	if seized := d.Seize(); seized != nil {
		return seized
	}
	return err
}

// waker waits for input. Unlike a read from a terminal, the wait can be interrupted.
type waker struct {
	in     int
	pr, pw *os.File
}

func newWaker(in *os.File) *waker {
	pr, pw, err := os.Pipe()
	if err != nil {
		return &waker{in: int(in.Fd())}
	}
	return &waker{int(in.Fd()), pr, pw}
}

// wait waits for input or for wake. It reports whether there is input.
func (w *waker) wait() bool { return w.selected(nil) == w.in }

// ready reports whether there is more input within d.
func (w *waker) ready(d time.Duration) bool {
	t := unix.NsecToTimeval(int64(d))
	return w.selected(&t) == w.in
}

// selected returns the descriptor that has input, or -1 if there is none within the time. A nil
// time means no limit.
func (w *waker) selected(within *unix.Timeval) int {
	pipe := -1
	if w.pr != nil {
		pipe = int(w.pr.Fd())
	}

	// select, because poll of macOS does not work for terminals.
	for {
		var set unix.FdSet
		set.Zero()
		set.Set(w.in)
		if pipe >= 0 {
			set.Set(pipe)
		}
		n, err := unix.Select(max(w.in, pipe)+1, &set, nil, nil, within)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n == 0:
			return -1
		case pipe >= 0 && set.IsSet(pipe):
			return pipe
		}
		return w.in
	}
}

func (w *waker) wake() {
	if w.pw != nil {
		w.pw.Write([]byte{0})
	}
}

func (w *waker) close() {
	if w.pr != nil {
		w.pr.Close()
		w.pw.Close()
	}
}
