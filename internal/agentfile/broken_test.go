package agentfile_test

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"

	"github.com/pawl-go/pawl/internal/agentfile"
)

var update = flag.Bool("update", false, "write what is expected again; read the difference before it is committed")

// environment is the environment for the files of testdata.
func environment(name string) string {
	return map[string]string{"SECRET_TOKEN": "tok-0123456789", "FIVE": "5", "STRUCTURE": "auto\nfoo: bar", "OPENAI_API_KEY": "sk-test-0123456789"}[name]
}

// findings lists the findings of a file, one a line: the code, and the text that pawl check prints.
func findings(name string) string {
	var out strings.Builder
	file, err := agentfile.Load(name, &agentfile.LoadOptions{Getenv: environment})
	all := agentfile.FindingsOf(err)
	for _, a := range file.Agents {
		all = append(all, a.Warnings()...)
		if err == nil {
			all = append(all, a.Check(context.Background(), &agentfile.Options{Getenv: environment})...)
		}
	}
	for _, f := range all {
		fmt.Fprintf(&out, "%s %s\n", f.Code, f)
	}
	return out.String()
}

// The text above the files of each archive in testdata/broken lists every finding of agent.yaml,
// with its place and hint.
func TestBroken(t *testing.T) {
	paths, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(err, "no files")
	}
	seen := map[agentfile.Code]bool{agentfile.CodeUnreadable: findings("gone.yaml") == "unreadable gone.yaml: no such file or directory (pawl init writes a first file)\n"}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for _, f := range ar.Files {
				if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got := findings(filepath.Join(dir, "agent.yaml"))
			got = strings.ReplaceAll(got, dir+string(filepath.Separator), "")
			for line := range strings.Lines(got) {
				code, _, _ := strings.Cut(line, " ")
				seen[agentfile.Code(code)] = true
			}
			if strings.Contains(got, "0123456789") {
				t.Errorf("a value of the environment is shown:\n%s", got)
			}
			if *update {
				ar.Comment = []byte(got)
				if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(got, string(ar.Comment)); diff != "" || got == "" {
				t.Errorf("got -, want +\n%s", diff)
			}
		})
	}
	for _, code := range agentfile.Codes() {
		if !seen[code] {
			t.Errorf("no file in testdata/broken shows the code %s", code)
		}
	}
}

// The list of codes has every code that is declared.
func TestCodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "finding.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var declared []agentfile.Code
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && strings.HasPrefix(v.Names[0].Name, "Code") {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, agentfile.Code(text))
		}
		return true
	})
	if diff := cmp.Diff(agentfile.Codes(), declared,
		cmpopts.SortSlices(func(a, b agentfile.Code) bool { return a < b })); diff != "" || len(declared) == 0 {
		t.Errorf("got -, declared +\n%s", diff)
	}
}
