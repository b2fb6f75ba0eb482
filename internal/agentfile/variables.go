package agentfile

// variables.go: ${NAME} in the scalars of a file.

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// variableHint says how a variable is written.
const variableHint = "${NAME} or ${NAME:-default}; $${ writes ${ itself"

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
// there is nothing to replace. For any values, the result stays the text of one scalar. A text with
// an invalid variable stays unchanged. The path says whether a model reads the text.
func (r *reading) expand(n *yaml.Node, path string) *expanded {
	if !strings.Contains(n.Value, "${") {
		return nil
	}

	e := &expanded{written: n.Value}
	var out strings.Builder
	rest := n.Value
	for {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			out.WriteString(before)
			n.Value = out.String()
			return e
		}
		literal, escaped := strings.CutSuffix(before, "$")
		out.WriteString(literal)
		if escaped {
			out.WriteString("${")
			rest = after
			continue
		}

		inner, tail, closed := strings.Cut(after, "}")
		if !closed {
			r.report(CodeBadVariable, n, "", variableHint, "a variable has no end: ${%s", cut(after))
			return e
		}
		value, ok := r.variable(n, path, e, inner)
		if !ok {
			return e
		}
		out.WriteString(value)
		rest = tail
	}
}

// variable returns the value of what stands between ${ and }, and records in e what it is. It
// reports false for an invalid name.
func (r *reading) variable(n *yaml.Node, path string, e *expanded, inner string) (value string, ok bool) {
	name, fallback, hasDefault := strings.Cut(inner, ":-")
	switch {
	case strings.HasPrefix(inner, "caller.") && !hasDefault:
		// The caller is known only when a call is made.
		field := "${" + inner + "}"
		e.callers = append(e.callers, field)
		return field, true
	case !variableName(name):
		r.report(CodeBadVariable, n, "", variableHint, "%q is no name of a variable", cut(name))
		return "", false

	// A name does not say whether its value is a secret: DATABASE_URL and PGPASS have secrets, too.
	case modelReads(path) && !slices.Contains(r.declared, name):
		r.report(CodeBadVariable, n, path, "add variables: ["+name+"] to the agent, if models may read its value",
			"models read this text, and variables does not list %s", name)
		return "", true
	}

	value = r.env(name)
	switch {
	case value != "":
		e.names = append(e.names, name)
		e.values = append(e.values, value)
	case hasDefault:
		value = fallback
	default:
		r.report(CodeMissingVariable, n, "", "set it, or write ${"+name+":-default}",
			"the variable %s is not set", name)
	}
	return value, true
}

// variableName reports whether an environment variable can have this name.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString
