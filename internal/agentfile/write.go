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
func (a *Agent) YAML() []byte {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(written(reflect.ValueOf(a).Elem())); err != nil {
		panic(err) // of nodes that are made here
	}
	return out.Bytes()
}

// written returns the node that v is read from. Nil means that v is not set.
func written(v reflect.Value) *yaml.Node {
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	switch x := v.Interface().(type) {
	case *yaml.Node:
		return x
	case Models:
		if len(x) == 1 {
			return written(v.Index(0))
		}
	case Model:
		if x == (Model{Name: x.Name}) {
			return text(x.Name)
		}
	case Worker:
		if x.Name != "" && x.File == "" && x.Description == "" && x.Tools == nil {
			return text(x.Name)
		}
	case Tool:
		if x.Set != "" {
			return text(x.Set)
		}
	case Choice:
		if len(x) == 1 {
			return text(x[0])
		}
	case *Output:
		if x.File != "" {
			return text(x.File)
		}
		return jsonNode(x.Schema)
	case *History:
		if x.Word != "" {
			return text(x.Word)
		}
	case outside.JSON:
		return jsonNode(json.RawMessage(x))
	case encoding.TextMarshaler:
		if b, err := x.MarshalText(); err == nil {
			return text(string(b))
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if n := written(v.Elem()); n != nil {
			return n
		}
		if v.Elem().Kind() == reflect.Struct {
			return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		}
		return scalarNode(v.Elem()) // a 0 that was said
	case reflect.Interface:
		return written(v.Elem())
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range fieldsOf(v.Type()) {
			one := written(v.FieldByIndex(f.Index))
			// headers contain variables
			if keyOf(f) == "headers" && one != nil && v.Type() != serverType {
				for i := 1; i < len(one.Content); i += 2 {
					one.Content[i] = keyNode(strings.ReplaceAll(one.Content[i].Value, "$${", "${"))
				}
			}
			if one != nil {
				n.Content = append(n.Content, keyNode(keyOf(f)), one)
			}
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			if one := written(v.Index(i)); one != nil {
				n.Content = append(n.Content, one)
			}
		}
		return n
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			one := written(v.MapIndex(k))
			if one == nil {
				one = scalarNode(v.MapIndex(k))
			}
			n.Content = append(n.Content, keyNode(k.String()), one)
		}
		return n
	}
	return scalarNode(v)
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
func text(s string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(strings.ReplaceAll(s, "${", "$${"))
	return n
}

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
