package docgen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/protect"
)

// TestProtectedPage keeps docs/protected.md equal to internal/protect/places.txt.
func TestProtectedPage(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Protected places\n\nMade from internal/protect/places.txt; make docs writes it again. " +
		"[security.md](security.md#protected-places)\nsays what holds for these places. They count in any folder.\n")
	group := ""
	for _, d := range protect.Defaults() {
		if d.Group != group {
			group = d.Group
			fmt.Fprintf(&page, "\n## %s%s\n\n| place | who starts or follows it | source |\n|---|---|---|\n", strings.ToUpper(group[:1]), group[1:])
		}
		note := ""
		if d.Hidden {
			note = " (cannot be read either)"
		}
		source := "<" + d.Source + ">"
		if file, ok := strings.CutPrefix(d.Source, "docs/"); ok {
			source = "[" + file + "](" + file + ")"
		}
		fmt.Fprintf(&page, "| `%s`%s | %s | %s |\n", d.Place, note, d.Starts, source)
	}
	current(t, "docs/protected.md", page.String())
}
