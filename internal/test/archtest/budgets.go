package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// A budget limits a figure of the tree. Changing a limit is a decision about the design, with a
// paragraph in docs/design.md. It is never part of a feature.
type budget struct {
	name    string
	by      string // how the figure is measured
	bound   bound
	measure func(*figures) (figure, error)
}

// A bound is the limit of a budget. It has slack on the day it is set, so that ordinary work does
// not meet it.
type bound struct {
	limit float64
	least bool // smaller values fail instead of larger ones
}

func atMost(limit float64) bound  { return bound{limit: limit} }
func atLeast(limit float64) bound { return bound{limit: limit, least: true} }

// allows reports whether a value keeps the limit.
func (b bound) allows(value float64) bool {
	if b.least {
		return value >= b.limit
	}
	return value <= b.limit
}

func (b bound) String() string {
	if b.least {
		return fmt.Sprintf("at least %g", b.limit)
	}
	return fmt.Sprintf("at most %g", b.limit)
}

// A figure is a measured value, and the places that make it what it is.
type figure struct {
	value  float64
	places []string
}

// The budgets, in the order of docs/design.md: what a reader meets in a function, in a file, in a
// package.
var budgets = slices.Concat([]budget{
	{"header", "statements in the header of if and switch that the condition does not read", atMost(0), places(ruleHeader)},
	{"packed", "assignments of three values and more that are no swap", atMost(0), places(rulePacked)},
	{"pair", "assignments of two values that are no swap", atMost(40), places(rulePair)},
	{"condition", "boolean expressions of three operators and more that are no predicate", atMost(40), places(ruleCondition)},
	{"complexity", "functions with a cyclomatic complexity over 25", atMost(0), placesOver(ruleComplexity, 25)},
	{"complex functions", "% of functions with a cyclomatic complexity over 15", atMost(3), share(ruleComplexity, maxComplexity)},
	{"long", "functions over 80 lines of code", atMost(0), places(ruleLong)},
	{"run", "% of functions with over 20 lines of code in a row", atMost(5), share(ruleRun, maxRun)},
	{"long run", "% of functions with over 30 lines of code in a row", atMost(1), share(ruleRun, 30)},
	{"paragraphs", "% of functions of 15 lines of code and more with a blank line", atLeast(45), ofBig((*clarity).blankShare)},
	{"reasons", "% of functions of 15 lines of code and more with a comment", atLeast(40), ofBig((*clarity).commentedShare)},
	{"comments", "% of the lines inside functions that are comments", atLeast(1.8), ofBig((*clarity).commentShare)},
	{"wide", "lines of code over 120 columns", atMost(400), placesOver(ruleWide, codeColumns)},
	{"very wide", "lines of code over 160 columns", atMost(0), placesOver(ruleWide, 160)},
	{"field", "exported fields of public packages without a comment", atMost(0), places(ruleField)},
	{"letter", "fields of one letter in structs of more than three fields", atMost(0), places(ruleLetter)},
	{"anonymous", "interfaces with methods and without a name", atMost(3), places(ruleAnonymous)},
	{"vague", "methods named " + strings.Join(vague, " "), atMost(25), places(ruleVague)},
	{"largest file", "lines of code of a product file", atMost(500), largestFile},

	{"root files", "Go files of the root without tests", atMost(33), fileCount(".")},
	{"llm files", "Go files of llm without tests", atMost(14), fileCount("llm")},
	{"cmd/pawl files", "Go files of cmd/pawl without tests", atMost(25), fileCount("cmd/pawl")},
	{"interfaces of pawl", "exported interface types", atMost(12), interfaces(module)},
	{"interfaces of llm", "exported interface types", atMost(8), interfaces(module + "/llm")},
	{"methods of pawl", "methods of the largest interface", atMost(2), methods(module)},
	{"methods of llm", "methods of the largest interface", atMost(2), methods(module + "/llm")},
	{"fields of run", "fields of the struct run", atMost(18), runFields},
},
	perPackage("tokens", "tokens of the product files of a package", atMost(24_000), tokens, []room{
		{".", atMost(51_500)},
		{"internal/agentfile", atMost(42_000)},
		{"mcp", atMost(33_000)},
		{"internal/dialect", atMost(30_000)},
		{"server/internal/runs", atMost(26_000)},
	}),
	perPackage("cycle", "files of a package that all reach each other", atMost(14), cycle, []room{
		{".", atMost(29)},
		{"sandbox", atMost(18)},
		{"internal/agentfile", atMost(15)},
	}),
	perPackage("names", "exported package-level names of a public package", atMost(45), exportedNames, []room{
		{".", atMost(139)},
		{"llm", atMost(95)},
		{"store", atMost(75)},
	}),
)

