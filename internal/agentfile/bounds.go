package agentfile

// bounds.go: values that are not what their key takes, by type or by the bounds in its tag.

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/webaddress"
)

// wrong reports a value of another type, once for each path: the nodes behind an alias are read
// several times.
func (r *reading) wrong(n *yaml.Node, want reflect.Type, path string) {
	if _, again := r.places["!"+path]; again {
		return
	}
	r.places["!"+path] = place{}
	r.report(CodeWrongType, n, path, r.listed(n, want, path), "want %s, got %s", wanted(want), r.got(n, path))
}

// scalarKinds are the words for scalars, by their types in YAML.
var scalarKinds = map[string]string{
	"!!str":   "the text",
	"!!int":   "the number",
	"!!float": "the number",
	"!!bool":  "the truth value",
}

// listed is how a list is written in place of n; "" where no list is wanted.
func (r *reading) listed(n *yaml.Node, want reflect.Type, path string) string {
	switch {
	case want.Kind() != reflect.Slice || reflect.PointerTo(want).Implements(formType):
		return ""
	case n.Kind == yaml.MappingNode && strings.HasSuffix(path, ".env"):
		return "[NAME, NAME=value]: a name hands a variable on"
	case n.Kind == yaml.MappingNode:
		return "begin each entry with a - and a space"
	}
	_, shown := r.said(n, path)
	return "[" + cut(shown) + "]"
}

// got says what a node is, without the values of variables.
func (r *reading) got(n *yaml.Node, path string) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	_, shown := r.said(n, path)
	kind := cmp.Or(scalarKinds[n.ShortTag()], "the value")
	if shown != n.Value {
		kind = "the value of"
	}
	return kind + " " + cut(shown)
}

// bounded holds a value to the bounds in the tags of its field.
func (r *reading) bounded(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.String:
		r.boundedText(n, v.String(), path, tag)
	case reflect.Int, reflect.Int64:
		r.boundedNumber(n, float64(v.Int()), path, tag)
	case reflect.Float64:
		r.boundedNumber(n, v.Float(), path, tag)
	}
}

// boundedText holds a text to the words and the form in the tags of its field. An empty text means
// the default.
func (r *reading) boundedText(n *yaml.Node, text, path string, tag reflect.StructTag) {
	if list := tag.Get("enum"); list != "" && text != "" {
		words := strings.Split(list, ",")
		if !slices.Contains(words, text) {
			hint := "one of " + strings.Join(words, ", ")
			if near := nearest.Word(text, words); near != "" {
				hint = "did you mean " + near + "? " + hint
			}

			// As written in the file, because the value of a variable may be a secret.
			_, shown := r.said(n, path)
			r.report(CodeBadValue, n, path, hint, "%q is none of them", cut(shown))
		}
	}

	address := strings.TrimSpace(text)
	_, complete := webaddress.Parse(address)
	if tag.Get("form") == "address" && address != "" && !complete {
		_, shown := r.said(n, path)
		r.report(CodeBadValue, n, path, "with its scheme, such as http://localhost:1234/v1",
			"%q is no http or https address", cut(shown))
	}
}

// boundedNumber holds a number to the bounds in the tags of its field.
func (r *reading) boundedNumber(n *yaml.Node, f float64, path string, tag reflect.StructTag) {
	bound := func(name string) (float64, bool) {
		f, err := strconv.ParseFloat(tag.Get(name), 64)
		return f, err == nil
	}
	_, shown := r.said(n, path)
	if least, is := bound("min"); is && f < least {
		r.report(CodeBadValue, n, path, "at least "+tag.Get("min"), "%s is too small", cut(shown))
	}
	if least, is := bound("above"); is && f <= least {
		r.report(CodeBadValue, n, path, "more than "+tag.Get("above"), "%s is too small", cut(shown))
	}
	if most, is := bound("max"); is && f > most {
		r.report(CodeBadValue, n, path, "at most "+tag.Get("max"), "%s is too large", cut(shown))
	}
}
