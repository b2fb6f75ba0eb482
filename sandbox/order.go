//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// order is the instruction for a child. The zero value of a field permits nothing.
type order struct {
	Level  Level
	Until  until
	Args   []string
	Env    []string
	Dir    string
	Parent []string // the parent's namespaces: a child of Strict must be in none of them
	Temp   string   // the program's temporary folder
	Limits Limits
	Mounts []mount
	Places []place // protected and hidden paths, outer ones first
	Proxy  bool    // create a socket for the program's proxy
}

// until says how far a child goes.
type until int

const (
	theEnd     until = iota // it becomes the program
	theProgram              // it checks that the program can be executed, and runs nothing
	theSandbox              // it sets up the sandbox without a program, and runs nothing
)

// mount is a path that is visible to the program.
type mount struct {
	Path   string
	Write  bool
	Folder bool
	Sent   bool // its tree was sent as a descriptor, in the order of the mounts
}

// reply is a message of the child: it becomes the program now, or a step failed.
type reply struct {
	Step, Err string
	Code      syscall.Errno // of the system call that failed; 0 means none, or unknown
	Ready     bool
}

// failure returns the reply about a step that failed.
func failure(step string, err error) reply {
	code, _ := errors.AsType[syscall.Errno](err)
	return reply{Step: step, Err: err.Error(), Code: code}
}

// childError is the error of a step of the child.
type childError struct {
	text string
	code syscall.Errno
}

// Error returns the text of the child's error.
func (e *childError) Error() string { return e.text }

// Unwrap returns the error of the system call, for errors.Is. nil means that it is unknown.
func (e *childError) Unwrap() error {
	if e.code == 0 {
		return nil
	}
	return e.code
}

// fault returns the error that the reply reports.
func (r *reply) fault() error { return &childError{r.Err, r.Code} }

// mostOrder is the maximum size of an order, including arguments and environment.
const mostOrder = 16 << 20

// socketPair returns the two ends of a socket between a parent and its child.
func socketPair() (parent, child *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "sandbox parent"), os.NewFile(uintptr(fds[1]), "sandbox child"), nil
}

// send sends an order with the descriptors of the trees.
func (o *order) send(conn *os.File, trees []int) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if len(body) > mostOrder {
		return errors.New("the arguments and the environment are too long")
	}

	// The size comes first, with the descriptors, so that the child can read the rest whole.
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	var rights []byte
	if len(trees) > 0 {
		rights = unix.UnixRights(trees...)
	}
	if err := unix.Sendmsg(int(conn.Fd()), head, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return os.NewSyscallError("sendmsg", err)
	}

	for len(body) > 0 {
		n, err := unix.SendmsgN(int(conn.Fd()), body, nil, nil, unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("sendmsg", err)
		}
		body = body[n:]
	}
	return nil
}

// receive receives an order with its descriptors.
func (o *order) receive(conn *os.File) (trees []int, err error) {
	head := make([]byte, 4)
	rights := make([]byte, unix.CmsgSpace(4*128))
	n, rn, flags, _, err := unix.Recvmsg(int(conn.Fd()), head, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	// Truncated descriptors would be paths that are missing in the sandbox without notice.
	if n != len(head) || flags&unix.MSG_CTRUNC != 0 {
		return nil, io.ErrUnexpectedEOF
	}

	messages, err := unix.ParseSocketControlMessage(rights[:rn])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		trees = append(trees, fds...)
	}

	size := binary.BigEndian.Uint32(head)
	// The parent's text is bounded here too: memory is allocated for it.
	if size > mostOrder {
		return nil, fmt.Errorf("an order of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	return trees, json.Unmarshal(body, o)
}
