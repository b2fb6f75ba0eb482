// Package term is what a program needs of a terminal to be pleasant in it, and no more: keys, an
// editor of lines, widths, and a few live lines under the ones that stay.
//
//	             keys                              lines
//	 Device ──────────────▶ Editor, the caller ──────────────▶ Screen ──▶ the terminal
//	(raw mode, resizes)     (what they mean)    print + live   (one write a frame)
//
// Only Device knows the operating system. All else is text in, text out, and is tested so.
//
// A Line is made of pieces with styles, and its text is made harmless at the one place where it
// becomes bytes: there is no way to send a control sequence that somebody else wrote.
package term

import (
	"errors"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/term"
)

// Device is the terminal that somebody sits at: its keys, one by one and without an echo, and its
// size. Close gives it back as it was. Its methods may be used concurrently.
type Device struct {
	in, out *os.File
	keys    chan Key
	resized chan os.Signal
	done    chan struct{}

	mu    sync.Mutex
	state *term.State // as it was; nil: it is given back
	stop  func()      // ends reading
}

// errNoKeys says that keys cannot be read one by one.
var errNoKeys = errors.New("keys cannot be read one by one on this system")

// Open takes the terminal of in and out. With in nil no keys are read, and the terminal's modes
// stay as they are. It fails where keys cannot be read one by one, as on Windows.
func Open(in, out *os.File) (*Device, error) {
	if in != nil && !wakes {
		return nil, errNoKeys
	}
	d := &Device{in: in, out: out, keys: make(chan Key), resized: make(chan os.Signal, 1), done: make(chan struct{})}
	if err := d.Seize(); err != nil {
		return nil, err
	}
	notifyResize(d.resized)
	return d, nil
}

// Keys yields what is typed.
func (d *Device) Keys() <-chan Key { return d.keys }

// Resized yields something whenever the size may have changed.
func (d *Device) Resized() <-chan os.Signal { return d.resized }

// Size returns the columns and rows; 80 and 24 where they cannot be found out.
func (d *Device) Size() (width, height int) {
	if w, h, err := term.GetSize(int(d.out.Fd())); err == nil && w > 0 && h > 0 {
		return w, h
	}
	return 80, 24
}

// Seize takes the terminal again after Release.
func (d *Device) Seize() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.in == nil || d.state != nil {
		return nil
	}
	state, err := term.MakeRaw(int(d.in.Fd()))
	if err != nil {
		return err
	}
	d.state = state
	d.out.WriteString("\x1b[?2004h") // what is pasted comes in brackets
	d.stop = d.read()
	return nil
}

// Release gives the terminal back for a while, to another program for instance. No key is taken
// until Seize.
func (d *Device) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == nil {
		return
	}
	d.stop()
	d.out.WriteString("\x1b[?2004l")
	term.Restore(int(d.in.Fd()), d.state)
	d.state = nil
}

// Close gives the terminal back. It may be called more than once.
func (d *Device) Close() {
	d.Release()
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.done:
	default:
		close(d.done)
		signal.Stop(d.resized)
	}
}

// read reads keys until the returned function is called, which waits for that.
func (d *Device) read() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	wake := newWaker(d.in)
	go func() {
		defer close(ended)
		var have string
		buf := make([]byte, 4096)
		for {
			for len(have) > 0 {
				k, n := DecodeKey(have, false)
				if n == 0 && len(have) < 1<<20 {
					if have != "\x1b" && have != "\x1b[" || wake.ready(escapeTime) {
						break // more is to come
					}
					k, n = DecodeKey(have, true)
				}
				have = have[max(n, 1):]
				select {
				case d.keys <- k:
				case <-end:
					return
				}
			}
			if !wake.wait() {
				return
			}
			n, err := d.in.Read(buf)
			have += string(buf[:n])
			if err != nil || n == 0 {
				select {
				case d.keys <- Key{Name: "hangup"}:
				case <-end:
				}
				return
			}
		}
	}()
	return func() {
		close(end)
		wake.wake()
		<-ended
		wake.close()
	}
}
