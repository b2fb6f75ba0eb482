//go:build linux && (amd64 || arm64)

package sandbox

import (
	"cmp"
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

// place is a path of Spec.Protect or Spec.Hide, or a folder on the way to one.
type place struct {
	Path   string
	Way    bool // a folder on the way: it stays writable, and cannot be renamed
	Hidden bool // of Spec.Hide
}

// covers reports whether p is at path or below it.
func (p place) covers(path string) bool {
	return p.Path == path || strings.HasPrefix(p.Path, path+"/")
}

// places resolves Spec.Protect and Spec.Hide. At Strict, a missing path gets a placeholder, over
// which the child can mount.
func (l *launch) places() error {
	if l.spec.Level == None {
		return nil
	}
	for _, path := range l.spec.Protect {
		if err := l.placed(path, false); err != nil {
			return err
		}
	}
	for _, path := range l.spec.Hide {
		if err := l.placed(path, true); err != nil {
			return err
		}
	}
	// Outer places first, because a mount over a folder hides the mounts that are below it.
	l.order.Places = ordered(l.order.Places)
	return nil
}

// ordered returns the places, outer ones first. A place that is hidden, protected or on the way in
// several ways is listed once, in its strictest way.
func ordered(list []place) []place {
	rank := func(p place) int {
		switch {
		case p.Hidden:
			return 0
		case p.Way:
			return 2
		}
		return 1
	}
	slices.SortFunc(list, func(a, b place) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), rank(a)-rank(b))
	})
	return slices.CompactFunc(list, func(a, b place) bool { return a.Path == b.Path })
}

// placed adds a path of the Spec. A path that the program cannot write needs no protection, but may
// have to be hidden.
func (l *launch) placed(path string, hidden bool) error {
	for _, given := range slices.Concat(l.spec.Read, l.spec.Write) {
		if hidden && (given == path || strings.HasPrefix(given, path+"/")) {
			return fmt.Errorf("sandbox: %w: %s is hidden, so it cannot be a path of Read or Write", ErrUnenforced, path)
		}
	}

	// Protection is about writing, and hiding about both.
	folders := l.spec.Write
	if hidden {
		folders = slices.Concat(l.spec.Read, l.spec.Write)
	}
	in := within(path, folders)
	switch {
	case in != "":
		if err := l.place(in, strings.Split(path[len(in)+1:], "/"), hidden); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	case hidden:
		l.order.Places = append(l.order.Places, place{Path: path, Hidden: true})
	}
	return nil
}

// within returns the innermost folder of the list that contains path, or "".
func within(path string, list []string) (in string) {
	for _, folder := range list {
		if strings.HasPrefix(path, folder+"/") && len(folder) > len(in) {
			in = folder
		}
	}
	return in
}

// place adds the path of parts below the folder at, and the folders on the way to it.
func (l *launch) place(at string, parts []string, hidden bool) error {
	for i, part := range parts {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		absent := errors.Is(err, os.ErrNotExist)
		placeholder := err == nil && !hidden && empty(info)
		last := i == len(parts)-1

		strict := l.spec.Level == Strict
		toHide := hidden && last
		switch {
		case strict && absent && toHide:
			return l.stand(at)
		case strict && (absent || placeholder):
			return l.hold(at)
		case absent:
			l.order.Places = append(l.order.Places, place{Path: at, Hidden: hidden})
			return nil
		case err != nil:
			return err
		case info.Mode()&os.ModeSymlink != 0:
			return fmt.Errorf("%w: %s must not change and is a symbolic link, which cannot be protected", ErrUnenforced, at)
		// A file with a second name could be changed by that name.
		case last || !info.IsDir():
			if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
				return fmt.Errorf("%w: %s must not change and has another name (a hard link), by which it could",
					ErrUnenforced, at)
			}
			l.order.Places = append(l.order.Places, place{Path: at, Hidden: hidden && last})
			return nil
		}
		l.order.Places = append(l.order.Places, place{Path: at, Way: true})
	}
	return nil
}

// stand creates an empty file at a missing path that is hidden. It stays, because the owner of the
// path, such as a database, may have opened it when the program ends.
func (l *launch) stand(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, os.ErrPermission), errors.Is(err, unix.EROFS):
		return nil // the program cannot create it either
	case err != nil:
		return err
	}
	l.order.Places = append(l.order.Places, place{Path: path, Hidden: true})
	return f.Close()
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
			// Another program may have put a link or a pipe there.
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
		// The time of the epoch marks a placeholder that this package has made.
		if err = unix.Flock(int(f.Fd()), unix.LOCK_SH); err == nil && made {
			err = os.Chtimes(path, epoch, epoch)
		}
		if err != nil {
			f.Close()
			return err
		}
		info, err := f.Stat()
		if err != nil || !there(info, path) {
			f.Close()
			continue // its last user has deleted it in the meantime
		}
		if !empty(info) { // another program has written the file itself in the meantime
			l.order.Places = append(l.order.Places, place{Path: path})
			return f.Close()
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
		if p.Hidden {
			continue // covered already
		}
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

// The names of an empty file and an empty folder in the new root, which are mounted over hidden
// paths. They have no names when the program starts.
const (
	nothingFile   = base + "/nothing"
	nothingFolder = base + "/nothings"
)

// hidden returns the trees that cover the hidden paths.
func (c *child) hidden() (list []tree) {
	for _, p := range c.order.Places {
		if p.Hidden {
			list = append(list, tree{path: p.Path, fd: -1, hidden: true})
		}
	}
	return list
}

// cover mounts nothing over a hidden path. A path that is not in the new root needs no cover.
func (t *tree) cover() error {
	info, err := os.Lstat(base + t.path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}

	source := nothingFile
	if info.IsDir() {
		source = nothingFolder
	}
	t.fd, err = clone(source)
	if err != nil {
		return err
	}
	t.attr = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	return t.mount()
}

// permit grants rights for path. At Standard, whose rights apply to everything below a folder, a
// folder with a place in it gets fewer rights, and the rights are granted for what else is in it.
func (c *child) permit(set int, path string, rights, known uint64) error {
	var hides, protects bool
	for _, p := range c.order.Places {
		switch {
		case c.order.Level != Standard || !p.covers(path):
		case p.Path == path && p.Hidden:
			return nil
		case p.Path == path && !p.Way:
			rights = known & readFolder
		case p.Hidden:
			hides = true
		default:
			protects = true
		}
	}

	// Rights of a folder hold for all below it and cannot be taken back. So the folder gets only
	// what holds for its protected places too.
	own := rights
	switch {
	case hides:
		own = known & unix.LANDLOCK_ACCESS_FS_READ_DIR
	case protects:
		own = known & readFolder
	}
	if err := allow(set, path, own); err != nil || own == rights {
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
