//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl/internal/procgroup"
)

// The names (argv[0]) under which a program starts itself again. No executable file has such a
// name, so that no program is started under them by chance.
const (
	childName  = "pawl sandbox child"
	holderName = "pawl sandbox holder"
	guardName  = "pawl sandbox guard"
)

// A process that was started as a child receives its order here, before main and before the
// packages that it does not need. This must not depend on a call by the program: a program without
// that call would run itself again where it meant to run an untrusted program.
func init() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case childName:
		if len(os.Args) == 2 && os.Getuid() == os.Geteuid() && os.Getgid() == os.Getegid() {
			become(os.Args[1])
		}
		os.Exit(125)
	case holderName:
		os.Stdin.Read(make([]byte, 1)) // until the parent has finished or exited
		os.Exit(0)
	case guardName:
		guardGroups(os.Stdin)
		os.Exit(0)
	}
}

// step is a protection and the function that sets it up. A step that fails is the last.
type step struct {
	name string
	do   func(*child) error
}

// child is a process that becomes the untrusted program. It runs on the first thread of the
// process, which the runtime reserves during initialization. The settings of this thread become the
// settings of the program, because all other threads end when the program replaces the process.
type child struct {
	order order
	conn  *os.File
	trees []int
	path  string // path of the program
}

// steps lists everything between a child and its program, in the required order.
var steps = []step{
	{"order", (*child).check},
	{"namespaces", (*child).alone},
	{"descriptors", (*child).descriptors},
	{"network", (*child).network},
	{"world", (*child).world},
	{"folder", (*child).folder},
	{"program", (*child).program},
	{"privileges", (*child).privileges},
	{"Landlock", (*child).landlock},
	{"program", (*child).executable},
}

// become replaces the process by the program of its order. It returns only if a step failed.
func become(fd string) {
	n, err := strconv.Atoi(fd)
	if err != nil || n < 3 {
		return
	}
	// The program must not inherit the connection to the parent.
	unix.CloseOnExec(n)
	c := &child{conn: os.NewFile(uintptr(n), "sandbox parent")}
	if c.conn == nil {
		return
	}

	c.trees, err = c.order.receive(c.conn)
	if err != nil {
		c.report(failure("order", err))
		return
	}

	for _, s := range steps {
		if err := s.do(c); err != nil {
			c.report(failure(s.name, err))
			return
		}
	}

	// cross returns only if a step failed: the program has taken the place of this process.
	name, err := c.cross()
	c.report(failure(name, err))
}

// report sends a reply to the parent, and reports whether it was sent.
func (c *child) report(r reply) bool {
	b, err := json.Marshal(r)
	if err != nil {
		return false
	}
	_, err = c.conn.Write(append(b, '\n'))
	return err == nil
}

// check refuses an order that no parent sends.
func (c *child) check() error {
	o := &c.order
	whole := true
	switch {
	case o.Level < Strict || o.Level > None:
		whole = false
	case len(o.Args) == 0 || o.Dir == "" || o.Temp == "":
		whole = false
	case o.Limits.check() != nil || o.Limits != o.Limits.complete():
		whole = false
	}
	if !whole {
		return errors.New("it is not whole")
	}
	return nil
}

// alone checks that the namespaces that the next steps change belong to this process only. A
// process outside its own namespaces with the order to build a new root would destroy the
// machine's. Such a process refuses every order.
func (c *child) alone() error {
	if c.order.Level != Strict {
		return nil
	}
	if os.Getpid() != 1 {
		return errors.New("the process is not the first of a process namespace")
	}
	if os.Geteuid() == 0 || os.Getegid() == 0 {
		return errors.New("the process is root")
	}

	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !mapsOneUser(string(b)) {
			return errors.New("the user namespace is not one of a single user that is not root")
		}
	}

	own, err := namespaces()
	if err != nil {
		return err
	}
	// Proven by comparison with the parent, because a process has no other way to know that a
	// namespace is its own.
	for i, ns := range own {
		if len(c.order.Parent) != len(own) || ns == "" || ns == c.order.Parent[i] {
			return fmt.Errorf("the %s namespace is the parent's", kinds[i])
		}
	}
	return nil
}

// mapsOneUser reports whether the text of a uid_map or gid_map maps a single ID, and neither from
// nor to root. Its fields are the ID in the namespace, the ID outside and the count.
func mapsOneUser(text string) bool {
	f := strings.Fields(text)
	if len(f) != 3 {
		return false
	}
	root := f[0] == "0" || f[1] == "0"
	return !root && f[2] == "1"
}

// kinds lists the namespaces that a program of Strict does not share.
var kinds = []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}

// namespaces returns the names of the namespaces of this process.
func namespaces() ([]string, error) {
	var list []string
	for _, k := range kinds {
		name, err := os.Readlink("/proc/self/ns/" + k)
		if err != nil {
			return nil, err
		}
		list = append(list, name)
	}
	return list, nil
}

// descriptors ensures that only the standard three descriptors and the Spec's files are open in the
// program, even if the parent had inherited others.
func (c *child) descriptors() error {
	return unix.CloseRange(uint(c.conn.Fd()), ^uint(0)>>1&0xffffffff, unix.CLOSE_RANGE_CLOEXEC)
}

func (c *child) folder() error {
	if err := os.Chdir(c.order.Dir); err != nil {
		if e, ok := errors.AsType[*os.PathError](err); ok {
			return fmt.Errorf("%s: %w", c.order.Dir, e.Err)
		}
		return err
	}
	return nil
}

// program finds the program's file within the sandbox.
func (c *child) program() error {
	name := c.order.Args[0]
	if c.order.Until == theSandbox {
		return nil
	}
	if strings.Contains(name, "/") {
		c.path = name
		return nil
	}
	path, err := LookPath(name, c.order.Env)
	c.path = path
	return err
}

// executable checks the file of the program with what the program may read: an interpreter that it
// needs may be outside the sandbox.
func (c *child) executable() error {
	if c.path == "" {
		return nil
	}
	return procgroup.Startable(c.path, c.order.Dir)
}

// privileges drops all privileges that were needed to set up the sandbox, and every way to regain
// them.
func (c *child) privileges() error {
	if c.order.Level == None {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}

	// A program of Standard runs as an ordinary user and has no capabilities to drop.
	if c.order.Level == Strict {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return fmt.Errorf("ambient capabilities: %w", err)
		}
		for cp := uintptr(0); ; cp++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, cp, 0, 0, 0); err == unix.EINVAL && cp > unix.CAP_SYS_ADMIN {
				break
			} else if err != nil {
				return fmt.Errorf("bounding set: %w", err)
			}
		}
		// noroot, no setuid fixup, no ambient raise; each with its lock
		const locked = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, locked, 0, 0, 0); err != nil {
			return fmt.Errorf("secure bits: %w", err)
		}
	}

	// What was dropped is asked for again: the kernel, not this code, decides what is left.
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	var left [2]unix.CapUserData
	if err := unix.Capget(&head, &left[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if left != none {
		return errors.New("capabilities are left")
	}
	if os.Geteuid() == 0 {
		return errors.New("the process is root")
	}
	return nil
}
