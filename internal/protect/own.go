package protect

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Own is the runtime's own state: files and folders that no tool and no sandboxed program reads,
// changes, creates or lists, at any path and by any link. It is one value from the command to all
// tools. The zero value is empty.
type Own struct {
	paths []string // absolute paths as they were given
	real  []string // the same without symbolic links; set by resolved
}

// NewOwn returns the state at paths, which are made absolute.
func NewOwn(paths ...string) (o Own) {
	for _, name := range paths {
		if at, err := filepath.Abs(name); err == nil && name != "" {
			o.paths = append(o.paths, at)
		}
	}
	slices.Sort(o.paths)
	o.paths = slices.Compact(o.paths)
	return o
}

// Paths returns the absolute paths, sorted.
func (o Own) Paths() []string { return slices.Clone(o.paths) }

// Real returns the paths without symbolic links, and the paths that are links themselves.
func (o Own) Real() []string { return o.resolved().real }

// Below returns the paths that are in the folder dir, or contain it.
func (o Own) Below(dir string) (list []string) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	at = realPath(at)
	for _, name := range o.paths {
		real := realPath(name)
		if isIn(real, at) || isIn(at, real) {
			list = append(list, name)
		}
	}
	return list
}

// isIn reports whether path is dir or below it.
func isIn(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// resolved returns o with the real paths. A path that is a symbolic link counts, too: who replaces
// it replaces the state.
func (o Own) resolved() Own {
	o.real = nil
	for _, name := range o.paths {
		link := filepath.Join(realPath(filepath.Dir(name)), filepath.Base(name))
		o.real = append(o.real, realPath(name), link)
	}
	slices.Sort(o.real)
	o.real = slices.Compact(o.real)
	return o
}

// realPath returns a path without symbolic links. The end of it need not exist.
func realPath(at string) string {
	if real, err := filepath.EvalSymlinks(at); err == nil {
		return real
	}
	dir := filepath.Dir(at)
	if dir == at {
		return at
	}
	return filepath.Join(realPath(dir), filepath.Base(at))
}

// Sight finds hidden places among the files of a folder, by their names and by what they are. It
// holds for one call: files that are created later are found by their names alone.
type Sight struct {
	places *Places
	own    []fs.FileInfo
}

// Sight returns the hidden places as they are now. Files in folders of the state are found by their
// other names, too, but not files in folders of them.
func (p *Places) Sight() *Sight {
	s := &Sight{places: p}
	for _, name := range p.own.real {
		info, err := os.Lstat(name)
		if err != nil {
			continue
		}
		s.own = append(s.own, info)
		if !info.IsDir() {
			continue
		}
		entries, _ := os.ReadDir(name)
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				s.own = append(s.own, info)
			}
		}
	}
	return s
}

// Empty reports that Is finds nothing.
func (s *Sight) Empty() bool { return len(s.own) == 0 }

// Named returns the hidden place that contains rel, a slash path below the folder without symbolic
// links, or "". Case does not count, and neither do characters that some file systems ignore.
func (s *Sight) Named(rel string) string {
	p := s.places
	folded := "/" + fold(rel) + "/"
	for _, name := range p.hidden {
		if strings.Contains(folded, "/"+fold(name)+"/") {
			return name
		}
	}
	at := fold(filepath.ToSlash(filepath.Join(p.dir, filepath.FromSlash(rel))))
	for _, name := range p.own.real {
		if isIn(at, fold(filepath.ToSlash(name))) {
			return OwnState
		}
	}
	return ""
}

// OwnState is what texts call the state of the runtime.
const OwnState = "the runtime's own state"

// Is returns OwnState if info describes a path of it, such as another name of the file (a hard
// link) or a second mount, and "" if not.
func (s *Sight) Is(info fs.FileInfo) string {
	if slices.ContainsFunc(s.own, func(own fs.FileInfo) bool { return os.SameFile(info, own) }) {
		return OwnState
	}
	return ""
}

// Find returns the hidden place that contains rel, by its name and by each folder on the way to it.
// lstat returns what is at a path below the folder.
func (s *Sight) Find(rel string, lstat func(string) (fs.FileInfo, error)) string {
	if place := s.Named(rel); place != "" || len(s.own) == 0 {
		return place
	}
	for at := rel; ; at = path.Dir(at) {
		if info, err := lstat(at); err == nil && s.Is(info) != "" {
			return OwnState
		}
		if at == "." || at == "/" {
			return ""
		}
	}
}
