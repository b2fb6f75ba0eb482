//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nobody is the user as whom a program runs if root started this process.
const nobody = 65534

// Start starts a program. Wait waits for its end. The errors and the use of ctx of both
// together are as in Run. A started program must be waited for.
func Start(ctx context.Context, spec Spec) (*Process, error) { return start(ctx, spec, theEnd) }

func start(ctx context.Context, spec Spec, until until) (*Process, error) {
	begun := time.Now()
	s, err := spec.complete()
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	l := &launch{spec: s, begun: begun, root: os.Geteuid() == 0}
	defer l.release()
	if err := l.prepare(until); err != nil {
		l.clean()
		return nil, err
	}
	p, err := l.start(ctx)
	if err != nil {
		l.clean()
		return nil, err
	}
	return p, nil
}

// launch is a program that is being started.
type launch struct {
	spec  Spec
	root  bool
	begun time.Time
	order order
	trees []int      // sent with the order
	temp  string     // a folder that is deleted with the program; empty means none
	held  []*os.File // placeholders, locked

	conn, childConn *os.File
	group           *group      // nil means none
	stdin           *os.File    // the parent's end; nil means none
	outs            [2]*os.File // the parent's ends of stdout and stderr
	childEnds       []*os.File
	proc            *os.Process
}

// release closes the resources that only the start needs.
func (l *launch) release() {
	for _, f := range append(l.childEnds, l.conn, l.childConn) {
		if f != nil {
			f.Close()
		}
	}
	for _, fd := range l.trees {
		unix.Close(fd)
	}
}

// clean releases the resources of a program that did not start.
func (l *launch) clean() {
	for _, f := range []*os.File{l.stdin, l.outs[0], l.outs[1]} {
		if f != nil {
			f.Close()
		}
	}
	if l.spec.Level == Standard && l.proc != nil {
		guard.remove(l.proc.Pid)
	}
	l.group.remove()
	if l.temp != "" {
		os.RemoveAll(l.temp)
	}
	l.letGo()
}

// prepare creates the order.
func (l *launch) prepare(until until) error {
	s := &l.spec

	l.order = order{
		Level:  s.Level,
		Until:  until,
		Args:   s.Args,
		Dir:    s.Dir,
		Limits: s.Limits,
		Temp:   "/tmp",
		Proxy:  s.Proxy != nil,
	}
	if s.Level != Strict {
		if err := l.makeTemp(); err != nil {
			return fmt.Errorf("sandbox: a temporary folder: %w", err)
		}
	}

	// Without a folder, the program starts in the first that it may write.
	if l.order.Dir == "" {
		l.order.Dir = l.order.Temp
		if len(s.Write) > 0 {
			l.order.Dir = s.Write[0]
		}
	}
	l.order.Env = s.environment(l.order.Temp)
	if s.Level == None {
		return nil
	}

	if s.Level == Strict {
		own, err := namespaces()
		if err != nil {
			return fmt.Errorf("sandbox: %w: %v", ErrUnenforced, err)
		}
		l.order.Parent = own
	}

	// Without a control group, Probe reports what is not bounded.
	l.group, _ = newGroup(s.Limits)
	if err := l.paths(); err != nil {
		return err
	}
	return l.places()
}

// makeTemp creates the temporary folder of a program without a root of its own.
func (l *launch) makeTemp() error {
	temp, err := os.MkdirTemp("", "pawl-sandbox-")
	if err != nil {
		return err
	}
	l.temp = temp

	temp, err = filepath.EvalSymlinks(temp)
	if err != nil {
		return err
	}
	l.order.Temp = temp
	if l.spec.Level == Standard && l.root {
		return os.Chown(temp, nobody, nobody)
	}
	return nil
}

// paths resolves the Spec's paths. If root started this process, paths also opens them for the
// child, which runs as nobody, and maps the owner of the files to nobody.
func (l *launch) paths() error {
	for i, list := range [][]string{l.spec.Read, l.spec.Write} {
		for _, path := range list {
			fd, st, err := openPath(path)
			if err != nil {
				return fmt.Errorf("sandbox: %s: %w", path, err)
			}
			m := mount{Path: path, Write: i == 1, Folder: st.Mode&unix.S_IFMT == unix.S_IFDIR}
			err = l.permit(&m, fd, &st)
			unix.Close(fd)
			if err != nil {
				return err
			}
			l.order.Mounts = append(l.order.Mounts, m)
		}
	}
	return nil
}

// permit prepares a path for a program that root started and that runs as nobody: Strict maps the
// owner of the files to nobody, and Standard cannot. fd is the open path.
func (l *launch) permit(m *mount, fd int, st *unix.Stat_t) error {
	if !l.root {
		return nil
	}
	if l.spec.Level == Strict {
		tree, err := ownedTree(fd, int(st.Uid), int(st.Gid))
		if err != nil {
			return fmt.Errorf("sandbox: %w: %s: %v", ErrUnenforced, m.Path, err)
		}
		m.Sent = true
		l.trees = append(l.trees, tree)
		return nil
	}

	if m.Write && st.Uid != nobody {
		return fmt.Errorf("sandbox: %w: %s must be writable and belongs to user %d; started by root, the program runs as nobody, "+
			"and only strict can map the one to the other", ErrUnenforced, m.Path, st.Uid)
	}
	return nil
}

