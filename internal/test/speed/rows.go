package speed

import (
	"fmt"
	"os"
	"strings"
)

// Row is what one kind of run allocates.
type Row struct {
	Name  string // job/mode/kind
	Count int    // of one run: allocations, or KB where the name says so
}

const rowsHead = "# What a run allocates, in process; see package speed. Lower a row when its run has become cheaper.\n"

// ReadRows returns the rows of allocations.txt.
func ReadRows(name string) ([]Row, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var r Row
		if _, err := fmt.Sscan(line, &r.Count, &r.Name); err != nil {
			return nil, fmt.Errorf("%s: %q is no number and name: %w", name, line, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// WriteRows replaces the rows of allocations.txt.
func WriteRows(name string, rows []Row) error {
	var b strings.Builder
	b.WriteString(rowsHead)
	for _, r := range rows {
		fmt.Fprintf(&b, "%6d %s\n", r.Count, r.Name)
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
