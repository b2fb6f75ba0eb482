// Package sandbox runs an untrusted program with access only to the resources that its Spec names.
//
//	res, err := sandbox.Run(ctx, sandbox.Spec{
//		Args:  []string{"python3", "-c", "print(6*7)"},
//		Write: []string{workspace},
//	})
//
// The Spec defines what the program may use: the folders that it reads and writes, its environment,
// its input, the files that are open when it starts, and its limits for memory, time, disk and
// processes. The Level defines how strictly that is enforced:
//
//	Strict    a separate system view: own user, mount, process, network, IPC and host
//	          namespaces, which contain only the system's programs, a small /proc, three
//	          devices, a limited /tmp and the paths of the Spec; in addition a system call
//	          filter and Landlock
//	Standard  the machine's file system behind Landlock and a stricter system call filter,
//	          for machines without user namespaces. It stops hostile programs, but bounds
//	          the memory and the number of all processes together only with a control group
//	None      no isolation: limits, an environment by allow-list, and the whole process
//	          group is ended
//
// No level falls back to a weaker one. If the machine cannot enforce the requested level, Run
// returns an error that is ErrUnenforced and says what is missing, and no program has run. Probe
// reports beforehand what can be enforced. Root is not required. If root starts it, a program of
// Strict or Standard runs as user 65534, and root is not mapped into its user namespace.
//
// Implementation: Run starts its own executable a second time. That process, the child, never
// reaches main. During package initialization it recognizes its role by its name, receives its
// order from an inherited socket, sets up the protections one after another, and finally executes
// the untrusted program. A step that fails is the last: the child reports the step and exits.
// Everything with which the protections could be removed is closed by then.
//
// Linux on amd64 and arm64 supports all levels. On other systems every level is ErrUnenforced.
// docs/security.md says what each level stops and what it does not.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/text"
)

// Level defines how strictly the limits of a Spec are enforced. The zero value is Strict.
type Level int

// The levels, strictest first.
const (
	Strict Level = iota
	Standard
	None
)

// String returns strict, standard or none.
func (l Level) String() string {
	if l < Strict || l > None {
		return fmt.Sprintf("Level(%d)", int(l))
	}
	return [...]string{"strict", "standard", "none"}[l]
}

// MarshalText returns the result of String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText parses the result of MarshalText.
func (l *Level) UnmarshalText(b []byte) error {
	for k := Strict; k <= None; k++ {
		if k.String() == string(b) {
			*l = k
			return nil
		}
	}
	return fmt.Errorf("unknown sandbox level %q; known: strict, standard, none", b)
}

// ErrUnenforced is the error for a program that was not run because this machine cannot enforce the
// requested level. Its text says what is missing.
var ErrUnenforced = errors.New("the sandbox cannot be enforced here")

// Spec is a program and the resources that it may use. Only Args is required.
type Spec struct {
	Level Level // zero means Strict

	// Args is the program, looked up in the PATH of Env if it contains no slash, and its arguments.
	Args []string
	Dir  string   // working directory; empty means the first of Write, or else its temporary folder
	Env  []string // NAME=value; PATH, HOME, TMPDIR and LANG have defaults, and nothing else is set

	// Read and Write list files and folders of this machine as absolute paths without symbolic
	// links. The program sees them at the same paths. The programs and libraries of the system are
	// readable without being listed.
	Read, Write []string

	// Protect lists paths below Write that the program can read and not change, delete, rename or
	// create, in the form of Write. During the run, an empty file takes the place of a missing
	// path. At Standard, the program cannot create, delete or rename anything in the folders that
	// contain a path of Protect, only in their other folders. None does not enforce it. A symbolic
	// link on the way, or a file with a second name, is ErrUnenforced.
	Protect []string

	// Hide lists paths below Read and Write, or anywhere else, that the program can neither read
	// nor change, create, rename or delete, in the form of Write. Hide wins over Read and Write; a
	// path of theirs that is hidden itself is ErrUnenforced. A missing path below Read or Write
	// gets an empty file, which stays. Links and the level None are as for Protect. At Standard,
	// folders that contain a path of Hide can be listed, and nothing can be created in them.
	Hide []string

	// Proxy serves the program's only access to a network. It gets a socket that listens at the
	// address in HTTP_PROXY and HTTPS_PROXY; package proxy provides a Proxy that permits named
	// hosts. Proxy takes ownership of the socket, is called before the program starts, and returns
	// immediately. end is called when the program has ended; it closes everything and returns the
	// refused hosts for Result.Refused. Nil means no network. Only Strict supports a Proxy.
	Proxy func(listener *os.File) (end func() (refused []string))

	Stdin []byte     // nil means empty input
	Files []*os.File // open in the program as descriptors 3, 4 and so on; the caller closes them

	Limits Limits // zero values mean the defaults
}

