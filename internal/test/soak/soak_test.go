package soak

import "testing"

func TestN(t *testing.T) {
	for value, want := range map[string]int{"": 1, "0": 1, "1": 2, "yes": 2} {
		t.Setenv("PAWL_SOAK", value)
		if got := N(1, 2); got != want {
			t.Errorf("PAWL_SOAK=%q: N(1, 2) = %d, want %d", value, got, want)
		}
	}
}

// recorder is a testing.TB that records a skip and continues.
type recorder struct {
	testing.TB
	skipped string
}

func (r *recorder) Helper()          {}
func (r *recorder) Skip(args ...any) { r.skipped = args[0].(string) }

func TestSequential(t *testing.T) {
	t.Setenv("PAWL_SOAK", "")
	r := new(recorder)
	if Sequential(r); (r.skipped != "") != raceDetector {
		t.Errorf("race detector %t: Sequential skipped with %q", raceDetector, r.skipped)
	}
}

func TestOnly(t *testing.T) {
	for value, want := range map[string]string{"": "in make soak: it is long", "1": ""} {
		t.Setenv("PAWL_SOAK", value)
		r := new(recorder)
		if Only(r, "it is long"); r.skipped != want {
			t.Errorf("PAWL_SOAK=%q: Only skipped with %q, want %q", value, r.skipped, want)
		}
	}
}
