package derivation

import "testing"

// TestHas: a value stands in a text as whole words, also where it overlaps itself.
func TestHas(t *testing.T) {
	for _, test := range []struct {
		text, value string
		want        bool
	}{
		{"write to bob@x.example", "bob@x.example", true},
		{"write to bob@x.example.", "bob@x.example", true},
		{"pay 111 now", "111", true},
		{"pay 1111 now", "111", false},
		{"1111", "111", false},
		{"aaa", "aa", false},
		{"aaa aa", "aa", true},
		{"größe 3", "größe", true},
		{"große größen", "größe", false},
		{"1,100.50", "1100.5", true},
	} {
		if got := has(test.text, test.value); got != test.want {
			t.Errorf("%q in %q: %v, want %v", test.value, test.text, got, test.want)
		}
	}
}
