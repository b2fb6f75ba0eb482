// Package sandbox runs a program that is not trusted, and gives it no more than was named.
//
//	res, err := sandbox.Run(ctx, sandbox.Spec{
//		Args:  []string{"python3", "-c", "print(6*7)"},
//		Write: []string{workspace},
//	})
//
// What a program may do is in its Spec: the folders it reads and writes, its environment, its input, the files that are open when it starts, and
// how much memory, time, disk and how many processes it has. How hard that is enforced is the Level:
//
//	Strict    a world of its own: user, mount, process, network, IPC and host namespaces, in which there is nothing but the system's
//	          programs, a small /proc, three devices, a bounded /tmp and what the Spec names; then a system call filter and Landlock
//	Standard  the machine's world behind Landlock and a stricter system call filter, for machines without user namespaces
//	None      no wall: limits, an environment by allow-list, and the process group ended whole
//
// No level falls back to a lower one. When the machine cannot enforce what is asked, Run says what is missing, as an error that is
// ErrUnenforced, and nothing has run. Probe tells beforehand what can be enforced. No root is needed; started by root, a program of Strict or
// Standard runs as nobody, and root is not mapped into its world.
//
// How it is done: Run starts the program it stands in a second time. That process, the child, never comes as far as main: while
// packages are initialised it finds by its name what it is, takes its orders from an inherited socket, builds the walls
// around itself one after another, and last of all becomes the program that is not trusted. A step that fails is the last: the child tells the step and
// ends. All that the walls could be used for is closed by then.
//
// Linux on amd64 and arm64 has all levels; elsewhere every level is ErrUnenforced. docs/security.md says what each level stops and what not.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Level says how hard the bounds of a Spec are enforced. The zero value is Strict.
type Level int

// The levels, the strictest first.
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

// MarshalText writes what String returns.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (l *Level) UnmarshalText(b []byte) error {
	for k := Strict; k <= None; k++ {
		if k.String() == string(b) {
			*l = k
			return nil
		}
	}
	return fmt.Errorf("unknown sandbox level %q; known: strict, standard, none", b)
}

// ErrUnenforced is the error of a program that was not run, because this machine cannot enforce the level asked for. Its text says what is missing.
var ErrUnenforced = errors.New("the sandbox cannot be enforced here")

// Spec is a program and all it is given. Only Args is required.
type Spec struct {
	Level Level

	Args []string // the program, looked up in the PATH of Env when it has no slash, and its arguments
	Dir  string   // where it starts; "": the first of Write, else its own temporary folder
	Env  []string // NAME=value; PATH, HOME, TMPDIR and LANG have defaults, nothing else is set

	// Read and Write name files and folders as they lie on this machine, absolute and without symbolic links on the way. They stand
	// at the same place for the program. The programs and libraries of the system can be read without being named.
	Read, Write []string

	// Proxy serves the program's only way to a network, at a socket that listens where HTTP_PROXY and HTTPS_PROXY lead; package proxy makes one that lets named hosts
	// through. It takes the socket over, is called before the program begins, and returns at once; end is called when the program has ended, closes all and returns
	// what was refused, for Result.Refused. nil: no network. Only Strict has it.
	Proxy func(listener *os.File) (end func() (refused []string))

	Stdin []byte     // nil: nothing to read
	Files []*os.File // open in the program as descriptors 3, 4 and so on; they stay the caller's to close

	Limits Limits
}

// Limits bound what a program may use. Zero fields take the default that stands beside them.
type Limits struct {
	Time        time.Duration // wall clock, until everything is ended; 30 s
	CPU         time.Duration // of one process; as long as Time
	Memory      int64         // bytes of address space of one process; 2 GiB
	MemoryInAll int64         // bytes of memory of all its processes together, as often as they are looked at; as Memory. Standard and None cannot enforce it
	Processes   int           // at once, threads included; 64. Standard and None cannot enforce it
	FileSize    int64         // bytes of any file it writes; 256 MiB
	Disk        int64         // bytes that it fills of what Write names, all files together, as often as they are looked at; 1 GiB
	Temp        int64         // bytes in its temporary folder; 64 MiB. Standard and None cannot enforce it
	OpenFiles   int           // descriptors of one process; 256
	Output      int           // bytes kept of its standard output, and of its standard error: head and tail; 64 KiB
}

// End says how a program ended.
type End string

// The ends.
const (
	Exited     End = "exited"      // by itself: Result.Exit
	Signalled  End = "signalled"   // by a signal: Result.Signal
	TimedOut   End = "timed out"   // Limits.Time was over
	UsedCPU    End = "used cpu"    // Limits.CPU was used up
	UsedMemory End = "used memory" // Limits.MemoryInAll was used up
	UsedDisk   End = "used disk"   // Limits.Disk was used up
	Cancelled  End = "cancelled"   // the context ended, or Kill was called
)

// Used names what the program used up, where that ended it: "time", "CPU time", "memory" or "disk space". Else it returns "".
func (e End) Used() string {
	return map[End]string{TimedOut: "time", UsedCPU: "CPU time", UsedMemory: "memory", UsedDisk: "disk space"}[e]
}

