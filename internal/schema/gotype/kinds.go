package gotype

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scalars are the nodes of the kinds without parts. Integers of 64 bits and floating-point numbers
// have no bounds, which cost tokens in each field and which some providers refuse: Fits reports
// what is out of range.
var scalars = map[reflect.Kind]node{
	reflect.Bool:    {Type: typeNames{"boolean"}, shape: shapeBoolean},
	reflect.String:  {Type: typeNames{"string"}, shape: shapeString},
	reflect.Int:     {Type: typeNames{"integer"}, shape: shapeInteger},
	reflect.Int8:    {Type: typeNames{"integer"}, Minimum: "-128", Maximum: "127", shape: shapeInteger},
	reflect.Int16:   {Type: typeNames{"integer"}, Minimum: "-32768", Maximum: "32767", shape: shapeInteger},
	reflect.Int32:   {Type: typeNames{"integer"}, Minimum: "-2147483648", Maximum: "2147483647", shape: shapeInteger},
	reflect.Int64:   {Type: typeNames{"integer"}, shape: shapeInteger},
	reflect.Uint:    {Type: typeNames{"integer"}, Minimum: "0", shape: shapeInteger},
	reflect.Uint8:   {Type: typeNames{"integer"}, Minimum: "0", Maximum: "255", shape: shapeInteger},
	reflect.Uint16:  {Type: typeNames{"integer"}, Minimum: "0", Maximum: "65535", shape: shapeInteger},
	reflect.Uint32:  {Type: typeNames{"integer"}, Minimum: "0", Maximum: "4294967295", shape: shapeInteger},
	reflect.Uint64:  {Type: typeNames{"integer"}, Minimum: "0", shape: shapeInteger},
	reflect.Uintptr: {Type: typeNames{"integer"}, Minimum: "0", shape: shapeInteger},
	reflect.Float32: {Type: typeNames{"number"}, shape: shapeNumber},
	reflect.Float64: {Type: typeNames{"number"}, shape: shapeNumber},
}

// unbounded reports whether a number may fit the node of k and be out of range for k.
func unbounded(k reflect.Kind) bool {
	switch k {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64:
		return true
	}
	return false
}

