//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownedTree returns a detached copy of the tree at fd in which owner and group are exchanged with
// the user and group nobody: files of owner belong to nobody, and files that nobody creates there
// belong to owner. Only root can create it. The change applies to this copy alone, which the child
// mounts in its root.
func ownedTree(fd, owner, group int) (int, error) {
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open_tree: %w", err)
	}
	if owner == nobody && group == nobody {
		return tree, nil
	}
	err = mapped(owner, group, func(userns int) error {
		return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH,
			&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns)})
	})
	if err != nil {
		unix.Close(tree)
		return -1, fmt.Errorf("its owner cannot be mapped to nobody: %w", err)
	}
	return tree, nil
}

// mapped calls do with a user namespace that maps owner and group to nobody. A namespace exists
// only with a process, so mapped starts a child that waits until it is ended.
func mapped(owner, group int, do func(userns int) error) error {
	conn, childConn, err := socketPair()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer childConn.Close()
	// The process ends with this one, also if this one is killed.
	proc, err := startSelf([]string{holderName},
		&os.ProcAttr{Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: []*os.File{childConn},
			Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: unix.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: owner, HostID: nobody, Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: group, HostID: nobody, Size: 1}}}})
	if err != nil {
		return err
	}
	defer func() {
		proc.Kill()
		proc.Wait()
	}()
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", proc.Pid))
	if err != nil {
		return err
	}
	defer ns.Close()
	return do(int(ns.Fd()))
}