// Result is how a program ended and what it wrote.
type Result struct {
	End    End
	Exit   int    // the exit status; -1 when it did not exit by itself
	Signal string // what ended it, such as "killed"; "" when it exited

	Stdout, Stderr Output

	Refused []string // what Spec.Proxy refused, each host once

	Time   time.Duration // wall clock, the walls included
	Setup  time.Duration // of Time, until the program began
	CPU    time.Duration // of its first process and the children that it waited for
	Memory int64         // bytes resident at most, of its first process
}

// Run runs a program to its end, and ends all it started with it. The error says why it was not run (ErrUnenforced, or what is wrong with the
// Spec), or is the cause of ctx; a program that ran and failed is a Result. Run may be used concurrently.
func Run(ctx context.Context, spec Spec) (*Result, error) {
	p, err := Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return p.Wait()
}

// Process is a program that was started. Its methods may be used concurrently.
type Process struct {
	kill func(End)
	done chan struct{}
	res  Result
	err  error
}

// Wait waits until the program and all it started have ended. It can be called again.
func (p *Process) Wait() (*Result, error) {
	<-p.done
	return &p.res, p.err
}

// Kill ends the program and all it started, and does not wait for it.
func (p *Process) Kill() { p.kill(Cancelled) }

// complete returns the Spec with its defaults filled in; the error says what is wrong with it.
func (s Spec) complete() (Spec, error) {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return s, errors.New("sandbox: no program is named")
	}
	if s.Level < Strict || s.Level > None {
		return s, fmt.Errorf("sandbox: there is no level %d", int(s.Level))
	}
	if len(s.Read)+len(s.Write) > 64 || len(s.Files) > 64 {
		return s, errors.New("sandbox: more than 64 paths, or more than 64 files")
	}
	for _, list := range [][]string{s.Read, s.Write} {
		for _, p := range list {
			if err := checkPath(p); err != nil {
				return s, err
			}
		}
	}
	for i, f := range s.Files {
		if f == nil {
			return s, fmt.Errorf("sandbox: file %d is nil", i)
		}
	}
	for _, text := range append(append([]string{s.Dir}, s.Args...), s.Env...) {
		if strings.ContainsRune(text, 0) {
			return s, errors.New("sandbox: a zero byte in the arguments, the environment or the folder")
		}
	}
	for _, e := range s.Env {
		if i := strings.IndexByte(e, '='); i <= 0 {
			return s, errors.New("sandbox: the environment is a list of NAME=value")
		}
	}
	if s.Proxy != nil && s.Level != Strict {
		return s, fmt.Errorf("sandbox: %w: a network of named hosts needs a network of the program's own, which only strict gives it", ErrUnenforced)
	}
	s.Limits = s.Limits.complete()
	return s, s.Limits.check()
}

// reserved is what the program's own world is made of: nothing can be put over it.
var reserved = []string{"/", "/proc", "/dev", "/sys", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64"}

func checkPath(p string) error {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) {
		return fmt.Errorf("sandbox: %q is no clean absolute path", p)
	}
	for _, r := range reserved {
		if p == r || strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/") || strings.HasPrefix(p, "/dev/") {
			return fmt.Errorf("sandbox: %s cannot be given: it belongs to the system", p)
		}
	}
	if p == "/tmp" {
		return errors.New("sandbox: the program has a /tmp of its own; name a folder in it")
	}
	return nil
}

func (l Limits) complete() Limits {
	l.Time = first(l.Time, 30*time.Second)
	l.CPU = first(l.CPU, l.Time)
	l.Memory = first(l.Memory, 2<<30)
	l.MemoryInAll = first(l.MemoryInAll, l.Memory)
	l.Processes = first(l.Processes, 64)
	l.FileSize = first(l.FileSize, 256<<20)
	l.Disk = first(l.Disk, 1<<30)
	l.Temp = first(l.Temp, 64<<20)
	l.OpenFiles = first(l.OpenFiles, 256)
	l.Output = first(l.Output, 64<<10)
	return l
}

func (l Limits) check() error {
	if l.Time < 0 || l.CPU < 0 || l.Memory < 0 || l.MemoryInAll < 0 || l.Processes < 0 || l.FileSize < 0 || l.Disk < 0 || l.Temp < 0 || l.OpenFiles < 0 || l.Output < 0 {
		return errors.New("sandbox: a limit is less than 0; 0 is the default, and there is no limit that is none")
	}
	return nil
}

func first[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// environment is what the program sees: the Spec's list over the defaults. temp is its temporary folder.
func (s *Spec) environment(temp string) []string {
	env := s.Env
	defaults := []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + temp, "TMPDIR=" + temp, "LANG=C.UTF-8"}
	if s.Proxy != nil {
		defaults = append(defaults, proxyEnv()...)
	}
	for _, d := range defaults {
		name, _, _ := strings.Cut(d, "=")
		set := false
		for _, e := range s.Env {
			set = set || strings.HasPrefix(e, name+"=")
		}
		if !set {
			env = append(env[:len(env):len(env)], d)
		}
	}
	return env
}

// proxyPort is where the program finds its proxy: on the loopback of a network of its own, where the place is always free.
const proxyPort = 3128

// proxyEnv names the proxy to programs, in both spellings that they know.
func proxyEnv() []string {
	var env []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, name+"=http://127.0.0.1:"+strconv.Itoa(proxyPort))
	}
	return env
}
