// Package protect names the places of a folder that a model must not change, because they start
// programs or decide what an agent may do: the files of agents, version control, the start files of
// editors and shells, and the definitions of continuous integration. places.txt lists them, with
// their sources. The file tools refuse to change them, and the sandbox makes them read-only.
//
// It also names what a model must neither change nor read: files with secrets, and the runtime's
// own state, such as its database (Hidden).
package protect

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Places are the protected places of a folder.
type Places struct {
	dir   string   // absolute, without symbolic links
	names []string // paths that are protected at any depth
	files []string // paths relative to dir
	globs []string // patterns relative to dir
	named []string // patterns of names that are protected at any depth, such as *.code-workspace

	hidden []string // paths at any depth that cannot be read either
	own    Own      // the state of the runtime
}

// New returns the protected places of the folder dir: the default ones, the entries, and own, which
// nothing removes. An entry is a name or a path (.git, .github/workflows), which counts at any
// depth, or the absolute path of a file or folder. + and an absolute path is a program: its folder
// is protected, too. Where that is dir itself, the files of its language in it are. -NAME removes a
// place, and -* removes the default ones and all absolute paths.
func New(dir string, entries []string, own Own) (*Places, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &Places{dir: at, own: own.resolved()}
	p.dir, err = filepath.EvalSymlinks(at)
	if err != nil {
		return nil, err
	}

	none := slices.Contains(entries, "-*")
	if !none {
		p.addDefaults()
	}
	var removed []string
	for _, e := range entries {
		if gone, removes := strings.CutPrefix(e, "-"); removes {
			removed = append(removed, gone)
			continue
		}
		if err := p.entry(at, e, none); err != nil {
			return nil, err
		}
	}

	// Removals come last, so that they hold for what other entries add, in any order.
	for _, gone := range removed {
		if list := p.List(); !none && !slices.Contains(list, gone) {
			return nil, fmt.Errorf("protect: %q is not protected; there are: %s", gone, strings.Join(list, ", "))
		}
		p.remove(gone)
	}

	if slices.Contains(p.names, ".git") {
		for _, target := range repository(filepath.Join(p.dir, ".git")) {
			p.file(p.dir, target)
		}
	}
	return p, nil
}

// addDefaults adds the places of places.txt.
func (p *Places) addDefaults() {
	for _, d := range Defaults() {
		switch {
		case d.Hidden:
			p.hidden = append(p.hidden, d.Place)
		case strings.Contains(d.Place, "*"):
			p.named = append(p.named, d.Place)
		default:
			p.names = append(p.names, d.Place)
		}
	}
}

// entry adds an entry that removes nothing. With none, absolute paths are left out.
func (p *Places) entry(at, e string, none bool) error {
	name := path.Clean(filepath.ToSlash(e))
	program, starts := strings.CutPrefix(e, "+")
	switch {
	case starts && filepath.IsAbs(program):
		if !none {
			p.program(at, filepath.Clean(program))
		}
	case filepath.IsAbs(e):
		if !none {
			p.file(at, filepath.Clean(e))
		}
	case name == "." || !filepath.IsLocal(e):
		return fmt.Errorf("protect: %q is no place; want a name such as .git, a path such as "+
			".github/workflows, an absolute path, or -NAME", e)
	default:
		p.names = append(p.names, name)
	}
	return nil
}

// remove removes a place from all lists.
func (p *Places) remove(place string) {
	is := func(s string) bool { return s == place }
	for _, list := range []*[]string{&p.names, &p.files, &p.globs, &p.named, &p.hidden} {
		*list = slices.DeleteFunc(*list, is)
	}
}

// program adds a program and its folder, in which it can find modules.
func (p *Places) program(at, name string) {
	p.file(at, name)
	real, _ := filepath.EvalSymlinks(name)
	for _, n := range []string{name, cmp.Or(real, name)} {
		dir := filepath.Dir(n)
		ext := filepath.Ext(n)
		p.file(at, dir)
		if dir != at && dir != p.dir || ext == "" {
			continue
		}
		p.globs = append(p.globs, "*"+ext)
		if ext == ".py" { // packages, and compiled modules
			p.globs = append(p.globs, "*.pyc", "*.pyd", "*.so", "*/__init__.*")
			p.files = append(p.files, "__pycache__")
		}
	}
}

