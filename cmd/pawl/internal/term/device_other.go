//go:build !unix

package term

import (
	"os"
	"time"
)

const (
	wakes      = false // nothing ends a read from a terminal here
	escapeTime = 0
)

func notifyResize(chan os.Signal) {}

// Suspend does nothing: there is no such thing here.
func (d *Device) Suspend() error { return nil }

// waker is never used: Open fails before.
type waker struct{}

func newWaker(*os.File) waker            { return waker{} }
func (waker) wait() bool                 { return false }
func (waker) ready(d time.Duration) bool { return false }
func (waker) wake()                      {}
func (waker) close()                     {}
