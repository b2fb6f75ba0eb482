package hostile_test

import (
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/pawltest/hostile"
)

// Every demand has a behaviour, every behaviour has a demand, and all texts are filled in.
func TestCoverage(t *testing.T) {
	all, tools := hostile.Behaviours(), hostile.Tools()
	if len(all) < 110 {
		t.Errorf("there are %d behaviours, want 110 at least", len(all))
	}
	demands := map[string]int{}
	for _, d := range hostile.Demands() {
		if _, twice := demands[d.ID]; twice {
			t.Errorf("%s is listed twice", d.ID)
		}
		demands[d.ID] = 0
	}
	for _, prefix := range []string{"T1.0-", "D"} { // tables that are numbered without gaps
		for n, last := 1, map[string]int{"T1.0-": 11, "D": 30}[prefix]; n <= last; n++ {
			if id := prefix + strconv.Itoa(n); !has(demands, id) {
				t.Errorf("%s is not listed", id)
			}
		}
	}
	seen := map[string]bool{}
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, b := range all {
		switch {
		case !id.MatchString(b.ID):
			t.Errorf("%q is no id", b.ID)
		case seen[b.ID]:
			t.Errorf("%s is there twice", b.ID)
		case b.Title == "" || len(b.Turns) == 0:
			t.Errorf("%s has no title, or no turns", b.ID)
		case len(b.Meets) == 0:
			t.Errorf("%s stands for no demand", b.ID)
		case !slices.ContainsFunc(pawltest.APIs(),
			func(api string) bool { return b.On(api, true) || b.On(api, false) }):
			t.Errorf("%s is on no API: %q", b.ID, b.Only)
		}
		seen[b.ID] = true
		for _, d := range b.Meets {
			if !has(demands, d) {
				t.Errorf("%s stands for %s, which is not listed", b.ID, d)
			}
			demands[d]++
		}
		for _, name := range b.Tools {
			if tools[name] == nil {
				t.Errorf("%s offers %s, which the kit does not have", b.ID, name)
			}
		}
	}
	for d, n := range demands {
		if n == 0 {
			t.Errorf("no behaviour stands for %s", d)
		}
	}
	t.Logf("%d behaviours, %d demands", len(all), len(demands))
}

func has(m map[string]int, key string) bool { _, ok := m[key]; return ok }
