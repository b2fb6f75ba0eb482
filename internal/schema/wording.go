package schema

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
)

// wording turns the findings of the validator into text for the model: the expected value, the
// actual value, and the nearest allowed one.
type wording struct {
	doc  map[string]any // the schema
	root any            // the value

	effort *effort
}

// faults returns the validator's findings in the order of their paths. For a value that fits none
// of several forms, it returns only the faults in the nearest form.
func (w *wording) faults(ve *jsonschema.ValidationError) []Fault {
	out := w.faultsIn(ve, "")
	slices.SortStableFunc(out, func(a, b Fault) int { return slices.Compare(a.path, b.path) })
	return slices.CompactFunc(out, func(a, b Fault) bool { return slices.Equal(a.path, b.path) && a.text == b.text })
}

// faultsIn is faults in any order. form is what each text begins with.
func (w *wording) faultsIn(ve *jsonschema.ValidationError, form string) (out []Fault) {
	for _, e := range w.leaves(ve) {
		w.effort.spend(2)
		switch k := e.ErrorKind.(type) {
		case *kind.AnyOf:
			out = append(out, w.nearestForm(e, form)...)
			continue
		case *kind.OneOf:
			if len(k.Subschemas) == 0 {
				out = append(out, w.nearestForm(e, form)...)
				continue
			}
		}
		out = append(out, Fault{e.InstanceLocation, form + w.text(e, at(w.root, e.InstanceLocation))})
	}
	return out
}

// leaves returns the findings of e without the errors that only group them.
func (w *wording) leaves(e *jsonschema.ValidationError) (out []*jsonschema.ValidationError) {
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		w.effort.spend(1 + len(e.Causes)/16)
		for _, c := range e.Causes {
			out = append(out, w.leaves(c)...)
		}
		return out
	}
	return []*jsonschema.ValidationError{e}
}

// nearestForm returns the faults of a value that fits none of the forms of an anyOf or oneOf.
func (w *wording) nearestForm(e *jsonschema.ValidationError, form string) []Fault {
	got := at(w.root, e.InstanceLocation)
	var types []string
	var forms []*jsonschema.ValidationError // the forms of the value's own type
	for _, c := range e.Causes {
		if t := w.wrongType(c, e.InstanceLocation); t != nil {
			types = append(types, t...)
		} else {
			forms = append(forms, c)
		}
	}

	switch {
	case len(e.Causes) == 0:
		return []Fault{{e.InstanceLocation, form + w.text(e, got)}}
	case len(forms) == 0:
		slices.Sort(types)
		want := strings.Join(slices.Compact(types), " or ")
		return []Fault{{e.InstanceLocation, form + "expected " + want + ", got " + describe(got)}}
	}

	// A value that says which form it means, as {"type": "circl"}, has its fault there, and not in
	// the fields of the nearest form.
	if path, want := w.decides(forms, len(e.InstanceLocation)); want != nil {
		got := at(w.root, path)
		return []Fault{{path, form + "expected one of " + list(want) + ", got " + describe(got) + nearestOf(got, want)}}
	}

	best := slices.MinFunc(forms,
		func(a, b *jsonschema.ValidationError) int { return cmp.Compare(w.distance(a), w.distance(b)) })
	if len(forms) > 1 && form == "" {
		form = fmt.Sprintf("of the %d allowed forms the nearest is %s: ",
			len(e.Causes), w.formName(best, slices.Index(e.Causes, best)))
	}
	return w.faultsIn(best, form)
}

// wrongType returns the types that form allows for the value at path, if the value has another
// type. Otherwise it returns nil.
func (w *wording) wrongType(form *jsonschema.ValidationError, path []string) []string {
	for _, l := range w.leaves(form) {
		if t, ok := l.ErrorKind.(*kind.Type); ok && len(l.InstanceLocation) == len(path) {
			return t.Want
		}
	}
	return nil
}

