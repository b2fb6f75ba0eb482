package code

import (
	"fmt"
	"unicode/utf8"

	starmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// builtin is a function that a program can call, or a function that the rewriting inserts.
type builtin func(r *embeddedRun, t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value,
	error)

func made(name string, f builtin) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
		kwargs []starlark.Tuple) (starlark.Value, error) {
		return f(runOf(t), t, args, kwargs)
	})
}

// known returns all predeclared names of a program: our functions, the language's functions with
// their allocations counted, and the functions that the rewriting inserts.
func known() starlark.StringDict {
	d := starlark.StringDict{}
	for name, v := range starlark.Universe {
		if b, ok := v.(*starlark.Builtin); ok {
			d[name] = ofLanguage(b)
		}
	}
	for name, f := range ownFunctions() {
		d[name] = made(name, f)
	}

	for op := syntax.PLUS; op <= syntax.GTGT; op++ {
		d[op.String()] = made(op.String(), operator(op, (*embeddedRun).binary))
		d[op.String()+"="] = made(op.String()+"=", operator(op, (*embeddedRun).inPlace))
	}
	for _, op := range []syntax.Token{syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE, syntax.IN,
		syntax.NOT_IN} {
		d[op.String()] = made(op.String(), operator(op, (*embeddedRun).binary))
	}

	d["json"] = &starlarkstruct.Module{Name: "json", Members: starlark.StringDict{
		"dumps":  made("json.dumps", jsonDumps),
		"loads":  made("json.loads", jsonLoads),
		"encode": made("json.encode", jsonDumps),
		"decode": made("json.decode", jsonLoads),
	}}
	d["math"] = starmath.Module
	return d
}

// ownFunctions returns the functions that are not the language's, by the names that programs and
// the rewriting use.
func ownFunctions() map[string]builtin {
	return map[string]builtin{
		// of pawl
		"call_tool":           callTool,
		"try_call":            tryCall,
		"call_tools_parallel": callTools,
		"set_result":          setResult,
		"ToolError":           noToolError,

		// of Python
		"isinstance": isInstance,
		"sum":        sum,
		"round":      round,
		"pow":        pow,
		"divmod":     divMod,
		"map":        mapped,
		"filter":     filtered,
		"len":        length,
		"str":        str,
		"getattr":    getAttr,
		"range":      ranged,

		// of the rewriting; no program can write these names
		"def":   enter,
		"for":   looped,
		"*args": starred,
		"#":     hashed,
		"[]":    indexed,
		"[:]":   cut,
		"-a":    negated,
		"{}":    newDict,
		".":     attribute,
		"()":    method,
		"[]=":   setIndex,
	}
}

// ofLanguage wraps a function of the language. Its arguments are checked first, because the
// function iterates over them without counting steps.
func ofLanguage(b *starlark.Builtin) *starlark.Builtin {
	name := b.Name()
	return made(name, func(r *embeddedRun, t *starlark.Thread, args starlark.Tuple,
		kwargs []starlark.Tuple) (starlark.Value, error) {
		checked := make(starlark.Tuple, len(args))
		for i, a := range args {
			v, err := r.argument(name, a, len(args))
			if err != nil {
				return nil, err
			}
			checked[i] = v
		}
		return starlark.Call(t, b, checked, kwargs)
	})
}

// maxIntText is the longest text that int reads, as in Python.
const maxIntText = 4300

// argument checks and counts one of n arguments of a function of the language, and returns the
// value that the function gets in its place.
func (r *embeddedRun) argument(name string, a starlark.Value, n int) (starlark.Value, error) {
	v := a
	if iterates(name, n) {
		var err error
		v, _, err = r.through(a)
		if err != nil {
			return nil, err
		}
		if err := r.takes(4 * flat(v)); err != nil {
			return nil, err
		}
	}
	if plain(a) {
		return v, nil
	}

	cost, err := weight(a)
	if err != nil {
		return nil, err
	}
	switch name {
	case "repr", "print", "fail", "int": // they copy the whole value
		if err := r.takes(cost); err != nil {
			return nil, err
		}
	}

	text, _ := a.(starlark.String)
	if intTooLarge(a) || name == "int" && len(text) > maxIntText {
		return nil, fmt.Errorf("%s: a number of too many digits", name)
	}
	return v, nil
}

