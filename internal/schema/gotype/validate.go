package gotype

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Validator is a type with a check of its own. The error is shown to the model.
type Validator interface{ Validate() error }

var validator = reflect.TypeFor[Validator]()

// Fault is the error of a Validate method, with the place of its value in the JSON.
type Fault struct {
	Path []string
	Err  error
}

// Error returns the error with its place.
func (f *Fault) Error() string { return inField(f.Path, f.Err.Error()) }

// Unwrap returns the error of the method.
func (f *Fault) Unwrap() error { return f.Err }

// lines returns the faults that the error of the method joins, each with the place.
func (f *Fault) lines() []string {
	var out []string
	for line := range strings.Lines(f.Err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, inField(f.Path, line))
		}
	}
	return out
}

// Validate calls the Validate methods of the value that v points to and of all values inside it,
// the deepest first, and joins their errors. Values of interface types are not looked into. A
// method that panics has an error.
func Validate(v any) error {
	at := reflect.ValueOf(v).Elem()
	if !validates(at.Type()) {
		return nil
	}
	var w validation
	w.value(at, nil)
	return errors.Join(w.faults...)
}

// validates reports whether t or a type inside it has a Validate method.
func validates(t reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	var inside func(t reflect.Type) bool
	inside = func(t reflect.Type) bool {
		switch {
		// A recursive type is being looked through already.
		case seen[t]:
			return false
		case t.Kind() != reflect.Interface && (t.Implements(validator) || reflect.PointerTo(t).Implements(validator)):
			return true
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Map:
			return inside(t.Key()) || inside(t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array:
			return inside(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if _, _, skipped := jsonTag(t.Field(i)); !skipped && inside(t.Field(i).Type) {
					return true
				}
			}
		}
		return false
	}
	return inside(t)
}

// validation collects the errors of the methods.
type validation struct{ faults []error }

// value checks the values inside v, then v itself.
func (w *validation) value(v reflect.Value, path []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.value(v.Elem(), path)
		}
		return // a pointer has the methods of its element

	case reflect.Struct:
		w.fields(v, path)
	case reflect.Map:
		w.entries(v, path)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i), append(slices.Clone(path), strconv.Itoa(i)))
		}
	}
	w.call(v, path)
}

// fields checks the fields of a struct that are in its JSON. An embedded struct has no place of its
// own.
func (w *validation) fields(v reflect.Value, path []string) {
	t := v.Type()
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, skipped := jsonTag(sf)
		if skipped {
			continue
		}
		inner := slices.Clone(path)
		// The path is the path in the JSON, where the fields of an embedded struct stand in the
		// outer object.
		if !sf.Anonymous || name != "" {
			if name == "" {
				name = sf.Name
			}
			inner = append(inner, name)
		}
		w.value(v.Field(i), inner)
	}
}

// entries checks the keys and values of a map, in the order of the keys.
func (w *validation) entries(v reflect.Value, path []string) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, k := range keys {
		inner := append(slices.Clone(path), fmt.Sprint(k))
		w.value(addressable(k), inner)
		w.value(addressable(v.MapIndex(k)), inner)
	}
}

// addressable returns a copy of v whose methods with a pointer receiver can be called.
func addressable(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// call calls the Validate method of v itself. A struct has the method of a struct that it embeds,
// so that an error which the embedded struct has already reported is left out.
func (w *validation) call(v reflect.Value, path []string) {
	if !v.CanAddr() || !v.Addr().CanInterface() || v.Kind() == reflect.Interface {
		return
	}
	method, ok := v.Addr().Interface().(Validator)
	if !ok {
		return
	}
	err := guarded(method)
	if err == nil {
		return
	}
	f := &Fault{path, err}
	if !slices.ContainsFunc(w.faults, func(old error) bool { return old.Error() == f.Error() }) {
		w.faults = append(w.faults, f)
	}
}

// guarded calls the method and returns a panic as an error.
func guarded(v Validator) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check of the value panicked: %v", p)
		}
	}()
	return v.Validate()
}
