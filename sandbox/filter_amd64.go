//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// forbiddenHere lists the forbidden calls that only this architecture has.
var forbiddenHere = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT,
	unix.SYS_SYSFS, unix.SYS__SYSCTL,
	unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE}

// awayHere lists the calls that Standard additionally refuses and that only this architecture has.
var awayHere = []uintptr{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}

// here adds the calls that the other architecture lacks.
func (f *filter) here() {
	f.bits(unix.SYS_CHMOD, 1, setID)
	f.bits(unix.SYS_CREAT, 1, setID)
	f.bits(unix.SYS_MKNOD, 1, setID)
	f.mode(unix.SYS_OPEN, 1, 2)
}
