//go:build linux && (amd64 || arm64)

package sandbox

import "golang.org/x/sys/unix"

// lastCall is the newest system call that the filter knows. Newer calls get the answer of an older
// kernel: ENOSYS.
const lastCall = unix.SYS_OPEN_TREE_ATTR

// absent lists calls that programs can do without when the kernel appears not to support them.
var absent = []uintptr{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER,
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, // memory that no limit counts
}

// forbidden lists calls that affect other processes, change the machine, or have been used to
// escape from sandboxes.
var forbidden = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT,
	unix.SYS_LISTMOUNT,
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
	unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
	unix.SYS_NFSSERVCTL, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV,
	unix.SYS_MSGCTL,
	// memory that outlives a process
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// away lists calls by which a process could leave the process group by which Standard ends it,
// affect other processes of the same user, or change the access to files of the same user. Landlock
// cannot refuse these.
var away = []uintptr{unix.SYS_SETSID, unix.SYS_SETPGID, unix.SYS_SOCKET, unix.SYS_IOPRIO_SET, unix.SYS_SETPRIORITY,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT}

// others lists calls whose first argument is a process ID, with 0 as the caller. Standard allows
// them for the caller only.
var others = []uintptr{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETPARAM,
	unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR}

const (
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME
	setID   = unix.S_ISUID | unix.S_ISGID
	creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// The offsets of the fields that the filter reads.
const (
	offCall = 0
	offArch = 4
	offArgs = 16
)

const (
	allowed = unix.SECCOMP_RET_ALLOW
	refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	end     = unix.SECCOMP_RET_KILL_PROCESS
)

// filter is a filter under construction. Each piece of it ends in an answer, or leaves the number
// of the call loaded.
type filter []unix.SockFilter

func (f *filter) load(off uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off})
}

func (f *filter) jump(op uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: yes, Jf: no, K: k})
}

func (f *filter) answer(k uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k})
}

// call sets the answer to one call.
func (f *filter) call(n uintptr, answer uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, 1)
	f.answer(answer)
}

// arg loads the low half of an argument. The arguments that the filter examines are 32 bits wide in
// the kernel.
func (f *filter) arg(i uint32) { f.load(offArgs + 8*i) }

// bits refuses a call if one of bits is set in argument i.
func (f *filter) bits(n uintptr, i, bits uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, 4)
	f.arg(i)
	f.jump(unix.BPF_JSET, bits, 0, 1)
	f.answer(refuse)
	f.answer(allowed)
}

// only refuses a call unless argument i is one of values.
func (f *filter) only(n uintptr, i uint32, values ...uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, uint8(len(values)+3))
	f.arg(i)
	for k, v := range values {
		f.jump(unix.BPF_JEQ, v, uint8(len(values)-k), 0)
	}
	f.answer(refuse)
	f.answer(allowed)
}

// never refuses a call if argument i is one of values.
func (f *filter) never(n uintptr, i uint32, values ...uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, uint8(len(values)+3))
	f.arg(i)
	for k, v := range values {
		f.jump(unix.BPF_JEQ, v, uint8(len(values)-k), 0)
	}
	f.answer(allowed)
	f.answer(refuse)
}

// mode refuses to create setuid and setgid files: the argument flags says whether a file is
// created, the argument mode contains its mode.
func (f *filter) mode(n uintptr, flags, mode uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, 6)
	f.arg(flags)
	f.jump(unix.BPF_JSET, uint32(creates), 0, 3)
	f.arg(mode)
	f.jump(unix.BPF_JSET, setID, 0, 1)
	f.answer(refuse)
	f.answer(allowed)
}

// build returns the filter of a level, for a program with or without a proxy.
func build(level Level, proxy bool) []unix.SockFilter {
	f := new(filter)
	f.load(offArch)
	f.jump(unix.BPF_JEQ, auditArch, 1, 0)
	f.answer(end) // other architectures have other call numbers
	f.load(offCall)
	f.jump(unix.BPF_JGT, lastCall, 0, 1) // includes the calls of x32
	f.answer(unknown)
	if level == Standard {
		for _, n := range append(away[:len(away):len(away)], awayHere...) {
			f.call(n, refuse)
		}
		for _, n := range others {
			f.only(n, 0, 0)
		}
	}
	for _, n := range absent {
		f.call(n, unknown)
	}
	for _, n := range append(forbidden[:len(forbidden):len(forbidden)], forbiddenHere...) {
		f.call(n, refuse)
	}
	if proxy {
		f.inet()
	} else {
		f.only(unix.SYS_SOCKET, 0, unix.AF_UNIX)
	}
	f.only(unix.SYS_SOCKETPAIR, 0, unix.AF_UNIX)
	f.only(unix.SYS_PERSONALITY, 0, 0, 0xffffffff)
	f.bits(unix.SYS_CLONE, 0, newNamespaces)
	f.never(unix.SYS_IOCTL, 1, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS)
	f.bits(unix.SYS_FCHMOD, 1, setID)
	f.bits(unix.SYS_FCHMODAT, 2, setID)
	f.bits(unix.SYS_FCHMODAT2, 2, setID)
	f.bits(unix.SYS_MKNODAT, 2, setID)
	f.mode(unix.SYS_OPENAT, 2, 3)
	f.here()
	f.answer(allowed)
	return *f
}