// file adds a file or folder if it is below the folder, at, under its path, its path without
// symbolic links, and each link on the way.
func (p *Places) file(at, name string) {
	add := func(dir, name string) {
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == "." || !filepath.IsLocal(rel) {
			return
		}
		p.files = append(p.files, filepath.ToSlash(rel))
		for up := filepath.Dir(rel); up != "."; up = filepath.Dir(up) {
			if info, err := os.Lstat(filepath.Join(dir, up)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				p.files = append(p.files, filepath.ToSlash(up))
			}
		}
	}
	add(at, name)
	add(p.dir, name)
	if real, err := filepath.EvalSymlinks(name); err == nil {
		add(p.dir, real)
	}
}

// List returns the names and paths of the places, for people.
func (p *Places) List() []string {
	if p == nil {
		return nil
	}
	list := slices.Concat(p.names, p.files, p.globs, p.named, p.hidden)
	slices.Sort(list)
	return slices.Compact(list)
}

// Git says that the repositories of folders are protected.
func (p *Places) Git() bool { return p != nil && slices.Contains(p.names, ".git") }

// Find returns the place that contains rel, a slash path below the folder without symbolic links.
// It returns "" if rel is not protected. Case does not count, and neither do characters that some
// file systems ignore.
func (p *Places) Find(rel string) string {
	rel = "/" + fold(rel) + "/"
	for _, n := range p.names {
		if strings.Contains(rel, "/"+fold(n)+"/") {
			return n
		}
	}
	for _, n := range p.files {
		if strings.HasPrefix(rel, "/"+fold(n)+"/") {
			return n
		}
	}
	parts := strings.Split(strings.Trim(rel, "/"), "/")
	for _, n := range p.named {
		matches := func(part string) bool { ok, _ := path.Match(fold(n), part); return ok }
		if slices.ContainsFunc(parts, matches) {
			return n
		}
	}
	for _, n := range p.globs {
		most := min(strings.Count(n, "/")+1, len(parts))
		if ok, _ := path.Match(fold(n), strings.Join(parts[:most], "/")); ok {
			return n
		}
	}
	return ""
}

// InGit returns the repository without a .git, such as a bare one, that contains rel, a path as for
// Find. It returns "" if there is none.
func (p *Places) InGit(rel string) string {
	for at := path.Dir(rel); p.Git(); at = path.Dir(at) {
		dir := filepath.Join(p.dir, at)
		if bare(dir) {
			return at
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || at == "." {
			break // a worktree, which can be in a bare repository
		}
	}
	return ""
}

// bare says that the folder at holds what Git takes for a repository.
func bare(at string) bool {
	has := func(name string) bool { _, err := os.Lstat(filepath.Join(at, name)); return err == nil }
	store := has("objects") && has("refs")
	return has("HEAD") && (store || has("commondir"))
}

// repository returns what the .git at names instead of being the repository: the target of a link
// or a gitdir line, and its common folder.
func repository(at string) (list []string) {
	named := func(file, prefix string) string {
		text, err := os.ReadFile(file)
		line, ok := strings.CutPrefix(strings.TrimSpace(string(text)), prefix)
		line = strings.TrimSpace(line)
		switch {
		case err != nil || !ok:
			return ""
		case line == "" || filepath.IsAbs(line):
			return line
		}
		return filepath.Join(filepath.Dir(file), line)
	}
	info, err := os.Lstat(at)
	if err != nil {
		return nil
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err := os.Readlink(at); err == nil {
			if !filepath.IsAbs(link) {
				link = filepath.Join(filepath.Dir(at), link)
			}
			list, at = append(list, link), link
		}
	}
	if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Size() < 1<<16 {
		if to := named(at, "gitdir:"); to != "" {
			list, at = append(list, to), to
		}
	}
	if common := named(filepath.Join(at, "commondir"), ""); common != "" {
		list = append(list, common)
	}
	return list
}

// Same returns the protected file that info describes, such as another name of it (a hard link). It
// returns "" if there is none.
func (p *Places) Same(info fs.FileInfo) string {
	for _, n := range p.top() {
		if other, err := os.Lstat(filepath.Join(p.dir, n)); err == nil && os.SameFile(info, other) {
			return n
		}
	}
	return ""
}

// fold returns a slash path in the form in which file systems without case compare it.
func fold(p string) string {
	parts := strings.Split(p, "/")
	for i, s := range parts {
		s, _, _ = strings.Cut(s, ":") // a stream of NTFS
		s = strings.TrimRight(s, ". ")
		s = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1 // HFS+ ignores it
			}
			return unicode.ToLower(unicode.ToUpper(r))
		}, s)
		if s == "git~1" { // the short name on Windows
			s = ".git"
		}
		parts[i] = s
	}
	return strings.Join(parts, "/")
}

