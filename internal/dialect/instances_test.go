package dialect_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// maker creates values that should match a schema, and similar values that do not.
type maker struct {
	r    *rand.Rand
	root node
}

func (m *maker) value(v any, depth int) any {
	s, ok := v.(node)
	if !ok || len(s) == 0 || depth > 6 {
		return m.anything(depth)
	}
	if ref, ok := s["$ref"].(string); ok {
		if t := m.at(ref); t != nil {
			return m.value(t, depth+1)
		}
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if e := list(s["enum"]); len(e) > 0 {
		return e[m.r.IntN(len(e))]
	}
	if s["nullable"] == true && m.r.IntN(4) == 0 {
		return nil
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if f := list(s[k]); len(f) > 0 {
			x := m.value(f[m.r.IntN(len(f))], depth+1)
			if o, ok := x.(node); ok && s["properties"] != nil {
				rest := maps.Clone(s)
				delete(rest, k)
				if y, ok := m.value(rest, depth+1).(node); ok {
					maps.Copy(y, o)
					return y
				}
			}
			return x
		}
	}
	if all := list(s["allOf"]); len(all) > 0 {
		rest := maps.Clone(s)
		delete(rest, "allOf")
		out := m.value(rest, depth+1)
		for _, f := range all {
			x := m.value(f, depth+1)
			o, ok1 := out.(node)
			y, ok2 := x.(node)
			if ok1 && ok2 {
				maps.Copy(o, y)
			} else {
				out = x
			}
		}
		return out
	}
	t, _ := s["type"].(string)
	if ts := list(s["type"]); len(ts) > 0 {
		t, _ = ts[m.r.IntN(len(ts))].(string)
	}
	num := func(k string, or float64) float64 {
		if f, ok := s[k].(float64); ok {
			return f
		}
		return or
	}
	switch strings.ToLower(t) {
	case "null":
		return nil
	case "boolean":
		return m.r.IntN(2) == 0
	case "integer":
		return float64(int(num("minimum", num("exclusiveMinimum", -1)+1))) + float64(m.r.IntN(3))*num("multipleOf", 1)
	case "number":
		return num("minimum", num("exclusiveMinimum", -1)+0.5) + float64(m.r.IntN(3))*num("multipleOf", 0.5)
	case "string":
		return m.text(s)
	case "array":
		out := []any{}
		n := int(num("minItems", 0)) + m.r.IntN(3)
		if most, ok := s["maxItems"].(float64); ok {
			n = min(n, int(most))
		}
		prefix := list(s["prefixItems"])
		for i := range min(n, 20) {
			if i < len(prefix) {
				out = append(out, m.value(prefix[i], depth+1))
			} else {
				out = append(out, m.value(s["items"], depth+1))
			}
		}
		return out
	case "object", "":
		if t == "" && s["properties"] == nil && s["required"] == nil {
			return m.anything(depth)
		}
		out := node{}
		need := list(s["required"])
		props := sub(s, "properties")
		for _, k := range slices.Sorted(maps.Keys(props)) {
			if slices.Contains(need, any(k)) || m.r.IntN(3) > 0 {
				out[k] = m.value(props[k], depth+1)
			}
		}
		for _, k := range need {
			if k, ok := k.(string); ok && out[k] == nil && props[k] == nil {
				out[k] = m.value(s["additionalProperties"], depth+1)
			}
		}
		if more, ok := s["additionalProperties"]; (!ok || more != false) && m.r.IntN(4) == 0 {
			out[fmt.Sprintf("x%d", m.r.IntN(3))] = m.value(more, depth+1)
		}
		return out
	}
	return m.anything(depth)
}

func (m *maker) at(ref string) any {
	if ref == "#" {
		return m.root
	}
	var v any = m.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		s, ok := v.(node)
		if !ok {
			return nil
		}
		v = s[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return v
}

func (m *maker) text(s node) string {
	f, _ := s["format"].(string)
	if x := map[string]string{"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "time": "03:04:05Z", "email": "a@example.com", "uri": "https://example.com/a",
		"uuid": "123e4567-e89b-12d3-a456-426614174000", "ipv4": "10.0.0.1", "ipv6": "::1", "hostname": "example.com"}[f]; x != "" && m.r.IntN(5) > 0 {
		return x
	}
	n := 3
	if f, ok := s["minLength"].(float64); ok {
		n = int(f) + m.r.IntN(2)
	}
	return strings.Repeat([]string{"a", "7", "é", "A1"}[m.r.IntN(4)], min(n, 200))
}

func (m *maker) anything(depth int) any {
	switch n := m.r.IntN(8); {
	case n < 2:
		return "text"
	case n == 2:
		return float64(m.r.IntN(9))
	case n == 3:
		return 1.5
	case n == 4:
		return m.r.IntN(2) == 0
	case n == 5 && depth < 4:
		return []any{m.anything(depth + 1)}
	case n == 6 && depth < 4:
		return node{"k": m.anything(depth + 1)}
	}
	return nil
}

// near changes one part of v.
func (m *maker) near(v any) any {
	switch v := v.(type) {
	case node:
		out := maps.Clone(v)
		keys := slices.Sorted(maps.Keys(v))
		switch n := m.r.IntN(5); {
		case n == 0 || len(keys) == 0:
			out["extra"] = m.anything(3)
		case n == 1:
			delete(out, keys[m.r.IntN(len(keys))])
		default:
			k := keys[m.r.IntN(len(keys))]
			out[k] = m.near(v[k])
		}
		return out
	case []any:
		out := slices.Clone(v)
		if len(out) == 0 || m.r.IntN(4) == 0 {
			return append(out, m.anything(3))
		}
		i := m.r.IntN(len(out))
		out[i] = m.near(out[i])
		return out
	}
	return m.anything(2)
}