// A room is a package with a bound of its own.
type room struct {
	dir   string
	bound bound
}

// perPackage returns a budget for the largest package, and one for each package with a bound of its
// own.
func perPackage(name, by string, b bound, measure func(*figures, string) (float64, error), rooms []room) []budget {
	var own []string
	for _, r := range rooms {
		own = append(own, r.dir)
	}
	largest := func(f *figures) (all figure, err error) {
		for _, dir := range f.packages() {
			if slices.Contains(own, dir) {
				continue
			}
			value, err := measure(f, dir)
			if err != nil {
				return all, err
			}
			if !b.allows(value) {
				all.places = append(all.places, fmt.Sprintf("%s has %g", dir, value))
			}
			all.value = max(all.value, value)
		}
		return all, nil
	}
	list := []budget{{name, by, b, largest}}

	for _, r := range rooms {
		one := func(f *figures) (figure, error) {
			value, err := measure(f, r.dir)
			return figure{value: value}, err
		}
		list = append(list, budget{name + " of " + r.dir, by, r.bound, one})
	}
	return list
}

// maxPlaces is the number of places that a complaint lists.
const maxPlaces = 10

// checkBudget returns what is wrong with a figure. Empty means nothing.
func checkBudget(b budget, got figure) string {
	if b.bound.allows(got.value) {
		return ""
	}
	lines := []string{fmt.Sprintf("%s: %.6g %s, %s. Make the text better, or write %sRULE REASON above a place that the rule "+
		"makes worse. A changed limit in budgets.go is a decision about the design: a commit of its own, with a paragraph in "+
		"docs/design.md", b.name, got.value, b.by, b.bound, waiverPrefix)}
	for i, place := range got.places {
		if i == maxPlaces {
			lines = append(lines, fmt.Sprintf("and %d more; -run Budgets -v -places %q lists them", len(got.places)-i, b.name))
			break
		}
		lines = append(lines, place)
	}
	return strings.Join(lines, "\n\t")
}

// figures is what budgets are measured on.
type figures struct {
	tree    *tree
	files   []*goFile
	clarity *clarity // of the product
}

func newFigures(tree *tree, files []*goFile) *figures {
	f := &figures{tree: tree, files: files}
	var all []*clarity
	for _, file := range f.product("") {
		all = append(all, clarityOf(file))
	}
	f.clarity = sum(all)
	return f
}

// product returns the product files of the folder dir. An empty dir means all folders.
func (f *figures) product(dir string) []*goFile {
	var all []*goFile
	for _, file := range f.files {
		if file.shipped && (dir == "" || file.dir() == dir) {
			all = append(all, file)
		}
	}
	return all
}

// packages returns the folders of the product, in alphabetical order.
func (f *figures) packages() []string {
	dirs := map[string]bool{}
	for _, file := range f.product("") {
		dirs[file.dir()] = true
	}
	return slices.Sorted(maps.Keys(dirs))
}

// source returns a package, parsed and type-checked. nil means that it does not exist.
func (f *figures) source(path string) (*source, error) {
	u := f.tree.all[path]
	if u == nil {
		return nil, nil
	}
	return f.tree.source(u)
}

// scope returns the package-level names of a package. It is empty if there is no such package.
func (f *figures) scope(path string) (*types.Scope, error) {
	s, err := f.source(path)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return types.NewScope(nil, token.NoPos, token.NoPos, path), nil
	}
	return s.pkg.Scope(), nil
}

