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
	x := b.Receiver()
	name := b.Name()
	args, err := r.methodArguments(name, args)
	if err != nil {
		return nil, err
	}

	// Starlark's own extend copies the values without a count.
	if l, ok := x.(*starlark.List); ok && name == "extend" && len(args) == 1 {
		if it, ok := args[0].(starlark.Iterable); ok {
			return starlark.None, r.extend(l, it)
		}
	}

	cost, err := methodCost(x, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	if err := r.takes(cost); err != nil {
		return nil, err
	}

	if f := more[x.Type()+"."+name]; f != nil {
		return f(t, x, kwargs)
	}
	// Python counts characters, and Starlark bytes.
	if s, ok := x.(starlark.String); ok && !ascii(string(s)) {
		return inCharacters(t, b, string(s), args, kwargs)
	}
	return starlark.Call(t, b, args, kwargs)
}

// methodArguments returns the values that a method gets in place of its arguments, and checks the
// values that it traverses. Text counts with all its characters, also where a method takes it
// whole.
func (r *embeddedRun) methodArguments(name string, args starlark.Tuple) (starlark.Tuple, error) {
	args = slices.Clone(args)
	for i, a := range args {
		_, text := a.(starlark.String)
		// through returns the characters of a text, which only a few methods take one by one.
		v, _, err := r.through(a)
		if text && !iteratesArgument(name) {
			continue
		}
		if err != nil {
			return nil, err
		}
		args[i] = v

		if storesArgument(name) || plain(v) {
			continue
		}
		if _, err := weight(v); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// iteratesArgument reports whether a method iterates over an argument that is text.
func iteratesArgument(name string) bool {
	switch name {
	case "join", "extend", "update", "union":
		return true
	}
	return false
}

// storesArgument reports whether a method stores its argument, or its elements, without reading
// them.
func storesArgument(name string) bool {
	switch name {
	case "append", "extend", "insert":
		return true
	}
	return false
}

// methodCost returns the maximum number of bytes that the method of x allocates. The error says
// that it traverses too much.
func methodCost(x starlark.Value, name string, args starlark.Tuple, kwargs []starlark.Tuple) (int64, error) {
	const little = 64
	switch x := x.(type) {
	case starlark.String:
		return stringCost(string(x), name, args, kwargs), nil

	case *starlark.List:
		switch name {
		case "index", "remove", "sort", "copy", "reverse":
			_, err := weight(x)
			return flat(x) + 16, err
		}

	case *starlark.Dict:
		switch name {
		case "items", "keys", "values", "update", "copy":
			return 8*flat(x) + little + argsFlat(args), nil
		}
		return little + argsFlat(args), nil

	case *starlark.Set:
		switch name {
		case "add", "discard", "remove":
			return little + argsFlat(args), nil
		}
		return 8*flat(x) + little + argsFlat(args), nil
	}
	return little, nil
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
		return formatCost(s, args, kwargs)

	case "split", "rsplit":
		if w := word(0); w != "" {
			return 16*int64(strings.Count(s, w)+1) + 64
		}
		return 16*(size/2+1) + 64 // at white space

	case "splitlines":
		return 16*int64(strings.Count(s, "\n")+strings.Count(s, "\r")+1) + 64

	case "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "strip", "lstrip", "rstrip",
		"elems", "codepoints", "elem_ords", "codepoint_ords":
		return 16
	}
	return 2*size + 64
}

// formatCost returns the cost of format, where each field may have all arguments. -1 means too
// much.
func formatCost(s string, args starlark.Tuple, kwargs []starlark.Tuple) int64 {
	total := int64(16)
	for _, a := range args {
		w, _ := weight(a) // methodArguments has checked it
		total += 4 * w
	}
	for _, kv := range kwargs {
		w, err := weight(kv[1])
		if err != nil {
			return -1
		}
		total += 4 * w
	}
	return int64(len(s)) + total*int64(strings.Count(s, "{"))
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

	// Positions of characters in the arguments become positions of bytes, and in the result back.
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
