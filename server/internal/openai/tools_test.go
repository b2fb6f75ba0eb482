package openai

import (
	"fmt"
	"runtime"
	"testing"
)

// TestManyNamespaces: the memory for the tools of a request grows with their number, and not with
// its square.
func TestManyNamespaces(t *testing.T) {
	bytes := func(n int) uint64 {
		function := []toolRequest{{Type: "function", Name: "read"}}
		list := make([]toolRequest, n)
		for i := range list {
			list[i] = toolRequest{Type: "namespace", Name: fmt.Sprintf("space%d", i), Tools: function}
		}

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var in asked
		if err := in.tools.add(&in.Extras, "", list); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if len(in.Extras.Tools) != n {
			t.Fatalf("%d tools, want %d", len(in.Extras.Tools), n)
		}
		return after.TotalAlloc - before.TotalAlloc
	}

	few, many := bytes(1000), bytes(4000)
	if many > 8*few { // 4 times, and room for the growth of maps
		t.Errorf("1,000 tools take %d bytes, 4,000 take %d", few, many)
	}
}

// Equal names of tools get distinct ones, whichever comes first. A tool without a namespace keeps
// its name.
func TestEqualToolNames(t *testing.T) {
	plain := toolRequest{Type: "function", Name: "x__read"}
	spaced := toolRequest{Type: "namespace", Name: "x", Tools: []toolRequest{{Type: "function", Name: "read"}}}
	for name, list := range map[string][]toolRequest{
		"the namespace first": {spaced, plain},
		"the function first":  {plain, spaced},
	} {
		var in asked
		if err := in.tools.add(&in.Extras, "", list); err != nil {
			t.Fatal(err)
		}
		one, other := in.Extras.Tools[0], in.Extras.Tools[1]
		if one.Namespace != "" {
			one, other = other, one
		}
		called := in.tools.nameOf(in.Extras.Tools, "x", "read")
		if one.Name != "x__read" || other.Name == one.Name || called != other.Name {
			t.Errorf("%s: %q and %q, and a call of the namespace has %q", name, one.Name, other.Name, called)
		}
	}
}