// places counts the places of a rule.
func places(r rule) func(*figures) (figure, error) { return placesOver(r, -1) }

// placesOver counts the places of a rule that have a value over limit.
func placesOver(r rule, limit int) func(*figures) (figure, error) {
	return func(f *figures) (figure, error) {
		found := f.clarity.over(r, limit)
		return figure{float64(len(found)), placesOf(found)}, nil
	}
}

// share returns the part of all functions that has a finding over limit, in percent.
func share(r rule, limit int) func(*figures) (figure, error) {
	return func(f *figures) (figure, error) {
		found := f.clarity.over(r, limit)
		return figure{percent(len(found), f.clarity.functions), placesOf(found)}, nil
	}
}

// placesOf returns findings as text, with what was measured.
func placesOf(list []finding) []string {
	const shown = 100 // bytes of a line of source
	var all []string
	for _, f := range list {
		text := strings.TrimSpace(f.text)
		if len(text) > shown {
			text = strings.ToValidUTF8(text[:shown], "") + "…"
		}
		place := fmt.Sprintf("%s:%d: %s", f.path, f.line, text)
		if f.value > 0 {
			place += fmt.Sprintf(" (%d)", f.value)
		}
		all = append(all, place)
	}
	return all
}

func ofBig(value func(*clarity) float64) func(*figures) (figure, error) {
	return func(f *figures) (figure, error) { return figure{value: value(f.clarity)}, nil }
}

func (c *clarity) blankShare() float64     { return percent(c.bigBlank, c.big) }
func (c *clarity) commentedShare() float64 { return percent(c.bigCommented, c.big) }
func (c *clarity) commentShare() float64   { return percent(c.bodyComments, c.bodyLines) }

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

func fileCount(dir string) func(*figures) (figure, error) {
	return func(f *figures) (figure, error) { return figure{value: float64(len(f.product(dir)))}, nil }
}

func largestFile(f *figures) (largest figure, err error) {
	for _, file := range f.product("") {
		if n := float64(len(file.code)); n > largest.value {
			largest = figure{n, []string{file.path}}
		}
	}
	return largest, nil
}

func tokens(f *figures, dir string) (float64, error) {
	n := 0
	for _, file := range f.product(dir) {
		if !ast.IsGenerated(file.ast) {
			n += file.tokens
		}
	}
	return float64(n), nil
}

func cycle(f *figures, dir string) (float64, error) {
	s, err := f.source(importPath(dir))
	if err != nil || s == nil {
		return 0, err
	}
	return float64(len(largestCycle(fileGraph(f.tree.fset, s)))), nil
}

// exportedNames counts the package-level names of a package that users can import.
func exportedNames(f *figures, dir string) (float64, error) {
	files := f.product(dir)
	if len(files) == 0 || !files[0].public() {
		return 0, nil
	}
	scope, err := f.scope(importPath(dir))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, name := range scope.Names() {
		if ast.IsExported(name) {
			n++
		}
	}
	return float64(n), nil
}

func interfaces(path string) func(*figures) (figure, error) {
	return func(f *figures) (figure, error) {
		scope, err := f.scope(path)
		if err != nil {
			return figure{}, err
		}
		return figure{value: float64(len(interfaceTypes(scope)))}, nil
	}
}

func methods(path string) func(*figures) (figure, error) {
	return func(f *figures) (figure, error) {
		scope, err := f.scope(path)
		if err != nil {
			return figure{}, err
		}
		n := 0
		for _, t := range interfaceTypes(scope) {
			n = max(n, t.NumMethods())
		}
		return figure{value: float64(n)}, nil
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

func runFields(f *figures) (figure, error) {
	scope, err := f.scope(module)
	if err != nil {
		return figure{}, err
	}
	obj := scope.Lookup("run")
	if obj == nil {
		return figure{}, errors.New("the root has no type run: it is the state that the loop works on")
	}
	s, ok := obj.Type().Underlying().(*types.Struct)
	if !ok {
		return figure{}, errors.New("run is not a struct")
	}
	return figure{value: float64(s.NumFields())}, nil
}
