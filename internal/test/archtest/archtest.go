// Package archtest holds the house rules that a machine can check. They are ordinary tests: what they say about the tree
// stands in the failure's message, with the reason.
//
//	arrows.go    which package may import which; what the core may pull in
//	loop.go      the loop of the core is sequential and deterministic, and short
//	comments.go  every exported name states its contract, every package tells its story
//	state.go     no package keeps state of its own
//	tools.go     what a model is told of a tool stands in a page beside it
//	text.go      the files say nothing about the machine they were written on
//
// Each rule is a function from source to complaints, so that its tests can show it a small wrong source and see it complain:
// a rule that cannot fail guards nothing.
package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the path of the module whose rules these are.
const module = "github.com/pawl-go/pawl"

// unit is a package as `go list` describes it.
type unit struct {
	ImportPath, Name, Dir, Export string
	Standard                      bool
	GoFiles                       []string
	TestGoFiles, XTestGoFiles     []string
	Imports, Deps                 []string
	Module                        *struct{ Path string }
	Error                         *struct{ Err string }
}

// rel returns the package's path within the module: "." for the core.
func (u *unit) rel() string { return relative(u.ImportPath) }

func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// tree is the module as it stands on disk.
type tree struct {
	root string           // its folder
	ours []*unit          // the packages of the module that compile
	bad  []string         // what is wrong with those that do not
	all  map[string]*unit // and all they need, by import path
	fset *token.FileSet
}

// load lists the module that the working directory is in.
func load() (*tree, error) {
	mod, err := run("", "go", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	t := &tree{root: filepath.Dir(strings.TrimSpace(string(mod))), all: map[string]*unit{}, fset: token.NewFileSet()}
	out, err := run(t.root, "go", "list", "-e", "-export", "-deps",
		"-json=ImportPath,Name,Dir,Export,Standard,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps,Module,Error", "./...")
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		u := new(unit)
		if err := d.Decode(u); errors.Is(err, io.EOF) {
			return t, nil
		} else if err != nil {
			return nil, err
		}
		t.all[u.ImportPath] = u
		switch {
		case u.Error != nil || u.Export == "" && u.ImportPath != "unsafe" && len(u.GoFiles) > 0:
			why := "it does not compile"
			if u.Error != nil {
				why = u.Error.Err
			}
			t.bad = append(t.bad, u.ImportPath+": "+why)
		case u.Module != nil && u.Module.Path == module:
			t.ours = append(t.ours, u)
		}
	}
}

func run(dir, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// parse returns the package's files without its tests, with comments.
func (t *tree) parse(u *unit) ([]*ast.File, error) {
	var files []*ast.File
	for _, name := range u.GoFiles {
		path := filepath.Join(u.Dir, name)
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		short, err := filepath.Rel(t.root, path)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(t.fset, filepath.ToSlash(short), src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// check finds out the types in files, taking what they import from the compiler's export data.
func (t *tree) check(path string, files []*ast.File) (*types.Info, error) {
	lookup := func(path string) (io.ReadCloser, error) {
		u := t.all[path]
		if u == nil || u.Export == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(u.Export)
	}
	return check(t.fset, path, files, importer.ForCompiler(t.fset, "gc", lookup))
}

func check(fset *token.FileSet, path string, files []*ast.File, imp types.Importer) (*types.Info, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	_, err := (&types.Config{Importer: imp}).Check(path, fset, files, info)
	return info, err
}

// tracked returns the files that belong to the project, relative to root, with slashes: those git tracks, and new ones that it
// does not ignore. In a tree without git, all files but those that tools leave behind.
func tracked(root string) ([]string, error) {
	if out, err := run(root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"); err == nil {
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
	}
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == ".bin" || name == "bench/out"):
			return fs.SkipDir
		case d.Type().IsRegular():
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// complaints collects what a rule finds, each with its place.
type complaints struct {
	fset *token.FileSet
	list []string
}

func (c *complaints) add(pos token.Pos, format string, args ...any) {
	c.list = append(c.list, c.fset.Position(pos).String()+": "+fmt.Sprintf(format, args...))
}
