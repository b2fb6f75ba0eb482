package outside

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/internal/yamlvalue"
)

var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// http creates the tool for a request template, and returns the parsed template.
func (m *maker) http(d *HTTP) (*pawl.Tool, *request, error) {
	if err := described(d.Name, d.Description); err != nil {
		return nil, nil, err
	}
	r := &request{method: d.Method}
	if r.method == "" {
		r.method = "GET"
		if len(d.Body) > 0 {
			r.method = "POST"
		}
	}
	switch {
	case !slices.Contains(httpMethods, r.method):
		return nil, nil, fmt.Errorf("method %q: want one of %s", d.Method, strings.Join(httpMethods, ", "))
	case len(d.Body) > 0 && reads(r.method):
		return nil, nil, fmt.Errorf("body: a %s request has none", r.method)
	}

	known, required, err := properties(d.Input)
	if err != nil {
		return nil, nil, err
	}
	var used []string
	use := func(name string) error {
		if !slices.Contains(used, name) {
			used = append(used, name)
		}
		if _, ok := known[name]; known != nil && !ok {
			return fmt.Errorf("{%s} is not an argument of input; {{%s}} is the literal text", name, name)
		}
		return nil
	}
	needed := func(name string) bool { return known == nil || slices.Contains(required, name) }
	if err := r.parse(m, d, use, needed); err != nil {
		return nil, nil, err
	}

	input := json.RawMessage(d.Input)
	// A definition without input takes the arguments that its templates name, as texts.
	if known == nil {
		input = derived(used)
	}
	r.page, err = m.fetcher(r.origin, d.Allow, d.Timeout)
	if err != nil {
		return nil, nil, err
	}

	// The timeout of the request ends first, with an error that says how far it came.
	address, _, _ := strings.Cut(d.URL, "?")
	t := &pawl.Tool{
		Name:          d.Name,
		Description:   d.Description,
		Input:         input,
		Effect:        effectOf(r.method),
		Concurrent:    d.Concurrent,
		Timeout:       r.page.Timeout + 5*time.Second,
		Run:           r.run,
		Address:       address,
		StatesSending: true,
	}
	if d.Effect != nil {
		t.Effect = *d.Effect
	}
	return t, r, checked(t)
}

// parse parses the templates of a definition. needed reports whether every call has an argument.
func (r *request) parse(m *maker, d *HTTP, use func(string) error, needed func(string) bool) (err error) {
	r.origin, err = origin(d.URL)
	if err != nil {
		return err
	}

	_, rest, _ := strings.Cut(d.URL, "://")
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	_, path, _ := strings.Cut(rest, "/")
	for segment := range strings.SplitSeq(path, "/") {
		t, err := segmentTemplate(segment, use)
		if err != nil {
			return fmt.Errorf("url: %w", err)
		}
		// A missing argument would leave an empty segment, which is another address.
		for _, name := range t.args() {
			if !needed(name) {
				return fmt.Errorf("url: {%s} occurs in the path, so it must be required by input", name)
			}
		}
		r.path = append(r.path, t)
	}

	if query != "" {
		for part := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(part, "=")
			if err := r.addQuery(unescaped(name), unescaped(value), use); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Query)) {
		if err := r.addQuery(name, d.Query[name], use); err != nil {
			return err
		}
	}

	r.headers, r.own, err = m.header(d.Headers, use)
	if err != nil {
		return err
	}
	if len(d.Body) > 0 {
		r.body, err = jsonBody(d.Body, use)
		if err != nil {
			return fmt.Errorf("body: %w", err)
		}
	}
	r.result, err = parsePointer(d.Result)
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}

// segmentTemplate parses a segment of a path. Text outside arguments is percent-escaped once.
func segmentTemplate(segment string, use func(string) error) (template, error) {
	t, err := parseTemplate(segment, use)
	if err != nil {
		return nil, err
	}
	for i, p := range t {
		text := strings.ReplaceAll(percent(unescaped(p.text)), "%3A", ":")
		// RFC 3986, pchar
		for _, keep := range []string{"@", "!", "$", "&", "'", "(", ")", "*", "+", ",", ";", "="} {
			text = strings.ReplaceAll(text, percent(keep), keep)
		}
		t[i].text = text
		if text == ".." || text == "." {
			return nil, fmt.Errorf("its path has a segment %q", text)
		}
	}
	return t, nil
}

