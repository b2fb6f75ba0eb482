package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// longest is the number of lines that a function of the loop may have, so that it fits on a screen.
const longest = 70

// refused are the names that the file of the loop does not use, by import path: "" is the whole
// package.
//
// The loop runs in memory, over a journal, and as a workflow that is replayed. It makes the same
// decisions each time only if messages, replies and executions alone decide.
var refused = map[string]map[string]string{
	"time": {"Now": clock, "Since": clock, "Until": clock, "After": clock, "AfterFunc": clock, "Tick": clock,
		"NewTimer": clock, "NewTicker": clock, "Sleep": clock},
	"context": {"WithTimeout": clock, "WithTimeoutCause": clock, "WithDeadline": clock, "WithDeadlineCause": clock,
		"AfterFunc": "it starts a goroutine; goroutines live in executors"},
	"iter":         {"Pull": "it starts a coroutine; range over the sequence", "Pull2": "it starts a coroutine; range over the sequence"},
	"maps":         {"Keys": order, "Values": order, "All": order, "Collect": order},
	"math/rand":    {"": chance},
	"math/rand/v2": {"": chance},
	"crypto/rand":  {"": chance},
	"os":           {"": "the loop does not look at the machine"},
	"sync":         {"": "the loop is sequential; locks belong to executors"},
	"sync/atomic":  {"": "the loop is sequential; atomics belong to executors"},
}

const (
	clock  = "the loop reads no clock; an engine that has one cancels the context with cause ErrTime"
	chance = "the loop draws no random number; keys are made from the transcript"
	order  = "the order of a map differs from run to run"
)

// checkLoop returns the parts of file that can differ between two runs over the same replies, and
// the functions that are too long.
func checkLoop(fset *token.FileSet, file *ast.File, info *types.Info) []string {
	c := &complaints{fset: fset}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			c.add(n.Pos(), "a go statement: the loop is sequential; goroutines live in executors, servers and stores")
		case *ast.SelectStmt:
			c.add(n.Pos(), "select: the loop is sequential and does not wait on channels; executors and models do")
		case *ast.SendStmt:
			c.add(n.Pos(), "a channel send: the loop is sequential; what happens leaves it through its iter.Seq2")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				c.add(n.Pos(), "a channel receive: the loop is sequential; what it needs comes by ranging over a sequence")
			}
		case *ast.RangeStmt:
			switch info.TypeOf(n.X).Underlying().(type) {
			case *types.Map:
				c.add(n.Pos(), "range over a map: %s, so a replay would differ; range over a slice", order)
			case *types.Chan:
				c.add(n.Pos(), "range over a channel: the loop is sequential; what it needs comes by ranging over a sequence")
			}
		case *ast.SelectorExpr:
			if isTool(info.TypeOf(n.X)) {
				c.add(n.Pos(), "%s of a tool: the loop never looks at a tool, so that engines can supply their own; "+
					"the pipeline does", n.Sel.Name)
			}
		case *ast.Ident:
			obj := info.Uses[n]
			if obj == nil || obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
				return true // a local, a field or a method
			}
			names := refused[obj.Pkg().Path()]
			why, ok := names[""]
			if !ok {
				why, ok = names[obj.Name()]
			}
			if ok {
				c.add(n.Pos(), "%s.%s: %s", obj.Pkg().Name(), obj.Name(), why)
			}
		case *ast.FuncDecl:
			lines := fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
			if lines > longest {
				c.add(n.Pos(), "%s has %d lines; a function of the loop has at most %d, so that it fits on a screen",
					n.Name.Name, lines, longest)
			}
		}
		return true
	})
	return c.list
}

// isTool reports whether t is a type called Tool, or a pointer to it. A nil type is not.
func isTool(t types.Type) bool {
	if t == nil {
		return false
	}
	name := types.TypeString(t, func(*types.Package) string { return "" })
	return strings.TrimPrefix(name, "*") == "Tool"
}
