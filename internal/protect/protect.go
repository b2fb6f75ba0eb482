// Package protect names the places of a folder that a model must not change, because they start
// programs or decide what an agent may do: the files of agents, version control, the start files of
// editors and shells, and the definitions of continuous integration. The file tools refuse to
// change them, and the sandbox makes them read-only.
package protect

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// names are the places that are protected by default.
var names = []string{
	"tools.lock", ".mcp.json", ".claude", ".cursor", ".codex", ".gemini", // agents
	".git", ".gitmodules", ".gitconfig", ".hg", ".svn", ".jj", // version control
	".vscode", ".idea", ".zed", ".devcontainer", ".vimrc", ".exrc", ".nvim.lua", ".nvimrc", ".dir-locals.el", // editors
	".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", // shells
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".ssh", ".netrc", ".npmrc",
	".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci", ".travis.yml", ".husky", // integration
	".pre-commit-config.yaml", ".buildkite", ".forgejo", ".gitea", ".woodpecker.yml", ".drone.yml", "azure-pipelines.yml",
	"Jenkinsfile",
}

// Places are the protected places of a folder.
type Places struct {
	dir   string   // absolute, without symbolic links
	names []string // paths that are protected at any depth
	files []string // paths relative to dir
}

// New returns the protected places of the folder dir: the default ones, and the entries. An
// entry is a name or a path (.git, .github/workflows), which counts at any depth, or the absolute
// path of a file or folder. -NAME removes a default place, and -* removes all of them and all
// absolute paths.
func New(dir string, entries []string) (*Places, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &Places{dir: at, names: slices.Clone(names)}
	if p.dir, err = filepath.EvalSymlinks(at); err != nil {
		return nil, err
	}
	none := slices.Contains(entries, "-*")
	if none {
		p.names = nil
	}
	for _, e := range entries {
		gone, removes := strings.CutPrefix(e, "-")
		name := path.Clean(filepath.ToSlash(e))
		switch {
		case removes && none:
		case removes:
			i := slices.Index(p.names, gone)
			if i < 0 {
				return nil, fmt.Errorf("protect: %q is not protected by default; there are: %s", gone, strings.Join(names, ", "))
			}
			p.names = slices.Delete(p.names, i, i+1)
		case filepath.IsAbs(e):
			if !none {
				p.file(at, filepath.Clean(e))
			}
		case name == "." || !filepath.IsLocal(e):
			return nil, fmt.Errorf("protect: %q is no place; want a name such as .git, a path such as "+
				".github/workflows, an absolute path, or -NAME", e)
		default:
			p.names = append(p.names, name)
		}
	}
	return p, nil
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
	list := slices.Concat(p.names, p.files)
	slices.Sort(list)
	return slices.Compact(list)
}

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
	return ""
}

// Same returns the protected file that info describes, such as another name of it (a hard link). It
// returns "" if there is none.
func (p *Places) Same(info fs.FileInfo) string {
	for _, n := range slices.Concat(p.names, p.files) {
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

// The bounds of the search for repositories in folders.
const (
	mostDepth   = 4
	mostFolders = 2000
)

// Paths returns the absolute paths that a sandbox makes read-only: the places at the top of the
// folder, existing or not, the files, and each .git that exists in the folders below.
func (p *Places) Paths() []string {
	var list []string
	for _, n := range slices.Concat(p.names, p.files) {
		list = append(list, filepath.Join(p.dir, n))
	}
	if slices.Contains(p.names, ".git") {
		list = append(list, p.repositories()...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// repositories returns each .git in the folders below dir, nearer ones first.
func (p *Places) repositories() (list []string) {
	type folder struct {
		path  string
		depth int
	}
	todo := []folder{{p.dir, 0}}
	for n := 0; n < len(todo) && n < mostFolders; n++ {
		entries, _ := os.ReadDir(todo[n].path)
		for _, e := range entries {
			at := filepath.Join(todo[n].path, e.Name())
			switch {
			case fold(e.Name()) == ".git":
				list = append(list, at)
			case e.IsDir() && todo[n].depth < mostDepth && e.Name() != "node_modules" && len(todo) < mostFolders:
				todo = append(todo, folder{at, todo[n].depth + 1})
			}
		}
	}
	return list
}
