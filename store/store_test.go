package store_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/store"
)

func TestHolds(t *testing.T) {
	a := store.Scope{Tenant: "t", User: "u", Thread: "1"}
	for _, row := range []struct {
		s, o store.Scope
		want bool
	}{{a, a, true}, {store.Scope{Tenant: "t", User: "u"}, a, true}, {store.Scope{Tenant: "t"}, a, false},
		{store.Scope{}, a, false}, {a, store.Scope{Tenant: "t", User: "u"}, false},
		{store.Scope{Tenant: "t", User: "u", Thread: "2"}, a, false}, {store.Scope{}, store.Scope{}, true}} {
		if row.s.Holds(row.o) != row.want {
			t.Errorf("%+v holds %+v: want %v", row.s, row.o, row.want)
		}
	}
}

func ExampleFuse() {
	for _, r := range store.Fuse([]string{"a", "b", "c"}, []string{"b", "d"}) {
		fmt.Printf("%s %.3f\n", r.ID, r.Score)
	}
	// Output:
	// b 0.992
	// a 0.500
	// d 0.492
	// c 0.484
}
