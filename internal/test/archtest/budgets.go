package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// A budget limits a figure of the tree. Changing a limit is a decision about the design, with a
// paragraph in docs/design.md. It is never part of a feature. No budget counts lines as such: a
// limit in lines is met by longer lines, fewer comments and no blank lines.
type budget struct {
	name    string
	by      string // how the figure is measured
	limit   int    // a larger value fails
	measure func(*figures) (int, error)
}

var budgets = []budget{
	{"root files", "Go files of the root without tests", 30, fileCount(".")},
	{"llm files", "Go files of llm without tests", 14, fileCount("llm")},
	{"cmd/pawl files", "Go files of cmd/pawl without tests", 25, fileCount("cmd/pawl")},
	{"largest file", "lines of code of a product file", 500, largestFile},
	{"long functions", "product functions over 80 lines of code", 4, longFunctions},
	{"names of pawl", "exported package-level names", 125, exportedNames(module)},
	{"names of llm", "exported package-level names", 80, exportedNames(module + "/llm")},
	{"interfaces of pawl", "exported interface types", 12, interfaces(module)},
	{"interfaces of llm", "exported interface types", 8, interfaces(module + "/llm")},
	{"methods of pawl", "methods of the largest interface", 2, methods(module)},
	{"methods of llm", "methods of the largest interface", 2, methods(module + "/llm")},
	{"root cycle", "files of the root that all reach each other", 27, rootCycle},
	{"fields of run", "fields of the struct run", 18, runFields},
}

// maxFunction is the number of lines of code after which a function counts as long. Blank lines and
// comments do not count.
const maxFunction = 80

// checkBudget returns what is wrong with a figure that has the value got. Empty means nothing.
func checkBudget(b budget, got int) string {
	if got <= b.limit {
		return ""
	}
	return fmt.Sprintf("%s: %d %s, at most %d. Make it smaller, or change the limit in budgets.go in a commit of its own, with "+
		"a paragraph in docs/design.md that gives the reason", b.name, got, b.by, b.limit)
}

// figures is what budgets are measured on.
type figures struct {
	tree  *tree
	files []*goFile
}

// product returns the product files of the folder dir. An empty dir means all folders.
func (f *figures) product(dir string) []*goFile {
	var all []*goFile
	for _, file := range f.files {
		if file.product() && (dir == "" || file.dir() == dir) {
			all = append(all, file)
		}
	}
	return all
}

// scope returns the package-level names of a package. It is empty if there is no such package.
func (f *figures) scope(path string) (*types.Scope, error) {
	u := f.tree.all[path]
	if u == nil {
		return types.NewScope(nil, token.NoPos, token.NoPos, path), nil
	}
	s, err := f.tree.source(u)
	if err != nil {
		return nil, err
	}
	return s.pkg.Scope(), nil
}

func fileCount(dir string) func(*figures) (int, error) {
	return func(f *figures) (int, error) { return len(f.product(dir)), nil }
}

func largestFile(f *figures) (n int, err error) {
	for _, file := range f.product("") {
		n = max(n, len(file.code))
	}
	return n, nil
}

func longFunctions(f *figures) (int, error) {
	long, _ := functions(f.product(""))
	return len(long), nil
}

// functions returns the long functions of the files, each with its place, and the number of all
// functions.
func functions(files []*goFile) (long []string, all int) {
	for _, f := range files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			all++
			first := f.line(fn.Pos())
			last := f.line(fn.End())
			n := f.codeLines(first, last)
			if n > maxFunction {
				long = append(long, fmt.Sprintf("%s:%d: %s has %d lines of code", f.path, first, funcName(fn), n))
			}
		}
	}
	return long, all
}

func exportedNames(path string) func(*figures) (int, error) {
	return func(f *figures) (n int, err error) {
		scope, err := f.scope(path)
		if err != nil {
			return 0, err
		}
		for _, name := range scope.Names() {
			if ast.IsExported(name) {
				n++
			}
		}
		return n, nil
	}
}

func interfaces(path string) func(*figures) (int, error) {
	return func(f *figures) (int, error) {
		scope, err := f.scope(path)
		if err != nil {
			return 0, err
		}
		return len(interfaceTypes(scope)), nil
	}
}

func methods(path string) func(*figures) (int, error) {
	return func(f *figures) (n int, err error) {
		scope, err := f.scope(path)
		if err != nil {
			return 0, err
		}
		for _, t := range interfaceTypes(scope) {
			n = max(n, t.NumMethods())
		}
		return n, nil
	}
}

// interfaceTypes returns the exported interface types of a package.
func interfaceTypes(scope *types.Scope) []*types.Interface {
	var all []*types.Interface
	for _, name := range scope.Names() {
		t, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || !t.Exported() || t.IsAlias() {
			continue
		}
		if i, ok := t.Type().Underlying().(*types.Interface); ok {
			all = append(all, i)
		}
	}
	return all
}

func rootCycle(f *figures) (int, error) {
	s, err := f.tree.source(f.tree.all[module])
	if err != nil {
		return 0, err
	}
	return len(largestCycle(fileGraph(f.tree.fset, s))), nil
}

func runFields(f *figures) (int, error) {
	scope, err := f.scope(module)
	if err != nil {
		return 0, err
	}
	obj := scope.Lookup("run")
	if obj == nil {
		return 0, errors.New("the root has no type run: it is the state that the loop works on")
	}
	s, ok := obj.Type().Underlying().(*types.Struct)
	if !ok {
		return 0, errors.New("run is not a struct")
	}
	return s.NumFields(), nil
}
