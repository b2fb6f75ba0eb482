package outside

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// template is a text with places for arguments.
type template []piece

// piece is a text, or the place of an argument.
type piece struct {
	text string
	arg  string // empty means text

	// write writes the argument in place of the escape of the template's position; nil means the
	// escape
	write func(v any) (string, error)
}

// place matches {name}; {{name}} is the literal text {name}.
var place = regexp.MustCompile(`\{\{[A-Za-z_][A-Za-z0-9_.-]*\}\}|\{[A-Za-z_][A-Za-z0-9_.-]*\}`)

// parseTemplate parses a template. It calls use for each argument; use returns an error if there is
// no such argument.
func parseTemplate(s string, use func(name string) error) (template, error) {
	var t template
	at := 0
	for _, m := range place.FindAllStringIndex(s, -1) {
		name := s[m[0]+1 : m[1]-1]
		if strings.HasPrefix(name, "{") {
			t = append(t, piece{text: s[at:m[0]] + name})
			at = m[1]
			continue
		}
		// Variables hold secrets, and an address or a body may be repeated in errors and in
		// results.
		if m[0] > 0 && s[m[0]-1] == '$' {
			return nil, fmt.Errorf("${%s}: variables of the environment are for headers", name)
		}
		if err := use(name); err != nil {
			return nil, err
		}
		t = append(t, piece{text: s[at:m[0]]}, piece{arg: name})
		at = m[1]
	}
	return append(t, piece{text: s[at:]}), nil
}

// alone returns the argument if the template consists only of it.
func (t template) alone() (string, bool) {
	name := ""
	for _, p := range t {
		if p.text != "" || p.arg != "" && name != "" {
			return "", false
		}
		if p.arg != "" {
			name = p.arg
		}
	}
	return name, name != ""
}

// fill inserts the arguments, each escaped by escape. It returns false if an argument is not given.
func (t template) fill(args map[string]any, escape func(name string, v any) (string, error)) (string, bool, error) {
	var b strings.Builder
	for _, p := range t {
		if p.arg == "" {
			b.WriteString(p.text)
			continue
		}
		v, ok := args[p.arg]
		if !ok || v == nil {
			return "", false, nil
		}
		s, err := p.written(v, escape)
		if err != nil {
			return "", false, err
		}
		b.WriteString(s)
	}
	return b.String(), true, nil
}

// written returns an argument as it stands in the text.
func (p piece) written(v any, escape func(name string, v any) (string, error)) (string, error) {
	if p.write != nil {
		return p.write(v)
	}
	return escape(p.arg, v)
}

// plainText returns an argument as text; a list or an object as JSON.
func plainText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	b, _ := json.Marshal(v) // it was decoded from JSON
	return string(b)
}

// percent escapes everything that is not unreserved (RFC 3986, section 2.3), so that no part of a
// value has a meaning in an address.
func percent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// inPath converts a value to a part of one path segment. The elements of a list are separated by
// commas.
func inPath(name string, v any) (string, error) {
	if _, isObject := v.(map[string]any); isObject {
		return onePart(name, v)
	}
	return style{name: "simple"}.segment(name, v, onePart)
}

// onePart converts a text or a number to a part of one path segment.
func onePart(name string, v any) (string, error) {
	switch v.(type) {
	case []any, map[string]any, nil:
		return "", fmt.Errorf("%s is part of the path of an address: give a text or a number", name)
	}
	s := plainText(v)
	if err := safeInPath(name, s); err != nil {
		return "", err
	}
	return percent(s), nil
}

// safeInPath refuses values that would change the path on a server that unescapes once or twice
// before it evaluates the path.
func safeInPath(name, s string) error {
	if s == "" {
		return fmt.Errorf("%s is empty, and it is part of the path of an address: give a value", name)
	}
	for range 4 {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%s has a control character: leave it out", name)
		}
		for segment := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '/' || r == '\\' }) {
			// Some servers remove path parameters before they evaluate the segments: "..;x" is ".."
			// there.
			segment, _, _ = strings.Cut(segment, ";")
			if segment == "." || segment == ".." {
				return fmt.Errorf("%s has a segment %q, which leads to another place: "+
					"give the name of one thing, not a path to it", name, segment)
			}
		}
		next, err := url.PathUnescape(s)
		if err != nil || next == s {
			return nil
		}
		s = next
	}
	return fmt.Errorf("%s is escaped more than once: give it without escapes", name)
}

// inHeader converts a value to a part of a header value.
func inHeader(name string, v any) (string, error) {
	s := plainText(v)
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("%s is sent in a header: give it in one line, of ASCII characters", name)
	}
	return s, nil
}

// inText converts a value to a part of a text.
func inText(_ string, v any) (string, error) { return plainText(v), nil }

// unescaped removes the escapes from a part of an address. Invalid escapes stay unchanged.
func unescaped(s string) string {
	if out, err := url.PathUnescape(s); err == nil {
		return out
	}
	return s
}
