//go:build linux && (amd64 || arm64)

package sandbox

import "golang.org/x/sys/unix"

// lastCall is the newest system call that this filter has an opinion of. Newer ones are answered as an older kernel would: ENOSYS.
const lastCall = unix.SYS_OPEN_TREE_ATTR

// absent are calls that programs can do without, and do when they are told that the kernel has them not.
var absent = []uintptr{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, // memory that no limit counts
}

// forbidden are calls that reach into other processes, change the machine or the world, or have been ways out of such walls.
var forbidden = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_NFSSERVCTL, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, // memory that outlives a process
}

// away are calls by which a process could leave the group that Standard ends it by, turn on processes outside that are the same user's, or
// change who may use files of the same user: these are not Landlock's to refuse.
var away = []uintptr{unix.SYS_SETSID, unix.SYS_SETPGID, unix.SYS_SOCKET, unix.SYS_IOPRIO_SET, unix.SYS_SETPRIORITY, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT}

// others are calls whose first argument is a process, 0 being the caller: Standard lets them at the caller alone.
var others = []uintptr{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR}

const (
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME
	setID         = unix.S_ISUID | unix.S_ISGID
	creates       = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// The offsets of what a filter looks at.
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

// filter is one in the making. Each piece of it ends in answers, or leaves the number of the call loaded.
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

// call answers one call.
func (f *filter) call(n uintptr, answer uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, 1)
	f.answer(answer)
}

// arg loads the low half of an argument. The kernel looks at no more of those that the filter looks at: they are 32 bits wide there.
func (f *filter) arg(i uint32) { f.load(offArgs + 8*i) }

// bits refuses a call that has one of bits in argument i.
func (f *filter) bits(n uintptr, i, bits uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, 4)
	f.arg(i)
	f.jump(unix.BPF_JSET, bits, 0, 1)
	f.answer(refuse)
	f.answer(allowed)
}

// only refuses a call whose argument i is none of values.
func (f *filter) only(n uintptr, i uint32, values ...uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, uint8(len(values)+3))
	f.arg(i)
	for k, v := range values {
		f.jump(unix.BPF_JEQ, v, uint8(len(values)-k), 0)
	}
	f.answer(refuse)
	f.answer(allowed)
}

// never refuses a call whose argument i is one of values.
func (f *filter) never(n uintptr, i uint32, values ...uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, uint8(len(values)+3))
	f.arg(i)
	for k, v := range values {
		f.jump(unix.BPF_JEQ, v, uint8(len(values)-k), 0)
	}
	f.answer(allowed)
	f.answer(refuse)
}

// mode refuses to make a file that runs as its owner or group: argument flags says whether one is made, argument mode what it is.
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
	f.answer(end) // the calls of another architecture have other numbers
	f.load(offCall)
	f.jump(unix.BPF_JGT, lastCall, 0, 1) // those of x32 too
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
