package agentfile

// bounds.go: values that are not what their key takes, by type or by the bounds in its tag.

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/nearest"
)

// wrong reports a value of another type.
func (r *reading) wrong(n *yaml.Node, want reflect.Type, path string) {
	if _, again := r.places["!"+path]; again {
		return
	}
	r.places["!"+path] = place{}
	r.at(CodeWrongType, n, path, r.listed(n, want, path), "want %s, got %s", wanted(want), r.got(n, path))
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
	kind := map[string]string{"!!str": "the text", "!!int": "the number", "!!float": "the number", "!!bool": "the truth value"}[n.ShortTag()]
	if shown != n.Value {
		kind = "the value of"
	}
	kind = cmp.Or(kind, "the value")
	return kind + " " + cut(shown)
}

// bounded holds a value to the bounds in the tags of its field.
func (r *reading) bounded(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if list := tag.Get("enum"); list != "" && v.Kind() == reflect.String && v.String() != "" {
		words := strings.Split(list, ",")
		if !slices.Contains(words, v.String()) {
			_, shown := r.said(n, path)
			hint := "one of " + strings.Join(words, ", ")
			if near := nearest.Word(v.String(), words); near != "" {
				hint = "did you mean " + near + "? " + hint
			}
			r.at(CodeBadValue, n, path, hint, "%q is none of them", cut(shown))
		}
	}
	if text := strings.TrimSpace(v.String()); tag.Get("form") == "address" && text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			_, shown := r.said(n, path)
			r.at(CodeBadValue, n, path, "with its scheme, such as http://localhost:1234/v1", "%q is no http or https address", cut(shown))
		}
	}
	number := func(name string) (float64, bool) {
		f, err := strconv.ParseFloat(tag.Get(name), 64)
		return f, err == nil
	}
	var f float64
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		f = float64(v.Int())
	case reflect.Float64:
		f = v.Float()
	default:
		return
	}
	_, shown := r.said(n, path)
	if least, is := number("min"); is && f < least {
		r.at(CodeBadValue, n, path, "at least "+tag.Get("min"), "%s is too small", cut(shown))
	}
	if least, is := number("above"); is && f <= least {
		r.at(CodeBadValue, n, path, "more than "+tag.Get("above"), "%s is too small", cut(shown))
	}
	if most, is := number("max"); is && f > most {
		r.at(CodeBadValue, n, path, "at most "+tag.Get("max"), "%s is too large", cut(shown))
	}
}
