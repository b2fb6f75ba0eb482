package wire

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Fields is an object whose names may be in camelCase or snake_case, as Gemini accepts them.
type Fields map[string]json.RawMessage

// Get returns the field, or nil.
func (f Fields) Get(name string) json.RawMessage {
	if v, ok := f[name]; ok {
		return v
	}
	return f[Snake(name)]
}

// Into decodes the field into v, and leaves v unchanged if the field does not exist.
func (f Fields) Into(name string, v any) error {
	raw := f.Get(name)
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Text returns the field, or "" if it is not a string.
func (f Fields) Text(name string) string {
	var s string
	json.Unmarshal(f.Get(name), &s)
	return s
}

// Object returns the field, or nil if it is not an object.
func (f Fields) Object(name string) Fields {
	var o Fields
	json.Unmarshal(f.Get(name), &o)
	return o
}

// List returns the objects of a field that is a list, or one object.
func (f Fields) List(name string) ([]Fields, error) {
	raw := f.Get(name)
	if strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
		raw = json.RawMessage("[" + string(raw) + "]")
	}
	if raw == nil {
		return nil, nil
	}
	var list []Fields
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// Snake turns functionCall into function_call.
func Snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
