package agentframework

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/text"
)

// Keeper is a value that a Reader does not read: it keeps the node until its type is known.
type Keeper interface {
	Keep(n *yaml.Node) bool // false means that the value cannot be this node
	Wanted() string         // what the value is, in words
}

// Node is an object that is read once its type is known.
type Node struct{ node *yaml.Node }

// Keep keeps every value but null.
func (o *Node) Keep(n *yaml.Node) bool {
	o.node = n
	return !isNull(n)
}

// Wanted says that the value is an object.
func (o *Node) Wanted() string { return "an object" }

// nullable is a number, or null to send nothing.
type nullable struct{ Node }

// Keep keeps every value.
func (o *nullable) Keep(n *yaml.Node) bool {
	o.node = n
	return true
}

// Wanted says that null is a value, too.
func (o *nullable) Wanted() string { return "a number or null" }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// read reads an object into v. An object that is not given leaves v unchanged.
func (d *document) read(o Node, v any, path string) bool {
	return o.node == nil || d.Read(o.node, v, path)
}

// pairs are the keys of an object with their values.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		for n != nil && n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// set writes a key of the native document; path has a dot between keys. The key and its value have
// the place of the path from, and what stood there before is replaced.
func (d *document) set(path, from string, value any) {
	n := d.native.Agent
	for {
		key, rest, more := strings.Cut(path, ".")
		if !more {
			put(n, d.text(from, key), d.value(from, value))
			return
		}
		next := get(n, key)
		if next == nil {
			next = d.mapping("")
			put(n, d.text("", key), next)
		}
		n = next
		path = rest
	}
}

// given writes a value, unless it is nil.
func given[T any](d *document, path, from string, value *T) {
	if value != nil {
		d.set(path, from, *value)
	}
}

// all appends names to a list of the native document.
func (d *document) all(key, from string, names []string) {
	for i, name := range names {
		d.add(key, index(from, i), name)
	}
}

// has reports whether the native document has a key.
func (d *document) has(path string) bool {
	n := d.native.Agent
	for key := range strings.SplitSeq(path, ".") {
		n = get(n, key)
		if n == nil {
			return false
		}
	}
	return true
}

// add appends to a list of the native document.
func (d *document) add(key, from string, value any) {
	list := get(d.native.Agent, key)
	if list == nil {
		list = d.from("", &yaml.Node{Kind: yaml.SequenceNode})
		put(d.native.Agent, d.text("", key), list)
	}
	list.Content = append(list.Content, d.value(from, value))
}

// value returns the node of a value: a node itself, a text, a number, a truth value or a list of
// texts.
func (d *document) value(from string, v any) *yaml.Node {
	switch v := v.(type) {
	case *yaml.Node:
		return v
	case string:
		return d.text(from, v)
	case []string:
		list := d.from(from, &yaml.Node{Kind: yaml.SequenceNode})
		for i, s := range v {
			list.Content = append(list.Content, d.text(index(from, i), s))
		}
		return list
	case int:
		return d.from(from, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(v)})
	case bool:
		return d.from(from, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)})
	}
	panic(fmt.Sprintf("agentframework: no node of a %T", v))
}

// text returns a text. It was expanded when it was read, so a ${ in it stands for itself.
func (d *document) text(from, s string) *yaml.Node {
	n := d.from(from, new(yaml.Node))
	n.SetString(strings.ReplaceAll(s, "${", "$${"))
	return n
}

func (d *document) mapping(from string) *yaml.Node {
	return d.from(from, &yaml.Node{Kind: yaml.MappingNode})
}

// from gives a node the place of a path.
func (d *document) from(path string, n *yaml.Node) *yaml.Node {
	n.Line, n.Column = d.Place(path)
	return n
}

func get(n *yaml.Node, key string) *yaml.Node {
	for k, v := range pairs(n) {
		if k.Value == key {
			return v
		}
	}
	return nil
}

func put(n, key, value *yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key.Value {
			n.Content[i] = key
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, key, value)
}

// index is the path of the i-th entry of a list.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// cut shortens a text for a message.
func cut(s string) string { return text.Clip(s, 40) }
