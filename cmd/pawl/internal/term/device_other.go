//go:build !unix

package term

import (
	"os"
	"time"
)

const (
	wakes      = false // a read from a terminal cannot be interrupted on this system
	escapeTime = 0
)

func notifyResize(chan os.Signal) {}

// Suspend does nothing, because this system has no job control.
func (d *Device) Suspend() error { return nil }

// waker satisfies the compiler. Open returns an error before a waker is made.
type waker struct{}

func newWaker(*os.File) waker            { return waker{} }
func (waker) wait() bool                 { return false }
func (waker) ready(d time.Duration) bool { return false }
func (waker) wake()                      {}
func (waker) close()                     {}
