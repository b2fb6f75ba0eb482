package outside

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// builder builds the request and the arguments of one operation.
type builder struct {
	spec    *spec
	request *request
	schema  *schemas

	props    map[string]any
	required []string
	where    map[string]piece // the path's parameters, by name
	names    map[string]bool  // names of arguments
}

func (b *builder) build(o *operation, base *url.URL) error {
	b.props = map[string]any{}
	for _, p := range b.parameters(o) {
		if err := b.parameter(p); err != nil {
			return fmt.Errorf("parameter %s: %w", text(p["name"]), err)
		}
	}
	if err := b.path(base, o.path); err != nil {
		return err
	}
	if raw := o.op["requestBody"]; raw != nil {
		if err := b.body(object(b.spec.resolve(raw))); err != nil {
			return fmt.Errorf("request body: %w", err)
		}
	}
	return nil
}

// parameters returns the parameters of the path and of the operation. The operation's take
// precedence.
func (b *builder) parameters(o *operation) []map[string]any {
	var all []map[string]any
	at := map[string]int{}
	for _, list := range []any{o.item["parameters"], o.op["parameters"]} {
		list, _ := list.([]any)
		for _, v := range list {
			p := object(b.spec.resolve(v))
			// A reference that leads nowhere is an error of the operation, which parameter reports.
			if p == nil {
				p = map[string]any{"name": text(object(v)["$ref"]), "in": "nowhere"}
			}
			id := text(p["in"]) + " " + text(p["name"])
			if i, ok := at[id]; ok {
				all[i] = p
				continue
			}
			at[id] = len(all)
			all = append(all, p)
		}
	}
	return all
}

var notInArguments = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// argument chooses a name for an argument that every provider accepts and that is not in use.
func (b *builder) argument(name, in string) string {
	name = strings.Trim(notInArguments.ReplaceAllString(name, "_"), "_")
	name = cmp.Or(name, in)
	name = name[:min(len(name), 60)]
	if b.names[name] {
		name += "_" + in
	}
	for n := 2; b.names[name]; n++ {
		name = fmt.Sprintf("%s_%d", name, n)
	}
	b.names[name] = true
	return name
}

// parameter adds an argument for a parameter.
func (b *builder) parameter(p map[string]any) error {
	name := text(p["name"])
	in := text(p["in"])
	id := in + " " + name
	// The names of headers have no case.
	if in == "header" {
		id = in + " " + strings.ToLower(name)
	}
	required := p["required"] == true || in == "path"
	switch {
	case b.spec.secret[id]:
		return nil // the definition provides credentials
	case in == "header" && slices.Contains([]string{"accept", "content-type"}, strings.ToLower(name)):
		return nil // OpenAPI says that such a parameter is ignored
	case in == "header" && !canSet(name), in == "cookie":
		if required {
			return fmt.Errorf("it belongs to a %s that cannot be set", in)
		}
		return nil
	case name == "" || !slices.Contains([]string{"path", "query", "header"}, in):
		return fmt.Errorf("the parameter does not exist, or it belongs to %q", in)
	}

	raw := p["schema"]
	asJSON := false
	if content := object(p["content"]); len(content) > 0 {
		for _, kind := range slices.Sorted(maps.Keys(content)) {
			raw = object(content[kind])["schema"]
			asJSON = isJSON(kind)
		}
		if !asJSON {
			return fmt.Errorf("its content is not JSON")
		}
	}

	schema, err := b.schema.of(raw)
	if err != nil {
		return err
	}
	arg := b.argument(name, in)
	b.props[arg] = withDescription(schema, text(p["description"]))
	if required {
		b.required = append(b.required, arg)
	}
	return b.write(p, arg, asJSON)
}