// decides finds the value that distinguishes the forms: each form requires its own value there. It
// returns the path and the required values. depth is the depth of the value that has the forms. A
// nil path means that there is no such value, or only one form.
func (w *wording) decides(forms []*jsonschema.ValidationError, depth int) (path []string, want []any) {
	if len(forms) < 2 {
		return nil, nil
	}
	for _, l := range w.leaves(forms[0]) {
		// A distinguishing value stands directly in the value, not deeper.
		if first := wanted(l); first == nil || len(l.InstanceLocation) > depth+1 {
			continue
		}
		want = nil
		all := true
		for _, f := range forms {
			i := slices.IndexFunc(w.leaves(f), func(o *jsonschema.ValidationError) bool {
				return wanted(o) != nil && slices.Equal(o.InstanceLocation, l.InstanceLocation)
			})
			all = i >= 0
			if !all {
				break
			}
			for _, v := range wanted(w.leaves(f)[i]) {
				w.effort.spend(1 + len(want))
				if !slices.ContainsFunc(want, func(o any) bool { return show(o) == show(v) }) {
					want = append(want, v)
				}
			}
		}
		if all {
			return l.InstanceLocation, want
		}
	}
	return nil, nil
}

// wanted returns the values of which one was required. Nil means that the finding is of another
// kind.
func wanted(e *jsonschema.ValidationError) []any {
	switch k := e.ErrorKind.(type) {
	case *kind.Const:
		return []any{k.Want}
	case *kind.Enum:
		return k.Want
	}
	return nil
}

// distance returns how far a value is from a form. A value that names another form is the farthest.
func (w *wording) distance(form *jsonschema.ValidationError) (n int) {
	for _, l := range w.leaves(form) {
		switch k := l.ErrorKind.(type) {
		case *kind.Const, *kind.Enum:
			n += 100
		case *kind.Required:
			n += len(k.Missing)
		case *kind.AdditionalProperties:
			n += len(k.Properties)
		default:
			n++
		}
	}
	return n
}

// formName names a form by its title, by its distinguishing value, or by its place.
func (w *wording) formName(form *jsonschema.ValidationError, place int) string {
	s := w.schema(form.SchemaURL)
	// References may form a circle.
	for range 8 {
		ref, ok := s["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#") {
			break
		}
		s = w.schema(ref)
	}
	if title, ok := s["title"].(string); ok && title != "" {
		return fmt.Sprintf("%q", text.Clip(title, 60))
	}
	props, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		p, _ := props[name].(map[string]any)
		if v, ok := p["const"]; ok {
			return fmt.Sprintf("the one with %s %s", text.Clip(name, 60), show(v))
		}
		if one, ok := p["enum"].([]any); ok && len(one) == 1 {
			return fmt.Sprintf("the one with %s %s", text.Clip(name, 60), show(one[0]))
		}
	}
	return fmt.Sprintf("number %d", place+1)
}

// schema returns the part of the schema at a location, or nil if it is not an object.
func (w *wording) schema(location string) map[string]any {
	_, pointer, _ := strings.Cut(location, "#")
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	s, _ := Pointed(w.doc, pointer).(map[string]any)
	return s
}