// iterates reports whether a function of the language iterates over each of its n arguments.
func iterates(name string, n int) bool {
	switch name {
	case "all", "any", "list", "tuple", "set", "sorted", "reversed", "enumerate", "zip", "dict":
		return true
	case "max", "min":
		return n == 1 // several arguments are the elements themselves
	}
	return false
}

func operator(op syntax.Token,
	apply func(r *embeddedRun, op syntax.Token, x, y starlark.Value) (starlark.Value, error)) builtin {
	return func(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return apply(r, op, args[0], args[1])
	}
}

// inPlace implements a op= b: lists and dicts are changed in place and not copied.
func (r *embeddedRun) inPlace(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	switch l := x.(type) {
	case *starlark.List:
		it, ok := y.(starlark.Iterable)
		// Python extends a list with the characters of a text, and Starlark does not iterate over
		// texts.
		if s, text := y.(starlark.String); text {
			v, err := r.characters(string(s))
			if err != nil {
				return nil, err
			}
			it = v.(starlark.Iterable)
			ok = true
		}
		if op != syntax.PLUS || !ok {
			break
		}
		return l, r.extend(l, it)

	case *starlark.Dict:
		other, ok := y.(*starlark.Dict)
		if op != syntax.PIPE || !ok {
			break
		}
		if err := r.takes(64 * int64(other.Len())); err != nil {
			return nil, err
		}
		return l, setAll(l, other.Items())
	}
	return r.binary(op, x, y)
}

func setAll(d *starlark.Dict, items []starlark.Tuple) error {
	for _, kv := range items {
		if err := d.SetKey(kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *embeddedRun) extend(l *starlark.List, it starlark.Iterable) error {
	// collect all elements first, because the argument may be the list itself
	add, err := r.gathered(it)
	if err != nil {
		return err
	}
	for _, v := range add {
		if err := l.Append(v); err != nil {
			return err
		}
	}
	return nil
}

func (r *embeddedRun) gathered(it starlark.Iterable) (list []starlark.Value, err error) {
	for v := range starlark.Elements(it) {
		if err := r.takes(32); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// setIndex implements a[i] op= b.
func setIndex(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	a := args[0]
	i := args[1]
	b := args[3]
	op := arithmetic(string(args[2].(starlark.String)))

	switch a := a.(type) {
	case starlark.HasSetKey:
		old, found, err := a.Get(i)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("key %v not in %s", i, a.Type())
		}
		v, err := r.inPlace(op, old, b)
		if err != nil {
			return nil, err
		}
		return starlark.None, a.SetKey(i, v)

	case starlark.HasSetIndex:
		k, err := starlark.AsInt32(i)
		if err != nil {
			return nil, err
		}
		n := a.Len()
		if k < 0 {
			k += n
		}
		if k < 0 || k >= n {
			return nil, fmt.Errorf("%s index %v out of range [%d:%d]", a.Type(), i, -n, n-1)
		}

		v, err := r.inPlace(op, a.Index(k), b)
		if err != nil {
			return nil, err
		}
		return starlark.None, a.SetIndex(k, v)
	}
	return nil, fmt.Errorf("%s value does not support item assignment", a.Type())
}

// arithmetic returns the operator that is written as text.
func arithmetic(text string) syntax.Token {
	op := syntax.PLUS
	for op < syntax.GTGT && op.String() != text {
		op++
	}
	return op
}

// enter is called at the beginning of each function.
func enter(_ *embeddedRun, t *starlark.Thread, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if t.CallStackDepth() > maxCalls {
		return nil, fmt.Errorf("functions call each other more than %d deep: a recursion without an end?", maxCalls)
	}
	return starlark.None, nil
}

// looped returns the value that a for statement iterates over. Text is iterated by characters.
func looped(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if s, ok := args[0].(starlark.String); ok {
		return r.characters(string(s))
	}
	return args[0], nil
}

// starred implements *x among arguments, because expanding its elements counts no steps.
func starred(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	v, _, err := r.through(args[0])
	if err != nil {
		return nil, err
	}
	return v, r.takes(flat(v))
}

// hashed checks a key of a dict, or an index.
func hashed(_ *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if !plain(args[0]) {
		if _, err := weight(args[0]); err != nil {
			return nil, err
		}
	}
	return args[0], nil
}

func indexed(_ *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if s, ok := args[0].(starlark.String); ok && !ascii(string(s)) {
		return runes{s, []rune(string(s))}, nil
	}
	return args[0], nil
}

func cut(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return args[0], r.takes(flat(args[0]))
}

func negated(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if plain(args[0]) {
		return args[0], nil
	}
	return args[0], r.takes(flat(args[0]))
}

func newDict(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return args[0], r.takes(512 + 4*flat(args[0]))
}

func length(_ *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 1 {
		if s, ok := args[0].(starlark.String); ok {
			return starlark.MakeInt(utf8.RuneCountInString(string(s))), nil
		}
		if n := starlark.Len(args[0]); n >= 0 {
			return starlark.MakeInt(n), nil
		}
	}
	return nil, fmt.Errorf("len takes one text, list, dict, set, tuple or range")
}

func str(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.String(""), nil
	}
	switch v := args[0].(type) {
	case starlark.String:
		return v, nil
	case *toolError:
		return starlark.String(v.Error), nil
	// Models write programs for Python, and Starlark writes some floats in another form.
	case starlark.Float:
		return starlark.String(pythonFloat(float64(v))), nil
	}
	n, err := weight(args[0])
	if err != nil {
		return nil, err
	}
	if intTooLarge(args[0]) {
		return nil, fmt.Errorf("str: a number of too many digits")
	}
	return starlark.String(args[0].String()), r.takes(2 * n)
}

func ranged(_ *embeddedRun, t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return starlark.Call(t, starlark.Universe["range"], args, kwargs)
}

func isInstance(_ *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("isinstance takes a value and a type")
	}
	types, ok := args[1].(starlark.Tuple)
	if !ok {
		types = starlark.Tuple{args[1]}
	}

	for _, t := range types {
		b, ok := t.(*starlark.Builtin)
		if !ok {
			return nil, fmt.Errorf("isinstance: %s is no type; there are str, int, float, bool, list, tuple, "+
				"dict, set, ToolError", t.Type())
		}
		want := b.Name()
		if want == "str" {
			want = "string"
		}
		// In Python, a bool is an int.
		if got := args[0].Type(); got == want || got == "bool" && want == "int" {
			return starlark.True, nil
		}
	}
	return starlark.False, nil
}

func mapped(r *embeddedRun, t *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return r.each(t, "map", args, func(_, made starlark.Value) starlark.Value { return made })
}

func filtered(r *embeddedRun, t *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return r.each(t, "filter", args, func(e, made starlark.Value) starlark.Value {
		if bool(made.Truth()) {
			return e
		}
		return nil
	})
}

// each calls a function for each element and collects the results of keep.
func (r *embeddedRun) each(t *starlark.Thread, name string, args starlark.Tuple,
	keep func(e, made starlark.Value) starlark.Value) (starlark.Value, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("%s takes a function and a list", name)
	}
	v, _, err := r.through(args[1])
	if err != nil {
		return nil, err
	}
	it := starlark.Iterate(v)
	if it == nil {
		return nil, fmt.Errorf("%s: %s is no list", name, args[1].Type())
	}
	defer it.Done()

	var list []starlark.Value
	for e := starlark.Value(nil); it.Next(&e); {
		made := e
		if args[0] != starlark.None {
			made, err = starlark.Call(t, args[0], starlark.Tuple{e}, nil)
			if err != nil {
				return nil, err
			}
		}

		// Before the element is stored: the program may have no more memory for it.
		if err := r.takes(32); err != nil {
			return nil, err
		}
		if k := keep(e, made); k != nil {
			list = append(list, k)
		}
	}
	return starlark.NewList(list), nil
}
