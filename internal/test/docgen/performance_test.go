package docgen

import (
	"strings"
	"testing"
)

const (
	ratiosFile      = "bench/ratios.json"
	allocationsFile = "internal/test/speed/allocations.txt"
)

// TestPerformancePage keeps the tables of docs/performance.md equal to the measured figures, and
// fails when these are out of date.
func TestPerformancePage(t *testing.T) {
	const name = "docs/performance.md"
	page, err := read(name)
	if err != nil {
		t.Fatal(err)
	}
	ratios, err := read(ratiosFile)
	if err != nil {
		t.Fatal(err)
	}
	allocations, err := read(allocationsFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Performance(page, ratios)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	current(t, name, want)
	if err := Stale(ratios, allocations); err != nil {
		t.Error(err)
	}
}

const someRatios = `{"commit":"abc123","allocations":{"3x5/whole/plain":100,"3x5/whole/from-a-file":200},
	"rows":{"chat/whole/3x5/c64/tls":{"cpu":0.567,"cpu_low":0.5,"cpu_high":0.6,"pawl_cpu_us":300,"hand_cpu_us":529,
	"pawl_allocs":380.2,"allocs":0.68,"pawl_bytes":90400}}}`

func TestPerformance(t *testing.T) {
	got, err := Performance("Before.\n"+figuresBegin+"old\n"+figuresEnd+"After.\n", someRatios)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Before.\n<!--", "commit `abc123`", "-->\nAfter.\n",
		"| `chat/whole/3x5/c64/tls` | 0.57 | 0.50 to 0.60 | 300 | 529 | 380 | 0.68 | 90 |"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if strings.Contains(got, "old") {
		t.Errorf("got %q, want the old text replaced", got)
	}
	for _, bad := range [][2]string{{"no marks", someRatios}, {figuresBegin + figuresEnd, "["}} {
		if _, err := Performance(bad[0], bad[1]); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestStale allows a tenth more and a tenth less.
func TestStale(t *testing.T) {
	for _, tt := range []struct {
		text  string
		stale bool
	}{
		{"100 3x5/whole/plain\n", false},
		{"110 3x5/whole/plain\n", false},
		{"111 3x5/whole/plain\n", true},
		{"89 3x5/whole/plain\n", true},
		{"221 3x5/whole/from-a-file\n", true},
		{"7 1x20/whole/plain\n", true}, // it was not measured
		{"9999 3x5/whole/durable-memory\n", false},
	} {
		if err := Stale(someRatios, "# head\n"+tt.text); (err != nil) != tt.stale {
			t.Errorf("%q: got %v, want stale: %t", tt.text, err, tt.stale)
		}
	}
	if err := Stale(someRatios, "many 3x5\n"); err == nil {
		t.Error("a row without a number is accepted")
	}
}