// unknown describes fields that the schema at location does not have: the nearest names, or the
// known ones.
func (w *wording) unknown(fields []string, location string) string {
	w.effort.spend(len(fields) / 4)
	props, _ := w.schema(location)["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(props))
	var b strings.Builder
	b.WriteString("unknown " + text.Plural(len(fields), "field ", "fields "))
	guessed := false
	// The order of a Go map must not reach the text: an equal error has to read the same, in prompt
	// caches and in replays.
	slices.Sort(fields)
	for i, f := range fields {
		if i == 20 {
			fmt.Fprintf(&b, " and %d more", len(fields)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", text.Clip(f, 80))
		if len(known) > maxWords {
			continue
		}
		if n := nearest.Word(f, known); n != "" {
			fmt.Fprintf(&b, " (did you mean %q?)", n)
			guessed = true
		}
	}
	switch {
	case guessed:
	case len(known) == 0:
		b.WriteString("; there are no fields here")
	case len(known) <= 20:
		b.WriteString("; " + text.Plural(len(known), "the only field here is ", "the fields here are ") + quoteAll(known))
	}
	return b.String()
}

// text describes the expected and the actual value, for the model.
func (w *wording) text(e *jsonschema.ValidationError, got any) string {
	for _, text := range []string{ofNumber(e.ErrorKind, got), ofSize(e.ErrorKind), w.ofObject(e), w.ofForm(e, got)} {
		if text != "" {
			return text
		}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return "expected " + strings.Join(k.Want, " or ") + ", got " + describe(got)
	case *kind.Enum:
		return "expected one of " + list(k.Want) + ", got " + describe(got) + nearestOf(got, k.Want)
	case *kind.Const:
		return "expected " + show(k.Want) + ", got " + describe(got)
	case *kind.Format:
		return fmt.Sprintf("expected text of the format %v, got %s", k.Want, describe(got))
	case *kind.Pattern:
		return fmt.Sprintf("expected text that matches %s, got %s", k.Want, describe(got))
	}
	return strings.Join(e.ErrorKind.KeywordPath(), "/") + " is not met; got " + describe(got)
}

// ofNumber describes a bound of numbers. "" means that the error has another kind.
func ofNumber(k jsonschema.ErrorKind, got any) string {
	var want string
	switch k := k.(type) {
	case *kind.Minimum:
		want = "at least " + rat(k.Want)
	case *kind.Maximum:
		want = "at most " + rat(k.Want)
	case *kind.ExclusiveMinimum:
		want = "more than " + rat(k.Want)
	case *kind.ExclusiveMaximum:
		want = "less than " + rat(k.Want)
	case *kind.MultipleOf:
		want = "a multiple of " + rat(k.Want)
	default:
		return ""
	}
	return "expected " + want + ", got " + describe(got)
}

// ofSize describes a bound of lengths and counts. "" means that the error has another kind.
func ofSize(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("expected at least %d characters, got %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("expected at most %d characters, got %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("expected at least %d items, got %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("expected at most %d items, got %d", k.Want, k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("expected at least %d fields, got %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("expected at most %d fields, got %d", k.Want, k.Got)

	case *kind.Contains:
		return "expected at least one item of the form that is asked for, got none"
	case *kind.MinContains:
		return fmt.Sprintf("expected at least %d items of the form that is asked for, got %d", k.Want, len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("expected at most %d items of the form that is counted, got %d", k.Want, len(k.Got))
	case *kind.AdditionalItems:
		return fmt.Sprintf("the last %d %s too many", k.Count, text.Plural(k.Count, "item is", "items are"))
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal; each may be there once", k.Duplicates[0], k.Duplicates[1])
	}
	return ""
}

// ofObject describes a fault of the names in an object. "" means that the error has another kind.
func (w *wording) ofObject(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return "missing required " + text.Plural(len(k.Missing), "field ", "fields ") + quoteAll(k.Missing)
	case *kind.AdditionalProperties:
		return w.unknown(k.Properties, e.SchemaURL)
	case *kind.PropertyNames:
		text := fmt.Sprintf("the field name %q is not allowed", text.Clip(k.Property, 80))
		if len(e.Causes) > 0 {
			text += ": " + w.text(w.leaves(e.Causes[0])[0], k.Property)
		}
		return text
	case *kind.Dependency:
		return fmt.Sprintf("field %q needs %s too", k.Prop, quoteAll(k.Missing))
	case *kind.DependentRequired:
		return fmt.Sprintf("field %q needs %s too", k.Prop, quoteAll(k.Missing))
	}
	return ""
}

// ofForm describes a value that fits none, several or a refused form. "" means that the error has
// another kind.
func (w *wording) ofForm(e *jsonschema.ValidationError, got any) string {
	switch k := e.ErrorKind.(type) {
	case *kind.FalseSchema:
		if n := len(e.InstanceLocation); n > 0 {
			if _, list := at(w.root, e.InstanceLocation[:n-1]).([]any); list {
				return "this item is not allowed; leave it out"
			}
		}
		return "this field is not allowed; leave it out"
	case *kind.AnyOf:
		return "fits none of the allowed forms; got " + describe(got)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return "fits several of the allowed forms, must fit one; got " + describe(got)
		}
		return "fits none of the allowed forms; got " + describe(got)
	case *kind.Not:
		return "is a form that is not allowed; got " + describe(got)
	}
	return ""
}
