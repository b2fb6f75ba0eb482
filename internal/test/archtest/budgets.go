package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// A budget limits a figure of the tree. The limit is a ratchet: it stands at the present value, and
// follows the value down to the goal; the test lowers it with -update. Raising a limit is a commit
// of its own, with its reason.
type budget struct {
	name    string
	by      string // how the figure is measured
	limit   int    // a larger value fails
	goal    int    // the limit is lowered until it gets here
	measure func(*figures) (int, error)
}

var budgets = []budget{
	{"product", "lines of code without tests, equipment and examples", 94850, 85000, productLines},
	{"root files", "Go files of the root without tests", 26, 26, fileCount(".")},
	{"root lines", "all lines of these files", 7000, 7000, allLines(".")},
	{"largest root file", "all lines of one of these files", 500, 500, largestFile(".")},
	{"llm files", "Go files of llm without tests", 12, 12, fileCount("llm")},
	{"llm lines", "all lines of these files", 2200, 2200, allLines("llm")},
	{"largest file", "all lines of a product file", 496, 496, largestFile("")},
	{"long functions", "product functions over 80 lines", 4, 0, longFunctions},
	{"names of pawl", "exported package-level names", 113, 113, exportedNames(module)},
	{"names of llm", "exported package-level names", 73, 70, exportedNames(module + "/llm")},
	{"interfaces of pawl", "exported interface types", 7, 7, interfaces(module)},
	{"interfaces of llm", "exported interface types", 4, 4, interfaces(module + "/llm")},
	{"methods of pawl", "methods of the largest interface", 2, 2, methods(module)},
	{"methods of llm", "methods of the largest interface", 2, 2, methods(module + "/llm")},
	{"root cycle", "files of the root that all reach each other", 24, 24, rootCycle},
	{"fields of run", "fields of the struct run", 16, 16, runFields},
	{"one call", "functions of root and llm that one tool call runs", 141, 130, callFunctions},
	{"cmd/pawl files", "Go files of cmd/pawl without tests", 25, 25, fileCount("cmd/pawl")},
}

// maxFunction is the number of lines after which a function counts as long.
const maxFunction = 80

// checkBudget returns what is wrong with a figure that has the value got: "" means nothing.
func checkBudget(b budget, got int) string {
	target := max(got, b.goal)
	switch {
	case got > b.limit:
		return fmt.Sprintf("%s: %d %s, at most %d: make it smaller, or raise the limit in budgets.go in a commit of its own "+
			"that gives the reason", b.name, got, b.by, b.limit)
	case float64(target) < 0.98*float64(b.limit):
		return fmt.Sprintf("%s: %d %s, and the limit is %d: lower it to %d in budgets.go", b.name, got, b.by, b.limit, target)
	}
	return ""
}

// lower returns the source of budgets.go with the limit of b at the value got, or at the goal if
// that is larger.
func lower(source string, b budget, got int) string {
	row := fmt.Sprintf("{%q, %q, ", b.name, b.by)
	return strings.Replace(source, row+strconv.Itoa(b.limit)+",", row+strconv.Itoa(max(got, b.goal))+",", 1)
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

func productLines(f *figures) (int, error) {
	n := 0
	for _, file := range f.product("") {
		// Example applications are documentation. They have a ceiling of their own.
		if !strings.HasPrefix(file.path, "examples/") {
			n += len(file.code)
		}
	}
	return n, nil
}

func fileCount(dir string) func(*figures) (int, error) {
	return func(f *figures) (int, error) { return len(f.product(dir)), nil }
}

func allLines(dir string) func(*figures) (int, error) {
	return func(f *figures) (n int, err error) {
		for _, file := range f.product(dir) {
			n += len(file.lines)
		}
		return n, nil
	}
}

func largestFile(dir string) func(*figures) (int, error) {
	return func(f *figures) (n int, err error) {
		for _, file := range f.product(dir) {
			n = max(n, len(file.lines))
		}
		return n, nil
	}
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
			first, last := f.line(fn.Pos()), f.line(fn.End())
			if n := last - first + 1; n > maxFunction {
				long = append(long, fmt.Sprintf("%s:%d: %s has %d lines", f.path, first, funcName(fn), n))
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

func callFunctions(f *figures) (int, error) {
	path, err := callPath(f.tree.root, f.files)
	return len(path), err
}
