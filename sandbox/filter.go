//go:build linux && (amd64 || arm64)

package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// open lists the calls that every program may make with any arguments. The calls with a rule of
// build are not among them. All other calls, also of newer kernels, get the answer of a kernel that
// lacks them, ENOSYS: C libraries then use an older call.
var open = []uintptr{
	// processes, threads and signals
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_WAIT4, unix.SYS_WAITID,
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETPGID, unix.SYS_GETSID, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, unix.SYS_FUTEX_WAIT, unix.SYS_FUTEX_WAKE, unix.SYS_FUTEX_REQUEUE,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_RESTART_SYSCALL,
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGSUSPEND,
	unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_SIGALTSTACK, unix.SYS_SIGNALFD4,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_GETATTR, unix.SYS_SCHED_GETPARAM,
	unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN,
	unix.SYS_SCHED_RR_GET_INTERVAL, unix.SYS_GETPRIORITY, unix.SYS_IOPRIO_GET, unix.SYS_GETCPU,
	unix.SYS_SECCOMP, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF,
	// the user and the limits
	unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID,
	unix.SYS_GETGROUPS, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID,
	unix.SYS_SETRESGID, unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_SETGROUPS, unix.SYS_CAPGET, unix.SYS_CAPSET,
	unix.SYS_UMASK, unix.SYS_GETRLIMIT, unix.SYS_SETRLIMIT, unix.SYS_GETRUSAGE, unix.SYS_TIMES, unix.SYS_SYSINFO,
	unix.SYS_UNAME, unix.SYS_GETRANDOM,
	// memory
	unix.SYS_BRK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE,
	unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MUNLOCK, unix.SYS_MLOCKALL,
	unix.SYS_MUNLOCKALL, unix.SYS_MSEAL, unix.SYS_PKEY_ALLOC, unix.SYS_PKEY_FREE, unix.SYS_PKEY_MPROTECT,
	// time
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_GETTIMEOFDAY, unix.SYS_GETITIMER, unix.SYS_SETITIMER, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_DELETE,
	unix.SYS_TIMER_GETOVERRUN, unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_SETTIME, unix.SYS_TIMERFD_CREATE,
	unix.SYS_TIMERFD_GETTIME, unix.SYS_TIMERFD_SETTIME,
	// descriptors
	unix.SYS_READ, unix.SYS_READV, unix.SYS_PREAD64, unix.SYS_PREADV, unix.SYS_PREADV2, unix.SYS_WRITE,
	unix.SYS_WRITEV, unix.SYS_PWRITE64, unix.SYS_PWRITEV, unix.SYS_PWRITEV2, unix.SYS_LSEEK, unix.SYS_CLOSE,
	unix.SYS_CLOSE_RANGE, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_SENDFILE, unix.SYS_SPLICE,
	unix.SYS_TEE, unix.SYS_COPY_FILE_RANGE, unix.SYS_EVENTFD2, unix.SYS_PPOLL, unix.SYS_PSELECT6,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2,
	unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE,
	unix.SYS_FADVISE64, unix.SYS_READAHEAD, unix.SYS_FLOCK, unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_RM_WATCH,
	// files by name
	unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT,
	unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_STATFS, unix.SYS_FSTATFS,
	unix.SYS_MKDIRAT, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
	unix.SYS_TRUNCATE, unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR, unix.SYS_LISTXATTR,
	unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR,
	// sockets that exist
	unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT,
	unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG,
	unix.SYS_SHUTDOWN,
}

// own lists the calls that only Strict allows: with them, a program of Standard could leave the
// process group by which it is ended, affect or watch other processes of the same user, or change
// the access to files of the same user. Landlock cannot refuse these.
var own = []uintptr{unix.SYS_SETSID, unix.SYS_SETPGID, unix.SYS_IOPRIO_SET, unix.SYS_SETPRIORITY,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_INOTIFY_ADD_WATCH,
	unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_CONNECT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR}

// chmod lists the calls that set the mode of a file. Strict allows all modes but setuid and setgid.
var chmod = []uintptr{unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2}

// others lists calls whose first argument is a process ID, with 0 as the caller. Standard allows
// them for the caller only.
var others = []uintptr{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETPARAM,
	unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR}

// requests lists the requests of ioctl that a program may make: to terminals, to descriptors, and
// to copy files. Others get the answer of a file that does not know them, ENOTTY.
var requests = []uint32{unix.TCGETS, unix.TCGETS2, unix.TCSETS, unix.TCSETSW, unix.TCSETSF, unix.TIOCGWINSZ,
	unix.TIOCGPGRP, unix.TIOCSPGRP, unix.TIOCGSID, unix.TIOCINQ, unix.TIOCOUTQ, unix.FICLONE, unix.FICLONERANGE,
	0x5421, 0x5450, 0x5451} // FIONBIO, FIONCLEX, FIOCLEX, which x/sys lacks

// settings lists the options of prctl that a program may use. PR_SET_PDEATHSIG is not among them:
// it ends the program with this process. PR_SET_DUMPABLE would hide its descriptors from the
// limits.
var settings = []uint32{unix.PR_GET_PDEATHSIG, unix.PR_GET_DUMPABLE, unix.PR_GET_KEEPCAPS, unix.PR_SET_NAME,
	unix.PR_GET_NAME, unix.PR_GET_SECCOMP, unix.PR_SET_SECCOMP, unix.PR_CAPBSET_READ, unix.PR_GET_SECUREBITS,
	unix.PR_SET_TIMERSLACK, unix.PR_GET_TIMERSLACK, unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER,
	unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_TID_ADDRESS, unix.PR_SET_THP_DISABLE,
	unix.PR_GET_THP_DISABLE, unix.PR_CAP_AMBIENT, unix.PR_SVE_SET_VL, unix.PR_SVE_GET_VL, unix.PR_SME_SET_VL,
	unix.PR_SME_GET_VL, unix.PR_GET_SPECULATION_CTRL, unix.PR_SET_SPECULATION_CTRL, unix.PR_PAC_RESET_KEYS,
	unix.PR_SET_TAGGED_ADDR_CTRL, unix.PR_GET_TAGGED_ADDR_CTRL, unix.PR_SET_MDWE, unix.PR_GET_MDWE, unix.PR_SET_VMA,
	unix.PR_GET_AUXV}

