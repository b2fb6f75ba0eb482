package outside

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// pointer is a JSON Pointer (RFC 6901), unescaped. Nil is the whole value.
type pointer []string

func parsePointer(s string) (pointer, error) {
	if s == "" {
		return nil, nil
	}
	if !strings.HasPrefix(s, "/") {
		return nil, fmt.Errorf("%q is not a JSON Pointer: it begins with /, as in /items/0/name", s)
	}
	parts := strings.Split(s[1:], "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

// String returns the pointer in its escaped form.
func (p pointer) String() string {
	var b strings.Builder
	for _, s := range p {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// find follows the pointer. The error says how far the pointer matched, and what exists there.
func (p pointer) find(v any) (any, error) {
	for i, name := range p {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[name]
			if !ok {
				names := slices.Sorted(maps.Keys(at))
				return nil, fmt.Errorf("the answer has no %s; %s has %s", p, where(p[:i]), brief(names))
			}
			v = next
		case []any:
			// JSON Pointer has no other form of an index: 01 and +1 are names.
			n, err := strconv.Atoi(name)
			isIndex := err == nil && name == strconv.Itoa(n)
			if !isIndex || n < 0 || n >= len(at) {
				return nil, fmt.Errorf("the answer has no %s; %s is a list of %d", p, where(p[:i]), len(at))
			}
			v = at[n]
		default:
			return nil, fmt.Errorf("the answer has no %s; %s is %s", p, where(p[:i]), clip(plainText(v), 60))
		}
	}
	return v, nil
}

func where(p pointer) string {
	if len(p) == 0 {
		return "it"
	}
	return p.String()
}

func brief(names []string) string {
	if len(names) == 0 {
		return "no fields"
	}
	if len(names) > 12 {
		return strings.Join(names[:12], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// clip shortens a text to about n bytes, at a character boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(strings.ToValidUTF8(s[:n], "")) + "…"
}