func (r *request) addQuery(name, value string, use func(string) error) error {
	if place.MatchString(name) || name == "" {
		return fmt.Errorf("query: %q: a name is a text, and no argument can stand in it", name)
	}
	t, err := parseTemplate(value, use)
	if err != nil {
		return fmt.Errorf("query: %s: %w", name, err)
	}
	r.query = append(r.query, field{name: name, value: t, encode: repeated})
	return nil
}

// repeated returns a field of a query; for a list, one field for each element.
func repeated(name string, v any) []string {
	if _, isList := v.([]any); isList {
		return style{name: "form", explode: true, escape: percent}.fields(name, v)
	}
	return []string{percent(name) + "=" + percent(plainText(v))}
}

// jsonBody parses the template of a JSON body.
func jsonBody(b JSON, use func(string) error) (func(map[string]any) (string, string, error), error) {
	v, err := arguments(append(append(json.RawMessage(`{"body":`), b...), '}'))
	if err != nil {
		return nil, err
	}
	node, err := bodyNode(v["body"], use, 0)
	if err != nil {
		return nil, err
	}
	return func(args map[string]any) (string, string, error) {
		v, ok := node(args)
		if !ok {
			return "", "", nil
		}
		b, err := json.Marshal(v)
		return string(b), "application/json", err
	}, nil
}

// bodyNode returns a function that builds a value of a body. False means that an argument is not
// given, and the value is left out of its parent.
func bodyNode(v any, use func(string) error, depth int) (func(args map[string]any) (any, bool), error) {
	if depth > yamlvalue.MaxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", yamlvalue.MaxDepth)
	}
	switch v := v.(type) {
	case string:
		t, err := parseTemplate(v, use)
		if err != nil {
			return nil, err
		}
		// "{n}" alone stands for the value itself, so that numbers and lists keep their type.
		if name, ok := t.alone(); ok {
			return func(args map[string]any) (any, bool) { v, ok := args[name]; return v, ok }, nil
		}
		return func(args map[string]any) (any, bool) {
			s, ok, _ := t.fill(args, inText)
			return s, ok
		}, nil

	case map[string]any:
		nodes := map[string]func(map[string]any) (any, bool){}
		for name, e := range v {
			n, err := bodyNode(e, use, depth+1)
			if err != nil {
				return nil, err
			}
			nodes[name] = n
		}

		return func(args map[string]any) (any, bool) {
			m := map[string]any{}
			for name, n := range nodes {
				if v, ok := n(args); ok {
					m[name] = v
				}
			}
			return m, true
		}, nil

	case []any:
		var nodes []func(map[string]any) (any, bool)
		for _, e := range v {
			n, err := bodyNode(e, use, depth+1)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
		}

		return func(args map[string]any) (any, bool) {
			list := []any{}
			for _, n := range nodes {
				if v, ok := n(args); ok {
					list = append(list, v)
				}
			}
			return list, true
		}, nil
	}
	return func(map[string]any) (any, bool) { return v, true }, nil
}

// properties returns the names of a schema's properties and the required names. They are nil
// without a schema.
func properties(input JSON) (known map[string]json.RawMessage, required []string, err error) {
	if len(input) == 0 {
		return nil, nil, nil
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(input, &s); err != nil {
		return nil, nil, errors.New("input: want a JSON Schema of an object")
	}
	if s.Properties == nil {
		s.Properties = map[string]json.RawMessage{}
	}
	return s.Properties, s.Required, nil
}

// derived returns the schema of a definition without one.
func derived(used []string) json.RawMessage {
	props := map[string]any{}
	for _, name := range used {
		props[name] = map[string]string{"type": "string"}
	}
	if used == nil {
		used = []string{}
	}
	return mustJSON(map[string]any{
		"type":                 "object",
		"properties":           props,
		"required":             used,
		"additionalProperties": false,
	})
}

// checked returns the fault of a tool in the terms of its definition.
func checked(t *pawl.Tool) error {
	if err := t.Check(); err != nil {
		return errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "tool "+t.Name+": "), "input schema: "))
	}
	return nil
}