// top returns the places that have one path below the folder, existing or not, and the existing
// files of patterns.
func (p *Places) top() []string {
	list := slices.Concat(p.names, p.files)
	for _, g := range slices.Concat(p.globs, p.named) {
		found, _ := fs.Glob(os.DirFS(p.dir), g)
		list = append(list, found...)
	}
	return list
}

// The search for repositories in folders covers fewFolders, and more in mostTime.
const (
	fewFolders  = 2000
	mostFolders = 100000
	mostTime    = 100 * time.Millisecond
)

// Searched describes the bounds of Paths, for people.
const Searched = "at least the 2000 nearest folders, and as many as 100 ms suffice for"

// Paths returns the absolute paths that a sandbox makes read-only, and the ones that it hides: the
// places at the top of the folder, existing or not, the files, each repository and each hidden name
// that exists in the folders below, and the state of the runtime.
func (p *Places) Paths() (readOnly, hide []string) {
	for _, n := range p.top() {
		readOnly = append(readOnly, filepath.Join(p.dir, n))
	}
	for _, n := range p.hidden {
		// There is nothing to read in a missing or empty file, such as the placeholder of another
		// command.
		at := filepath.Join(p.dir, n)
		if info, err := os.Lstat(at); err != nil || info.Mode().IsRegular() && info.Size() == 0 {
			readOnly = append(readOnly, at)
		} else {
			hide = append(hide, at)
		}
	}

	if p.Git() || len(p.hidden) > 0 {
		repositories, secrets := p.below()
		hide = append(hide, secrets...)
		if p.Git() {
			readOnly = append(readOnly, repositories...)
		}
	}
	hide = append(hide, p.own.real...)
	slices.Sort(readOnly)
	slices.Sort(hide)
	return slices.Compact(readOnly), slices.Compact(hide)
}

// below returns each repository and each hidden name in the folders below dir, nearer ones first,
// and the ones of node_modules last.
func (p *Places) below() (list, secrets []string) {
	todo := []string{p.dir}
	late := []string(nil)
	start := time.Now()
	for n := 0; n < mostFolders && (n < fewFolders || time.Since(start) < mostTime); n++ {
		if n == len(todo) {
			todo = append(todo, late...)
			late = nil
		}
		if n == len(todo) {
			break
		}

		entries, _ := os.ReadDir(todo[n])
		for _, e := range entries {
			at := filepath.Join(todo[n], e.Name())
			switch {
			case n > 0 && !e.IsDir() && p.hides(e.Name()):
				secrets = append(secrets, at)
			case fold(e.Name()) == ".git":
				list = append(list, at)
				for _, target := range repository(at) {
					if strings.HasPrefix(target, p.dir+"/") {
						list = append(list, target)
					}
				}

			case e.Name() == "HEAD" && bare(todo[n]):
				if n > 0 {
					list = append(list, todo[n])
					break
				}
				// The folder itself stays writable: its files that start programs do not.
				list = append(list, at, filepath.Join(p.dir, "config"), filepath.Join(p.dir, "hooks"))

			case e.IsDir() && e.Name() == "node_modules":
				late = append(late, at)
			case e.IsDir():
				todo = append(todo, at)
			}
		}
	}
	return list, secrets
}

// hides reports whether a file of this name is hidden in any folder.
func (p *Places) hides(name string) bool {
	return slices.ContainsFunc(p.hidden, func(h string) bool { return fold(h) == fold(name) })
}
