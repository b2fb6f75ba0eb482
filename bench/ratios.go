package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// slack is the allowed increase over the committed ratio.
const slack = 1.15

// comparison is the measurement of a row.
type comparison struct {
	Row    string   `json:"row"`
	Ratios ratios   `json:"ratios"`
	Pawl   []report `json:"pawl"`
	Hand   []report `json:"by_hand"`
}

// ratios are medians over pairs: pawl's figure divided by the figure of the hand-written loop. The
// figures of both sides are included, because the documentation promises some of them.
type ratios struct {
	CPU    float64 `json:"cpu"`
	Low    float64 `json:"cpu_low"`  // the first quartile
	High   float64 `json:"cpu_high"` // the third
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
	RSS    float64 `json:"rss"`

	PawlCPU    float64 `json:"pawl_cpu_us"` // of one run
	HandCPU    float64 `json:"hand_cpu_us"` // the same for the hand-written loop
	PawlAllocs float64 `json:"pawl_allocs"` // of one run
	PawlBytes  float64 `json:"pawl_bytes"`  // of one run
	PawlP50    float64 `json:"pawl_p50_us"` // elapsed time of one run
	// Peak memory of the process less its memory before the first run, for each run at once.
	PawlKiB float64 `json:"pawl_kib"`
	HandKiB float64 `json:"hand_kib"` // the same for the hand-written loop
	// pawl's 99th percentile of a run's time divided by its median.
	Tail float64 `json:"tail"`
}

// spread is the distance between the quartiles of the pairs divided by their median.
func (r ratios) spread() float64 { return (r.High - r.Low) / r.CPU }

// ratiosOf makes the ratios of pairs that were measured with conc runs at once.
func ratiosOf(pawl, hand []report, conc int) ratios {
	held := func(r report) float64 { return max(r.RSS-r.Base, 0) / float64(conc) }
	of := func(f func(report) float64) []float64 {
		var rs []float64
		for i := range pawl {
			rs = append(rs, f(pawl[i])/f(hand[i]))
		}
		slices.Sort(rs)
		return rs
	}
	cpu := of(func(r report) float64 { return r.CPU })
	return ratios{
		CPU:    round(middle(cpu)),
		Low:    round(middle(cpu[:(len(cpu)+1)/2])),
		High:   round(middle(cpu[len(cpu)/2:])),
		Allocs: round(middle(of(func(r report) float64 { return r.Allocs }))),
		Bytes:  round(middle(of(func(r report) float64 { return r.Bytes }))),
		P50:    round(middle(of(func(r report) float64 { return r.P50 }))),
		P99:    round(middle(of(func(r report) float64 { return r.P99 }))),
		RSS:    round(middle(of(func(r report) float64 { return r.RSS }))),

		PawlCPU:    round(median(pawl, func(r report) float64 { return r.CPU })),
		HandCPU:    round(median(hand, func(r report) float64 { return r.CPU })),
		PawlAllocs: round(median(pawl, func(r report) float64 { return r.Allocs })),
		PawlBytes:  round(median(pawl, func(r report) float64 { return r.Bytes })),
		PawlP50:    round(median(pawl, func(r report) float64 { return r.P50 })),
		PawlKiB:    round(median(pawl, held)), HandKiB: round(median(hand, held)),
		Tail: round(median(pawl, func(r report) float64 { return r.P99 / r.P50 })),
	}
}

// middle returns the median of sorted values.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func median(rs []report, f func(report) float64) float64 {
	var vs []float64
	for _, r := range rs {
		vs = append(vs, f(r))
	}
	slices.Sort(vs)
	return middle(vs)
}

func round(f float64) float64 { return float64(int(f*1000+0.5)) / 1000 }

// fallen returns which figures of got are more than slack above want. Wall time and peak memory are
// printed, not compared: they depend more on other work of the machine than on the code.
func fallen(got, want ratios) []string {
	var bad []string
	for _, f := range []struct {
		name      string
		got, want float64
	}{{"CPU", got.CPU, want.CPU}, {"allocations", got.Allocs, want.Allocs}, {"bytes", got.Bytes, want.Bytes}} {
		if f.want > 0 && f.got > f.want*slack {
			bad = append(bad, fmt.Sprintf("%s: %.2f of the loop by hand; %.2f is committed", f.name, f.got, f.want))
		}
	}
	return bad
}

const head = "row                                CPU µs pawl   by hand  CPU                    allocs (ratio)  bytes    p50    p99  RSS MB (ratio)"

func (c comparison) line() string {
	cpu := func(r report) float64 { return r.CPU }
	rss := func(r report) float64 { return r.RSS / 1024 }
	q := c.Ratios
	return fmt.Sprintf("%-34s %11.0f %9.0f  %.2f (%.2f to %.2f)   %6.0f (%.2f)  %6.2f  %5.2f  %5.2f  %6.0f (%.2f)",
		c.Row, median(c.Pawl, cpu), median(c.Hand, cpu), q.CPU, q.Low, q.High, q.PawlAllocs, q.Allocs,
		q.Bytes, q.P50, q.P99, median(c.Pawl, rss), q.RSS)
}

// summary describes the table as a whole and names the rows above 1.00.
func summary(out io.Writer, all []comparison, took time.Duration) {
	var cpu []float64
	over := 0
	for _, c := range all {
		cpu = append(cpu, c.Ratios.CPU)
		if c.Ratios.CPU > 1 {
			fmt.Fprintf(out, "above 1.00: %s %.2f\n", c.Row, c.Ratios.CPU)
			over++
		}
	}
	slices.Sort(cpu)
	fmt.Fprintf(out, "%d rows in %s: CPU %.2f to %.2f of the loops by hand, median %.2f; %d rows above 1.00\n",
		len(all), took.Round(time.Second), cpu[0], cpu[len(cpu)-1], middle(cpu), over)
	growth(out, all)
}

func find(all []comparison, name string) *comparison {
	i := slices.IndexFunc(all, func(c comparison) bool { return c.Row == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
