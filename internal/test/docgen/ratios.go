package docgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The lines in docs/performance.md between which Ratios writes.
const (
	ratiosBegin = "<!-- ratios: bench/ratios.json -->\n"
	ratiosEnd   = "<!-- end of ratios -->\n"
)

// ratio has the columns of a row of bench/ratios.json: ratios to the hand-written loop, and pawl's
// own figures.
type ratio struct {
	CPU     float64 `json:"cpu"`
	Allocs  float64 `json:"allocs"`
	Bytes   float64 `json:"bytes"`
	RSS     float64 `json:"rss"`
	PawlCPU float64 `json:"pawl_cpu_us"`
	HandCPU float64 `json:"hand_cpu_us"`
	Made    float64 `json:"pawl_allocs"`
	PawlKiB float64 `json:"pawl_kib"`
	HandKiB float64 `json:"hand_kib"`
	Tail    float64 `json:"tail"`
}

var ratioWires, ratioModes = []string{"chat", "responses", "anthropic", "gemini"}, []string{"whole", "streamed"}

// The transports that the names of rows end in: TLS with HTTP/2, and plain HTTP/1.1.
const (
	overTLS  = "/tls"
	overHTTP = "/http"
)

// Ratios returns page with new text between the two marks, from the measured ratios in src. A page
// without the marks is an error.
func Ratios(page, src string) (string, error) {
	var rows map[string]ratio
	if err := json.Unmarshal([]byte(src), &rows); err != nil {
		return "", err
	}
	before, rest, ok := strings.Cut(page, ratiosBegin)
	_, after, end := strings.Cut(rest, ratiosEnd)
	if !ok || !end {
		return "", errors.New("the page has no marks for the ratios")
	}
	var out strings.Builder
	out.WriteString(before + ratiosBegin + "\n")
	out.WriteString("CPU of a run, pawl divided by the loop by hand:\n\n| rounds × calls, runs at once |")
	for _, w := range ratioWires {
		for _, m := range ratioModes {
			fmt.Fprintf(&out, " %s, %s |", w, m)
		}
	}
	out.WriteString("\n|---" + strings.Repeat("|---", len(ratioWires)*len(ratioModes)) + "|\n")
	for _, job := range ratioJobs(rows) {
		fmt.Fprintf(&out, "| %s |", job)
		for _, w := range ratioWires {
			for _, m := range ratioModes {
				if r, ok := rows[w+"/"+m+"/"+job+overTLS]; ok {
					fmt.Fprintf(&out, " %.2f |", r.CPU)
				} else {
					out.WriteString(" |")
				}
			}
		}
		out.WriteString("\n")
	}
	out.WriteString("\nOf 64 runs at once, three rounds of five calls:\n\n| | CPU µs | by hand | allocations | of by hand | bytes of by hand |\n|---|---|---|---|---|---|\n")
	for _, w := range ratioWires {
		for _, m := range ratioModes {
			if r, ok := rows[w+"/"+m+"/3x5/c64"+overTLS]; ok {
				fmt.Fprintf(&out, "| %s, %s | %.0f | %.0f | %.0f | %.2f | %.2f |\n", w, m, r.PawlCPU, r.HandCPU, r.Made, r.Allocs, r.Bytes)
			}
		}
	}
	out.WriteString("\n" + ratioGrowth(rows) + ratioPlain(rows) + "\n" + ratiosEnd + after)
	return out.String(), nil
}

// ratioJobs are the measured jobs, ordered by shape and by concurrent runs.
func ratioJobs(rows map[string]ratio) []string {
	seen := map[string]bool{}
	for name := range rows {
		name, ok := strings.CutSuffix(name, overTLS)
		if parts := strings.SplitN(name, "/", 3); ok && len(parts) == 3 {
			seen[parts[2]] = true
		}
	}
	order := func(job string) (string, int) { // "3x5/c64" is ordered by its shape, then by 64
		shape, atOnce, _ := strings.Cut(job, "/c")
		var n, size int
		fmt.Sscan(atOnce, &n)
		fmt.Sscan(strings.TrimLeft(shape, "abcdefghijklmnopqrstuvwxyz"), &size)
		if word := strings.TrimRight(strings.TrimSuffix(shape, "KiB"), "0123456789"); word == "args" || word == "history" {
			return "~" + word, size
		}
		return shape, n
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		aw, an := order(a)
		bw, bn := order(b)
		if aw != bw {
			return strings.Compare(aw, bw)
		}
		return an - bn
	})
}

// ratioGrowth describes how cost grows. Rows that were not measured are left out.
func ratioGrowth(rows map[string]ratio) string {
	var out strings.Builder
	for _, m := range ratioModes {
		at := func(job string) (ratio, bool) { r, ok := rows["chat/"+m+"/"+job+overTLS]; return r, ok }
		few, ok := at("10x1-history10/c8")
		many, also := at("10x1-history200/c8")
		if ok && also && few.PawlCPU > 0 {
			fmt.Fprintf(&out, "- %s: ten rounds with a history of 200 messages cost %.1f times those with one of 10 (by hand %.1f).\n", m, many.PawlCPU/few.PawlCPU, many.HandCPU/few.HandCPU)
		}
		small, ok := at("args16KiB/c8")
		middle, also := at("args64KiB/c8")
		large, last := at("args256KiB/c8")
		if ok && also && last && middle.PawlCPU > small.PawlCPU {
			fmt.Fprintf(&out, "- %s: a KiB of arguments costs %.1f µs from 16 to 64 KiB, and %.1f µs from 64 to 256 KiB (by hand %.1f and %.1f).\n", m,
				(middle.PawlCPU-small.PawlCPU)/48, (large.PawlCPU-middle.PawlCPU)/192,
				(middle.HandCPU-small.HandCPU)/48, (large.HandCPU-middle.HandCPU)/192)
		}
		if crowd, ok := at("1x1/c10000"); ok {
			fmt.Fprintf(&out, "- %s: 10,000 runs at once hold %.0f KiB each at the most (by hand %.0f), and the slowest hundredth takes %.1f times the median.\n", m, crowd.PawlKiB, crowd.HandKiB, crowd.Tail)
		}
	}
	return out.String()
}

// ratioPlain names the rows over plain HTTP/1.1.
func ratioPlain(rows map[string]ratio) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if row, ok := strings.CutSuffix(name, overHTTP); ok {
			r := rows[name]
			fmt.Fprintf(&out, "- %s over plain HTTP/1.1, as local servers speak it: %.2f of the CPU of the loop by hand (%.0f µs) and %.2f of its allocations (%.0f).\n",
				row, r.CPU, r.PawlCPU, r.Allocs, r.Made)
		}
	}
	return out.String()
}
