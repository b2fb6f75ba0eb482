package archtest

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// callPath returns the functions of the core that run in the test of package onecall, which
// executes one tool call. A name has the form "loop.go:(run).loop". Function literals belong to the
// function around them.
func callPath(root string, files []*goFile) ([]string, error) {
	core := []string{module}
	if slices.ContainsFunc(files, func(f *goFile) bool { return f.dir() == "llm" }) {
		core = append(core, module+"/llm")
	}
	dir, err := os.MkdirTemp("", "archtest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	profile := filepath.Join(dir, "cover")
	_, err = run(root, "go", "test", "-coverprofile="+profile, "-coverpkg="+strings.Join(core, ","),
		"./internal/test/archtest/onecall")
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	covered, err := coveredLines(string(content))
	if err != nil {
		return nil, err
	}
	var path []string
	for _, f := range files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || f.test() {
				continue
			}
			first, last := f.line(fn.Pos()), f.line(fn.End())
			runs := func(line int) bool { return first <= line && line <= last }
			if slices.ContainsFunc(covered[f.path], runs) {
				path = append(path, f.path+":"+funcName(fn))
			}
		}
	}
	return path, nil
}

// coveredLines returns the first line of each block of a coverage profile that ran, by file.
func coveredLines(profile string) (map[string][]int, error) {
	lines := map[string][]int{}
	for l := range strings.Lines(profile) {
		name, rest, found := strings.Cut(strings.TrimPrefix(l, module+"/"), ":")
		var line, column, endLine, endColumn, statements, count int
		if !found || name == "mode" {
			continue
		}
		_, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &line, &column, &endLine, &endColumn, &statements, &count)
		if err != nil {
			return nil, fmt.Errorf("coverage profile: %q: %w", l, err)
		}
		if count > 0 {
			lines[name] = append(lines[name], line)
		}
	}
	return lines, nil
}

// funcName returns the name of a function as profiles print it: "find" or "(run).loop".
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	return "(" + receiver(d) + ")." + d.Name.Name
}
