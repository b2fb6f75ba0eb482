// Package gotype infers the JSON Schema of a Go type, and decodes, validates and encodes values of
// the type.
//
// One law holds. A value of the type, encoded, fits the schema. What fits the schema and the type
// decodes. A document fits the type if it decodes (a text that UnmarshalText refuses, or an integer
// that is too large, does not) and if no Validate method refuses the value.
//
//	reflect.Type ──▶ Of ──▶ Type ──┬─ Schema   what a model or a client reads
//	  kinds.go   bool to struct    ├─ Fits     what a schema cannot say: ranges, texts, Validate
//	  known.go   time, big, json   ├─ Decode   JSON to a value
//	  fields.go  as encoding/json  └─ Encode   a value to JSON
//	  tag.go     jsonschema:"…"
//
// The JSON of a value is what encoding/json writes and reads, with three differences. A
// time.Duration is text such as "90s" in both directions. A number in a value of type any keeps its
// digits as a json.Number. An integer may be written as 3.0 or 3e0, as JSON Schema allows.
package gotype

import (
	"encoding/json"
	"reflect"

	"github.com/pawl-go/pawl/internal/jsonform"
)

// Use says what the values of a type are for.
type Use int

const (
	// Input is decoded from JSON that a model wrote, and may be encoded.
	Input Use = iota
	// Output is only encoded. Interfaces with methods have the schema of any value.
	Output
)

// Type is a Go type with its schema. It does not change and is safe for concurrent use.
type Type struct {
	Schema json.RawMessage
	// Exact reports whether everything that fits the schema fits the type, so that Fits is not
	// needed.
	Exact bool
	// Object reports whether the schema describes an object.
	Object bool

	of reflect.Type
}

// Of infers the schema of t. The error names the type, the field and a remedy.
func Of(t reflect.Type, use Use) (*Type, error) {
	b := &builder{root: t, use: use, exact: true,
		building: map[reflect.Type]bool{}, names: map[reflect.Type]string{}, defs: map[string]*node{}}
	n, err := b.rootNode(t)
	if err != nil {
		return nil, err
	}
	src, err := jsonform.Marshal(n)
	if err != nil {
		return nil, b.fault(t, "its schema is no JSON: "+err.Error(), "return a JSON Schema from JSONSchema")
	}
	return &Type{Schema: src, Exact: b.exact && !validates(t), Object: n.describesObject(), of: t}, nil
}

// Fits returns nil if args, which fit the schema, decode into a value of the type that no Validate
// method refuses. Otherwise FaultText describes the error for the model.
func (t *Type) Fits(args json.RawMessage) error {
	v := reflect.New(t.of).Interface()
	if err := Decode(args, v); err != nil {
		return err
	}
	return Validate(v)
}
