package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func TestRowsCoverTheTable(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rows() {
		if names[r.Name] {
			t.Errorf("two rows are named %s", r.Name)
		}
		names[r.Name] = true
	}
	for _, wire := range []string{"chat", "responses"} {
		for _, mode := range []string{"whole", "streamed"} {
			for _, job := range []string{"1x1/c1", "1x1/c64", "1x1/c512", "3x5/c1", "3x5/c64", "3x5/c512", "10x1/c1", "10x1/c64", "10x1/c512",
				"1x20/c1", "1x20/c64", "1x20/c512", "history10/c64", "history50/c64", "history200/c64"} {
				if name := wire + "/" + mode + "/" + job; !names[name] {
					t.Errorf("no row %s", name)
				}
			}
		}
		for _, size := range []string{"16", "64", "256"} {
			if name := wire + "/streamed/args" + size + "KiB/c8"; !names[name] {
				t.Errorf("no row %s", name)
			}
		}
	}
}

// TestRatios takes the median over pairs, not the ratio of medians: the third pair was measured while the machine was busy.
func TestRatios(t *testing.T) {
	side := func(cpu ...float64) (rs []report) {
		for _, c := range cpu {
			rs = append(rs, report{CPU: c, Allocs: 10, Bytes: 1, P50: 1, P99: 1, RSS: 1})
		}
		return rs
	}
	got := ratiosOf(side(50, 51, 500), side(100, 100, 900))
	if got.CPU != 0.51 || got.Least != 0.5 || got.Most != 0.556 || got.Allocs != 1 {
		t.Errorf("got %+v, want CPU 0.51 from 0.5 to 0.556 and allocations 1", got)
	}
	if got := ratiosOf(side(50, 100), side(100, 100)); got.CPU != 0.75 {
		t.Errorf("median of an even number of pairs is %v, want 0.75", got.CPU)
	}
}

// TestFallen shows where the line is: 15 % above what is committed, in CPU, allocations or bytes.
func TestFallen(t *testing.T) {
	want := ratios{CPU: 0.5, Allocs: 0.4, Bytes: 0.3, P50: 0.5}
	for _, tt := range []struct {
		name string
		got  ratios
		bad  string // first word of the only complaint
	}{
		{"the same", want, ""},
		{"better", ratios{CPU: 0.2, Allocs: 0.1, Bytes: 0.1}, ""},
		{"14 % worse", ratios{CPU: 0.57, Allocs: 0.4, Bytes: 0.3}, ""},
		{"16 % worse", ratios{CPU: 0.58, Allocs: 0.4, Bytes: 0.3}, "CPU"},
		{"allocations", ratios{CPU: 0.5, Allocs: 0.47, Bytes: 0.3}, "allocations"},
		{"bytes", ratios{CPU: 0.5, Allocs: 0.4, Bytes: 0.35}, "bytes"},
		{"wall", ratios{CPU: 0.5, Allocs: 0.4, Bytes: 0.3, P50: 9, P99: 9, RSS: 9}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := fallen(tt.got, want)
			if tt.bad == "" && len(got) > 0 || tt.bad != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.bad)) {
				t.Errorf("got %q, want a complaint about %q", got, tt.bad)
			}
		})
	}
}

func TestAbsent(t *testing.T) {
	t.Setenv("PAWL_BENCH", filepath.Join(t.TempDir(), "nowhere"))
	var out bytes.Buffer
	if err := run(context.Background(), nil, &out, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "corpora absent: ") {
		t.Errorf("it said %q, want that the corpora are absent", out.String())
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"-check", "-update"}, {"-rows", "("}, {"-nonsense"}} {
		var out bytes.Buffer
		if err := run(context.Background(), args, &out, &out); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
