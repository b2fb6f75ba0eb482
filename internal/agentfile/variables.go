package agentfile

// variables.go: ${NAME} in the scalars of a file.

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// expanded is a scalar in which variables were replaced.
type expanded struct {
	written string   // what the file says, which is what findings show
	names   []string // the variables that were set
	values  []string // what they had

	// callers are the fields of the caller of a run, such as ${caller.token}. They stay in the
	// text.
	callers []string
}

// expand replaces ${NAME} and ${NAME:-default} in the text of n; $${ means ${. It returns nil if
// there is nothing to replace. For any values, the result stays the text of one scalar.
func (r *reading) expand(n *yaml.Node) *expanded {
	if !strings.Contains(n.Value, "${") {
		return nil
	}
	e := &expanded{written: n.Value}
	var out strings.Builder
	rest := n.Value
	for {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(strings.TrimSuffix(before, "$"))
		if !found {
			if strings.HasSuffix(before, "$") {
				out.WriteByte('$')
			}
			return e.into(n, out.String())
		}
		if strings.HasSuffix(before, "$") { // $${
			out.WriteString("${")
			rest = after
			continue
		}
		inner, tail, closed := strings.Cut(after, "}")
		name, fallback, hasDefault := strings.Cut(inner, ":-")
		switch {
		case !closed:
			r.at(CodeBadVariable, n, "", "${NAME} or ${NAME:-default}; $${ writes ${ itself", "a variable has no end: ${%s", cut(after))
			return e.into(n, e.written)
		case strings.HasPrefix(inner, "caller.") && !hasDefault:
			e.callers = append(e.callers, "${"+inner+"}")
			out.WriteString("${" + inner + "}")
			rest = tail
			continue
		case !variableName(name):
			r.at(CodeBadVariable, n, "", "${NAME} or ${NAME:-default}; $${ writes ${ itself", "%q is no name of a variable", cut(name))
			return e.into(n, e.written)
		}
		value := r.env(name)
		switch {
		case value != "":
			e.names, e.values = append(e.names, name), append(e.values, value)
		case hasDefault:
			value = fallback
		default:
			r.at(CodeMissingVariable, n, "", "set it, or write ${"+name+":-default}", "the variable %s is not set", name)
		}
		out.WriteString(value)
		rest = tail
	}
}

func (e *expanded) into(n *yaml.Node, text string) *expanded {
	n.Value = text
	return e
}

// variableName reports whether an environment variable can have this name.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString
