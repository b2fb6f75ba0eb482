package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl/internal/test/docgen"
	"github.com/pawl-go/pawl/internal/test/speed"
)

// figures are the content of bench/ratios.json, from which docs/performance.md is written.
type figures struct {
	// Commit is what was measured.
	Commit string `json:"commit"`
	// Allocations are the rows of allocations.txt at that time. A test fails when they have changed
	// since by more than a tenth: the page is stale.
	Allocations map[string]int `json:"allocations"`
	// Rows are the comparisons, by name.
	Rows map[string]ratios `json:"rows"`
}

// The files, from the root.
const (
	ratiosFile      = "bench/ratios.json"
	allocationsFile = "internal/test/speed/allocations.txt"
	pageFile        = "docs/performance.md"
)

func readFigures(root string) (*figures, error) {
	f := new(figures)
	b, err := os.ReadFile(filepath.Join(root, ratiosFile))
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(b, f); err != nil {
		return f, fmt.Errorf("%s: %w", ratiosFile, err)
	}
	return f, nil
}

// update replaces all rows by what was measured, and writes the page.
func (f *figures) update(ctx context.Context, root string, all []comparison) error {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--dirty").Output()
	if err != nil {
		return fmt.Errorf("the commit that was measured: %w", err)
	}
	f.Commit = strings.TrimSpace(string(out))
	// Rows that exist no more must not stay in the file.
	f.Rows = map[string]ratios{}
	for _, c := range all {
		f.Rows[c.Row] = c.Ratios
	}
	counted, err := speed.ReadRows(filepath.Join(root, allocationsFile))
	if err != nil {
		return err
	}
	f.Allocations = map[string]int{}
	for _, r := range counted {
		f.Allocations[r.Name] = r.Count
	}
	if err := writeJSON(filepath.Join(root, ratiosFile), f); err != nil {
		return err
	}

	name := filepath.Join(root, pageFile)
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	written, err := docgen.Performance(string(page), string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(written), 0o644)
}
