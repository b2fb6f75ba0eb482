package gotype

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
)

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	schemaMethod    = reflect.TypeFor[describer]()
)

// describer is a type that states its schema.
type describer interface{ JSONSchema() json.RawMessage }

// patternDuration accepts what time.ParseDuration accepts, without the letter µ.
const patternDuration = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h))+)$`

// knownTypes are the types of the standard library whose JSON is not the JSON of their kind.
var knownTypes = map[reflect.Type]node{
	reflect.TypeFor[time.Time](): {Type: typeNames{"string"}, Format: "date-time", shape: shapeString},
	reflect.TypeFor[time.Duration](): {Type: typeNames{"string"}, Pattern: patternDuration,
		Examples: []json.RawMessage{[]byte(`"90s"`), []byte(`"1h30m"`)}, shape: shapeString},
	reflect.TypeFor[json.RawMessage](): {shape: shapeAny},
	reflect.TypeFor[json.Number]():     {Type: typeNames{"number"}, shape: shapeNumber},
	reflect.TypeFor[big.Int]():         {Type: typeNames{"integer"}, shape: shapeInteger},
	reflect.TypeFor[slog.Level]():      {Type: typeNames{"string"}, shape: shapeString},
}

// own returns the schema of a type that has its own JSON. nil means that its kind decides.
func (b *builder) own(t reflect.Type) (*node, error) {
	if hasSchema(t) {
		b.exact = false
		return b.stated(t)
	}
	if known, ok := knownTypes[t]; ok {
		b.exact = b.exact && known.shape == shapeAny
		return &known, nil
	}
	p := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Interface:
		return nil, nil // its values decide

	// An inferred schema would be a guess, and wrong arguments would reach the tool. So the program
	// states it.
	case marshalsJSON(t):
		return nil, b.fault(t, "only its own "+ownMethod(p)+" knows its JSON",
			"add a method JSONSchema() json.RawMessage to the type, "+
				"or state its JSON type in the field's tag: jsonschema:\"type=string\"")

	case p.Implements(textMarshaler) || p.Implements(textUnmarshaler):
		b.exact = false
		return b.text(t)
	}
	return nil, nil
}

// text returns the schema of a type that encoding/json writes with MarshalText.
func (b *builder) text(t reflect.Type) (*node, error) {
	p := reflect.PointerTo(t)
	switch {
	case !p.Implements(textMarshaler):
		return nil, b.fault(t, "it has UnmarshalText and no MarshalText, so that it does not read what it writes",
			"add MarshalText")
	case !p.Implements(textUnmarshaler) && b.use == Input:
		return nil, b.fault(t, "it has MarshalText and no UnmarshalText, so that it does not read what it writes",
			"add UnmarshalText")
	}
	return typed(shapeString), nil
}

// hasSchema reports whether t or a pointer to it states its schema.
func hasSchema(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	return t.Implements(schemaMethod) || reflect.PointerTo(t).Implements(schemaMethod)
}

// marshalsJSON reports whether only methods of t know its JSON.
func marshalsJSON(t reflect.Type) bool {
	if _, known := knownTypes[t]; known || t.Kind() == reflect.Interface {
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(jsonUnmarshaler)
}

// hasOwnJSON reports whether the JSON of t is not the JSON of its kind.
func hasOwnJSON(t reflect.Type) bool {
	if _, known := knownTypes[t]; known || hasSchema(t) || marshalsJSON(t) {
		return true
	}
	p := reflect.PointerTo(t)
	return p.Implements(textMarshaler) || p.Implements(textUnmarshaler)
}

// ownMethod names the method that knows the JSON of a type. p is the pointer to it.
func ownMethod(p reflect.Type) string {
	if p.Implements(jsonUnmarshaler) {
		return "UnmarshalJSON"
	}
	return "MarshalJSON"
}

// stated returns the schema that the method JSONSchema of t returns. A schema with references of
// its own becomes a definition, so that they still resolve.
func (b *builder) stated(t reflect.Type) (*node, error) {
	src, err := callSchema(t)
	if err != nil {
		return nil, b.fault(t, "JSONSchema: "+err.Error(), "return a JSON Schema, such as {\"type\":\"string\"}")
	}
	n := &node{raw: src, shape: statedShape(src)}
	if written := writtenShape(t); !agree(n.shape, written) {
		return nil, b.fault(t, fmt.Sprintf("its JSONSchema describes a JSON value of the type %s, and its JSON is of the type %s",
			n.shape, written), "return the schema of its JSON, or add MarshalJSON and UnmarshalJSON")
	}
	atRoot := t == b.root
	if atRoot || !bytes.Contains(src, []byte(`"$ref"`)) {
		return n, nil
	}
	n.raw, err = moved(src, b.reference(t).Ref)
	if err != nil {
		return nil, b.fault(t, "JSONSchema: "+err.Error(), "return a schema that stands alone")
	}
	return n, nil
}

// callSchema calls the method of a value of t that is not nil.
func callSchema(t reflect.Type) (src json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panicked on a zero value: %v", v)
		}
	}()
	v := reflect.New(t)
	// The method may read its receiver, and a nil pointer would panic.
	if t.Kind() == reflect.Pointer {
		v.Elem().Set(reflect.New(t.Elem()))
	}
	method, ok := v.Interface().(describer)
	if !ok {
		method = v.Elem().Interface().(describer)
	}

	src = method.JSONSchema()
	value, err := jsonform.Value(src)
	if err != nil {
		return nil, fmt.Errorf("it returned no JSON: %w", err)
	}
	switch value.(type) {
	case map[string]any, bool:
		return bytes.TrimSpace(src), nil
	}
	return nil, fmt.Errorf("it returned %s, which is no schema", src)
}

// statedShape returns the shape of a stated schema.
func statedShape(src json.RawMessage) shape {
	var head struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(src, &head) != nil {
		return shapeAny
	}
	switch s, _ := head.Type.(string); shape(s) {
	case shapeString, shapeInteger, shapeNumber, shapeBoolean, shapeArray, shapeObject:
		return shape(s)
	}
	return shapeAny
}

// writtenShape returns the shape of the JSON of t, as far as the methods of t do not decide it.
func writtenShape(t reflect.Type) shape {
	p := reflect.PointerTo(t)
	known, ok := knownTypes[t]
	switch {
	case ok:
		return known.shape
	case marshalsJSON(t):
		return shapeAny
	case p.Implements(textMarshaler):
		return shapeString
	}

	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return shapeObject
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return shapeAny // base64, or a list, as the methods of the element decide
		}
		return shapeArray
	}
	if s, ok := scalars[t.Kind()]; ok {
		return s.shape
	}
	return shapeAny
}

// agree reports whether a value may be of both shapes.
func agree(a, b shape) bool {
	numbers := func(s shape) bool { return s == shapeInteger || s == shapeNumber }
	return a == b || a == shapeAny || b == shapeAny || numbers(a) && numbers(b)
}

// moved returns the schema src with its references changed for its new place.
func moved(src json.RawMessage, place string) (json.RawMessage, error) {
	v, err := jsonform.Value(src)
	if err != nil {
		return nil, err
	}
	var walk func(v any) error
	walk = func(v any) error {
		switch x := v.(type) {
		case map[string]any:
			if ref, ok := x["$ref"].(string); ok {
				// A reference to another document, or by an anchor, has no place within the new
				// schema.
				if ref != "#" && (len(ref) < 2 || ref[:2] != "#/") {
					return fmt.Errorf("the reference %s does not begin with #/", ref)
				}
				x["$ref"] = place + ref[1:]
			}
			for _, e := range x {
				if err := walk(e); err != nil {
					return err
				}
			}
		case []any:
			for _, e := range x {
				if err := walk(e); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := walk(v); err != nil {
		return nil, err
	}
	return jsonform.Marshal(v)
}
