package docgen

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

const (
	costBegin = "<!-- begin cost -->\n"
	costEnd   = "<!-- end cost -->\n"
)

// ratio is what a row of the benchmark took, as a part of what the loop written by hand took.
type ratio struct{ CPU, Allocs, RSS float64 }

// Cost returns page with a table of what a run costs between its marks, made from the text of bench/ratios.json. A page without the marks is an error.
func Cost(page, ratios string) (string, error) {
	var rows map[string]ratio
	if err := json.Unmarshal([]byte(ratios), &rows); err != nil {
		return "", fmt.Errorf("bench/ratios.json: %w", err)
	}
	before, rest, found := strings.Cut(page, costBegin)
	_, after, closed := strings.Cut(rest, costEnd)
	if !found || !closed {
		return "", fmt.Errorf("there are no lines %s and %s", strings.TrimSpace(costBegin), strings.TrimSpace(costEnd))
	}
	var b strings.Builder
	b.WriteString("| replies | CPU | allocations | memory |\n|---|---|---|---|\n")
	for _, kind := range []string{"streamed", "whole"} {
		low, high, n := ratio{math.Inf(1), math.Inf(1), math.Inf(1)}, ratio{}, 0
		for name, r := range rows {
			if strings.Contains(name, "/"+kind+"/") {
				low = ratio{min(low.CPU, r.CPU), min(low.Allocs, r.Allocs), min(low.RSS, r.RSS)}
				high = ratio{max(high.CPU, r.CPU), max(high.Allocs, r.Allocs), max(high.RSS, r.RSS)}
				n++
			}
		}
		if n == 0 {
			return "", fmt.Errorf("bench/ratios.json has no rows of %s replies", kind)
		}
		fmt.Fprintf(&b, "| %s (%d jobs) | %.2f to %.2f | %.2f to %.2f | %.2f to %.2f |\n", kind, n, low.CPU, high.CPU, low.Allocs, high.Allocs, low.RSS, high.RSS)
	}
	return before + costBegin + b.String() + costEnd + after, nil
}
