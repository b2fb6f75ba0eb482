package docgen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPerformancePage keeps the tables of docs/performance.md equal to the measured figures.
func TestPerformancePage(t *testing.T) {
	const name = "docs/performance.md"
	page, err := read(name)
	if err != nil {
		t.Fatal(err)
	}
	src, err := read("bench/ratios.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Ratios(page, src)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	current(t, name, want)
}

func TestRatios(t *testing.T) {
	src := `{"chat/whole/3x5/c64/tls": {"cpu": 0.567, "pawl_cpu_us": 300, "hand_cpu_us": 529, "pawl_allocs": 380.2, "allocs": 0.68, "bytes": 0.8},
		"chat/whole/3x5/c512/tls": {"cpu": 0.6, "pawl_cpu_us": 1}, "gemini/streamed/3x5/c1/tls": {"cpu": 0.4, "pawl_cpu_us": 1}, "chat/whole/args256KiB/c8/tls": {"cpu": 0.5, "pawl_cpu_us": 2600, "hand_cpu_us": 5200},
		"chat/whole/args16KiB/c8/tls": {"cpu": 0.5, "pawl_cpu_us": 200, "hand_cpu_us": 400}, "chat/whole/args64KiB/c8/tls": {"cpu": 0.5, "pawl_cpu_us": 680, "hand_cpu_us": 1360},
		"chat/streamed/1x1/c10000/tls": {"cpu": 0.3, "pawl_cpu_us": 1, "pawl_kib": 31.4, "hand_kib": 70, "tail": 2.1},
		"chat/whole/3x5/c64/http": {"cpu": 0.781, "pawl_cpu_us": 468, "pawl_allocs": 550, "allocs": 0.98}}`
	got, err := Ratios("Before.\n"+ratiosBegin+"what stood there\n"+ratiosEnd+"After.\n", src)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(got, "|---|---|---|---|---|---|---|---|---|\n")
	if !strings.HasPrefix(head, "Before.\n") || strings.Contains(got, "what stood there") {
		t.Errorf("it begins with %q", head)
	}
	want := `| 1x1/c10000 | | 0.30 | | | | | | |
| 3x5/c1 | | | | | | | | 0.40 |
| 3x5/c64 | 0.57 | | | | | | | |
| 3x5/c512 | 0.60 | | | | | | | |
| args16KiB/c8 | 0.50 | | | | | | | |
| args64KiB/c8 | 0.50 | | | | | | | |
| args256KiB/c8 | 0.50 | | | | | | | |

Of 64 runs at once, three rounds of five calls:

| | CPU µs | by hand | allocations | of by hand | bytes of by hand |
|---|---|---|---|---|---|
| chat, whole | 300 | 529 | 380 | 0.68 | 0.80 |

- whole: a KiB of arguments costs 10.0 µs from 16 to 64 KiB, and 10.0 µs from 64 to 256 KiB (by hand 20.0 and 20.0).
- streamed: 10,000 runs at once hold 31 KiB each at the most (by hand 70), and the slowest hundredth takes 2.1 times the median.
- chat/whole/3x5/c64 over plain HTTP/1.1, as local servers speak it: 0.78 of the CPU of the loop by hand (468 µs) and 0.98 of its allocations (550).

` + ratiosEnd + "After.\n"
	if diff := cmp.Diff(rest, want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
	if _, err := Ratios("no marks", src); err == nil {
		t.Error("a page without marks is taken")
	}
}