// write adds a parameter to the request, written in its style.
func (b *builder) write(p map[string]any, arg string, asJSON bool) error {
	name := text(p["name"])
	t := template{{arg: arg}}
	switch text(p["in"]) {
	case "path":
		if asJSON {
			return errors.New("it is JSON in the path, which is not supported")
		}
		s, err := styleOf(p, percent, "simple", "label", "matrix")
		if err != nil {
			return err
		}
		b.where[name] = piece{arg: arg, write: func(v any) (string, error) { return s.segment(name, v, onePart) }}

	case "header":
		s, err := styleOf(p, nil, "simple")
		if err != nil {
			return err
		}
		if !asJSON {
			t[0].write = func(v any) (string, error) { return s.segment(name, v, inHeader) }
		}
		b.request.headers = append(b.request.headers, field{name: http.CanonicalHeaderKey(name), value: t})

	default:
		encode, err := query(p, asJSON)
		if err != nil {
			return err
		}
		b.request.query = append(b.request.query, field{name: name, value: t, encode: encode})
	}
	return nil
}

// query returns the function that writes a parameter of the query.
func query(p map[string]any, asJSON bool) (func(string, any) []string, error) {
	if asJSON {
		return func(name string, v any) []string {
			return []string{percent(name) + "=" + percent(string(mustJSON(v)))}
		}, nil
	}
	s, err := styleOf(p, percent, "form", "spaceDelimited", "pipeDelimited", "deepObject")
	return s.fields, err
}

var pathPlace = regexp.MustCompile(`\{([^{}/]*)\}`)

// path parses the path of an operation, relative to the path of its server.
func (b *builder) path(base *url.URL, path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("its path does not begin with /")
	}

	none := func(name string) error { return fmt.Errorf("{%s} stands in the server's address", name) }
	if p := strings.Trim(base.EscapedPath(), "/"); p != "" {
		for segment := range strings.SplitSeq(p, "/") {
			t, err := segmentTemplate(segment, none)
			if err != nil {
				return err
			}
			b.request.path = append(b.request.path, t)
		}
	}

	path, _, _ = strings.Cut(path, "?")
	for segment := range strings.SplitSeq(path[1:], "/") {
		t, err := b.segment(segment)
		if err != nil {
			return err
		}
		for i := range t {
			if t[i].arg != "" {
				continue
			}
			// The literal text of a path may contain escapes, and may not contain places of its
			// own.
			fixed, err := segmentTemplate(t[i].text, none)
			if err != nil {
				return err
			}
			t[i].text = fixed[0].text
		}
		b.request.path = append(b.request.path, t)
	}
	return nil
}

// segment splits a segment of the path into its arguments and the text around them.
func (b *builder) segment(segment string) (template, error) {
	var t template
	at := 0
	for _, m := range pathPlace.FindAllStringSubmatchIndex(segment, -1) {
		name := segment[m[2]:m[3]]
		argument := b.where[name]
		if argument.arg == "" {
			return nil, fmt.Errorf("{%s} stands in its path, and no parameter has that name", name)
		}
		t = append(t, piece{text: segment[at:m[0]]}, argument)
		at = m[1]
	}
	return append(t, piece{text: segment[at:]}), nil
}

// isJSON reports whether a media type is JSON.
func isJSON(kind string) bool {
	media, _, err := mime.ParseMediaType(kind)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// withDescription adds the parameter's description to a schema.
func withDescription(schema any, description string) any {
	m, ok := schema.(map[string]any)
	if !ok || description == "" {
		return schema
	}
	if _, ref := m["$ref"]; ref {
		return map[string]any{"allOf": []any{m}, "description": clip(description, mostText)}
	}
	m["description"] = clip(description, mostText)
	return m
}

// input returns the schema of the arguments.
func (b *builder) input() (json.RawMessage, error) {
	s := map[string]any{"type": "object", "properties": b.props, "additionalProperties": false}
	if len(b.required) > 0 {
		s["required"] = b.required
	}
	defs, err := b.schema.defs()
	if err != nil {
		return nil, err
	}
	if len(defs) > 0 {
		s["$defs"] = defs
	}
	out, err := json.Marshal(s)
	if err == nil && len(out) > mostSchema {
		err = fmt.Errorf("its schema has more than %d bytes", mostSchema)
	}
	return out, err
}
