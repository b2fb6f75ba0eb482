//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// gives describes what each level enforces.
var gives = map[Level]string{
	Strict: "own user, mount, process, network, IPC and host namespaces; system call filter; Landlock; " +
		"limits, memory per process and in all; all ended together",
	Standard: "Landlock; system call filter without sockets; limits, memory per process; its group ended together",
	None:     "no wall: limits; its group ended together",
}

func probe() *Report {
	r := &Report{System: kernel()}
	version, err := landlockVersion()
	lock := fmt.Sprintf("version %d", version)
	if err != nil {
		lock = err.Error()
	}
	r.Facts = append(r.Facts, Fact{"Landlock", lock})

	// What may forbid user namespaces to ordinary users.
	for _, setting := range []string{
		"/proc/sys/user/max_user_namespaces",
		"/proc/sys/kernel/unprivileged_userns_clone",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
	} {
		if b, err := os.ReadFile(setting); err == nil {
			name := setting[strings.LastIndex(setting, "/")+1:]
			r.Facts = append(r.Facts, Fact{name, strings.TrimSpace(string(b))})
		}
	}
	r.Facts = append(r.Facts, Fact{"control group", bounded()})

	for l := Strict; l <= None; l++ {
		p, took := probeLevel(l)
		if p.OK {
			r.Facts = append(r.Facts, Fact{"set-up of " + l.String(), took.Round(100 * time.Microsecond).String()})
		}
		r.Levels = append(r.Levels, p)
	}
	return r
}

// probeLevel tests a level, and returns how long its set-up took.
func probeLevel(l Level) (Probed, time.Duration) {
	p := Probed{Level: l, Gives: gives[l]}
	took, err := try(l)
	if err != nil {
		p.Reason = reason(err)
	}
	p.OK = err == nil
	return p, took
}

// bounded describes what the kernel bounds by a control group, or what is not bounded without one.
func bounded() string {
	g, err := newGroup(Limits{}.complete())
	if err != nil {
		return "none: " + err.Error() + ". Not bounded without it: with strict, the kernel's memory for pipes, page tables and " +
			"mappings; with standard, total memory and the number of processes"
	}
	defer g.remove()
	return "bounds the memory of all processes, the kernel's memory for them, and their number, with strict and standard"
}

// try sets up the sandbox of a level without running a program in it.
func try(l Level) (time.Duration, error) {
	spec := Spec{Level: l, Args: []string{"probe"}, Limits: Limits{Time: 10 * time.Second}}
	return setUp(context.Background(), spec, theSandbox)
}

// Startable returns the error with which Start would not start the program of spec. It sets up the
// sandbox as Start does, looks there for the program and its interpreter, and runs nothing. It
// calls no Proxy. A nil error is no promise: what else the system refuses is known only by trying.
func Startable(ctx context.Context, spec Spec) error {
	spec.Proxy = nil
	spec.Stdin = nil
	_, err := setUp(ctx, spec, theProgram)
	return err
}

// setUp sets up a sandbox without running a program in it, and returns how long that took.
func setUp(ctx context.Context, spec Spec, until until) (time.Duration, error) {
	p, err := start(ctx, spec, until)
	if err != nil {
		return 0, err
	}
	res, err := p.Wait()
	if err == nil && (res.End != Exited || res.Exit != 0) {
		err = fmt.Errorf("sandbox: %w: the set-up %s", ErrUnenforced, res.End)
	}
	return res.Setup, err
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "linux"
	}
	who := "as a user"
	if os.Geteuid() == 0 {
		who = "as root"
	}
	return fmt.Sprintf("linux %s %s, %s", unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]), who)
}
