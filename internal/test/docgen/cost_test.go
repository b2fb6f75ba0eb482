package docgen

import (
	"strings"
	"testing"
)

// TestCostTable compares the summary in docs/performance.md with bench/ratios.json.
func TestCostTable(t *testing.T) {
	page, err := read("docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	ratios, err := read("bench/ratios.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Cost(page, ratios)
	if err != nil {
		t.Fatal(err)
	}
	current(t, "docs/performance.md", want)
}

func TestCost(t *testing.T) {
	got, err := Cost("a\n<!-- begin cost -->\nold\n<!-- end cost -->\nb\n", `{"x/streamed/1/http":{"cpu":0.1,"allocs":0.1,"rss":0.1},"x/streamed/1/tls":{"cpu":0.5,"allocs":0.25,"rss":1.5},"y/streamed/1/tls":{"cpu":0.75,"allocs":1,"rss":1},"x/whole/1/tls":{"cpu":1,"allocs":1,"rss":1}}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "| streamed (2 jobs) | 0.50 to 0.75 | 0.25 to 1.00 | 1.00 to 1.50 |"; !strings.Contains(got, want) || strings.Contains(got, "old") || !strings.HasSuffix(got, "<!-- end cost -->\nb\n") {
		t.Errorf("got %q, want a line %q", got, want)
	}
	for _, tt := range []struct{ page, ratios, err string }{
		{"a\n", "{}", "there are no lines"},
		{"<!-- begin cost -->\n<!-- end cost -->\n", "{}", "no rows of streamed"},
		{"", "[", "ratios.json"},
	} {
		if _, err := Cost(tt.page, tt.ratios); err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q, %q: got %v, want %q", tt.page, tt.ratios, err, tt.err)
		}
	}
}
