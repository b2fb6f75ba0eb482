//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownedTree returns a detached copy of the tree at fd, in which what belongs to owner and group belongs to nobody, and the other way round: what
// nobody makes there belongs to them. Only root can ask for it. Nothing else of the machine is nobody's by that: the
// change holds in this copy alone, which the child puts into its world.
func ownedTree(fd, owner, group int) (int, error) {
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open_tree: %w", err)
	}
	if owner == nobody && group == nobody {
		return tree, nil
	}
	err = mapped(owner, group, func(userns int) error {
		return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns)})
	})
	if err != nil {
		unix.Close(tree)
		return -1, fmt.Errorf("its owner cannot be mapped to nobody: %w", err)
	}
	return tree, nil
}

// mapped gives do a user namespace in which owner and group are nobody's. Such a thing exists only around a process: a child that waits to be ended.
func mapped(owner, group int, do func(userns int) error) error {
	conn, childConn, err := socketPair()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer childConn.Close()
	var proc *os.Process
	started := make(chan error)
	go func() {
		var err error
		proc, err = os.StartProcess("/proc/self/exe", []string{holderName}, &os.ProcAttr{Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: []*os.File{childConn},
			Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: unix.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: owner, HostID: nobody, Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: group, HostID: nobody, Size: 1}}}})
		started <- err
	}()
	if err := <-started; err != nil {
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
