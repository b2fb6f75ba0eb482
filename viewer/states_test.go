package viewer_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/constants"
)

// stateLine is an entry of the table in states.js.
var stateLine = regexp.MustCompile(`(?m)^  ([a-z_]+): \{ tone: "(run|wait|done|good|warn|off|bad)".* \},`)

// classed is such an entry with the class of a stop reason.
var classed = regexp.MustCompile(`(?m)^  ([a-z_]+): \{.* class: "([a-z]+)" \},`)

// The table of states has every outcome, every reason to stop with its class, and every state of a
// stored run, and nothing else.
func TestStates(t *testing.T) {
	want := map[string]bool{"running": true, "open": true, "waiting": true, "over": true}
	for _, name := range []string{"Outcome", "StopReason"} {
		all, err := constants.Of("..", name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			want[c] = true
		}
	}
	text, err := os.ReadFile("pages/js/states.js")
	if err != nil {
		t.Fatal(err)
	}
	for c := range missing(string(text), want) {
		t.Errorf("pages/js/states.js has no line for %q", c)
	}
	for _, m := range stateLine.FindAllStringSubmatch(string(text), -1) {
		if !want[m[1]] {
			t.Errorf("pages/js/states.js has a line for %q, which Go does not know", m[1])
		}
	}
	for _, m := range classed.FindAllStringSubmatch(string(text), -1) {
		if class := pawl.StopReason(m[1]).Class(); string(class) != m[2] {
			t.Errorf("pages/js/states.js gives %q the class %q, and Go %q", m[1], m[2], class)
		}
	}
	if reasons, err := constants.Of("..", "StopReason"); err != nil || len(classed.FindAllString(string(text), -1)) != len(reasons) {
		t.Errorf("pages/js/states.js has not the class of each reason of %v, %v", reasons, err)
	}

	// negative control: a new outcome is noticed
	if got := missing(string(text), map[string]bool{"ok": true, "a_new_outcome": true}); len(got) != 1 || !got["a_new_outcome"] {
		t.Errorf("missing from the table are %v, want a_new_outcome", got)
	}
}

func missing(table string, want map[string]bool) map[string]bool {
	var there []string
	for _, m := range stateLine.FindAllStringSubmatch(table, -1) {
		there = append(there, m[1])
	}
	out := map[string]bool{}
	for c := range want {
		if !slices.Contains(there, c) {
			out[c] = true
		}
	}
	return out
}
