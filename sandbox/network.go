//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// network enables the loopback of the program's own network and sends a socket that listens there
// to the parent, which serves its connections. This is the only way out, because the network has no
// other device and no route.
func (c *child) network() error {
	if !c.order.Proxy {
		return nil
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket: %w", err)
	}
	defer unix.Close(l)
	if err := unix.Bind(l, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := unix.Listen(l, 64); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	// The message needs a byte; a blank is ignored by the reader of replies.
	if err := unix.Sendmsg(int(c.conn.Fd()), []byte(" "), unix.UnixRights(l), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("handing over the socket: %w", err)
	}
	return nil
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket: %w", err)
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, lo); err != nil {
		return fmt.Errorf("the loopback: %w", err)
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("the loopback: %w", err)
	}
	return nil
}

// listener receives the socket that the child sends. said is the text that the child sent instead
// or in addition.
func (l *launch) listener() (f *os.File, said []byte, err error) {
	said = make([]byte, 64<<10)
	rights := make([]byte, unix.CmsgSpace(4)) // of one descriptor
	var n, rn int
	for {
		n, rn, _, _, err = unix.Recvmsg(int(l.conn.Fd()), said, rights, unix.MSG_CMSG_CLOEXEC)
		// A signal, such as one of the runtime's own, interrupts the call.
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return nil, nil, os.NewSyscallError("recvmsg", err)
	}
	said = said[:n]

	messages, err := unix.ParseSocketControlMessage(rights[:rn])
	if err != nil || len(messages) == 0 {
		return nil, said, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, said, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return os.NewFile(uintptr(fds[0]), "sandbox proxy"), said, nil
}

// hear reads the child's replies until the child has become the program or has ended. If the
// program has a proxy, the proxy starts before the program.
func (l *launch) hear(w *watcher) (said []byte, err error) {
	if l.order.Proxy {
		var f *os.File
		f, said, err = l.listener()
		if err != nil {
			return nil, err
		}
		if f != nil {
			w.unserve = l.spec.Proxy(f)
		}
	}
	rest, err := io.ReadAll(io.LimitReader(l.conn, 64<<10))
	return append(said, rest...), err
}

// inet permits TCP sockets of IPv4, and Unix sockets as without a proxy. All other kinds stay
// refused: UDP, raw, IPv6, netlink.
func (f *filter) inet() {
	f.jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 11)
	f.arg(0)
	f.jump(unix.BPF_JEQ, unix.AF_UNIX, 8, 0)
	f.jump(unix.BPF_JEQ, unix.AF_INET, 0, 6)
	f.kind()
	f.jump(unix.BPF_JEQ, unix.SOCK_STREAM, 0, 3)
	f.arg(2)
	f.jump(unix.BPF_JEQ, 0, 2, 0)
	f.jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 1, 0)
	f.answer(refuse)
	f.answer(allowed)
}

// decodeReplies decodes the replies of a child.
func decodeReplies(d *json.Decoder) (last reply, ready bool) {
	for {
		var r reply
		if err := d.Decode(&r); err != nil {
			return last, ready
		}
		last = r
		ready = ready || r.Ready
	}
}
