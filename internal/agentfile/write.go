package agentfile

// write.go: writes an Agent as a file of the native form.

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/tools/outside"
)

// YAML returns a in the native form, with every key that is set. Parse returns the same agent
// again, with the values of variables in place of their names.
func (a *Agent) YAML() []byte { return WriteDocument(a) }

// WriteDocument returns the struct that from points to as YAML, by the yaml tags of its fields,
// with every key that is set. ReadDocument returns the same struct again.
func WriteDocument(from any) []byte {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(written(reflect.ValueOf(from).Elem())); err != nil {
		panic(err) // of nodes that are made here
	}
	return out.Bytes()
}

// written returns the node that v is read from. Nil means that v is not set.
func written(v reflect.Value) *yaml.Node {
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	if n, ok := shortForm(v); ok {
		return n
	}

	switch v.Kind() {
	case reflect.Pointer:
		return writtenPointer(v.Elem())
	case reflect.Interface:
		return written(v.Elem())
	case reflect.Struct:
		return writtenStruct(v)
	case reflect.Slice:
		return writtenSlice(v)
	case reflect.Map:
		return writtenMap(v)
	}
	return scalarNode(v)
}

// shortForm returns the node of a value that has a form of its own, such as a model that is only a
// name. It reports false for a value that is written by its kind.
func shortForm(v reflect.Value) (n *yaml.Node, ok bool) {
	switch x := v.Interface().(type) {
	case *yaml.Node:
		return x, true
	case Models:
		if len(x) == 1 {
			return written(v.Index(0)), true
		}
	case Model:
		return named(x.Name, x == (Model{Name: x.Name}))
	case Worker:
		return named(x.Name, x.isName())
	case Tool:
		return named(x.Set, x.Set != "")
	case Choice:
		if len(x) == 1 {
			return text(x[0]), true
		}
	case *Output:
		if x.File != "" {
			return text(x.File), true
		}
		return jsonNode(x.Schema), true
	case *History:
		return named(x.Word, x.Word != "")
	case outside.JSON:
		return jsonNode(json.RawMessage(x)), true
	case encoding.TextMarshaler:
		if b, err := x.MarshalText(); err == nil {
			return text(string(b)), true
		}
	}
	return nil, false
}

// named returns the node of a value that is only a name, if it is.
func named(name string, only bool) (*yaml.Node, bool) {
	if !only {
		return nil, false
	}
	return text(name), true
}

// isName reports whether w is written as a name alone.
func (w Worker) isName() bool {
	return w.Name != "" && w.File == "" && w.Description == "" && w.Tools == nil
}

// writtenPointer returns the node of what a pointer that is not nil points to. A zero value there
// was stated: {} for an object, and otherwise 0, false or "".
func writtenPointer(v reflect.Value) *yaml.Node {
	if n := written(v); n != nil {
		return n
	}
	if v.Kind() == reflect.Struct {
		return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	}
	return scalarNode(v)
}

func writtenStruct(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(v.Type()) {
		one := written(v.FieldByIndex(f.Index))
		if one == nil {
			continue
		}

		// The headers of a tool keep their variables, which the tool expands. The headers of an
		// MCP server were expanded when the file was read.
		if keyOf(f) == "headers" && v.Type() != serverType {
			for i := 1; i < len(one.Content); i += 2 {
				one.Content[i] = keyNode(strings.ReplaceAll(one.Content[i].Value, "$${", "${"))
			}
		}
		n.Content = append(n.Content, keyNode(keyOf(f)), one)
	}
	return n
}

func writtenSlice(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range v.Len() {
		if one := written(v.Index(i)); one != nil {
			n.Content = append(n.Content, one)
		}
	}
	return n
}

func writtenMap(v reflect.Value) *yaml.Node {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })

	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range keys {
		one := written(v.MapIndex(k))
		if one == nil {
			one = scalarNode(v.MapIndex(k))
		}
		n.Content = append(n.Content, keyNode(k.String()), one)
	}
	return n
}

func scalarNode(v reflect.Value) *yaml.Node {
	n := new(yaml.Node)
	if n.Encode(v.Interface()) != nil {
		return nil
	}
	if v.Kind() == reflect.String {
		return text(v.String())
	}
	return n
}

// keyNode is a key, in which no variables stand.
func keyNode(s string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(s)
	return n
}

// text is a text, with what would be taken for a variable escaped.
func text(s string) *yaml.Node { return keyNode(strings.ReplaceAll(s, "${", "$${")) }

// jsonNode writes JSON as YAML, which it is.
func jsonNode(b json.RawMessage) *yaml.Node {
	var doc yaml.Node
	if yaml.Unmarshal(b, &doc) != nil || len(doc.Content) == 0 {
		return text(string(b))
	}
	plainStyle(doc.Content[0])
	return doc.Content[0]
}

// plainStyle takes the quotes of JSON away where YAML needs none.
func plainStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		*n = *text(n.Value)
	}
	for _, c := range n.Content {
		plainStyle(c)
	}
}
