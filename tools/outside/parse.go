package outside

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/tools/internal/yamlvalue"
)

// mostBytes is the maximum size of a file of definitions.
const mostBytes = 4 << 20

// mostValues is the maximum number of values of a file of definitions.
const mostValues = 100_000

// fits reports whether n and the values in it, with those behind aliases, are at most left values.
func fits(n *yaml.Node, left *int, depth int) bool {
	*left--
	if n.Kind == yaml.AliasNode {
		return depth < yamlvalue.MaxDepth && fits(n.Alias, left, depth+1)
	}
	return *left >= 0 && depth < yamlvalue.MaxDepth &&
		!slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !fits(c, left, depth+1) })
}

// Parse parses definitions: an object with the list tools, or the list itself, as YAML or JSON. An
// unknown field, a value of the wrong kind and text after the document are errors with their lines.
func Parse(b []byte) ([]Definition, error) {
	if len(b) > mostBytes {
		return nil, fmt.Errorf("the definitions have %d bytes; at most %d are allowed", len(b), mostBytes)
	}
	if json.Valid(b) {
		return parseJSON(b)
	}

	d := yaml.NewDecoder(bytes.NewReader(b))
	var root yaml.Node
	if err := d.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is nothing in it; want tools: and a list of command, " +
				"http and openapi definitions")
		}
		return nil, worded(err)
	}
	// values behind aliases count each time, before anything is made of them
	if left := mostValues; !fits(&root, &left, 0) {
		return nil, fmt.Errorf("it is too large: at most %d values, those behind aliases counted each time, %d deep",
			mostValues, yamlvalue.MaxDepth)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it contains a second document; only one is allowed")
	}

	var file struct {
		Tools []Definition `yaml:"tools"`
	}
	strict := yaml.NewDecoder(bytes.NewReader(b))
	strict.KnownFields(true)
	var err error
	if len(root.Content) == 1 && root.Content[0].Kind == yaml.SequenceNode {
		err = strict.Decode(&file.Tools)
	} else {
		err = strict.Decode(&file)
	}
	if err != nil {
		return nil, worded(err)
	}
	return some(file.Tools)
}

func parseJSON(b []byte) ([]Definition, error) {
	var file struct {
		Tools []Definition `json:"tools"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		err = d.Decode(&file.Tools)
	} else {
		err = d.Decode(&file)
	}

	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		line := 1 + bytes.Count(b[:min(int(kind.Offset), len(b))], []byte("\n"))
		return nil, fmt.Errorf("line %d: %s: want %s, got %s", line, kind.Field, kindText(kind.Type.String()), kind.Value)

	// The decoder names an unknown field without its line.
	case err != nil:
		if m := jsonField.FindStringSubmatch(err.Error()); m != nil {
			at := bytes.Index(b, []byte(`"`+m[1]+`"`))
			return nil, fmt.Errorf("line %d: there is no field %s%s",
				1+bytes.Count(b[:max(at, 0)], []byte("\n")), m[1], meant(m[1], ""))
		}
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return some(file.Tools)
}

func some(defs []Definition) ([]Definition, error) {
	if len(defs) == 0 {
		return nil, errors.New("there are no tools in it; want tools: and a list of command, " +
			"http and openapi definitions")
	}
	return defs, nil
}

var (
	jsonField = regexp.MustCompile(`unknown field "([^"]*)"`)
	yamlField = regexp.MustCompile(`^(line \d+): field (.*) not found in type (?:outside\.)?(\w+|struct .*)$`)
	yamlKind  = regexp.MustCompile("^(line \\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
)

// worded converts errors of the YAML reader to the terms of this package, the first three of them.
func worded(err error) error {
	var t *yaml.TypeError
	if !errors.As(err, &t) {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var out []string
	for i, text := range t.Errors {
		if i == 3 {
			out = append(out, fmt.Sprintf("and %d more", len(t.Errors)-3))
			break
		}
		if m := yamlField.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("%s: there is no field %s%s", m[1], m[2], meant(m[2], m[3]))
		} else if m := yamlKind.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("%s: want %s, got %s", m[1], kindText(m[4]), m[2])
		}
		out = append(out, text)
	}
	return errors.New(strings.Join(out, "; "))
}

// meant lists the fields of a definition, and the field that was probably meant.
func meant(field, of string) string {
	fields := map[string][]string{}
	var names []string
	for _, t := range []reflect.Type{reflect.TypeFor[Definition](), reflect.TypeFor[Command](), reflect.TypeFor[HTTP](),
		reflect.TypeFor[OpenAPI](), reflect.TypeFor[A2A]()} {
		for i := range t.NumField() {
			fields[t.Name()] = append(fields[t.Name()], t.Field(i).Tag.Get("yaml"))
		}
		names = append(names, fields[t.Name()]...)
	}
	if fields[of] != nil {
		names = fields[of]
	}
	if near := nearest.Word(field, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	if fields[of] == nil {
		return ""
	}
	return "; there are " + strings.Join(names, ", ")
}

func kindText(t string) string {
	switch {
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "map["):
		return "an object of texts"
	case t == "string":
		return "a text"
	case t == "int":
		return "a whole number"
	}
	return "an object"
}
