//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// Start returns ErrUnenforced, because nothing can be enforced on this system.
func Start(context.Context, Spec) (*Process, error) { return nil, refused() }

func refused() error {
	return fmt.Errorf("sandbox: %w: %s/%s has none; it takes Linux on amd64 or arm64",
		ErrUnenforced, runtime.GOOS, runtime.GOARCH)
}

func probe() *Report {
	r := &Report{System: runtime.GOOS + "/" + runtime.GOARCH}
	for l := Strict; l <= None; l++ {
		r.Levels = append(r.Levels, Probed{Level: l, Reason: reason(refused())})
	}
	return r
}
