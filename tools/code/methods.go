package code

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// attribute implements x.name.
func attribute(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return r.attribute(args[0], string(args[1].(starlark.String)))
}

// getAttr implements getattr.
func getAttr(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) < 2 || len(args) > 3 {
		return nil, fmt.Errorf("getattr takes a value, a name and a default")
	}
	name, ok := starlark.AsString(args[1])
	if !ok {
		return nil, fmt.Errorf("getattr: the name is no text")
	}
	v, err := r.attribute(args[0], name)
	if err != nil && len(args) == 3 {
		return args[2], nil
	}
	return v, err
}

func (r *embeddedRun) attribute(x starlark.Value, name string) (starlark.Value, error) {
	v, err := attr(x, name)
	if b, ok := v.(*starlark.Builtin); ok && b.Receiver() != nil {
		return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
			kwargs []starlark.Tuple) (starlark.Value, error) {
			return runOf(t).method(t, b, args, kwargs)
		}), nil
	}
	return v, err
}

// method implements x.name(…).
func method(r *embeddedRun, t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := attr(args[0], string(args[1].(starlark.String)))
	if err != nil {
		return nil, err
	}
	if b, ok := v.(*starlark.Builtin); ok && b.Receiver() != nil {
		return r.method(t, b, args[2:], kwargs)
	}
	return starlark.Call(t, v, args[2:], kwargs)
}

// attr finds the language's attributes and the attributes that only Python has.
func attr(x starlark.Value, name string) (starlark.Value, error) {
	if f := more[x.Type()+"."+name]; f != nil {
		return starlark.NewBuiltin(name, nil).BindReceiver(x), nil
	}
	if h, ok := x.(starlark.HasAttrs); ok {
		if v, err := h.Attr(name); v != nil || err != nil {
			return v, err
		}
	}
	return nil, fmt.Errorf("%s has no .%s", x.Type(), name)
}

// more contains methods that Python has and the language lacks.
var more = map[string]func(*starlark.Thread, starlark.Value, []starlark.Tuple) (starlark.Value, error){
	"list.sort": func(t *starlark.Thread, x starlark.Value, kwargs []starlark.Tuple) (starlark.Value, error) {
		v, err := starlark.Call(t, starlark.Universe["sorted"], starlark.Tuple{x}, kwargs)
		if err != nil {
			return nil, err
		}
		return replace(x.(*starlark.List), func(i int) starlark.Value { return v.(*starlark.List).Index(i) })
	},
	"list.reverse": func(_ *starlark.Thread, x starlark.Value, _ []starlark.Tuple) (starlark.Value, error) {
		l := x.(*starlark.List)
		old := slices.Collect(starlark.Elements(l))
		slices.Reverse(old)
		return replace(l, func(i int) starlark.Value { return old[i] })
	},
	"list.copy": func(_ *starlark.Thread, x starlark.Value, _ []starlark.Tuple) (starlark.Value, error) {
		l := x.(*starlark.List)
		return l.Slice(0, l.Len(), 1), nil
	},
	"dict.copy": func(_ *starlark.Thread, x starlark.Value, _ []starlark.Tuple) (starlark.Value, error) {
		d := starlark.NewDict(x.(*starlark.Dict).Len())
		return d, setAll(d, x.(*starlark.Dict).Items())
	},
}

// replace replaces the elements of a list.
func replace(l *starlark.List, element func(int) starlark.Value) (starlark.Value, error) {
	for i := range l.Len() {
		if err := l.SetIndex(i, element(i)); err != nil {
			return nil, err
		}
	}
	return starlark.None, nil
}

