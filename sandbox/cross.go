//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// limit is a limit that the kernel enforces for one process.
type limit struct {
	name  string
	which int
	value uint64
}

// limits returns the limits of the order. The process cannot raise them afterwards.
func (c *child) limits() ([]limit, error) {
	l := c.order.Limits
	list := []limit{
		{"core files", unix.RLIMIT_CORE, 0},
		{"file size", unix.RLIMIT_FSIZE, uint64(l.FileSize)},
		{"open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)},
		{"CPU", unix.RLIMIT_CPU, uint64(max(1, (l.CPU.Milliseconds()+999)/1000))},
		{"locked memory", unix.RLIMIT_MEMLOCK, 64 << 10},
		{"message queues", unix.RLIMIT_MSGQUEUE, 0},
		{"memory", unix.RLIMIT_AS, uint64(l.Memory)},
	}
	// at other levels these count all processes of the user on the machine
	if c.order.Level == Strict {
		list = append(list,
			limit{"signals", unix.RLIMIT_SIGPENDING, 1024},
			limit{"processes", unix.RLIMIT_NPROC, uint64(l.Processes)})
	}
	for i, r := range list {
		var now unix.Rlimit
		if err := unix.Getrlimit(r.which, &now); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		list[i].value = min(r.value, now.Max)
	}
	return list, nil
}

// cross performs the last steps: it sets the limits, installs the filter, reports that the sandbox
// is complete, and executes the program. It returns the name of a failed step; without a failure it
// does not return.
//
// After the first limit is set, this process gets only the memory and threads of the program, which
// is not enough for the Go runtime. Everything is therefore allocated beforehand, and the rest
// consists of raw system calls.
func (c *child) cross() (string, error) {
	limits, err := c.limits()
	if err != nil {
		return "limits", err
	}
	filter := build(c.order.Level, c.order.Proxy)
	prog := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	ready, err := json.Marshal(reply{Ready: true})
	if err != nil {
		return "order", err
	}

	// All memory that the raw system calls need.
	path, err := unix.BytePtrFromString(c.path)
	if err != nil {
		return "program", err
	}
	args, err := syscall.SlicePtrFromStrings(c.order.Args)
	if err != nil {
		return "program", err
	}
	env, err := syscall.SlicePtrFromStrings(c.order.Env)
	if err != nil {
		return "program", err
	}

	// From here on the process has only what the program has.
	conn := c.conn.Fd()
	var bound unix.Rlimit
	for i := range limits {
		bound.Cur = limits[i].value
		bound.Max = limits[i].value
		if _, _, e := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(limits[i].which),
			uintptr(unsafe.Pointer(&bound)), 0, 0, 0); e != 0 {
			return "limits: " + limits[i].name, e
		}
	}

	if c.order.Level != None {
		if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
			uintptr(unsafe.Pointer(prog))); e != 0 {
			return "system call filter", e
		}
	}

	if n, _, e := unix.RawSyscall(unix.SYS_WRITE, conn, uintptr(unsafe.Pointer(&ready[0])),
		uintptr(len(ready))); e != 0 || int(n) != len(ready) {
		return "order", e
	}

	if c.order.Until != theEnd {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}

	_, _, e := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&args[0])),
		uintptr(unsafe.Pointer(&env[0])))
	return "program", e
}
