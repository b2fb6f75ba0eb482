package outside

import (
	"cmp"
	"encoding/json"
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
	where    map[string]string // arguments of the path's parameters, by parameter name
	names    map[string]bool   // names of arguments
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
	name, in := text(p["name"]), text(p["in"])
	id := in + " " + name
	if in == "header" {
		id = in + " " + strings.ToLower(name)
	}
	required := p["required"] == true || in == "path"
	switch {
	case b.spec.secret[id]:
		return nil // the definition provides credentials
	case in == "header" && slices.Contains([]string{"accept", "content-type"}, strings.ToLower(name)):
		return nil // OpenAPI says that such a parameter is ignored
	case in == "header" && (!headerName.MatchString(name) ||
		slices.Contains(connectionHeaders, http.CanonicalHeaderKey(name))), in == "cookie":
		if required {
			return fmt.Errorf("it belongs to a %s that cannot be set", in)
		}
		return nil
	case in != "path" && in != "query" && in != "header" || name == "":
		return fmt.Errorf("the parameter does not exist, or it belongs to %q", in)
	}
	raw := p["schema"]
	asJSON := false
	if content := object(p["content"]); len(content) > 0 {
		for _, kind := range slices.Sorted(maps.Keys(content)) {
			raw, asJSON = object(content[kind])["schema"], isJSON(kind)
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
	t := template{{arg: arg}}
	switch in {
	case "path":
		if style := text(p["style"]); style != "" && style != "simple" || asJSON {
			return fmt.Errorf("its style %q is not supported", style)
		}
		b.where[name] = arg
	case "header":
		b.request.headers = append(b.request.headers, field{name: http.CanonicalHeaderKey(name), value: t})
	default:
		encode, err := queryStyle(text(p["style"]), p["explode"], asJSON)
		if err != nil {
			return err
		}
		b.request.query = append(b.request.query, field{name: name, value: t, encode: encode})
	}
	return nil
}

// queryStyle returns the function that serializes a parameter of the query (OpenAPI 3.1, section
// 4.8.12.3).
func queryStyle(style string, explode any, asJSON bool) (func(string, any) []string, error) {
	if asJSON {
		return func(name string, v any) []string {
			return []string{percent(name) + "=" + percent(string(mustJSON(v)))}
		}, nil
	}
	joined := func(by string) func(string, any) []string {
		return func(name string, v any) []string {
			var parts []string
			for _, pair := range flat("", v) {
				if _, isObject := v.(map[string]any); isObject {
					parts = append(parts, percent(pair[0]))
				}
				parts = append(parts, percent(pair[1]))
			}
			return []string{percent(name) + "=" + strings.Join(parts, by)}
		}
	}
	switch style {
	case "", "form":
		if explode == false {
			return joined(","), nil
		}
		return func(name string, v any) []string { return pairs(flat(name, v)) }, nil
	case "spaceDelimited":
		return joined("%20"), nil
	case "pipeDelimited":
		return joined("%7C"), nil
	case "deepObject":
		return func(name string, v any) []string {
			var out []string
			for _, pair := range flat(name, v) {
				key := percent(name)
				if _, isObject := v.(map[string]any); isObject {
					key += "%5B" + percent(pair[0]) + "%5D"
				}
				out = append(out, key+"="+percent(pair[1]))
			}
			return out
		}, nil
	}
	return nil, fmt.Errorf("its style %q is not supported", style)
}

// flat returns the names and the texts of a value: the fields of an object, the elements of a list
// under name, otherwise the value itself.
func flat(name string, v any) [][2]string {
	var out [][2]string
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, [2]string{k, plainText(v[k])})
		}
	case []any:
		for _, e := range v {
			out = append(out, [2]string{name, plainText(e)})
		}
	default:
		out = append(out, [2]string{name, plainText(v)})
	}
	return out
}

// pairs returns fields of a query, escaped.
func pairs(fields [][2]string) []string {
	var out []string
	for _, f := range fields {
		out = append(out, percent(f[0])+"="+percent(f[1]))
	}
	return out
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
		var t template
		at := 0
		for _, m := range pathPlace.FindAllStringSubmatchIndex(segment, -1) {
			arg := b.where[segment[m[2]:m[3]]]
			if arg == "" {
				return fmt.Errorf("{%s} stands in its path, and no parameter has that name", segment[m[2]:m[3]])
			}
			t = append(t, piece{text: segment[at:m[0]]}, piece{arg: arg})
			at = m[1]
		}
		t = append(t, piece{text: segment[at:]})
		for i := range t {
			if t[i].arg != "" {
				continue
			}
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

// body adds an argument for a request body.
func (b *builder) body(o map[string]any) error {
	content := object(o["content"])
	kind := ""
	form := ""
	for _, k := range slices.Sorted(maps.Keys(content)) {
		media, _, _ := mime.ParseMediaType(k)
		switch {
		case isJSON(k) && (form != "json" || media == "application/json"):
			kind = k
			form = "json"
		case media == "application/x-www-form-urlencoded" && form != "json":
			kind = k
			form = "form"
		case media == "text/plain" && form == "":
			kind = k
			form = "text"
		}
	}
	if form == "" {
		if o["required"] != true && o != nil {
			return nil // the body is optional
		}
		return fmt.Errorf("its content is neither JSON nor a simple form nor text: %s", brief(slices.Sorted(maps.Keys(content))))
	}
	schema, err := b.schema.of(object(content[kind])["schema"])
	if err != nil {
		return err
	}
	arg := b.argument("body", "request")
	b.props[arg] = withDescription(schema, text(o["description"]))
	if o["required"] == true {
		b.required = append(b.required, arg)
	}
	b.request.body = func(args map[string]any) (string, string, error) {
		v, ok := args[arg]
		if !ok {
			return "", "", nil
		}
		switch form {
		case "form":
			return strings.Join(pairs(flat(arg, v)), "&"), "application/x-www-form-urlencoded", nil
		case "text":
			return plainText(v), "text/plain; charset=utf-8", nil
		}
		text, err := json.Marshal(v)
		return string(text), kind, err
	}
	return nil
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
