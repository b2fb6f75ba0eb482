package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/diff"
)

func ExampleLines() {
	for _, l := range diff.Lines([]string{"a", "b", "c", "d"}, []string{"a", "x", "c", "d"}, 1) {
		fmt.Printf("%c%s\n", l.Op, l.Text)
	}
	// Output:
	//  a
	// -b
	// +x
	//  c
	// @
}

// The lines of both texts can be reconstructed from the diff, except the lines left out.
func TestLines(t *testing.T) {
	texts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		a, b, around := texts.Draw(t, "a"), texts.Draw(t, "b"), rapid.IntRange(0, 3).Draw(t, "around")
		lines := diff.Lines(a, b, around)
		if len(lines) == 0 {
			if strings.Join(a, "\n") != strings.Join(b, "\n") {
				t.Fatal("they differ")
			}
			return
		}
		var gotA, gotB []string
		for i, l := range lines {
			if l.Old > 0 && l.Op != diff.Gap && a[l.Old-1] != l.Text || l.New > 0 && b[l.New-1] != l.Text {
				t.Fatalf("line %d: %v is not where it says", i, l)
			}
			switch l.Op {
			case diff.Gap:
				gotA = append(gotA, a[len(gotA):len(gotA)+l.Old]...)
				gotB = append(gotB, b[len(gotB):len(gotB)+l.Old]...)
			case diff.Same:
				gotA, gotB = append(gotA, l.Text), append(gotB, l.Text)
			case diff.Gone:
				gotA = append(gotA, l.Text)
			case diff.Come:
				gotB = append(gotB, l.Text)
			}
		}
		if d := cmp.Diff(strings.Join(a, ""), strings.Join(gotA, "")); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(strings.Join(b, ""), strings.Join(gotB, "")); d != "" {
			t.Fatal(d)
		}
	})
}

// Two long texts without common lines are not compared line by line.
func TestLinesLong(t *testing.T) {
	a, b := make([]string, 5000), make([]string, 5000)
	for i := range a {
		a[i], b[i] = fmt.Sprint("a", i), fmt.Sprint("b", i)
	}
	if got := len(diff.Lines(a, b, 3)); got != 10000 {
		t.Errorf("got %d lines, want 10000", got)
	}
}
