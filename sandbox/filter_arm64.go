//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// forbiddenHere lists the forbidden calls that only this architecture has.
var forbiddenHere []uintptr

// awayHere lists the calls that Standard additionally refuses and that only this architecture has.
var awayHere []uintptr

// here adds the calls that the other architecture lacks.
func (f *filter) here() {}