const (
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME
	// A sibling would be a child of this process, which does not wait for it.
	siblings = unix.CLONE_PARENT
	setID    = unix.S_ISUID | unix.S_ISGID
	creates  = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
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
	noTerm  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTTY)
	done    = unix.SECCOMP_RET_ERRNO // the call appears to succeed
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

// among sets the answer to a call by whether argument i is one of values.
func (f *filter) among(n uintptr, i, yes, no uint32, values ...uint32) {
	f.jump(unix.BPF_JEQ, uint32(n), 0, uint8(len(values)+3))
	f.arg(i)
	for k, v := range values {
		f.jump(unix.BPF_JEQ, v, uint8(len(values)-k), 0)
	}
	f.answer(no)
	f.answer(yes)
}

// only refuses a call unless argument i is one of values.
func (f *filter) only(n uintptr, i uint32, values ...uint32) {
	f.among(n, i, allowed, refuse, values...)
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

// kind loads the type of a socket from argument 1, without the flags in it.
func (f *filter) kind() {
	f.arg(1)
	*f = append(*f, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K,
		K: ^uint32(unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK)})
}

// pairs permits pairs of connected Unix sockets. A datagram socket could also send to any other.
func (f *filter) pairs() {
	f.jump(unix.BPF_JEQ, unix.SYS_SOCKETPAIR, 0, 8)
	f.arg(0)
	f.jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 4)
	f.kind()
	f.jump(unix.BPF_JEQ, unix.SOCK_STREAM, 2, 0)
	f.jump(unix.BPF_JEQ, unix.SOCK_SEQPACKET, 1, 0)
	f.answer(refuse)
	f.answer(allowed)
}

// buffers leaves the buffers of sockets at their size: their memory is the kernel's.
func (f *filter) buffers() {
	f.jump(unix.BPF_JEQ, unix.SYS_SETSOCKOPT, 0, 9)
	f.arg(1)
	f.jump(unix.BPF_JEQ, unix.SOL_SOCKET, 0, 6)
	f.arg(2)
	for k, option := range []uint32{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE} {
		f.jump(unix.BPF_JEQ, option, uint8(3-k), uint8(k/3))
	}
	f.answer(done)
	f.answer(allowed)
}

// calls sets the answer to each of the calls, by ranges of consecutive numbers.
func (f *filter) calls(answer uint32, calls ...[]uintptr) {
	list := slices.Sorted(slices.Values(slices.Concat(calls...)))
	for i := 0; i < len(list); {
		first := list[i]
		for i++; i < len(list) && list[i] <= list[i-1]+1; i++ {
		}
		f.jump(unix.BPF_JGE, uint32(first), 0, 2)
		f.jump(unix.BPF_JGT, uint32(list[i-1]), 1, 0)
		f.answer(answer)
	}
}

// build returns the filter of a level, for a program with or without a proxy.
func build(level Level, proxy bool) []unix.SockFilter {
	f := new(filter)
	f.load(offArch)
	f.jump(unix.BPF_JEQ, auditArch, 1, 0)
	f.answer(end) // other architectures have other call numbers
	f.load(offCall)
	f.calls(allowed, open, openHere)

	switch {
	case level == Standard:
		f.calls(refuse, own, ownHere, chmod, chmodHere, []uintptr{unix.SYS_SOCKET})
		// The times of an open file appear to be set, since touch and tar fail otherwise. They do
		// not change, because the program may have the file only to read.
		f.among(unix.SYS_UTIMENSAT, 1, done, refuse, 0)
		for _, n := range others {
			f.only(n, 0, 0)
		}
		f.pairs()
	case proxy:
		f.inet()
		fallthrough
	default:
		f.calls(allowed, own, ownHere, others, []uintptr{unix.SYS_UTIMENSAT})
		f.only(unix.SYS_SOCKET, 0, unix.AF_UNIX)
		f.only(unix.SYS_SOCKETPAIR, 0, unix.AF_UNIX)
	}

	// At every level.
	f.buffers()
	f.only(unix.SYS_PERSONALITY, 0, 0, 0xffffffff)
	f.only(unix.SYS_PRCTL, 0, settings...)
	f.among(unix.SYS_IOCTL, 1, allowed, noTerm, requests...)
	f.among(unix.SYS_FCNTL, 1, refuse, allowed, unix.F_SETLEASE, unix.F_NOTIFY, unix.F_SETPIPE_SZ)
	f.bits(unix.SYS_CLONE, 0, newNamespaces|siblings)
	f.bits(unix.SYS_FCHMOD, 1, setID)
	f.bits(unix.SYS_FCHMODAT, 2, setID)
	f.bits(unix.SYS_FCHMODAT2, 2, setID)
	f.bits(unix.SYS_MKNODAT, 2, setID)
	f.mode(unix.SYS_OPENAT, 2, 3)
	f.here()
	f.answer(unknown)
	return *f
}
