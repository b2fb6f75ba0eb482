package outside

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// content is a media type of a request body that can be written.
type content struct {
	kind   string // as the document writes it, with its parameters
	form   string // json, form or text
	header string // the Content-Type of a request
	rank   int    // the lowest is taken

	charset encoding.Encoding // nil means UTF-8
}

// contentOf reports whether a media type can be written, and how. A range such as */* cannot: it
// does not say what the server reads.
func contentOf(kind string) (c content, ok bool) {
	media, params, err := mime.ParseMediaType(kind)
	if err != nil {
		return c, false
	}
	c = content{kind: kind, header: kind}
	switch {
	case media == "application/json":
		c.form = "json"
	case isJSON(kind):
		c.form = "json"
		c.rank = 1
	case media == "application/x-www-form-urlencoded":
		c.form = "form"
		c.rank = 2
	case media == "text/plain":
		c.form = "text"
		c.header = mime.FormatMediaType("text/plain", withCharset(params))
		c.rank = 3
	default:
		return c, false
	}
	label := strings.ToLower(params["charset"])
	if label == "" || label == "utf-8" || label == "utf8" {
		return c, true
	}
	c.charset, err = htmlindex.Get(label)
	return c, err == nil
}

// withCharset returns the parameters of a media type for a text, which says that it is UTF-8 unless
// the document has another charset.
func withCharset(params map[string]string) map[string]string {
	params = maps.Clone(params)
	if params == nil {
		params = map[string]string{}
	}
	if params["charset"] == "" {
		params["charset"] = "utf-8"
	}
	return params
}

// encode returns s in the charset of the body.
func (c content) encode(s string) (string, error) {
	if c.charset == nil {
		return s, nil
	}
	out, err := c.charset.NewEncoder().String(s)
	if err != nil {
		return "", errors.New("the body has a character that the charset of " + c.kind + " does not have: leave it out")
	}
	return out, nil
}

// body adds an argument for a request body. An operation whose body cannot be written is an error,
// even if the body is optional: without it the operation would mean something else.
func (b *builder) body(o map[string]any) error {
	all := object(o["content"])
	if len(all) == 0 && o != nil && o["required"] != true {
		return nil // it describes a body that has no content
	}

	var c content
	// The simplest form for a model wins: JSON before forms before text.
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		one, ok := contentOf(kind)
		if ok && (c.form == "" || one.rank < c.rank) {
			c = one
		}
	}
	if c.form == "" {
		return fmt.Errorf("its content is neither JSON nor a simple form nor text: %s",
			brief(slices.Sorted(maps.Keys(all))))
	}

	media := object(all[c.kind])
	schema, err := b.schema.of(media["schema"])
	if err != nil {
		return err
	}
	write, err := c.writer(object(media["encoding"]))
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
		text, err := write(v)
		return text, c.header, err
	}
	return nil
}

// writer returns the function that writes a body.
func (c content) writer(encodings map[string]any) (func(any) (string, error), error) {
	switch c.form {
	case "form":
		return c.formWriter(encodings)
	case "text":
		return func(v any) (string, error) { return c.encode(plainText(v)) }, nil
	}
	return func(v any) (string, error) {
		text, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		return c.encode(string(text))
	}, nil
}

// formWriter returns the function that writes a form. Each field is written as its entry in
// encoding says (OpenAPI 3.1, section 4.8.15). A field without an entry is a text; a list has a
// field for each element, and an object is JSON.
func (c content) formWriter(encodings map[string]any) (func(any) (string, error), error) {
	styles := map[string]style{}
	asJSON := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(encodings)) {
		o := object(encodings[name])
		if o["style"] == nil && o["explode"] == nil && o["allowReserved"] == nil {
			asJSON[name] = isJSON(text(o["contentType"]))
			continue
		}
		s, err := styleOf(o, nil, "form", "spaceDelimited", "pipeDelimited", "deepObject")
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		styles[name] = s
	}

	return func(v any) (string, error) {
		form, ok := v.(map[string]any)
		if !ok {
			return "", errors.New("the body is a form: give an object with its fields")
		}
		// fields has no error, and only a character that the charset lacks can fail here.
		var failed error
		escape := func(s string) string {
			out, err := c.encode(s)
			failed = errors.Join(failed, err)
			return formEscape(out)
		}
		usual := style{name: "form", explode: true, escape: escape}

		var fields []string
		for _, name := range slices.Sorted(maps.Keys(form)) {
			value := form[name]
			own, styled := styles[name]
			own.escape = escape
			_, isObject := value.(map[string]any)
			switch {
			case value == nil:
			case styled:
				fields = append(fields, own.fields(name, value)...)
			case asJSON[name] || isObject:
				fields = append(fields, escape(name)+"="+escape(string(mustJSON(value))))
			default:
				fields = append(fields, usual.fields(name, value)...)
			}
		}
		return strings.Join(fields, "&"), failed
	}, nil
}
