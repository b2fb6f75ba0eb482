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

// network brings up the loopback of the program's own network, and hands a socket that listens there to the parent: connections to it are answered outside.
// It is the only way out, since the network has no other device, and routes to nowhere.
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
	// A blank beside it, which is nothing to who reads replies.
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

// listener takes the socket that the child hands over. said is what the child said instead, or beside it.
func (l *launch) listener() (f *os.File, said []byte, err error) {
	said, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	var n, rn int
	for {
		n, rn, _, _, err = unix.Recvmsg(int(l.conn.Fd()), said, rights, unix.MSG_CMSG_CLOEXEC)
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

// hear reads what the child says, until it has become the program or ended. Where the program has a proxy, the proxy begins before the program does.
func (l *launch) hear(w *watcher) (said []byte, err error) {
	if l.order.Proxy {
		var f *os.File
		if f, said, err = l.listener(); err != nil {
			return nil, err
		}
		if f != nil {
			w.unserve = l.spec.Proxy(f)
		}
	}
	rest, err := io.ReadAll(io.LimitReader(l.conn, 64<<10))
	return append(said, rest...), err
}

// inet lets a program make TCP sockets of IPv4, and those of Unix as without a proxy. All other kinds stay refused: of UDP, raw, of IPv6, netlink.
func (f *filter) inet() {
	f.jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 11)
	f.arg(0)
	f.jump(unix.BPF_JEQ, unix.AF_UNIX, 8, 0)
	f.jump(unix.BPF_JEQ, unix.AF_INET, 0, 6)
	f.arg(1)
	*f = append(*f, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: ^uint32(unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK)})
	f.jump(unix.BPF_JEQ, unix.SOCK_STREAM, 0, 3)
	f.arg(2)
	f.jump(unix.BPF_JEQ, 0, 2, 0)
	f.jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 1, 0)
	f.answer(refuse)
	f.answer(allowed)
}

// decodeReplies reads what a child said.
func decodeReplies(d *json.Decoder) (last reply, ready bool) {
	for {
		var r reply
		if err := d.Decode(&r); err != nil {
			return last, ready
		}
		last, ready = r, ready || r.Ready
	}
}
