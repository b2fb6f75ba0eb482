package speed_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawl-go/pawl/internal/test/load"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/speed"
)

var update = flag.Bool("update", false, "write allocations.txt")

const (
	rowsFile = "allocations.txt"
	slack    = 1.03 // over a row
	gained   = 0.90 // below it: then the row is lowered, or the gain is lost again unseen
)

// TestAllocations counts what runs allocate, and compares the counts with the rows of
// allocations.txt. The replies are prepared and come without a network. The clock is synthetic, so
// that a journal that waits for further records waits as long as they take.
func TestAllocations(t *testing.T) {
	soak.Sequential(t) // the race detector allocates too
	want, err := speed.ReadRows(rowsFile)
	if err != nil {
		t.Fatal(err)
	}

	var got []speed.Row
	long := load.Job{Rounds: 3, Calls: 5, Args: 200, Deltas: 8}
	wide := load.Job{Rounds: 1, Calls: 20, Args: 200, Deltas: 8}
	for _, job := range []load.Job{long, wide} {
		for _, stream := range []bool{false, true} {
			for _, k := range speed.Kinds {
				if k.Streams && !stream {
					continue
				}
				made, _ := measure(t, k.Name, &speed.Setup{Job: job, Stream: stream})
				got = append(got, speed.Row{Name: rowName(job, stream, k.Name), Count: made})
			}
		}
	}
	for _, wire := range speed.Wires {
		_, bytes := measure(t, "plain", &speed.Setup{Job: long, Wire: wire, History: 1000})
		got = append(got, speed.Row{Name: "KB/3x5/whole/1000-messages/" + wire, Count: bytes / 1000})
	}
	_, bytes := measure(t, "plain", &speed.Setup{Job: long, Tools: 1000})
	got = append(got, speed.Row{Name: "KB/3x5/whole/1000-tools/chat", Count: bytes / 1000})
	if *update {
		if err := speed.WriteRows(rowsFile, got); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, g := range got {
		t.Logf("%6d %s", g.Count, g.Name)
	}
	for _, bad := range faults(got, want) {
		t.Error(bad)
	}
}

func rowName(j load.Job, stream bool, kind string) string {
	mode := "whole"
	if stream {
		mode = "streamed"
	}
	return fmt.Sprintf("%dx%d/%s/%s", j.Rounds, j.Calls, mode, kind)
}

// faults returns what is wrong with the counts, compared with their rows.
func faults(got, want []speed.Row) (all []string) {
	for _, g := range got {
		i := slices.IndexFunc(want, func(w speed.Row) bool { return w.Name == g.Name })
		if i < 0 {
			all = append(all, fmt.Sprintf("%s has no row in %s; -update writes it", g.Name, rowsFile))
			continue
		}
		allowed := want[i].Count
		switch {
		case float64(g.Count) > float64(allowed)*slack:
			all = append(all, fmt.Sprintf("%s: a run allocates %d, and %d are allowed: it has become dearer; -memprofile shows where",
				g.Name, g.Count, allowed))
		case float64(g.Count) < float64(allowed)*gained:
			all = append(all, fmt.Sprintf("%s: a run allocates %d, and its row says %d: lower the row, so that the gain stays",
				g.Name, g.Count, allowed))
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g speed.Row) bool { return g.Name == w.Name }) {
			all = append(all, fmt.Sprintf("%s has a row, and is not measured", w.Name))
		}
	}
	return all
}

// TestFaults shows what the gate lets pass: 3 % more, and 10 % less.
func TestFaults(t *testing.T) {
	want := []speed.Row{{Name: "a", Count: 1000}}
	for _, tt := range []struct {
		name string
		got  []speed.Row
		bad  string // in the only fault
	}{
		{"the same", []speed.Row{{Name: "a", Count: 1000}}, ""},
		{"3 % more", []speed.Row{{Name: "a", Count: 1030}}, ""},
		{"more", []speed.Row{{Name: "a", Count: 1031}}, "dearer"},
		{"10 % less", []speed.Row{{Name: "a", Count: 900}}, ""},
		{"less", []speed.Row{{Name: "a", Count: 899}}, "lower the row"},
		{"a new kind", []speed.Row{{Name: "a", Count: 1000}, {Name: "b", Count: 1}}, "no row"},
		{"a lost kind", nil, "not measured"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := faults(tt.got, want)
			if tt.bad == "" && len(got) > 0 || tt.bad != "" && (len(got) != 1 || !strings.Contains(got[0], tt.bad)) {
				t.Errorf("got %q, want one fault with %q", got, tt.bad)
			}
		})
	}
}

// measured is the number of runs that are counted, after a warm-up.
const measured = 10

// measure returns the allocations of one run, and their bytes.
func measure(t *testing.T, kind string, s *speed.Setup) (made, bytes int) {
	t.Helper()
	s.URL, s.HTTP, s.Dir = "http://load.test/v1", new(load.Server), t.TempDir()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector empties pools

	synctest.Test(t, func(t *testing.T) {
		defer s.Close()
		run, err := s.Start(kind)
		if err != nil {
			t.Fatal(err)
		}
		runs := func(n int) {
			for range n {
				text, err := run(t.Context())
				if err != nil || !strings.Contains(text, load.Answer) {
					t.Fatalf("%s: the run ended with %q, %v", kind, text, err)
				}
			}
		}
		runs(3)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		runs(measured)
		runtime.ReadMemStats(&after)
		made = int(after.Mallocs-before.Mallocs) / measured
		bytes = int(after.TotalAlloc-before.TotalAlloc) / measured
	})
	return made, bytes
}
