//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The Landlock versions that the levels require. For Strict, Landlock is a second protection behind
// the namespaces. For Standard it is the main one and must be able to restrict signals (version 6).
const (
	strictLandlock   = 1
	standardLandlock = 6
)

// The access rights to files, by the Landlock version that introduced them.
const (
	readFile   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readFolder = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	version1   = 1<<13 - 1
	writeFile  = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	noDevice   = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// landlockVersion returns the version of the kernel's Landlock. The error says why there is none.
func landlockVersion() (int, error) {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch e {
	case 0:
		return int(v), nil
	case unix.ENOSYS:
		return 0, errors.New("the kernel has no Landlock")
	case unix.EOPNOTSUPP:
		return 0, errors.New("the kernel's Landlock is turned off")
	}
	return 0, e
}

// handled returns the rights that a version can refuse. Rights unknown to the version are not
// restricted; the levels state which version they require.
func handled(version int) (files uint64) {
	files = version1
	if version >= 2 {
		files |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return files
}

// landlockNetPort is the type of a rule about a port, LANDLOCK_RULE_NET_PORT of the kernel, which
// x/sys lacks.
const landlockNetPort = 2

// landlock forbids everything that the order does not name: files, TCP, signals to other processes,
// abstract sockets.
func (c *child) landlock() error {
	if c.order.Level == None {
		return nil
	}
	version, err := landlockVersion()
	if err != nil {
		return err
	}

	// A kernel that cannot enforce the level is an error: less is never enforced in silence.
	need := strictLandlock
	if c.order.Level == Standard {
		need = standardLandlock
	}
	if version < need {
		return fmt.Errorf("version %d is needed, the kernel has %d", need, version)
	}

	// The kernel takes the size of the structure that its version knows.
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled(version)}
	size := uintptr(8)
	if version >= 4 {
		size = 16
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 6 {
		size = 24
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}

	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return fmt.Errorf("rules: %w", e)
	}
	defer unix.Close(int(fd))
	if err := c.rules(int(fd), attr.Handled_access_fs); err != nil {
		return err
	}

	// The program reaches its proxy, and nothing else.
	if c.order.Proxy && attr.Handled_access_net != 0 {
		port := [2]uint64{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, proxyPort}
		if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, landlockNetPort, uintptr(unsafe.Pointer(&port)),
			0, 0, 0); e != 0 {
			return fmt.Errorf("a rule for the proxy: %w", e)
		}
	}

	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return fmt.Errorf("restrict: %w", e)
	}
	return nil
}

// rules adds the permissions. In the root of Strict, everything visible is readable.
func (c *child) rules(set int, known uint64) error {
	if c.order.Level == Strict {
		// The root was built of what the program may see. Landlock only limits writing there.
		if err := allow(set, "/", known&readFolder); err != nil {
			return err
		}
	} else {
		for _, path := range system {
			if err := c.permit(set, path, known&readFolder, known); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}

	for _, path := range devices {
		if err := allow(set, path, known&writeFile); err != nil {
			return err
		}
	}

	if err := allow(set, c.order.Temp, known&^noDevice); err != nil {
		return err
	}

	for _, m := range c.order.Mounts {
		rights := known & readFolder
		if m.Write {
			rights = known &^ noDevice
		}
		if err := c.permit(set, m.Path, rights, known); err != nil {
			return err
		}
	}
	return nil
}

// allow grants the rights for path and everything below it. For a plain file it grants only the
// applicable rights.
func allow(set int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	// The kernel refuses a rule for a file that has rights of folders.
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= writeFile
	}
	rule := struct { // packed in the kernel: twelve bytes
		allowed uint64
		parent  int32
	}{rights, int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return fmt.Errorf("a rule for %s: %w", path, e)
	}
	return nil
}
