package gotype

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a field of a struct that encoding/json reads and writes.
type field struct {
	name     string // in JSON
	of       reflect.StructField
	index    []int // from the struct, through embedded structs
	tagged   bool  // the name stands in the tag
	optional bool  // may be absent: omitempty, omitzero, or inside an embedded pointer
	quoted   bool  // the option string
	// hidden is the embedded pointer to an unexported struct that contains the field. nil means
	// none. encoding/json cannot decode into it.
	hidden reflect.Type
}

// level is an embedded struct whose fields are promoted.
type level struct {
	of       reflect.Type
	index    []int
	optional bool
	hidden   reflect.Type
}

// fieldsOf returns the fields of the struct t that encoding/json selects: of several fields of one
// name the least deep one counts, then the one whose tag has the name, and otherwise none.
func fieldsOf(t reflect.Type) []field {
	var all []field
	visited := map[reflect.Type]bool{} // at a smaller depth
	for next := []level{{of: t}}; len(next) > 0; {
		current := next
		next = nil

		// The fields of a struct that is embedded twice at one depth are listed twice, so that
		// dominant drops them.
		for _, l := range current {
			if visited[l.of] {
				continue
			}
			found, inner := l.fields()
			all = append(all, found...)
			next = append(next, inner...)
		}
		for _, l := range current {
			visited[l.of] = true
		}
	}

	byName := map[string][]field{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	var out []field
	for _, list := range byName {
		if f, ok := dominant(list); ok {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return out
}

// namesakes returns the Go names of two fields that stand in t itself under one JSON name, of which
// encoding/json selects none. Fields of embedded structs may hide each other by intention.
func namesakes(t reflect.Type) (first, second string, found bool) {
	type key struct {
		name   string
		tagged bool
	}
	known := map[key]string{}
	fields, _ := level{of: t}.fields()
	for _, f := range fields {
		k := key{f.name, f.tagged}
		if known[k] != "" {
			return known[k], f.of.Name, true
		}
		known[k] = f.of.Name
	}
	return "", "", false
}

// dominant returns the field that has the name of all fields in list.
func dominant(list []field) (field, bool) {
	slices.SortStableFunc(list, func(a, b field) int {
		if c := cmp.Compare(len(a.index), len(b.index)); c != 0 {
			return c
		}
		switch {
		case a.tagged == b.tagged:
			return 0
		case a.tagged:
			return -1
		}
		return 1
	})
	// As in encoding/json: the least nested field wins, then the tagged one. If two remain, none
	// has the name.
	if len(list) > 1 && len(list[0].index) == len(list[1].index) && list[0].tagged == list[1].tagged {
		return field{}, false
	}
	return list[0], true
}

// fields returns the fields of l, and the structs that it embeds.
func (l level) fields() (found []field, inner []level) {
	for i := range l.of.NumField() {
		sf := l.of.Field(i)
		name, options, skipped := jsonTag(sf)
		if skipped {
			continue
		}
		direct := sf.Type
		if direct.Name() == "" && direct.Kind() == reflect.Pointer {
			direct = direct.Elem()
		}

		index := append(slices.Clone(l.index), i)
		if sf.Anonymous && name == "" && direct.Kind() == reflect.Struct {
			embedded := level{of: direct, index: index, optional: l.optional, hidden: l.hidden}
			if sf.Type.Kind() == reflect.Pointer {
				embedded.optional = true
				if !sf.IsExported() {
					embedded.hidden = direct
				}
			}
			inner = append(inner, embedded)
			continue
		}
		omitted := slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero")
		found = append(found, field{
			name:     cmp.Or(name, sf.Name),
			of:       sf,
			index:    index,
			tagged:   name != "",
			optional: l.optional || omitted,
			quoted:   slices.Contains(options, "string") && scalars[direct.Kind()].Type != nil,
			hidden:   l.hidden,
		})
	}
	return found, inner
}

// jsonTag returns what the json tag of a field says. skipped means that the field is not in JSON.
// An empty name means the name of the Go field, or an embedded struct.
func jsonTag(sf reflect.StructField) (name string, options []string, skipped bool) {
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return "", nil, true
	}
	if !sf.IsExported() {
		direct := sf.Type
		if direct.Kind() == reflect.Pointer {
			direct = direct.Elem()
		}
		// An embedded struct promotes its exported fields even if its own name is not exported.
		if !sf.Anonymous || direct.Kind() != reflect.Struct {
			return "", nil, true
		}
	}
	parts := strings.Split(tag, ",")
	if validName(parts[0]) {
		name = parts[0]
	}
	return name, parts[1:], false
}

// validName reports whether encoding/json takes the name of a tag. It uses the name of the Go field
// in place of others.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}
