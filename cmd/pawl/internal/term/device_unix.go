//go:build unix

package term

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const wakes = true // a read can be ended

// escapeTime is how long the rest of a key that begins with an escape may take.
const escapeTime = 40 * time.Millisecond

func notifyResize(c chan os.Signal) { signal.Notify(c, syscall.SIGWINCH) }

// Suspend stops the program as Ctrl-Z does where a terminal is not raw, and returns when it goes
// on.
func (d *Device) Suspend() error {
	d.Release()
	err := syscall.Kill(0, syscall.SIGTSTP)
	if seized := d.Seize(); seized != nil {
		return seized
	}
	return err
}

// waker waits for input in a way that can be ended, which a read from a terminal cannot.
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

// wait reports whether there is input; false: it was woken.
func (w *waker) wait() bool { return w.selected(nil) == w.in }

// ready reports whether more input comes within d.
func (w *waker) ready(d time.Duration) bool {
	t := unix.NsecToTimeval(int64(d))
	return w.selected(&t) == w.in
}

// selected returns the descriptor that can be read; -1: none within the time.
func (w *waker) selected(within *unix.Timeval) int {
	pipe := -1
	if w.pr != nil {
		pipe = int(w.pr.Fd())
	}
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