// method calls a method of the language's own types after counting what it allocates and traverses.
func (r *embeddedRun) method(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple,
	kwargs []starlark.Tuple) (starlark.Value, error) {
	x, name := b.Receiver(), b.Name()
	args = append(starlark.Tuple(nil), args...)
	for i, a := range args {
		v, _, err := r.through(a)
		if _, text := a.(starlark.String); text && name != "join" && name != "extend" && name != "update" && name != "union" {
			continue
		}
		if err != nil {
			return nil, err
		}
		args[i] = v
		if name != "append" && name != "extend" && name != "insert" && !plain(v) {
			if _, err := weight(v); err != nil {
				return nil, err
			}
		}
	}
	n := int64(64)
	switch x := x.(type) {
	case starlark.String:
		n = stringCost(string(x), name, args, kwargs)
	case *starlark.List:
		switch name {
		case "extend":
			if it, ok := firstOf(args).(starlark.Iterable); ok && len(args) == 1 {
				return starlark.None, r.extend(x, it)
			}
		case "index", "remove", "sort", "copy", "reverse":
			if _, err := weight(x); err != nil {
				return nil, err
			}
			n = flat(x) + 16
		}
	case *starlark.Dict:
		switch name {
		case "items", "keys", "values", "update", "copy":
			n = 8*flat(x) + 64
		}
		n += argsFlat(args)
	case *starlark.Set:
		if name != "add" && name != "discard" && name != "remove" {
			n = 8*flat(x) + 64
		}
		n += argsFlat(args)
	}
	if err := r.takes(n); err != nil {
		return nil, err
	}
	if f := more[x.Type()+"."+name]; f != nil {
		return f(t, x, kwargs)
	}
	if s, ok := x.(starlark.String); ok && !ascii(string(s)) {
		return inCharacters(t, b, string(s), args, kwargs)
	}
	return starlark.Call(t, b, args, kwargs)
}

func firstOf(args starlark.Tuple) starlark.Value {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

func argsFlat(args starlark.Tuple) (n int64) {
	for _, a := range args {
		n += 4 * flat(a)
	}
	return n
}

// stringCost returns the maximum number of bytes that a method of text allocates.
func stringCost(s, name string, args starlark.Tuple, kwargs []starlark.Tuple) int64 {
	word := func(i int) string {
		if i < len(args) {
			w, _ := starlark.AsString(args[i])
			return w
		}
		return ""
	}
	size := int64(len(s))
	switch name {
	case "join":
		total := int64(0)
		if it := starlark.Iterate(firstOf(args)); it != nil {
			defer it.Done()
			for e := starlark.Value(nil); it.Next(&e); {
				total += flat(e) + size
			}
		}
		return total
	case "replace":
		return size + int64(strings.Count(s, word(0)))*int64(len(word(1))) + 16
	case "format":
		total := int64(16)
		for _, a := range args {
			w, _ := weight(a)
			total += 4 * w
		}
		for _, kv := range kwargs {
			w, err := weight(kv[1])
			total += 4 * w
			if err != nil {
				return -1
			}
		}
		return size + total*int64(strings.Count(s, "{"))
	case "split", "rsplit":
		if w := word(0); w != "" {
			return 16*int64(strings.Count(s, w)+1) + 64
		}
		return 16*(size/2+1) + 64
	case "splitlines":
		return 16*int64(strings.Count(s, "\n")+strings.Count(s, "\r")+1) + 64
	case "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "strip", "lstrip", "rstrip", "elems", "codepoints", "elem_ords", "codepoint_ords":
		return 16
	}
	return 2*size + 64
}

// inCharacters calls a method that returns byte positions, for text in which bytes and characters
// differ.
func inCharacters(t *starlark.Thread, b *starlark.Builtin, s string, args starlark.Tuple,
	kwargs []starlark.Tuple) (starlark.Value, error) {
	switch b.Name() {
	case "find", "rfind", "index", "rindex", "count", "startswith", "endswith":
	default:
		return starlark.Call(t, b, args, kwargs)
	}
	list := []rune(s)
	for i := 1; i < len(args); i++ {
		k, err := starlark.AsInt32(args[i])
		if err != nil {
			continue
		}
		if k < 0 {
			k += len(list)
		}
		k = min(max(k, 0), len(list))
		args[i] = starlark.MakeInt(len(string(list[:k])))
	}
	v, err := starlark.Call(t, b, args, kwargs)
	if n, ok := v.(starlark.Int); ok && b.Name() != "count" {
		if at, err := starlark.AsInt32(n); err == nil && at > 0 {
			return starlark.MakeInt(utf8.RuneCountInString(s[:at])), nil
		}
	}
	return v, err
}
