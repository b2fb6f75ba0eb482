package words_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/store/internal/words"
)

func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"":                       nil,
		"?!":                     nil,
		"The is a":               {"The", "is", "a"},
		"How is the dessert?":    {"dessert"},
		"x-ray \"OR\" cat*":      {"x", "ray", "cat"},
		"東京の天気 2026":             {"東 京 の 天 気", "2026"},
		"crème brûlée\x00to eat": {"crème", "brûlée", "eat"},
	} {
		if diff := cmp.Diff(words.Terms(text), want); diff != "" {
			t.Errorf("%q (got -, want +)\n%s", text, diff)
		}
	}
	if n := len(words.Terms(strings.Repeat("word ", 5000))); n != 64 {
		t.Errorf("a long text has %d terms, want 64", n)
	}
	if n := len(words.Terms(strings.Repeat("the ", 5000))); n != 64 {
		t.Errorf("a long text of frequent words has %d terms, want 64", n)
	}
}

func ExampleSpaced() {
	fmt.Printf("%q\n", words.Spaced("in 東京 now"))
	// Output: "in  東  京  now"
}
