package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/load"
	"github.com/pawl-go/pawl/internal/test/speed"
)

func TestRowsCoverTheTable(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rows() {
		if names[r.Name] {
			t.Errorf("two rows are named %s", r.Name)
		}
		names[r.Name] = true
	}
	for _, wire := range speed.Wires {
		for _, mode := range []string{"whole", "streamed"} {
			for _, job := range []string{"1x1/c1", "3x5/c64", "1x20/c512", "history1000/c8", "tools1000/c8", "args256KiB/c8"} {
				if name := wire + "/" + mode + "/" + job + "/tls"; !names[name] {
					t.Errorf("no row %s", name)
				}
			}
		}
	}
	for _, name := range []string{"chat/streamed/1x1/c10000/tls", "chat/whole/3x5/c64/http", "chat/whole/3x5-limit/c64/tls",
		"chat/whole/3x5-from-a-file/c64/tls", "chat/whole/3x5-durable-sqlite/c64/tls", "chat/streamed/3x5-server-sqlite/c64/tls"} {
		if !names[name] {
			t.Errorf("no row %s", name)
		}
	}
}

// TestSides does the job with each side over each API, whole and streamed, against the server of
// the benchmark.
func TestSides(t *testing.T) {
	cert, public, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, certName), public, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(cert)
	go s.Serve(listener)
	defer s.Close()
	for _, wire := range speed.Wires {
		for _, stream := range []bool{false, true} {
			for _, side := range []string{byHand, limit, plainRun} {
				task, err := json.Marshal(task{
					Side:    side,
					Wire:    wire,
					Job:     load.Job{Rounds: 2, Calls: 3, Args: 200, Deltas: 8},
					Stream:  stream,
					History: 4,
					Conc:    2,
					URL:     "http://" + listener.Addr().String() + "/v1",
					Dir:     dir,
					Dur:     1,
					Warm:    1,
				})
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				if err := measureSide(t.Context(), string(task), &out); err != nil {
					t.Fatalf("%s, %s, streamed %t: %v", side, wire, stream, err)
				}
				var r report
				if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Runs < 2 || r.Allocs <= 0 {
					t.Errorf("%s, %s: got %s, %v; want two runs", side, wire, out.String(), err)
				}
			}
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
	if got.CPU != 0.51 || got.Low != 0.505 || got.High != 0.533 || got.Allocs != 1 {
		t.Errorf("got %+v, want CPU 0.51 from 0.505 to 0.533 and allocations 1", got)
	}
	if got.PawlCPU != 51 || got.PawlKiB != 100 || got.Tail != 1 || got.spread() > 0.1 {
		t.Errorf("got %+v, want 51 µs, 100 KiB for each of 10 runs at once, a tail of 1, and quartiles less than a tenth apart", got)
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

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"-check", "-update"}, {"-rows", "("}, {"-nonsense"}, {"-update", "-rows", "3x5"}, {"-side", "{}"}} {
		var out bytes.Buffer
		if err := run(context.Background(), args, &out, &out); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