// openPath opens a path without symbolic links, for inspection and mounting only.
func openPath(path string) (fd int, st unix.Stat_t, err error) {
	fd, err = unix.Openat2(unix.AT_FDCWD, path,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, unix.ELOOP) {
		err = errors.New("the path contains a symbolic link; give the path of its target")
	}
	if err != nil {
		return -1, st, err
	}

	err = unix.Fstat(fd, &st)
	kind := st.Mode & unix.S_IFMT
	// A device or a socket could reach a program outside.
	if err == nil && kind != unix.S_IFDIR && kind != unix.S_IFREG {
		err = errors.New("neither a folder nor a plain file")
	}
	if err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// attributes returns the attributes with which the child is started: the namespaces and the user,
// which must be set before its first instruction.
func (l *launch) attributes() *syscall.SysProcAttr {
	// The program must not outlive this process, nor reach its terminal.
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if l.spec.Level == None {
		return a
	}
	if l.group != nil && l.group.folder != nil {
		a.UseCgroupFD = true
		a.CgroupFD = int(l.group.folder.Fd())
	}

	uid := os.Getuid()
	gid := os.Getgid()
	if l.root {
		uid = nobody
		gid = nobody
		a.Credential = &syscall.Credential{Uid: nobody, Gid: nobody} // and no other group
	}

	if l.spec.Level == Strict {
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.GidMappingsEnableSetgroups = l.root // to drop root's groups; a user has none to drop
		// The capabilities hold in the new namespaces only, and the child gives them up before the
		// program.
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
		if l.order.Proxy {
			a.AmbientCaps = append(a.AmbientCaps, unix.CAP_NET_ADMIN)
		}
	}
	return a
}

// start starts the child, sends it the order, and returns when it has become the program.
func (l *launch) start(ctx context.Context) (*Process, error) {
	files, err := l.files()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	attr := &os.ProcAttr{Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=off"}, Files: files, Sys: l.attributes()}
	args := []string{childName, fmt.Sprint(len(files) - 1)}
	l.proc, err = startSelf(args, attr)
	if err != nil {
		if l.spec.Level == Strict {
			return nil, fmt.Errorf("sandbox: %w: namespaces: %v", ErrUnenforced, err)
		}
		return nil, fmt.Errorf("sandbox: %w: %v", ErrUnenforced, err)
	}

	// These ends belong to the child. Left open here, they would hide that it has closed them.
	l.childConn.Close()
	for _, f := range l.childEnds {
		f.Close()
	}

	w := l.watch(ctx)
	// Standard has no namespace of processes, with which the kernel would end all of them.
	if l.spec.Level == Standard {
		err = guard.add(l.proc.Pid)
	}
	if err == nil {
		err = l.handshake(w)
	}
	close(w.heard)
	if err != nil {
		w.stop(Cancelled)
		<-w.process.done
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if w.process.res.End.Used() != "" {
			// During the set-up. Wait reports it as at any other time.
			return w.process, nil
		}
		return nil, err
	}

	w.process.res.Setup = time.Since(l.begun)
	close(w.ready)
	return w.process, nil
}

// startSelf starts this program. The child must end when this process ends, but the kernel binds it
// to the thread that started it. A new goroutine runs on a thread that no caller has locked.
func startSelf(args []string, attr *os.ProcAttr) (proc *os.Process, err error) {
	started := make(chan struct{})
	go func() {
		proc, err = os.StartProcess("/proc/self/exe", args, attr)
		close(started)
	}()
	<-started
	return proc, err
}

// files returns the child's descriptors: the standard three, the Spec's, and its end of the socket.
func (l *launch) files() ([]*os.File, error) {
	var err error
	l.conn, l.childConn, err = socketPair()
	if err != nil {
		return nil, err
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.stdin = stdin
	l.childEnds = append(l.childEnds, in)

	files := []*os.File{in}
	for i := range l.outs {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		l.outs[i] = r
		l.childEnds = append(l.childEnds, w)
		files = append(files, w)
	}
	return append(append(files, l.spec.Files...), l.childConn), nil
}

// handshake sends the order and waits until the child has become the program: the child reports it,
// and its end of the socket closes.
func (l *launch) handshake(w *watcher) error {
	if err := l.group.place(l.proc.Pid); err != nil {
		return fmt.Errorf("sandbox: the control group: %w", err)
	}
	if err := l.order.send(l.conn, l.trees); err != nil {
		return fmt.Errorf("sandbox: sending the order to the child: %w", err)
	}

	// A child that ended before it had read its order resets the connection.
	said, err := l.hear(w)
	if err != nil && !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("sandbox: reading from the child: %w", err)
	}
	last, ready := decodeReplies(json.NewDecoder(bytes.NewReader(said)))
	switch {
	case last.Step == "program":
		return fmt.Errorf("sandbox: %s: %w", l.spec.Args[0], last.fault())
	case last.Step == "folder":
		return fmt.Errorf("sandbox: the folder to start in: %w", last.fault())
	case last.Step != "":
		return fmt.Errorf("sandbox: %w: %s: %s", ErrUnenforced, last.Step, last.Err)
	case !ready:
		return fmt.Errorf("sandbox: %w: the child ended before the sandbox was complete", ErrUnenforced)
	}
	return nil
}
