package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/text"
)

// report returns the findings of the demo's model as Markdown. Every figure comes from a tool.
func report(tables []*table) string {
	var b strings.Builder
	b.WriteString("# Report\n\nEvery figure comes from a result of `data_aggregate`. The model that wrote this is a script.\n")
	for _, t := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n", t.file)
		if t.trouble != "" || t.all == nil || len(t.all.Groups) == 0 {
			first, _, _ := strings.Cut(t.trouble, "\n")
			fmt.Fprintf(&b, "Left out: %s\n", first)
			continue
		}
		fmt.Fprintf(&b, "%s with the columns %s.\n\n", cli.Count(t.rows, "record"), strings.Join(t.columns, ", "))
		t.rowsOf(&b)
		t.notesOf(&b)
	}
	return b.String()
}

// rowsOf writes a row for each group, and one for all.
func (t *table) rowsOf(b *strings.Builder) {
	heads := []string{cmp.Or(t.group, "records"), "count"}
	for _, c := range t.numbers {
		heads = append(heads, "sum of "+c)
	}
	row(b, heads)
	b.WriteString("|---|" + strings.Repeat("---:|", len(heads)-1) + "\n")
	write := func(name string, g map[string]any) {
		cells := []string{name, figure(g["count_"+t.counted()])}
		for _, c := range t.numbers {
			cells = append(cells, figure(g["sum_"+c]))
		}
		row(b, cells)
	}
	if t.grouped != nil {
		for _, g := range t.grouped.Groups {
			name := figure(g[t.group])
			if name == "" || g[t.group] == nil {
				name = "(none)"
			}
			write(name, g)
		}
	}
	write("**all**", t.all.Groups[0])
}

// notesOf writes which values were repaired and which are not in the sums.
func (t *table) notesOf(b *strings.Builder) {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(t.all.Skipped)) {
		notes = append(notes, fmt.Sprintf("%s of %s %s no number and not in the sum.", cli.Count(t.all.Skipped[name],
			"value"),
			strings.TrimPrefix(name, "sum_"), text.Plural(t.all.Skipped[name], "is", "are")))
	}
	notes = append(notes, t.all.Notes...)
	if t.grouped != nil && t.grouped.Cut {
		notes = append(notes, "there are more groups than are listed here.")
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range notes {
		b.WriteString("- " + n + "\n")
	}
}

func row(b *strings.Builder, cells []string) {
	b.WriteString("|")
	for _, c := range cells {
		b.WriteString(" " + strings.NewReplacer("|", `\|`, "\n", " ").Replace(c) + " |")
	}
	b.WriteString("\n")
}

// figure writes a value in the form of the tool.
func figure(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// conclusion is the demo's answer: the largest group of each file, and where the report is.
func conclusion(tables []*table, written *exchange) string {
	var b strings.Builder
	if written.failed {
		return "The report could not be written: " + written.result + "\n"
	}
	fmt.Fprintf(&b, "The report is in %s. In short:\n", reportName)
	for _, t := range tables {
		switch {
		case t.trouble != "" || t.all == nil || len(t.all.Groups) == 0:
			fmt.Fprintf(&b, "- %s was left out; the report says why.\n", t.file)
		default:
			fmt.Fprintf(&b, "- %s: %s", t.file, cli.Count(t.rows, "record"))
			if c := t.main(); c != "" {
				fmt.Fprintf(&b, "; %s %s", c, figure(t.all.Groups[0]["sum_"+c]))
				if best := t.most(c); best != nil {
					fmt.Fprintf(&b, ", most in %s (%s)", figure(best[t.group]), figure(best["sum_"+c]))
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

var money = regexp.MustCompile(`(?i)amount|total|price|cost|refund|revenue|sales|value`)

// main returns the most important column of numbers, judged by its name. Empty means that there is
// none.
func (t *table) main() string {
	if i := slices.IndexFunc(t.numbers, money.MatchString); i >= 0 {
		return t.numbers[i]
	}
	if len(t.numbers) > 0 {
		return t.numbers[0]
	}
	return ""
}

// most returns the group with the greatest sum of column c. nil means that there are no groups.
func (t *table) most(c string) (best map[string]any) {
	top := 0.0
	if t.grouped == nil {
		return nil
	}
	for _, g := range t.grouped.Groups {
		n, ok := g["sum_"+c].(json.Number)
		if !ok {
			continue
		}
		if f, err := n.Float64(); err == nil && (best == nil || f > top) {
			best, top = g, f
		}
	}
	return best
}
