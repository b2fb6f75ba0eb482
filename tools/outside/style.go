package outside

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// style is how a value is written into a query, a form, a path or a header: the fields style and
// explode of a parameter or an encoding (OpenAPI 3.1, sections 4.8.12 and 4.8.15). Values are
// always escaped: allowReserved only permits a server to get them without escapes.
type style struct {
	name    string // form, spaceDelimited, pipeDelimited, deepObject, simple, label, matrix
	explode bool
	escape  func(string) string
}

// styleOf reads the fields of a parameter. usual is the style without the field; others are the
// styles that the place has as well.
func styleOf(o map[string]any, escape func(string) string, usual string, others ...string) (style, error) {
	s := style{name: usual, escape: escape}
	if name := text(o["style"]); name != "" {
		s.name = name
	}
	if s.name != usual && !slices.Contains(others, s.name) {
		return s, fmt.Errorf("its style %q is not supported", s.name)
	}
	explode, given := o["explode"].(bool)
	s.explode = explode || !given && s.name == "form"
	return s, nil
}

// fields writes a value as fields of a query or of a form, "name=value". An empty list and an
// object without fields have none, unless they stand in one field.
func (s style) fields(name string, v any) []string {
	key := s.escape(name)
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case s.name == "deepObject" && isObject:
		return s.deep(key, object)
	case isObject && s.explode:
		return s.named(object, "=")
	case isObject:
		return []string{key + "=" + strings.Join(s.named(object, s.delimiter()), s.delimiter())}
	case isList && (s.explode || s.name == "deepObject"):
		return s.each(key, list)
	case isList:
		return []string{key + "=" + strings.Join(s.values(list), s.delimiter())}
	}
	return []string{key + "=" + s.escape(plainText(v))}
}

// delimiter returns what stands between the values of one field.
func (s style) delimiter() string {
	switch s.name {
	case "spaceDelimited":
		return "%20"
	case "pipeDelimited":
		return "%7C"
	}
	return ","
}

// values returns the elements of a list, escaped.
func (s style) values(list []any) []string {
	out := []string{}
	for _, v := range list {
		out = append(out, s.escape(plainText(v)))
	}
	return out
}

// each returns a field for each element of a list.
func (s style) each(key string, list []any) []string {
	var out []string
	for _, v := range s.values(list) {
		out = append(out, key+"="+v)
	}
	return out
}

// named returns the fields of an object in the order of their names, with by between name and
// value. A field that is null is left out.
func (s style) named(o map[string]any, by string) []string {
	out := []string{}
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if o[k] != nil {
			out = append(out, s.escape(k)+by+s.escape(plainText(o[k])))
		}
	}
	return out
}

// deep returns the fields of an object as key[name]=value. OpenAPI does not define objects and
// lists in such an object: an object gets a further pair of brackets, a list a field for each
// element.
func (s style) deep(key string, o map[string]any) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(o)) {
		inner := key + "%5B" + s.escape(k) + "%5D"
		switch v := o[k].(type) {
		case nil:
		case map[string]any:
			out = append(out, s.deep(inner, v)...)
		case []any:
			out = append(out, s.each(inner, v)...)
		default:
			out = append(out, inner+"="+s.escape(plainText(v)))
		}
	}
	return out
}

// segment writes a value as a part of a path or of a header. one writes a value in it, and refuses
// values that cannot stand there.
func (s style) segment(name string, v any, one func(name string, v any) (string, error)) (string, error) {
	parts, err := s.parts(name, v, one)
	if err != nil {
		return "", err
	}
	// An empty segment would make another path.
	if len(parts) == 0 {
		return "", fmt.Errorf("%s is empty, and it is part of an address or of a header: give a value", name)
	}

	_, isObject := v.(map[string]any)
	switch s.name {
	case "label":
		if s.explode {
			return "." + strings.Join(parts, "."), nil
		}
		return "." + strings.Join(parts, ","), nil

	case "matrix":
		if s.explode && isObject {
			return ";" + strings.Join(parts, ";"), nil
		}
		key := s.escape(name) + "="
		if s.explode {
			return ";" + key + strings.Join(parts, ";"+key), nil
		}
		return ";" + key + strings.Join(parts, ","), nil
	}
	return strings.Join(parts, ","), nil
}

// parts returns what stands between the delimiters of a segment.
func (s style) parts(name string, v any, one func(name string, v any) (string, error)) (out []string, err error) {
	add := func(prefix string, v any) error {
		text, err := one(name, v)
		out = append(out, prefix+text)
		return err
	}

	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := add("", e); err != nil {
				return nil, err
			}
		}

	case map[string]any:
		// Sorted, so that equal arguments make equal requests, which caches and recordings compare.
		for _, k := range slices.Sorted(maps.Keys(v)) {
			key, err := one(name, k)
			if err != nil {
				return nil, err
			}
			prefix := key + "="
			if !s.explode {
				out = append(out, key)
				prefix = ""
			}
			if err := add(prefix, v[k]); err != nil {
				return nil, err
			}
		}
	default:
		return out, add("", v)
	}
	return out, nil
}

// formEscape escapes a name or a value of a form (RFC 1866, section 8.2.1).
func formEscape(s string) string { return url.QueryEscape(s) }
