package main

import (
	"bytes"
	"context"
	"fmt"
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
	for _, wire := range []string{"chat", "responses", "anthropic", "gemini"} {
		for _, mode := range []string{"whole", "streamed"} {
			for _, job := range []string{"1x1/c1", "1x1/c64", "1x1/c512", "3x5/c1", "3x5/c64", "3x5/c512", "10x1/c1", "10x1/c64", "10x1/c512",
				"1x20/c1", "1x20/c64", "1x20/c512", "history10/c64", "history50/c64", "history200/c64", "args16KiB/c8", "args64KiB/c8", "args256KiB/c8"} {
				if name := wire + "/" + mode + "/" + job + "/tls"; !names[name] {
					t.Errorf("no row %s", name)
				}
			}
		}
	}
	for _, name := range []string{"chat/whole/10x1-history200/c8/tls", "chat/streamed/10x1-history10/c8/tls", "chat/streamed/1x1/c10000/tls",
		"chat/whole/3x5/c64/http", "chat/streamed/3x5/c64/http"} {
		if !names[name] {
			t.Errorf("no row %s", name)
		}
	}
}

// TestRatios takes the median over pairs, not the ratio of medians: the third pair was measured
// while the machine was busy.
func TestRatios(t *testing.T) {
	side := func(cpu ...float64) (rs []report) {
		for _, c := range cpu {
			rs = append(rs, report{CPU: c, Allocs: 10, Bytes: 1, P50: 1, P99: 1, RSS: 1100, Base: 100})
		}
		return rs
	}
	got := ratiosOf(side(50, 51, 500), side(100, 100, 900), 10)
	if got.CPU != 0.51 || got.Least != 0.5 || got.Most != 0.556 || got.Allocs != 1 {
		t.Errorf("got %+v, want CPU 0.51 from 0.5 to 0.556 and allocations 1", got)
	}
	if got.PawlCPU != 51 || got.PawlKiB != 100 || got.Tail != 1 || got.spread() < 0.1 {
		t.Errorf("got %+v, want 51 µs, 100 KiB for each of 10 runs at once, a tail of 1, and pairs more than a tenth apart", got)
	}
	if got := ratiosOf(side(50, 100), side(100, 100), 10); got.CPU != 0.75 {
		t.Errorf("median of an even number of pairs is %v, want 0.75", got.CPU)
	}
}

// TestFallen shows the limit: 15 % above the committed CPU, allocations or bytes.
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

// TestGrowth distinguishes linear cost from quadratic cost: with the second, a KiB of large
// arguments costs four times a KiB of small arguments.
func TestGrowth(t *testing.T) {
	var all []comparison
	for _, kib := range []float64{16, 64, 256} {
		all = append(all, comparison{Row: fmt.Sprintf("chat/whole/args%.0fKiB/c8/tls", kib), Ratios: ratios{PawlCPU: 100 + kib, HandCPU: kib * kib}})
	}
	all = append(all, comparison{Row: "chat/streamed/10x1-history10/c8/tls", Ratios: ratios{PawlCPU: 10, HandCPU: 10}},
		comparison{Row: "chat/streamed/10x1-history200/c8/tls", Ratios: ratios{PawlCPU: 30, HandCPU: 120}})
	var out strings.Builder
	growth(&out, all)
	want := "chat, whole: a KiB of arguments costs from 64 to 256 KiB 1.00 times what it costs from 16 to 64 KiB (by hand 4.00)\n" +
		"chat, streamed: a history of 200 messages costs 3.0 times one of 10 over ten rounds (by hand 12.0)\n"
	if out.String() != want {
		t.Errorf("got %s\nwant %s", out.String(), want)
	}
}

func TestAbsent(t *testing.T) {
	t.Setenv("PAWL_BENCH", filepath.Join(t.TempDir(), "nowhere"))
	var out bytes.Buffer
	if err := run(context.Background(), nil, &out, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "benchmark absent: ") {
		t.Errorf("it said %q, want that the benchmark is absent", out.String())
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
