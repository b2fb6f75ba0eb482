//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// The calls that only this architecture has, as in open, own and chmod.
var openHere, ownHere, chmodHere []uintptr

// here adds the rules for calls that the other architecture lacks.
func (f *filter) here() {}
