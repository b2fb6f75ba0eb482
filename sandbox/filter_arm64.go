//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// forbiddenHere are what only this architecture has of such calls.
var forbiddenHere []uintptr

// awayHere are what only this architecture has of the calls that Standard refuses beside.
var awayHere []uintptr

// here looks at the calls that the other architecture has not.
func (f *filter) here() {}
