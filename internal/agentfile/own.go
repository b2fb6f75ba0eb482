package agentfile

// own.go: the runtime's own state, which no tool of an agent reaches.

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/protect"
)

// sideFiles are the endings of the files that SQLite keeps next to a database.
var sideFiles = []string{"", "-wal", "-shm", "-journal"}

// Own returns the state of the runtime that belongs to a and its team: their databases and the
// default one, the copies that pawl undo restores, the key that signs runs and the file of their
// anchors.
func (a *Agent) Own(getenv func(string) string) []string {
	if getenv == nil {
		getenv = os.Getenv
	}
	var paths []string
	for _, member := range a.family() {
		s := member.store()
		if file, err := s.path(getenv); err == nil && !s.isServer() {
			paths = append(paths, database(file)...)
		}
		if undo, err := member.place(getenv, "undo"); err == nil && member.Checkpoints {
			paths = append(paths, undo)
		}
	}

	if file, err := (Store{}).path(getenv); err == nil {
		paths = append(paths, database(file)...)
		others, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "workspaces", "*", "undo"))
		paths = append(paths, others...)
	}
	if key := getenv(keyVariable); !strings.Contains(key, "-----BEGIN") {
		paths = append(paths, key) // a file
	}
	if file, ok := strings.CutPrefix(getenv(anchorVariable), "file:"); ok {
		paths = append(paths, file)
	}
	return protect.NewOwn(paths...).Paths()
}

// database returns the paths of a database with its side files.
func database(file string) (paths []string) {
	for _, ending := range sideFiles {
		paths = append(paths, file+ending)
	}
	return paths
}

// family returns a, its leaders and its workers at any depth, each once.
func (a *Agent) family() (all []*Agent) {
	var add func(a *Agent)
	add = func(a *Agent) {
		if a == nil || slices.Contains(all, a) {
			return
		}
		all = append(all, a)
		for _, leader := range a.leaders {
			add(leader)
		}
		for _, w := range a.group().Workers {
			add(w.of)
		}
	}
	add(a)
	return all
}

// exposed returns a warning if state of the runtime is in the folder that the tools of a reach.
// They do not reach it, but a program that the operator starts may.
func (a *Agent) exposed(own []string) Findings {
	reaches := func(t Tool) bool { return t.Set == "file" || t.Set == "shell" }
	if !slices.ContainsFunc(a.Tools, reaches) {
		return nil
	}
	var there []string
	for _, name := range protect.NewOwn(own...).Below(a.Directory()) {
		isSide := func(ending string) bool { return strings.HasSuffix(name, ending) }
		if !slices.ContainsFunc(sideFiles[1:], isSide) {
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return nil
	}
	return Findings{a.found(finding(CodeReported, "root",
		"move it out of the root, such as store: {db: ../pawl.db}",
		"the root contains the runtime's own state, which no tool reaches: %s", strings.Join(there, ", ")))}
}

// visible is the files of a folder without its hidden places.
type visible struct {
	files  fs.FS
	places *protect.Places
}

// Open opens a file that is not hidden.
func (v visible) Open(name string) (fs.File, error) {
	sight := v.places.Sight()
	if sight.Named(name) != "" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := v.files.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && sight.Is(info) == "" {
		return f, nil
	}
	f.Close()
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
