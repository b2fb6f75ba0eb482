package agentfile

import (
	"reflect"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
)

// The keys of limits are the limits of pawl.LimitInfos, with the same texts, and two more.
func TestLimitKeys(t *testing.T) {
	limits := reflect.TypeFor[Limits]()
	fields := fieldsOf(limits)
	keys := names(fields)
	for _, info := range pawl.LimitInfos() {
		if info.Help == "" {
			continue
		}
		i := slices.Index(keys, string(info.Name))
		if i < 0 {
			t.Errorf("there is no key limits.%s", info.Name)
			continue
		}
		if got := meaning(limits, fields[i]); got != info.Help {
			t.Errorf("limits.%s means %q, want %q; make docs writes keys.txt", info.Name, got, info.Help)
		}
		keys[i] = ""
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "" })
	if want := []string{"parallel", "at_limit"}; !slices.Equal(keys, want) {
		t.Errorf("the keys %v are no limits of pawl.LimitInfos, want %v", keys, want)
	}
}

// Each key sets the field of its limit to its number, and to the value for none where 0 means none.
func TestLimitValues(t *testing.T) {
	limits := reflect.TypeFor[Limits]()
	for _, info := range pawl.LimitInfos() {
		if info.Help == "" {
			continue
		}
		i := fieldNamed(fieldsOf(limits), string(info.Name))
		for _, c := range []struct {
			stated float64
			want   float64
			fails  bool
		}{
			{stated: 7, want: 7},
			{stated: 0, want: float64(info.None), fails: info.None == 0},
			{stated: -1, fails: true},
		} {
			b := &builder{agent: &Agent{Model: Models{{Name: "a:b"}}}}
			field := reflect.ValueOf(&b.agent.Limits).Elem().FieldByIndex(fieldsOf(limits)[i].Index)
			value := reflect.New(field.Type().Elem())
			value.Elem().Set(reflect.ValueOf(c.stated).Convert(value.Elem().Type()))
			field.Set(value)

			l, err := b.limits(priced{})
			if fails := err != nil; fails != c.fails {
				t.Errorf("limits.%s: %v gives the error %v, want one: %v", info.Name, c.stated, err, c.fails)
			}
			got := reflect.ValueOf(l).FieldByName(info.Setting[len("Limits."):]).Convert(reflect.TypeFor[float64]()).Float()
			if !c.fails && got != c.want {
				t.Errorf("limits.%s: %v gives %v, want %v", info.Name, c.stated, got, c.want)
			}
		}
	}
}