// Limits are the limits of a program. A zero field takes its default.
type Limits struct {
	Time   time.Duration // wall clock time until all processes are ended; 0 means 30 s
	CPU    time.Duration // CPU time of one process; 0 means the same as Time
	Memory int64         // bytes of address space of one process; 0 means 2 GiB
	// MemoryInAll limits the memory of all processes together in bytes. 0 means the same as
	// Memory. With a control group the kernel enforces it, and counts its own memory for the
	// program too; the group has at least 32 MiB. Without one, Strict measures it at intervals,
	// and Standard does not enforce it. None never enforces it.
	MemoryInAll int64
	// Processes limits the concurrent processes, including threads. 0 means 64. Standard enforces
	// it only with a control group, of at least 16, and None never.
	Processes int
	FileSize  int64 // bytes of each file that it writes; 0 means 256 MiB
	// Disk limits the bytes that it writes to the paths in Write, all files together. It is
	// measured at intervals. 0 means 1 GiB.
	Disk int64
	// Files limits the number of files and folders that it creates in the paths in Write. It is
	// measured at intervals where the file system has a fixed number. 0 means 262,144.
	Files int
	// Temp limits the bytes in its temporary folder. 0 means 64 MiB. Standard and None do not
	// enforce it.
	Temp      int64
	OpenFiles int // descriptors of one process; 0 means 256
	// Output limits the stored bytes of standard output and of standard error each, as head and
	// tail. 0 means 64 KiB.
	Output int
}

// End is the reason why a program ended.
type End string

// The values of End.
const (
	Exited     End = "exited"      // the program exited: Result.Exit
	Signalled  End = "signalled"   // by a signal: Result.Signal
	TimedOut   End = "timed out"   // Limits.Time was reached
	UsedCPU    End = "used cpu"    // Limits.CPU was reached
	UsedMemory End = "used memory" // Limits.MemoryInAll was reached
	UsedDisk   End = "used disk"   // Limits.Disk was reached
	UsedFiles  End = "used files"  // Limits.Files was reached
	Cancelled  End = "cancelled"   // the context ended, or Kill was called
)

// Used returns the limit that ended the program: "time", "CPU time", "memory", "disk space" or
// "number of files". It returns "" for other reasons.
func (e End) Used() string {
	return map[End]string{TimedOut: "time", UsedCPU: "CPU time", UsedMemory: "memory", UsedDisk: "disk space",
		UsedFiles: "number of files"}[e]
}

// Result describes how a program ended and what it wrote.
type Result struct {
	End    End    // how the program ended
	Exit   int    // exit status; -1 if it did not exit by itself
	Signal string // name of the signal that ended it, such as "killed"; empty if it exited

	Stdout, Stderr Output // what it wrote

	Refused []string // hosts that Spec.Proxy refused, each once

	Time   time.Duration // wall clock time, including the setup
	Setup  time.Duration // part of Time until the program started
	CPU    time.Duration // CPU time of its first process and the children for which that waited
	Memory int64         // maximum resident bytes of its first process
}

// Run runs a program until it ends, and ends all processes that it started. The error says why the
// program was not run (ErrUnenforced, or a fault in the Spec), or is the cause of ctx. A program
// that ran and failed is a Result. Run is safe for concurrent use.
func Run(ctx context.Context, spec Spec) (*Result, error) {
	p, err := Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return p.Wait()
}

// Process is a started program. Its methods are safe for concurrent use.
type Process struct {
	kill func(End)
	done chan struct{}
	res  Result
	err  error
}

// Wait waits until the program and all processes that it started have ended. It may be called
// repeatedly.
func (p *Process) Wait() (*Result, error) {
	<-p.done
	return &p.res, p.err
}

// Kill ends the program and all processes that it started, without waiting.
func (p *Process) Kill() { p.kill(Cancelled) }

// complete returns the Spec with its defaults. The error reports a fault in the Spec.
func (s Spec) complete() (Spec, error) {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return s, errors.New("sandbox: Args is empty")
	}
	if s.Level < Strict || s.Level > None {
		return s, fmt.Errorf("sandbox: unknown level %d", int(s.Level))
	}
	if len(s.Read)+len(s.Write) > 64 || len(s.Files) > 64 {
		return s, errors.New("sandbox: more than 64 paths, or more than 64 files")
	}

	for _, p := range slices.Concat(s.Read, s.Write, s.Protect, s.Hide) {
		if err := checkPath(p); err != nil {
			return s, err
		}
	}
	for i, f := range s.Files {
		if f == nil {
			return s, fmt.Errorf("sandbox: file %d is nil", i)
		}
	}
	if err := s.checkTexts(); err != nil {
		return s, err
	}

	// Without a network of its own, a program would reach other hosts directly.
	if s.Proxy != nil && s.Level != Strict {
		return s, fmt.Errorf("sandbox: %w: a network of named hosts needs a network of the program's own, "+
			"which only strict gives it", ErrUnenforced)
	}

	s.Limits = s.Limits.complete()
	return s, s.Limits.check()
}

