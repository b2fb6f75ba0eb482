package gotype_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/schema/gotype"
)

// Two fields of one JSON name, of which encoding/json selects none, have no schema. Vet refuses
// such a struct in source, so that it is made here.
func TestFieldsOfOneName(t *testing.T) {
	field := func(name, tag string) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeFor[int](), Tag: reflect.StructTag(tag)}
	}
	for _, row := range []struct {
		fields []reflect.StructField
		fault  string // "" means none
	}{
		{[]reflect.StructField{field("A", `json:"x"`), field("B", `json:"x"`)}, "the fields A and B have one JSON name"},
		{[]reflect.StructField{field("A", `json:"B"`), field("B", "")}, ""}, // A counts
		{[]reflect.StructField{field("A", `json:"x"`), field("B", `json:"X"`)}, ""},
		{[]reflect.StructField{field("A", `json:"-"`), field("B", `json:"-"`), field("C", "")}, ""},
	} {
		_, err := gotype.Of(reflect.StructOf(row.fields), gotype.Input)
		switch {
		case row.fault == "" && err != nil:
			t.Errorf("%v: %v", row.fields, err)
		case row.fault != "" && (err == nil || !strings.Contains(err.Error(), row.fault)):
			t.Errorf("%v: got %v, want %q", row.fields, err, row.fault)
		}
	}
}
