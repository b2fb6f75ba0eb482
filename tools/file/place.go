package file

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// mostLinks is the number of symbolic links that a path may lead through.
const mostLinks = 32

// real returns the path of name without symbolic links. Parts that do not exist stay as they are.
func (s *Set) real(name string) (string, error) {
	var done []string
	links := 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && len(done) > 0:
			done = done[:len(done)-1]
			continue
		case part == "..":
			return "", s.astray(name)
		}
		next := path.Join(append(done[:len(done):len(done)], part)...)
		info, err := s.root.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = append(done, part) // the access itself reports an error
			continue
		}
		link, err := s.root.Readlink(next)
		if err != nil {
			return "", err
		}
		link = filepath.ToSlash(link)
		if links++; links > mostLinks || path.IsAbs(link) || filepath.IsAbs(link) {
			return "", s.astray(name)
		}
		rest = append(strings.Split(link, "/"), rest...)
	}
	return path.Join(append([]string{"."}, done...)...), nil
}

// astray returns the error for a path whose links cannot be followed.
func (s *Set) astray(name string) error {
	if _, err := s.root.Stat(name); err != nil {
		return err
	}
	return toolrun.Refuse("%q cannot be followed: its symbolic links have changed", name)
}

// guarded refuses to change target, a path without symbolic links, if it is protected.
func (s *Set) guarded(name, target string) error {
	place := cmp.Or(s.places.Find(target), s.places.InGit(target))
	if place == "" {
		if info, err := s.root.Lstat(target); err == nil && info.Mode().IsRegular() {
			place = s.places.Same(info)
		}
	}
	if place == "" {
		return nil
	}
	return toolrun.Refuse("%s is protected: %q may start programs or decide what this agent may do, so it is only for reading. "+
		"A person can change it, or allow it in the settings of the agent (protect)", shown(name), place)
}

// pinned opens the directory dir, a path without symbolic links, part by part. With create, missing
// parts are created. A part that has become a link in the meantime is refused: the directory is the
// checked one, also if other programs move links. Close it.
func (s *Set) pinned(dir string, create bool) (*os.Root, error) {
	at, err := s.root.OpenRoot(".")
	if err != nil || dir == "." {
		return at, err
	}
	for _, part := range strings.Split(dir, "/") {
		next, err := step(at, part, create)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func step(at *os.Root, part string, create bool) (*os.Root, error) {
	info, err := at.Lstat(part)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := at.Mkdir(part, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err = at.Lstat(part)
	}
	if err != nil {
		return nil, err
	}
	next, err := at.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(info, now) {
		next.Close()
		return nil, toolrun.Refuse("%q was replaced while it was used; call again", part)
	}
	return next, nil
}
