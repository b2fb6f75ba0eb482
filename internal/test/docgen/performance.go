package docgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The lines in docs/performance.md between which Performance writes.
const (
	figuresBegin = "<!-- begin figures -->\n"
	figuresEnd   = "<!-- end figures -->\n"
)

// figures are what the page reads of bench/ratios.json.
type figures struct {
	Commit      string            `json:"commit"`
	Allocations map[string]int    `json:"allocations"`
	Rows        map[string]figure `json:"rows"`
}

// figure is a row: ratios to the loop by hand, and pawl's own figures.
type figure struct {
	CPU     float64 `json:"cpu"`
	Low     float64 `json:"cpu_low"`
	High    float64 `json:"cpu_high"`
	Allocs  float64 `json:"allocs"`
	PawlCPU float64 `json:"pawl_cpu_us"`
	HandCPU float64 `json:"hand_cpu_us"`
	Made    float64 `json:"pawl_allocs"`
	Bytes   float64 `json:"pawl_bytes"`
}

// Performance returns page with the table of what was measured: ratios is the text of
// bench/ratios.json. A page without the marks is an error.
func Performance(page, ratios string) (string, error) {
	var f figures
	if err := json.Unmarshal([]byte(ratios), &f); err != nil {
		return "", fmt.Errorf("bench/ratios.json: %w", err)
	}
	before, rest, ok := strings.Cut(page, figuresBegin)
	_, after, closed := strings.Cut(rest, figuresEnd)
	if !ok || !closed {
		return "", fmt.Errorf("the page has no lines %s and %s", strings.TrimSpace(figuresBegin), strings.TrimSpace(figuresEnd))
	}

	var b strings.Builder
	fmt.Fprintf(&b, "Measured at commit `%s`. `make bench ROWS='^NAME$'` measures one row again.\n\n", f.Commit)
	b.WriteString("| row | CPU, by hand = 1 | quartiles | CPU, µs | by hand, µs | allocations | of by hand | KB |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(f.Rows)) {
		r := f.Rows[name]
		fmt.Fprintf(&b, "| `%s` | %.2f | %.2f to %.2f | %.0f | %.0f | %.0f | %.2f | %.0f |\n",
			name, r.CPU, r.Low, r.High, r.PawlCPU, r.HandCPU, r.Made, r.Allocs, r.Bytes/1000)
	}
	return before + figuresBegin + b.String() + figuresEnd + after, nil
}

// Stale returns an error if the page is out of date: what a plain run, or one from a file,
// allocates has changed by more than a tenth since the rows were measured. allocations is the text
// of internal/test/speed/allocations.txt.
func Stale(ratios, allocations string) error {
	var f figures
	if err := json.Unmarshal([]byte(ratios), &f); err != nil {
		return fmt.Errorf("bench/ratios.json: %w", err)
	}
	counted, err := readAllocations(allocations)
	if err != nil {
		return err
	}
	for _, c := range counted {
		if !strings.HasSuffix(c.name, "/plain") && !strings.HasSuffix(c.name, "/from-a-file") {
			continue
		}
		then := f.Allocations[c.name]
		if c.count*10 > then*11 || c.count*10 < then*9 {
			return fmt.Errorf("docs/performance.md is out of date: at commit %s a run %s allocated %d, and now %d; make bench-update measures again",
				f.Commit, c.name, then, c.count)
		}
	}
	return nil
}

// allocated is a row of allocations.txt.
type allocated struct {
	name  string
	count int
}

func readAllocations(text string) (rows []allocated, err error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var r allocated
		if _, err := fmt.Sscan(line, &r.count, &r.name); err != nil {
			return nil, fmt.Errorf("allocations.txt: %q is no number and name: %w", line, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}