// checkTexts refuses arguments and an environment that the kernel cannot pass to a program.
func (s Spec) checkTexts() error {
	for _, text := range slices.Concat([]string{s.Dir}, s.Args, s.Env) {
		if strings.ContainsRune(text, 0) {
			return errors.New("sandbox: a zero byte in the arguments, the environment or the folder")
		}
	}
	for _, e := range s.Env {
		if i := strings.IndexByte(e, '='); i <= 0 {
			return errors.New("sandbox: the environment is a list of NAME=value")
		}
	}
	return nil
}

// reserved lists the paths of the program's root over which nothing can be mounted.
var reserved = []string{"/", "/proc", "/dev", "/sys", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64"}

// checkPath refuses paths that cannot be mounted into the program's root.
func checkPath(p string) error {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) {
		return fmt.Errorf("sandbox: %q is not a clean absolute path", p)
	}
	system := slices.Contains(reserved, p)
	for _, kernel := range []string{"/proc/", "/sys/", "/dev/"} {
		system = system || strings.HasPrefix(p, kernel)
	}
	if system {
		return fmt.Errorf("sandbox: %s cannot be used: it belongs to the system", p)
	}
	if p == "/tmp" {
		return errors.New("sandbox: the program has a /tmp of its own; name a folder in it")
	}
	return nil
}

// complete returns l with the defaults in place of zeros.
func (l Limits) complete() Limits {
	l.Time = cmp.Or(l.Time, 30*time.Second)
	l.CPU = cmp.Or(l.CPU, l.Time)
	l.Memory = cmp.Or(l.Memory, 2<<30)
	l.MemoryInAll = cmp.Or(l.MemoryInAll, l.Memory)
	l.Processes = cmp.Or(l.Processes, 64)
	l.FileSize = cmp.Or(l.FileSize, 256<<20)
	l.Disk = cmp.Or(l.Disk, 1<<30)
	l.Files = cmp.Or(l.Files, 1<<18)
	l.Temp = cmp.Or(l.Temp, 64<<20)
	l.OpenFiles = cmp.Or(l.OpenFiles, 256)
	l.Output = cmp.Or(l.Output, 64<<10)
	return l
}

// check refuses limits less than 0.
func (l Limits) check() error {
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"Time", int64(l.Time)},
		{"CPU", int64(l.CPU)},
		{"Memory", int64(l.Memory)},
		{"MemoryInAll", int64(l.MemoryInAll)},
		{"Processes", int64(l.Processes)},
		{"FileSize", int64(l.FileSize)},
		{"Disk", int64(l.Disk)},
		{"Files", int64(l.Files)},
		{"Temp", int64(l.Temp)},
		{"OpenFiles", int64(l.OpenFiles)},
		{"Output", int64(l.Output)},
	} {
		if limit.value < 0 {
			return fmt.Errorf("sandbox: the limit %s is less than 0; 0 means the default, "+
				"and a limit cannot be turned off", limit.name)
		}
	}
	return nil
}

// environment returns the program's environment: the Spec's list over the defaults. temp is its
// temporary folder.
func (s *Spec) environment(temp string) []string {
	env := s.Env
	defaults := []string{"PATH=" + defaultPath, "HOME=" + temp, "TMPDIR=" + temp, "LANG=C.UTF-8"}
	if s.Proxy != nil {
		defaults = append(defaults, proxyEnv()...)
	}
	for _, d := range defaults {
		name, _, _ := strings.Cut(d, "=")
		if !s.sets(name) {
			env = append(env[:len(env):len(env)], d)
		}
	}
	return env
}

// proxyPort is the port of the proxy in the program's own network, where it is always free.
const proxyPort = 3128

// proxyEnv returns the variables that name the proxy, in both usual spellings.
func proxyEnv() []string {
	var env []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, name+"=http://127.0.0.1:"+strconv.Itoa(proxyPort))
	}
	return env
}

// Output is the output of a program on one descriptor: all of it, or head and tail.
type Output struct {
	Head, Tail []byte // Tail is nil if nothing was left out
	Bytes      int64  // number of bytes written
}

// Truncated reports whether bytes were left out between Head and Tail.
func (o *Output) Truncated() bool { return o.Bytes > int64(len(o.Head)+len(o.Tail)) }

// String returns the output as text. If bytes were left out, a line in brackets gives their number.
// Invalid UTF-8 becomes U+FFFD.
func (o *Output) String() string {
	head := string(o.Head)
	tail := string(o.Tail)
	if o.Truncated() {
		head = fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", head, o.Bytes-int64(len(o.Head)+len(o.Tail)), tail)
	} else {
		head += tail
	}
	return strings.ToValidUTF8(head, "\uFFFD")
}

// output returns the stored output.
func output(kept *text.Ends) Output {
	if o := (Output{kept.Head, kept.Tail(), kept.Bytes}); o.Truncated() {
		return o
	}
	return Output{Head: append(kept.Head, kept.Tail()...), Bytes: kept.Bytes}
}
