//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// place is a path of Spec.Protect, or a folder on the way to one.
type place struct {
	Path string
	Way  bool // a folder on the way: it stays writable, and cannot be renamed
}

// places resolves Spec.Protect. At Strict, a missing path gets a placeholder, over which the child
// can mount.
func (l *launch) places() error {
	if l.spec.Level == None {
		return nil
	}
	for _, path := range l.spec.Protect {
		in := ""
		for _, w := range l.spec.Write {
			if strings.HasPrefix(path, w+"/") && len(w) > len(in) {
				in = w
			}
		}
		if in == "" {
			continue // the program cannot write it
		}
		if err := l.place(in, strings.Split(path[len(in)+1:], "/")); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	list := l.order.Places
	// outer ones first
	slices.SortFunc(list, func(a, b place) int { return strings.Compare(a.Path, b.Path) })
	read := slices.Clone(list)
	list = slices.DeleteFunc(list, func(p place) bool { return p.Way && slices.Contains(read, place{Path: p.Path}) })
	l.order.Places = slices.Compact(list)
	return nil
}

// place adds the path of parts below the folder at, and the folders on the way to it.
func (l *launch) place(at string, parts []string) error {
	for i, part := range parts {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		absent := errors.Is(err, os.ErrNotExist)
		placeholder := err == nil && empty(info)
		last := i == len(parts)-1

		switch {
		case l.spec.Level == Strict && (absent || placeholder):
			return l.hold(at)
		case absent:
			l.order.Places = append(l.order.Places, place{Path: at})
			return nil
		case err != nil:
			return err
		case info.Mode()&os.ModeSymlink != 0:
			return fmt.Errorf("%w: %s must not change and is a symbolic link, which cannot be protected", ErrUnenforced, at)
		case last || !info.IsDir():
			if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
				return fmt.Errorf("%w: %s must not change and has another name (a hard link), by which it could",
					ErrUnenforced, at)
			}
			l.order.Places = append(l.order.Places, place{Path: at})
			return nil
		}
		l.order.Places = append(l.order.Places, place{at, true})
	}
	return nil
}

// epoch is the modification time of a placeholder, by which it is recognized.
var epoch = time.Unix(0, 0)

func empty(info os.FileInfo) bool { return info.Mode().IsRegular() && info.Size() == 0 }

// hold creates the placeholder path, an empty file, or uses the empty file there. A lock keeps
// other programs from deleting it: the last program that uses a placeholder does.
func (l *launch) hold(path string) error {
	for {
		f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o444)
		made := err == nil
		if errors.Is(err, os.ErrExist) {
			f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		}
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue // its last user has deleted it in the meantime
		case errors.Is(err, os.ErrPermission), errors.Is(err, unix.EROFS):
			return nil // the program cannot create it either
		case err != nil:
			return err
		}
		if err = unix.Flock(int(f.Fd()), unix.LOCK_SH); err == nil && made {
			err = os.Chtimes(path, epoch, epoch)
		}
		if err != nil {
			f.Close()
			return err
		}
		if info, err := f.Stat(); err != nil || !empty(info) || !there(info, path) {
			f.Close()
			continue
		}
		l.held = append(l.held, f)
		l.order.Places = append(l.order.Places, place{Path: path})
		return nil
	}
}

// there reports whether path is still the file of info.
func there(info os.FileInfo, path string) bool {
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(info, now)
}

// letGo deletes the placeholders that no other program uses.
func (l *launch) letGo() {
	for _, f := range l.held {
		if untouched(f) && exclusive(f) {
			os.Remove(f.Name())
		}
		f.Close()
	}
}

// untouched reports whether f is still the placeholder that was made: empty, unchanged, in its
// place.
func untouched(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !empty(info) {
		return false
	}
	return info.ModTime().Equal(epoch) && there(info, f.Name())
}

// exclusive reports whether no other program holds f.
func exclusive(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// protect makes the places of the order read-only in the new root of Strict. A folder on the way
// becomes a mount of its own, which the program cannot rename.
func (c *child) protect() error {
	for _, p := range c.order.Places {
		t := tree{path: p.Path, attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if !p.Way {
			t.attr |= unix.MOUNT_ATTR_RDONLY
		}
		var err error
		t.fd, err = cloneOf(base + p.Path)
		if err == nil {
			err = t.mount()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	return nil
}

// permit grants rights for path. At Standard, whose rights apply to everything below a folder, a
// folder with a place in it can only be read, and the rights are granted for what else is in it.
func (c *child) permit(set int, path string, rights, known uint64) error {
	at := slices.IndexFunc(c.order.Places,
		func(p place) bool { return p.Path == path || strings.HasPrefix(p.Path, path+"/") })
	if c.order.Level != Standard || at < 0 {
		return allow(set, path, rights)
	}
	if err := allow(set, path, known&readFolder); err != nil || slices.Contains(c.order.Places, place{Path: path}) {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && !e.Type().IsRegular() {
			continue // a link could lead elsewhere
		}
		if err := c.permit(set, filepath.Join(path, e.Name()), rights, known); err != nil {
			return err
		}
	}
	return nil
}
