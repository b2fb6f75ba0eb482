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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unit is a package as `go list` describes it.
type unit struct {
	ImportPath, Name, Dir, Export string
	Standard                      bool
	GoFiles                       []string
	TestGoFiles, XTestGoFiles     []string
	Imports, Deps                 []string
	TestImports, XTestImports     []string
	Module                        *struct{ Path string }
	Error                         *struct{ Err string }
}

// rel returns the path of the package within the module: "." for the core.
func (u *unit) rel() string { return relative(u.ImportPath) }

func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// tree is the module as it stands on disk. It is loaded once and shared by all tests, which read it
// one after another.
type tree struct {
	root     string           // the folder of go.mod
	ours     []*unit          // the packages of the module that compile
	bad      []string         // the errors of the packages that do not
	all      map[string]*unit // the packages of the module and their dependencies, by import path
	fset     *token.FileSet
	importer types.Importer
	checked  map[string]*source // the packages that rules have asked for
}

// source is a parsed and type-checked package, without its tests.
type source struct {
	files []*ast.File
	info  *types.Info
	pkg   *types.Package
}

// importPath is the inverse of relative.
func importPath(rel string) string {
	if rel == "." {
		return module
	}
	return module + "/" + rel
}

// load lists the module that contains the working directory, and the other modules of its
// workspace.
func load() (*tree, error) {
	mod, err := run("", "go", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	t := &tree{
		root:    filepath.Dir(strings.TrimSpace(string(mod))),
		all:     map[string]*unit{},
		fset:    token.NewFileSet(),
		checked: map[string]*source{},
	}
	t.importer = importer.ForCompiler(t.fset, "gc", t.export)

	modules, err := run(t.root, "go", "list", "-m", "-f", "{{.Path}}/...")
	if err != nil {
		return nil, err
	}
	list := []string{"list", "-e", "-export", "-deps",
		"-json=ImportPath,Name,Dir,Export,Standard,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps,TestImports,XTestImports,Module,Error"}
	out, err := run(t.root, "go", append(list, strings.Fields(string(modules))...)...)
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
		t.add(u)
	}
}

func (t *tree) add(u *unit) {
	t.all[u.ImportPath] = u
	switch {
	case u.Error != nil:
		t.bad = append(t.bad, u.ImportPath+": "+u.Error.Err)
	case u.Export == "" && u.ImportPath != "unsafe" && len(u.GoFiles) > 0:
		t.bad = append(t.bad, u.ImportPath+": it does not compile")
	case u.Module != nil && matches(module+"/...", u.Module.Path):
		t.ours = append(t.ours, u)
	}
}

// shipped are the programs and libraries that users get and no other part of the product imports.
var shipped = []string{"cmd/pawl", "server/client"}

// product returns the folders of the packages that users get: what shipped links. Sizes and rules
// of clarity do not apply to other packages.
func (t *tree) product() map[string]bool {
	dirs := map[string]bool{}
	for _, s := range shipped {
		dirs[s] = true
		if u := t.all[importPath(s)]; u != nil {
			for _, dep := range u.Deps {
				dirs[relative(dep)] = true
			}
		}
	}
	return dirs
}

// export opens the compiler's export data of a package.
func (t *tree) export(path string) (io.ReadCloser, error) {
	u := t.all[path]
	if u == nil || u.Export == "" {
		return nil, fmt.Errorf("no export data of %s", path)
	}
	return os.Open(u.Export)
}

// source parses and type-checks the package u, once.
func (t *tree) source(u *unit) (*source, error) {
	if s := t.checked[u.ImportPath]; s != nil {
		return s, nil
	}
	s := new(source)
	for _, name := range u.GoFiles {
		path := filepath.Join(u.Dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		short, err := filepath.Rel(t.root, path)
		if err != nil {
			return nil, err
		}
		const mode = parser.ParseComments | parser.SkipObjectResolution
		f, err := parser.ParseFile(t.fset, filepath.ToSlash(short), content, mode)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, f)
	}
	err := s.check(t.fset, u.ImportPath, t.importer)
	if err != nil {
		return nil, err
	}
	t.checked[u.ImportPath] = s
	return s, nil
}

// check computes the types in the files of s.
func (s *source) check(fset *token.FileSet, path string, imp types.Importer) error {
	s.info = &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Defs:       map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	var err error
	s.pkg, err = (&types.Config{Importer: imp}).Check(path, fset, s.files, s.info)
	return err
}

// run executes a program in the folder dir and returns its standard output.
func run(dir, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}
