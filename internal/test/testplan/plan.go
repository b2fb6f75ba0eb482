package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// soakPath ends the import path of the package whose users are the tests of `make soak`.
const soakPath = "internal/test/soak"

// long lists the packages that take longest, in that order. Only the order of a run depends on it.
var long = []string{"cmd/pawl", "durable/temporal", "durable", "tools/code", ".", "mcp", "sandbox", "viewer", "pawltest", "store/postgres", "server"}

// pkg is a package with its tests.
type pkg struct {
	path, rel  string
	concurrent string   // the first concurrent construct in it; empty means none
	soak       []string // its tests whose size package soak sets, sorted
	sequential []string // its tests that call soak.Sequential, sorted
}

func (p *pkg) mode() string {
	if p.concurrent != "" {
		return "race"
	}
	return "plain"
}

// load reads the packages of the module in dir.
func load(dir string) ([]*pkg, error) {
	list := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Module", "./...")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []*pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var u struct {
			ImportPath, Dir                              string
			GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
			Module                                       struct{ Path string }
		}
		if err := d.Decode(&u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		p := &pkg{path: u.ImportPath,
			rel: cmp.Or(strings.TrimPrefix(strings.TrimPrefix(u.ImportPath, u.Module.Path), "/"), ".")}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range slices.Concat(u.GoFiles, u.CgoFiles, u.TestGoFiles, u.XTestGoFiles) {
			f, err := parser.ParseFile(fset, filepath.Join(u.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		for _, f := range files {
			p.concurrent = cmp.Or(p.concurrent, concurrent(fset, f))
		}
		p.soak, p.sequential = using(files, "N", "On", "Only", "Env"), using(files, "Sequential")
		packages = append(packages, p)
	}
	slices.SortStableFunc(packages, func(a, b *pkg) int { return cmp.Compare(rank(a.rel), rank(b.rel)) })
	return packages, nil
}

func rank(rel string) int {
	if i := slices.Index(long, rel); i >= 0 {
		return i
	}
	return len(long)
}

// concurrent returns the first construct in f that only concurrent code has, with its place. Empty
// means none. A program that os/exec runs to its end is not concurrent with its caller.
func concurrent(fset *token.FileSet, f *ast.File) string {
	executes := false
	for _, imp := range f.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		executes = executes || name == "os/exec"
		if concurrentImport(name) {
			return fmt.Sprintf("%s imports %s", filepath.Base(fset.Position(f.Package).Filename), name)
		}
	}
	found := ""
	ast.Inspect(f, func(n ast.Node) bool {
		if what := concurrentNode(n, executes); what != "" && found == "" {
			at := fset.Position(n.Pos())
			found = fmt.Sprintf("%s:%d has %s", filepath.Base(at.Filename), at.Line, what)
		}
		return found == ""
	})
	return found
}

func concurrentImport(name string) bool {
	switch name {
	case "sync", "sync/atomic", "testing/synctest", "net":
		return true
	case "net/url", "net/netip":
		return false
	}
	return strings.HasPrefix(name, "net/")
}

// concurrentNode returns the reason why n is concurrent. Empty means that it is not. executes means
// that the file imports os/exec.
func concurrentNode(n ast.Node, executes bool) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.SelectStmt:
		return "a select statement"
	case *ast.ChanType, *ast.SendStmt:
		return "a channel"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a channel"
		}
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		switch {
		case !ok:
		case s.Sel.Name == "Parallel" && len(n.Args) == 0:
			return "a parallel test"
		case executes && slices.Contains([]string{"Start", "StdinPipe", "StdoutPipe", "StderrPipe"}, s.Sel.Name):
			return "a started process"
		}
	}
	return ""
}

// using returns the names of the tests in files that use one of the given functions of package
// soak, directly or through functions and variables of these files. Methods do not count.
func using(files []*ast.File, functions ...string) []string {
	uses := map[string]map[string]bool{} // the names that each declaration uses
	for _, f := range files {
		local := ""
		for _, imp := range f.Imports {
			if name, _ := strconv.Unquote(imp.Path.Value); strings.HasSuffix(name, "/"+soakPath) {
				local = path.Base(soakPath)
				if imp.Name != nil {
					local = imp.Name.Name
				}
			}
		}
		for _, d := range f.Decls {
			for name, body := range declared(d) {
				if uses[name] == nil {
					uses[name] = map[string]bool{}
				}
				var look func(n ast.Node) bool
				look = func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.SelectorExpr:
						x, ok := n.X.(*ast.Ident)
						if ok && local != "" && x.Name == local && slices.Contains(functions, n.Sel.Name) {
							uses[name][soakPath] = true
						}
						ast.Inspect(n.X, look)
						return false // a field or a method is no function of the package
					case *ast.Ident:
						uses[name][n.Name] = true
					}
					return true
				}
				ast.Inspect(body, look)
			}
		}
	}
	reached := map[string]bool{soakPath: true}
	for grown := true; grown; {
		grown = false
		for name, used := range uses {
			if reached[name] {
				continue
			}
			for u := range used {
				if reached[u] {
					reached[name], grown = true, true
					break
				}
			}
		}
	}
	var tests []string
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		if strings.HasPrefix(name, "Test") && name != "TestMain" && uses[name] != nil {
			tests = append(tests, name)
		}
	}
	return tests
}

// declared returns the functions and variables of a declaration at package level, each with its
// source.
func declared(d ast.Decl) map[string]ast.Node {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return map[string]ast.Node{d.Name.Name: d}
		}
	case *ast.GenDecl:
		all := map[string]ast.Node{}
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				for _, n := range v.Names {
					all[n.Name] = v
				}
			}
		}
		return all
	}
	return nil
}