// The patterns of texts that have a value of another kind in them.
const (
	patternSigned   = `^-?(0|[1-9][0-9]*)$`
	patternUnsigned = `^(0|[1-9][0-9]*)$`
	patternNumber   = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`
	patternQuoted   = `^"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"$`
	patternBase64   = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
)

// quoted returns the node of a value of kind k inside a JSON string, as the option string of a json
// tag writes it.
func quoted(k reflect.Kind) *node {
	n := typed(shapeString)
	s := scalars[k]
	switch {
	case k == reflect.String:
		n.Pattern = patternQuoted
	case k == reflect.Bool:
		n.Enum = []json.RawMessage{[]byte(`"true"`), []byte(`"false"`)}
	case s.shape == shapeNumber:
		n.Pattern = patternNumber
	case s.Minimum == "0":
		n.Pattern = patternUnsigned
	default:
		n.Pattern = patternSigned
	}
	return n
}

// builder infers one schema.
type builder struct {
	root  reflect.Type
	use   Use
	path  []string // Go names of the fields from the root
	exact bool

	building map[reflect.Type]bool   // the types around the current one
	names    map[reflect.Type]string // of the recursive types, in $defs
	defs     map[string]*node
}

// fault returns the error for a type that has no schema.
func (b *builder) fault(t reflect.Type, why, remedy string) error {
	at := b.root.String()
	if len(b.path) > 0 {
		at += ", field " + strings.Join(b.path, ".")
	}
	if t != b.root || len(b.path) > 0 {
		at += " (" + t.String() + ")"
	}
	return fmt.Errorf("%s: %s; %s", at, why, remedy)
}

// rootNode returns the whole schema of t. A recursive type at the root is there twice: at the root,
// which providers require to be an object, and in $defs. Arguments and answers are never null.
func (b *builder) rootNode(t reflect.Type) (*node, error) {
	for b.use == Input && t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	n, err := b.node(t)
	if err != nil {
		return nil, err
	}
	// A copy, because the definition stays the target of the references.
	if n.Ref != "" {
		whole := *b.defs[n.Ref[len(refPrefix):]]
		n = &whole
	}
	if b.use == Input {
		n.Type = slices.DeleteFunc(slices.Clone(n.Type), func(s string) bool { return s == "null" })
	}
	if len(b.defs) > 0 {
		n.Defs = b.defs
	}
	return n, nil
}

// node returns the schema of t. A pointer may also be null.
func (b *builder) node(t reflect.Type) (*node, error) {
	if t.Kind() != reflect.Pointer {
		return b.named(t)
	}
	if b.building[t] {
		return nil, b.fault(t, "the type is a pointer to itself", "use a struct")
	}
	// Only a named type can refer to itself.
	if t.Name() != "" {
		b.building[t] = true
		defer delete(b.building, t)
	}
	n, err := b.node(t.Elem())
	if err != nil {
		return nil, err
	}
	return n.nullable(), nil
}

const refPrefix = "#/$defs/"

// named returns the schema of t, or a reference to it if t is recursive.
func (b *builder) named(t reflect.Type) (*node, error) {
	if t.Name() == "" {
		return b.body(t)
	}
	if name, ok := b.names[t]; ok && b.defs[name] != nil {
		return b.reference(t), nil
	}
	if b.building[t] {
		return b.reference(t), nil
	}
	b.building[t] = true
	n, err := b.body(t)
	delete(b.building, t)
	if err != nil {
		return nil, err
	}

	// A name was given if the body referred to t. Types that occur several times, and are not
	// recursive, are written out: some providers do not follow references.
	name, recursive := b.names[t]
	if !recursive {
		return n, nil
	}
	b.defs[name] = n
	return b.reference(t), nil
}

// reference returns a reference to the definition of t.
func (b *builder) reference(t reflect.Type) *node {
	name, ok := b.names[t]
	if !ok {
		name = b.newName(t)
		b.names[t] = name
	}
	return &node{Ref: refPrefix + name, shape: shapeOf(t)}
}

// newName returns a free name for the definition of t.
func (b *builder) newName(t reflect.Type) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			return r
		}
		return '_'
	}, t.Name())
	base = strings.Trim(base, "_")
	name := base
	for i := 2; b.taken(name); i++ {
		name = base + strconv.Itoa(i)
	}
	return name
}

func (b *builder) taken(name string) bool {
	for _, used := range b.names {
		if used == name {
			return true
		}
	}
	return b.defs[name] != nil
}

// shapeOf returns the shape of a recursive type, which is a struct, a list or a map.
func shapeOf(t reflect.Type) shape {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return shapeObject
	case reflect.Slice, reflect.Array:
		return shapeArray
	}
	return shapeAny
}

// body returns the schema of t without regard to recursion.
func (b *builder) body(t reflect.Type) (*node, error) {
	n, err := b.own(t)
	if n != nil || err != nil {
		return n, err
	}
	if scalar, ok := scalars[t.Kind()]; ok {
		b.exact = b.exact && !unbounded(t.Kind())
		return &scalar, nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return b.list(t)
	case reflect.Map:
		return b.dictionary(t)
	case reflect.Struct:
		return b.structure(t)
	case reflect.Interface:
		if t.NumMethod() == 0 || b.use == Output {
			return &node{shape: shapeAny}, nil
		}
		return nil, b.fault(t, "JSON does not say which type to decode into an interface with methods",
			"use a concrete type, or json.RawMessage and decode it yourself")
	}
	return nil, b.fault(t, "a "+t.Kind().String()+" has no JSON form",
		"remove it, or leave the field out with json:\"-\"")
}

// list returns the schema of a slice or an array.
func (b *builder) list(t reflect.Type) (*node, error) {
	if t.Kind() == reflect.Slice && isByte(t.Elem()) {
		n := typed(shapeString)
		n.Pattern = patternBase64
		n.ContentEncoding = "base64"
		return n.nullable(), nil
	}
	items, err := b.within("[]", t.Elem())
	if err != nil {
		return nil, err
	}
	n := typed(shapeArray)
	n.Items = items
	if t.Kind() == reflect.Slice {
		return n.nullable(), nil
	}
	n.MinItems = json.Number(strconv.Itoa(t.Len()))
	n.MaxItems = n.MinItems
	return n, nil
}

// isByte reports whether encoding/json writes a slice of t as base64.
func isByte(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() == reflect.Uint8 && !p.Implements(jsonMarshaler) && !p.Implements(textMarshaler)
}

// dictionary returns the schema of a map.
func (b *builder) dictionary(t reflect.Type) (*node, error) {
	names, err := b.keys(t)
	if err != nil {
		return nil, err
	}
	values, err := b.within("[]", t.Elem())
	if err != nil {
		return nil, err
	}
	n := typed(shapeObject)
	n.AdditionalProperties = values
	n.PropertyNames = names
	return n.nullable(), nil
}

// keys returns the schema of the keys of the map t. nil means any text.
func (b *builder) keys(t reflect.Type) (*node, error) {
	k := t.Key()
	if known, ok := knownTypes[k]; ok && known.shape == shapeString {
		b.exact = b.exact && known.Format == "" && known.Pattern == ""
		return &node{Pattern: known.Pattern, Format: known.Format}, nil
	}
	scalar := scalars[k.Kind()]
	switch {
	case reflect.PointerTo(k).Implements(textMarshaler) || reflect.PointerTo(k).Implements(textUnmarshaler):
		b.exact = false
		_, err := b.text(k)
		return nil, err

	case k.Kind() == reflect.String:
		return nil, nil
	case scalar.shape != shapeInteger:
		return nil, b.fault(t, "the keys of a JSON object are text, and "+k.String()+" has no text form",
			"use string keys, an integer, or a type with MarshalText and UnmarshalText")
	}
	b.exact = false // the range
	if scalar.Minimum == "0" {
		return &node{Pattern: patternUnsigned}, nil
	}
	return &node{Pattern: patternSigned}, nil
}

// structure returns the schema of a struct. Its fields are the only ones.
func (b *builder) structure(t reflect.Type) (*node, error) {
	fields := fieldsOf(t)
	if len(fields) == 0 && hidesAll(t) {
		return nil, b.fault(t, "all of its fields are unexported, so that its JSON is always {}",
			"export them (a field City has the JSON name city with the tag json:\"city\"), "+
				"add a method JSONSchema() json.RawMessage, or use another type, such as string")
	}
	if a, c, clash := namesakes(t); clash {
		return nil, b.fault(t, fmt.Sprintf("the fields %s and %s have one JSON name, so that encoding/json leaves out both", a, c),
			"give one of them another name in its json tag")
	}
	n := typed(shapeObject)
	n.Properties.set = len(fields) > 0
	// A field that the type does not have would be dropped without notice.
	n.AdditionalProperties = &node{never: true}
	for _, f := range fields {
		p, required, err := b.property(f)
		if err != nil {
			return nil, err
		}
		n.Properties.names = append(n.Properties.names, f.name)
		n.Properties.nodes = append(n.Properties.nodes, p)
		if required {
			n.Required = append(n.Required, f.name)
		}
	}
	return n, nil
}

// hidesAll reports whether t has fields, and none of them is for JSON by intention.
func hidesAll(t reflect.Type) bool {
	for i := range t.NumField() {
		if sf := t.Field(i); sf.IsExported() || sf.Anonymous || sf.Name == "_" {
			return false
		}
	}
	return t.NumField() > 0
}

// property returns the schema of a field, and whether an object must have it.
func (b *builder) property(f field) (*node, bool, error) {
	b.path = append(b.path, f.of.Name)
	defer func() { b.path = b.path[:len(b.path)-1] }()
	if name, _, _ := strings.Cut(f.of.Tag.Get("json"), ","); name != "" && !validName(name) {
		return nil, false, b.fault(f.of.Type,
			fmt.Sprintf("the name %q in its json tag has a character that encoding/json does not take", name),
			"use letters, digits, _ and -")
	}
	if f.hidden != nil && b.use == Input {
		return nil, false, b.fault(f.of.Type,
			"encoding/json cannot decode into the embedded pointer to the unexported "+f.hidden.String(),
			"embed the struct itself, or export its type")
	}

	// The rules of the tag apply to the values aside of null.
	tag, err := readTag(f.of)
	if err != nil {
		return nil, false, b.fault(f.of.Type, err.Error(), "correct the tag")
	}
	n, null, err := b.value(f, tag)
	if err != nil {
		return nil, false, err
	}
	if n, err = tag.apply(n); err != nil {
		return nil, false, b.fault(f.of.Type, err.Error(), "correct the tag")
	}
	if null || tag.nullable {
		n = n.nullable()
	}
	return n, tag.required || !f.optional, nil
}

// value returns the schema of the values of a field without null, and whether null is one.
func (b *builder) value(f field, tag fieldTag) (n *node, null bool, err error) {
	t := f.of.Type
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		null = true
		t = t.Elem()
	}
	switch {
	case f.quoted && hasOwnJSON(t) && t != reflect.TypeFor[time.Duration]():
		return nil, null, b.fault(t, "the type has its own JSON, for which the option string of the json tag does nothing",
			"remove the option")

	case f.quoted && !hasOwnJSON(t):
		b.exact = b.exact && t.Kind() == reflect.Bool
		return quoted(t.Kind()), null, nil

	// The tag states the JSON type of a type that only its own methods know.
	case tag.typ != "" && marshalsJSON(t) && !hasSchema(t):
		b.exact = false
		return typed(tag.typ), null, nil
	}

	n, err = b.named(t)
	if err != nil {
		return nil, null, err
	}
	if last := len(n.Type) - 1; last > 0 && n.Type[0] == "null" {
		n.Type = n.Type[1:] // nullable adds it again, after the rules
		null = true
	}
	return n, null, nil
}

// within returns the schema of the elements of a list or a map.
func (b *builder) within(step string, t reflect.Type) (*node, error) {
	b.path = append(b.path, step)
	defer func() { b.path = b.path[:len(b.path)-1] }()
	return b.node(t)
}
