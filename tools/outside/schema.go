package outside

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// bytes of an operation's schema; a larger one is too much for a model
	mostSchema      = 128 << 10
	mostSchemaNodes = 20_000
	mostText        = 400 // bytes of a description within a schema
)

// schemas converts the schemas of a document to JSON Schema, for one operation. Referenced schemas
// are put into $defs once, so that a schema may refer to itself.
type schemas struct {
	spec  *spec
	names map[string]string // names in $defs, by reference
	taken map[string]bool
	queue []string
	nodes int
}

func newSchemas(s *spec) *schemas {
	return &schemas{spec: s, names: map[string]string{}, taken: map[string]bool{}}
}

// of returns the JSON Schema for a schema. Nil accepts any value.
func (c *schemas) of(v any) (any, error) {
	if v == nil {
		return map[string]any{}, nil
	}
	return c.convert(v, 0)
}

// defs returns all schemas that the converted schemas refer to, directly or indirectly.
func (c *schemas) defs() (map[string]any, error) {
	defs := map[string]any{}
	for len(c.queue) > 0 {
		ref := c.queue[0]
		c.queue = c.queue[1:]
		v := c.spec.target(ref)
		if v == nil {
			return nil, fmt.Errorf("%s points to nothing in the document", clip(ref, 100))
		}
		s, err := c.convert(v, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", clip(ref, 100), err)
		}
		defs[c.names[ref]] = s
	}
	return defs, nil
}

// reference returns the name of a reference in $defs.
func (c *schemas) reference(ref string) (string, error) {
	if !strings.HasPrefix(ref, "#/") {
		return "", fmt.Errorf("%s is in another document; combine the documents first", clip(ref, 100))
	}
	if name, ok := c.names[ref]; ok {
		return name, nil
	}
	base := identifier(ref[strings.LastIndexByte(ref, '/')+1:])
	name := base
	for n := 2; c.taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	c.names[ref] = name
	c.taken[name] = true
	c.queue = append(c.queue, ref)
	return name, nil
}

// The keywords of a schema, by the kind of their value. Other keywords (example, xml,
// discriminator, x-…) do not restrict values and are left out.
var (
	holdSchema = []string{
		"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties",
	}
	holdList  = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	holdMap   = []string{"properties", "patternProperties", "dependentSchemas"}
	holdValue = []string{
		"type", "enum", "const", "default", "format", "pattern", "minLength", "maxLength",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minItems", "maxItems", "uniqueItems", "minContains", "maxContains",
		"minProperties", "maxProperties", "required", "dependentRequired", "writeOnly",
	}
)

func (c *schemas) convert(v any, depth int) (any, error) {
	c.nodes++
	if c.nodes > mostSchemaNodes || depth > 64 {
		return nil, fmt.Errorf("its schema is too large: at most %d parts, 64 deep", mostSchemaNodes)
	}
	if _, ok := v.(bool); ok {
		return v, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a schema is an object; got %s", clip(plainText(v), 40))
	}

	out := map[string]any{}
	if ref, ok := m["$ref"].(string); ok {
		name, err := c.reference(ref)
		if err != nil {
			return nil, err
		}
		out["$ref"] = "#/$defs/" + name
		if c.spec.old {
			return out, nil // 3.0: keywords next to $ref are ignored
		}
	}
	// Its target depends on the schema that refers to it, which moves here.
	if m["$dynamicRef"] != nil || m["$recursiveRef"] != nil {
		return nil, fmt.Errorf("its schema has a reference that is resolved when it is used, which is not supported")
	}

	// Only known keywords are copied: others, such as examples and vendor extensions, are long and
	// mean nothing to a model.
	for _, k := range holdValue {
		if e, ok := m[k]; ok {
			out[k] = e
		}
	}
	if d := text(m["description"]); d != "" {
		out["description"] = clip(d, mostText)
	}
	if err := c.inner(m, out, depth); err != nil {
		return nil, err
	}

	if c.spec.old {
		modern(m, out)
	}
	withoutReadOnly(m, out, c.spec)
	return out, nil
}

// inner converts the schemas nested in m.
func (c *schemas) inner(m, out map[string]any, depth int) (err error) {
	for _, k := range holdSchema {
		if e, ok := m[k]; ok {
			out[k], err = c.convert(e, depth+1)
			if err != nil {
				return err
			}
		}
	}

	for _, k := range holdList {
		if list, ok := m[k].([]any); ok {
			all := make([]any, len(list))
			for i, e := range list {
				all[i], err = c.convert(e, depth+1)
				if err != nil {
					return err
				}
			}
			out[k] = all
		}
	}

	for _, k := range holdMap {
		if o, ok := m[k].(map[string]any); ok {
			all := map[string]any{}
			for _, name := range slices.Sorted(maps.Keys(o)) {
				all[name], err = c.convert(o[name], depth+1)
				if err != nil {
					return err
				}
			}
			out[k] = all
		}
	}
	return nil
}

// modern converts keywords that differ in 3.0: nullable, and bounds that are excluded by a flag.
func modern(m, out map[string]any) {
	for _, k := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		if flag, ok := m[k[0]].(bool); ok {
			delete(out, k[0])
			if bound, has := out[k[1]]; flag && has {
				out[k[0]] = bound
				delete(out, k[1])
			}
		}
	}
	if m["nullable"] != true {
		return
	}
	if t, ok := out["type"].(string); ok {
		out["type"] = []any{t, "null"}
	}
	if e, ok := out["enum"].([]any); ok && !slices.Contains(e, nil) {
		out["enum"] = append(slices.Clone(e), nil)
	}
}

// withoutReadOnly removes properties from an object that only the server sets.
func withoutReadOnly(m, out map[string]any, s *spec) {
	props, ok := out["properties"].(map[string]any)
	if !ok {
		return
	}
	from := object(m["properties"])
	required, _ := out["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if object(s.resolve(from[name]))["readOnly"] == true {
			delete(props, name)
			required = slices.DeleteFunc(slices.Clone(required), func(v any) bool { return v == name })
		}
	}
	// In older drafts an empty list is not valid.
	if _, ok := out["required"]; ok {
		out["required"] = required
		if len(required) == 0 {
			delete(out, "required")
		}
	}
}
