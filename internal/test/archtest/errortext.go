package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// foreignTexts are the functions that may read the text of an error, and why: the error is of the
// standard library, of a module, or of an implementation under test, and no value says the same.
var foreignTexts = map[string]string{
	"cmd/pawl.misused":                            "github.com/alecthomas/kong: what is wrong with a command line",
	"cmd/pawl/internal/cli.located":               "encoding/json: base64 that is not valid",
	"cmd/pawl/internal/cli.Failed":                "a hidden error has no tree, only its text says whether one model failed",
	"internal/schema/gotype.validation.call":      "two faults of one text are one, whoever wrote them",
	"mcp.host.pollVersion":                        "compares two versions of a resource, or why there is none",
	"pawltest.adapter.testFault":                  "no error of the adapter under test has the key",
	"pawltest/internal/suite/model.testRefusal":   "the error of the model under test has the words of its provider",
	"pawltest/internal/suite/runner.testTogether": "the answer of the runner under test, or its error",
	"redact.redaction.error":                      "whether something was hidden in the text",
	"store/sqlite.ours":                           "modernc.org/sqlite: a file that is no database",
	"store/storetest.journalSeals":                "the error of the store under test names the changed column",
	"tools/code.notAProgram":                      "go.starlark.net: a name that is not defined",
	"tools/file.Set.explain":                      "os.Root: a path that escapes, and too many links",
	"tools/internal/document.readPDF":             "github.com/ledongthuc/pdf: a file that is encrypted",
	"tools/internal/webpage.plain":                "net, net/http and crypto/tls: kinds of broken connections",
}

// deciding are the functions of strings whose result a program branches on. Trim and Replace are
// not among them: they only change how a text is shown.
var deciding = []string{"Contains", "ContainsAny", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "HasPrefix",
	"HasSuffix", "Index", "LastIndex", "Split", "SplitN"}

// errorTexts returns the places of a file that decide by the text of an error, or by a hint. It
// records in used which functions of foreignTexts do.
func errorTexts(f *goFile, used map[string]bool) (bad []string) {
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}

		name := functionName(f.dir(), fn)
		texts := textsOf(fn.Body)
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch {
			case !readsText(n, texts):
			case foreignTexts[name] != "":
				used[name] = true
			default:
				bad = append(bad, fmt.Sprintf("%s:%d: %s decides by the text of an error: give the error a type, a value or "+
					"a field, and ask errors.Is or errors.As", f.path, f.line(n.Pos()), name))
			}
			return true
		})
	}
	return bad
}

// functionName returns PACKAGE.FUNCTION or PACKAGE.TYPE.METHOD, with the folder of the package.
func functionName(dir string, fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return dir + "." + fn.Name.Name
	}
	return dir + "." + receiver(fn) + "." + fn.Name.Name
}

// textsOf returns the variables of a function that hold the text of an error.
func textsOf(body *ast.BlockStmt) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if !ok || len(as.Lhs) != len(as.Rhs) {
			return true
		}
		for i, value := range as.Rhs {
			if id, ok := as.Lhs[i].(*ast.Ident); ok && isText(value, nil) {
				names = append(names, id.Name)
			}
		}
		return true
	})
	return names
}

// isText reports whether e is the text of an error, a hint, a variable of texts, or such a text in
// other letters or without spaces.
func isText(e ast.Expr, texts []string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains(texts, e.Name)
	case *ast.SelectorExpr:
		return e.Sel.Name == "Hint"
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if sel.Sel.Name == "Error" && len(e.Args) == 0 {
			return true
		}
		same := strings.HasPrefix(sel.Sel.Name, "To") || strings.HasPrefix(sel.Sel.Name, "Trim")
		return isOfStrings(sel) && same && isText(e.Args[0], texts)
	}
	return false
}

// isOfStrings reports whether sel is a function of package strings.
func isOfStrings(sel *ast.SelectorExpr) bool {
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == "strings"
}

// readsText reports whether n decides by a text of an error: a function of deciding, a comparison
// with another text than the empty one, or a switch over it.
func readsText(n ast.Node, texts []string) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || !isOfStrings(sel) || !slices.Contains(deciding, sel.Sel.Name) {
			return false
		}
		return slices.ContainsFunc(n.Args, func(e ast.Expr) bool { return isText(e, texts) })

	case *ast.BinaryExpr:
		if n.Op != token.EQL && n.Op != token.NEQ || isEmptyText(n.X) || isEmptyText(n.Y) {
			return false
		}
		return isText(n.X, texts) || isText(n.Y, texts)

	case *ast.SwitchStmt:
		return n.Tag != nil && isText(n.Tag, texts)
	}
	return false
}

// isEmptyText reports whether e is "" or nil.
func isEmptyText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value == `""`
	case *ast.Ident:
		return e.Name == "nil"
	}
	return false
}
