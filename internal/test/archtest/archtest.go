// Package archtest holds the house rules that a program can check. They are ordinary tests: each
// failure says what is wrong in the tree and why the rule exists.
//
//	columns.go    comments and struct tags end at column 100, code at column 120
//	words.go      comments and documents use plain technical English
//	pending.go    the places that do not follow columns and words yet
//	arrows.go     which package imports which, and what the core pulls in
//	modules.go    the modules of the project, and what they may import and require of each other
//	loop.go       the loop of the core is sequential, deterministic and short
//	budgets.go    the figures of the whole tree and of each package, and their limits
//	clarity.go    what a reader meets; statements.go, bodies.go and declarations.go find it
//	waivers.go    the places where a rule of clarity would make the text worse
//	callpath.go   the functions that one tool call runs
//	comments.go   every exported name states its contract, every package has a comment
//	state.go      no package has mutable state of its own
//	wrappers.go   a Model around another Model has the method Unwrap
//	tools.go      the description of a tool is a page of prose in the tool's folder
//	text.go       no file names a path of the machine it was written on
//
// Each rule is a function from source to complaints. Its tests give it a small source that breaks
// the rule and expect the complaint, because a rule that cannot fail protects nothing.
//
// tree.go loads the modules once for all rules; files.go reads their source files.
package archtest

import (
	"fmt"
	"go/token"
)

// module is the path of the root's module, and the beginning of the paths of the nested modules.
const module = "github.com/pawl-go/pawl"

// complaints collects the violations of a rule, each with its position.
type complaints struct {
	fset *token.FileSet
	list []string
}

func (c *complaints) add(pos token.Pos, format string, args ...any) {
	c.list = append(c.list, c.fset.Position(pos).String()+": "+fmt.Sprintf(format, args...))
}
