// Package term provides what an interactive program needs of a terminal: keys, a line editor, text
// widths, and live lines below permanent ones.
//
//	             keys                              lines
//	 Device ──────────────▶ Editor, the caller ──────────────▶ Screen ──▶ the terminal
//	(raw mode, resizes)     (meaning of keys)    print + live   (one write a frame)
//
// Only Device depends on the operating system. The other types map text to text, and are tested
// without a terminal.
//
// A Line consists of spans with styles. Line.Render makes control characters visible, so that text
// of a model or a tool cannot send control sequences.
package term

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/term"
)

// Device is an interactive terminal: it reads single keys without echo, and reports the size. Close
// restores the terminal. A Device may be used concurrently.
type Device struct {
	in, out *os.File
	keys    chan Key
	resized chan os.Signal

	mu    sync.Mutex
	state *term.State // modes to restore; nil means that they are restored
	stop  func()      // stops reading keys
}

// errNoKeys reports that this system cannot read single keys.
var errNoKeys = errors.New("keys cannot be read one by one on this system")

// Open puts the terminal of in and out into raw mode. A nil in means that no keys are read and the
// modes stay unchanged. It returns an error on systems that cannot read single keys, such as
// Windows.
func Open(in, out *os.File) (*Device, error) {
	if in != nil && !wakes {
		return nil, errNoKeys
	}
	d := &Device{in: in, out: out, keys: make(chan Key), resized: make(chan os.Signal, 1)}
	if err := d.Seize(); err != nil {
		return nil, err
	}
	notifyResize(d.resized)
	return d, nil
}

// Keys returns the channel of keys.
func (d *Device) Keys() <-chan Key { return d.keys }

// Resized returns a channel that receives a value when the size may have changed.
func (d *Device) Resized() <-chan os.Signal { return d.resized }

// Size returns the number of columns and rows, or 80 and 24 if they are unknown.
func (d *Device) Size() (width, height int) {
	if w, h, err := term.GetSize(int(d.out.Fd())); err == nil && w > 0 && h > 0 {
		return w, h
	}
	return 80, 24
}

// Seize sets raw mode again after Release.
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
	d.out.WriteString("\x1b[?2004h") // bracketed paste
	d.stop = d.read()
	return nil
}

// Release restores the terminal, for example for another program. No keys are read until Seize.
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

// Close restores the terminal. It may be called more than once.
func (d *Device) Close() {
	d.Release()
	signal.Stop(d.resized)
}

// read starts to read keys. The returned function stops that and waits for the end.
func (d *Device) read() (stop func()) {
	end := make(chan struct{})
	ended := make(chan struct{})
	wake := newWaker(d.in)
	send := func(k Key) bool {
		select {
		case d.keys <- k:
			return true
		case <-end:
			return false
		}
	}

	go func() {
		defer close(ended)
		var have string
		buf := make([]byte, 4096)
		for {
			k, n := nextKey(have, wake.ready)
			for n > 0 {
				if !send(k) {
					return
				}
				have = have[n:]
				k, n = nextKey(have, wake.ready)
			}

			// A read that has begun cannot be interrupted, and would take the input of an editor.
			if !wake.wait() {
				return
			}
			n, err := d.in.Read(buf)
			have += string(buf[:n])
			if err != nil || n == 0 {
				send(Key{Name: "hangup"})
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

// mostKey is the size of an incomplete key, such as a paste without an end, that is given up.
const mostKey = 1 << 20

// nextKey decodes the first key of the input, and returns the number of its bytes. 0 means that the
// key is incomplete. ready reports whether more input arrives within a time.
func nextKey(have string, ready func(time.Duration) bool) (Key, int) {
	if have == "" {
		return Key{}, 0
	}
	k, n := DecodeKey(have, false)
	if n > 0 {
		return k, n
	}

	// The bytes of a key arrive together, so an escape that stands alone is the key Esc.
	isEscape := have == "\x1b" || have == "\x1b["
	switch {
	case len(have) >= mostKey:
		return k, 1
	case !isEscape || ready(escapeTime):
		return Key{}, 0
	}
	k, n = DecodeKey(have, true)
	return k, max(n, 1)
}
