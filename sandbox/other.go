//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Start returns ErrUnenforced, because nothing can be enforced on this system.
func Start(context.Context, Spec) (*Process, error) { return nil, refused() }

// Startable returns ErrUnenforced, because nothing can be enforced on this system.
func Startable(context.Context, Spec) error { return refused() }

func refused() error {
	return fmt.Errorf("sandbox: %w: %s/%s has none; it takes Linux on amd64 or arm64",
		ErrUnenforced, runtime.GOOS, runtime.GOARCH)
}

func probe() *Report {
	r := &Report{System: runtime.GOOS + "/" + runtime.GOARCH}
	for l := Strict; l <= None; l++ {
		p, _ := probeLevel(l)
		r.Levels = append(r.Levels, p)
	}
	return r
}

// probeLevel returns why no level can be enforced on this system.
func probeLevel(l Level) (Probed, time.Duration) {
	return Probed{Level: l, Reason: reason(refused())}, 0
}
