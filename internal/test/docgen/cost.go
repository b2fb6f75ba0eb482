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

// Cost returns page with a table of what a run costs between its marks, made from the rows over TLS
// in the text of bench/ratios.json. A page without the marks is an error.
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
		low, high, n := ratio{CPU: math.Inf(1), Allocs: math.Inf(1), RSS: math.Inf(1)}, ratio{}, 0
		for name, r := range rows {
			if strings.Contains(name, "/"+kind+"/") && strings.HasSuffix(name, overTLS) {
				low = ratio{CPU: min(low.CPU, r.CPU), Allocs: min(low.Allocs, r.Allocs), RSS: min(low.RSS, r.RSS)}
				high = ratio{CPU: max(high.CPU, r.CPU), Allocs: max(high.Allocs, r.Allocs), RSS: max(high.RSS, r.RSS)}
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
