package gotype

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/internal/jsonform"
)

// node is a JSON Schema. The order of its fields is the order of the keywords in its JSON.
type node struct {
	Ref         string     `json:"$ref,omitempty"`
	Type        typeNames  `json:"type,omitempty"`
	Properties  properties `json:"properties,omitzero"`
	Items       *node      `json:"items,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`

	Default    json.RawMessage   `json:"default,omitempty"`
	Deprecated bool              `json:"deprecated,omitempty"`
	ReadOnly   bool              `json:"readOnly,omitempty"`
	WriteOnly  bool              `json:"writeOnly,omitempty"`
	Examples   []json.RawMessage `json:"examples,omitempty"`

	Enum             []json.RawMessage `json:"enum,omitempty"`
	MultipleOf       json.Number       `json:"multipleOf,omitempty"`
	Minimum          json.Number       `json:"minimum,omitempty"`
	Maximum          json.Number       `json:"maximum,omitempty"`
	ExclusiveMinimum json.Number       `json:"exclusiveMinimum,omitempty"`
	ExclusiveMaximum json.Number       `json:"exclusiveMaximum,omitempty"`
	MinLength        json.Number       `json:"minLength,omitempty"`
	MaxLength        json.Number       `json:"maxLength,omitempty"`
	Pattern          string            `json:"pattern,omitempty"`
	MinItems         json.Number       `json:"minItems,omitempty"`
	MaxItems         json.Number       `json:"maxItems,omitempty"`
	UniqueItems      bool              `json:"uniqueItems,omitempty"`
	MinProperties    json.Number       `json:"minProperties,omitempty"`
	MaxProperties    json.Number       `json:"maxProperties,omitempty"`

	Required             []string         `json:"required,omitempty"`
	AdditionalProperties *node            `json:"additionalProperties,omitempty"`
	PropertyNames        *node            `json:"propertyNames,omitempty"`
	AnyOf                []*node          `json:"anyOf,omitempty"`
	ContentEncoding      string           `json:"contentEncoding,omitempty"`
	Format               string           `json:"format,omitempty"`
	Defs                 map[string]*node `json:"$defs,omitempty"`

	shape shape           // of the values, which decides which rules of a tag apply
	never bool            // the schema false
	raw   json.RawMessage // the schema that JSONSchema returned; nil means the fields above
}

// shape is the JSON type of the values of a node, "null" aside.
type shape string

const (
	shapeAny     shape = "any"
	shapeString  shape = "string"
	shapeInteger shape = "integer"
	shapeNumber  shape = "number"
	shapeBoolean shape = "boolean"
	shapeArray   shape = "array"
	shapeObject  shape = "object"
)

// typed returns the node of values of one JSON type.
func typed(s shape) *node { return &node{Type: typeNames{string(s)}, shape: s} }

// plainNode has the fields of node and no methods.
type plainNode node

// MarshalJSON writes n with the characters <, > and & as they are.
func (n *node) MarshalJSON() ([]byte, error) {
	switch {
	case n.never:
		return []byte("false"), nil
	case n.raw != nil:
		return n.raw, nil
	}
	return jsonform.Marshal((*plainNode)(n))
}

// describesObject reports whether every value is an object.
func (n *node) describesObject() bool {
	return n.shape == shapeObject && (n.raw != nil || len(n.Type) == 1)
}

// nullable returns n with null as a further value.
func (n *node) nullable() *node {
	switch {
	case n.raw != nil || n.Ref != "":
		outer := &node{AnyOf: []*node{typed("null"), n}, shape: n.shape}
		outer.Description, n.Description = n.Description, ""
		return outer

	case len(n.Type) == 0 || slices.Contains(n.Type, "null"):
		return n
	}
	n.Type = append(typeNames{"null"}, n.Type...)
	if n.Enum != nil {
		n.Enum = append(n.Enum, json.RawMessage("null"))
	}
	return n
}

// typeNames is written as text if it has one element.
type typeNames []string

// MarshalJSON writes the form that is usual for the number of names.
func (t typeNames) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// properties are the fields of an object, in their order.
type properties struct {
	names []string
	nodes []*node
	set   bool // an object; the zero value is left out
}

// IsZero reports whether the schema has no properties keyword.
func (p properties) IsZero() bool { return !p.set }

// MarshalJSON writes the properties in their order.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	// In the order of the type: models write arguments in the order in which they read them.
	for i, name := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := jsonform.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := p.nodes[i].MarshalJSON()
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
