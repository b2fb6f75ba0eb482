package archtest

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// goFile is one Go source file of the project. Unlike the files of a unit, it may be a test or have
// a build constraint that excludes it on this machine.
type goFile struct {
	path  string // relative to the module, with slashes
	lines []string
	fset  *token.FileSet
	ast   *ast.File

	code      map[int]bool // the lines that hold more than a comment, from 1
	commented map[int]bool // the lines that hold a comment or a part of one
	tokens    int          // tokens of the language, without comments

	shipped bool // users get it: neither a test nor test equipment
}

// parseGo parses the content of the Go file at path.
func parseGo(path string, content []byte) (*goFile, error) {
	f := &goFile{path: path, fset: token.NewFileSet(), code: map[int]bool{}, commented: map[int]bool{}}
	var err error
	f.ast, err = parser.ParseFile(f.fset, path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f.lines = strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	f.scan(content)
	return f, nil
}

// scan counts the tokens and marks the lines: code is each line that a token touches, other than a
// comment or a semicolon that the scanner inserts.
func (f *goFile) scan(content []byte) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile(f.path, -1, len(content))
	s.Init(file, content, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		lines := f.code
		switch {
		case tok == token.EOF:
			return
		case tok == token.SEMICOLON && lit != ";":
			continue
		case tok == token.COMMENT:
			lines = f.commented
		default:
			f.tokens++
		}

		first := file.Line(pos)
		for i := range strings.Count(lit, "\n") + 1 {
			lines[first+i] = true
		}
	}
}

// codeLines returns the number of lines of code from line first to line last.
func (f *goFile) codeLines(first, last int) int {
	n := 0
	for line := first; line <= last; line++ {
		if f.code[line] {
			n++
		}
	}
	return n
}

// dir returns the folder of the file, which is also the path of its package within the module.
func (f *goFile) dir() string { return path.Dir(f.path) }

// test reports whether the file is a test.
func (f *goFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// line returns the line number of pos, from 1.
func (f *goFile) line(pos token.Pos) int { return f.fset.Position(pos).Line }

// width returns the number of columns of a text. A tab counts as 4.
func width(s string) int { return utf8.RuneCountInString(s) + 3*strings.Count(s, "\t") }

// goFiles reads all Go files of the project except test data.
func goFiles(root string) ([]*goFile, error) {
	names, err := tracked(root)
	if err != nil {
		return nil, err
	}
	var files []*goFile
	for _, name := range names {
		if !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, but not committed yet
		}
		if err != nil {
			return nil, err
		}
		f, err := parseGo(name, content)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// tracked returns the paths of the project's files, relative to root, with slashes: the files that
// git tracks, and new files that it does not ignore. Without git, it returns all files except the
// output of tools.
func tracked(root string) ([]string, error) {
	list := []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"}
	if out, err := run(root, "git", list...); err == nil {
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
