//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// system lists the parts of the machine that every program can read if they exist, and not write:
// programs, libraries, and their settings. It contains no information about the machine's users.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/localtime", "/etc/timezone", "/etc/mime.types",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates",
	"/etc/python3", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13",
	"/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-25-openjdk",
}

// devices lists the only devices.
var devices = []string{"/dev/null", "/dev/zero", "/dev/urandom"}

// base is where the new root is assembled, a folder that every machine has.
const base = "/tmp"

// world replaces the file system of the process by the files that it may see.
func (c *child) world() error {
	if c.order.Level != Strict {
		return nil
	}
	// Otherwise the mounts below would appear in the namespace of the parent.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	list, err := c.collect() // before anything is covered
	if err != nil {
		return err
	}
	data := fmt.Sprintf("mode=0755,size=%d,nr_inodes=16384", 1<<20)
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fmt.Errorf("an empty world: %w", err)
	}
	if err := c.furnish(); err != nil {
		return err
	}
	if err := mountAll(append(list, c.hidden()...)); err != nil {
		return err
	}
	if err := c.protect(); err != nil {
		return err
	}
	return c.enter()
}

// mountAll mounts the trees in the new root, outer ones first, and covers hidden paths.
func mountAll(list []tree) error {
	if err := os.WriteFile(nothingFile, nil, 0); err != nil {
		return err
	}
	if err := os.Mkdir(nothingFolder, 0); err != nil {
		return err
	}

	slices.SortStableFunc(list, func(a, b tree) int { return strings.Count(a.path, "/") - strings.Count(b.path, "/") })
	for _, t := range list {
		do := t.mount
		if t.hidden {
			do = t.cover
		}
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
	}
	// The mounts that were made of them stay. Their names in the new root are not needed any more.
	return errors.Join(os.Remove(nothingFile), os.Remove(nothingFolder))
}

// tree is a part of the file system, ready to be mounted in the new root.
type tree struct {
	path   string
	fd     int
	folder bool
	link   string // target of a symbolic link that is created instead of a tree
	hidden bool   // nothing is mounted over the path
	attr   uint64
}

// collect opens all parts of the new root. Outer folders come before inner ones.
func (c *child) collect() ([]tree, error) {
	var list []tree
	for _, path := range system {
		st, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		t := tree{path: path, fd: -1, folder: st.IsDir(),
			attr: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		// On many systems /bin and /lib are links into /usr, and stay links.
		if st.Mode()&os.ModeSymlink != 0 {
			t.link, err = os.Readlink(path)
			if err != nil {
				return nil, err
			}
		} else if t.fd, err = clone(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, t)
	}

	for _, path := range devices {
		fd, err := clone(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, tree{path: path, fd: fd, attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC})
	}

	own, err := c.own()
	if err != nil {
		return nil, err
	}
	return append(list, own...), nil
}

// own opens the paths of the Spec: it uses the descriptors from the parent, and opens the rest by
// path.
func (c *child) own() ([]tree, error) {
	var list []tree
	for _, m := range c.order.Mounts {
		t := tree{path: m.Path, folder: m.Folder, attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if !m.Write {
			t.attr |= unix.MOUNT_ATTR_RDONLY
		}
		if m.Sent {
			if len(c.trees) == 0 {
				return nil, fmt.Errorf("%s was not sent", m.Path)
			}
			t.fd, c.trees = c.trees[0], c.trees[1:]
		} else if fd, err := cloneOf(m.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		} else {
			t.fd = fd
		}
		list = append(list, t)
	}
	return list, nil
}

// cloneOf clones the tree at path, which has no symbolic links.
func cloneOf(path string) (int, error) {
	fd, _, err := openPath(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
}

func clone(path string) (int, error) {
	return unix.OpenTree(unix.AT_FDCWD, path,
		unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
}

// mount mounts the tree at its path in the new root and applies its attributes to everything below.
func (t *tree) mount() error {
	at := base + t.path
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if t.link != "" {
		return os.Symlink(t.link, at)
	}

	defer unix.Close(t.fd)
	if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: t.attr}); err != nil {
		return fmt.Errorf("mount attributes: %w", err)
	}

	// A tree is mounted over something of its kind.
	if _, err := os.Lstat(at); errors.Is(err, os.ErrNotExist) {
		if t.folder {
			err = os.Mkdir(at, 0o755)
		} else {
			err = os.WriteFile(at, nil, 0o444)
		}
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}

	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return nil
}

// furnish creates the remaining parts of the new root: a /proc of its own processes, a limited
// /tmp, and names for its one user.
func (c *child) furnish() error {
	for _, dir := range []string{"/proc", "/dev", "/tmp", "/etc"} {
		if err := os.Mkdir(base+dir, 0o755); err != nil {
			return err
		}
	}
	// subset=pid leaves out what /proc says about the machine.
	const readOnly = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY
	if err := unix.Mount("proc", base+"/proc", "proc", readOnly, "subset=pid"); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	data := fmt.Sprintf("mode=1777,size=%d,nr_inodes=65536", c.order.Limits.Temp)
	if err := unix.Mount("tmpfs", base+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fmt.Errorf("/tmp: %w", err)
	}

	for _, link := range []struct{ target, name string }{
		{"/proc/self/fd", "/dev/fd"},
		{"fd/0", "/dev/stdin"},
		{"fd/1", "/dev/stdout"},
		{"fd/2", "/dev/stderr"},
		{"urandom", "/dev/random"},
		{"/tmp", "/dev/shm"},
	} {
		if err := os.Symlink(link.target, base+link.name); err != nil {
			return err
		}
	}

	for name, text := range map[string]string{
		"passwd":        fmt.Sprintf("user:x:%d:%d::/tmp:/bin/sh\n", os.Getuid(), os.Getgid()),
		"group":         fmt.Sprintf("user:x:%d:\n", os.Getgid()),
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	} {
		if err := os.WriteFile(base+"/etc/"+name, []byte(text), 0o444); err != nil {
			return err
		}
	}
	return nil
}

// enter makes the new root the only one: the old root is unmounted, and nothing refers to it any
// more.
func (c *child) enter() error {
	if err := os.Chdir(base); err != nil {
		return err
	}
	// The old root is mounted over the new one, and unmounted at once.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("the old world: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return fmt.Errorf("read-only root: %w", err)
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	return unix.Setdomainname([]byte("sandbox"))
}
