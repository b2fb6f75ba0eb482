package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// analyst is the model of the demo. It decides from the conversation in the request alone, so every
// file and figure comes from a tool.
//
//	list ▶ parse, for the columns ▶ aggregate, with a mistake ▶ correct it ▶ write ▶ answer
func analyst(req *llm.Request) script.Turn {
	n := notesOf(req)
	if !n.listed {
		return script.Together(script.Say("I will look at what there is.\n"), script.Call("file_list", nil))
	}

	for _, next := range []func() (string, []script.Turn){n.parses, n.aggregates, n.corrections} {
		if words, calls := next(); len(calls) > 0 {
			return script.Together(append([]script.Turn{script.Say(words)}, calls...)...)
		}
	}
	if n.written == "" {
		return script.Together(script.Say("That is all the figures. I write the report.\n"),
			script.Call("file_write", map[string]string{"path": reportName, "content": n.report()}))
	}
	return script.Say(n.written)
}

// notesOf reads the conversation anew for each reply, as a model does.
func notesOf(req *llm.Request) *notes {
	n := new(notes)
	calls := map[string]llm.ToolCall{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				calls[p.ID] = p
			case llm.ToolResult:
				// Chat Completions have no mark for errors, only their text.
				failed := p.IsError || strings.HasPrefix(p.Text(), "Error")
				n.read(calls[p.CallID], p.Text(), failed)
			}
		}
	}
	return n
}

const reportName = "report.md"

// isData reports whether the demo can read a file.
func isData(name string) bool {
	return slices.Contains([]string{".csv", ".json", ".jsonl"}, strings.ToLower(path.Ext(name)))
}

// arguments are the arguments of the calls of data tools.
type arguments struct {
	GroupBy []string `json:"group_by,omitempty"`
	Limit   int      `json:"limit,omitempty"`
	Metrics []metric `json:"metrics,omitempty"`
	Path    string   `json:"path,omitempty"`
	SaveAs  string   `json:"save_as,omitempty"`
	Table   string   `json:"table,omitempty"`
}

type metric struct {
	Column string `json:"column"`
	Op     string `json:"op"`
}

// notes are the knowledge of the model.
type notes struct {
	listed  bool
	tables  []*table
	written string // the answer; empty means that the report is not written yet
}

// table is the knowledge of the model about one file.
type table struct {
	file    string
	name    string // of the stored table
	trouble string // why the file is skipped

	parsed bool
	Rows   int              `json:"count"`
	Names  []string         `json:"columns"`
	Sample []map[string]any `json:"records"`

	group   string // the column to group by; empty means that none fits
	numbers []string
	grouped *figures // by group
	all     *figures // over all rows
	wrong   *arguments
	offered string // the error of the wrong call
}

// figures is an answer of data_aggregate.
type figures struct {
	Groups  []map[string]any `json:"groups"`
	Skipped map[string]int   `json:"skipped"`
	Notes   []string         `json:"notes"`
	Cut     bool             `json:"truncated"`
}

// read notes the result of a call.
func (n *notes) read(call llm.ToolCall, result string, failed bool) {
	var a arguments
	_ = json.Unmarshal(call.Args, &a) // the script wrote it
	switch call.Name {
	case "file_list":
		n.list(result)
	case "file_write":
		n.written = n.conclusion()
		if failed {
			n.written = "The report could not be written: " + result + "\n"
		}
	}

	for _, t := range n.tables {
		switch {
		case call.Name == "data_parse" && a.Path == t.file:
			t.parse(result, failed)
		case call.Name != "data_aggregate" || a.Table != t.name:
		case failed:
			t.wrong = &a
			t.offered = result
		default:
			t.aggregate(a, result)
		}
	}
}

// list notes the data files of file_list: a type, a tab and a name a line.
func (n *notes) list(result string) {
	n.listed = true
	for l := range strings.Lines(result) {
		f := strings.Split(strings.TrimSpace(l), "\t")
		if len(f) > 1 && f[0] == "file" && isData(f[1]) {
			n.tables = append(n.tables, &table{file: f[1], name: fmt.Sprintf("table%d", len(n.tables)+1)})
		}
	}
}

func (t *table) parse(result string, failed bool) {
	t.parsed = true
	switch {
	case failed:
		t.trouble = result
	case t.decode("data_parse", result, t) && (t.Rows == 0 || len(t.Names) == 0):
		t.trouble = "there is nothing in it"
	default:
		t.choose()
	}
}

var (
	notAFigure = regexp.MustCompile(`(?i)(^|[_ ])(id|no|nr|number|code|zip|phone|year|month|day|date|time)$` +
		`|[a-z](Id|ID|No|Code|Date)$`)
	numeric = regexp.MustCompile(`^-?\d+(\.\d+)?$`)
)

// choose finds a column to group by, the one with the fewest different texts, and up to three
// columns of numbers to add up.
func (t *table) choose() {
	fewest := 21 // a report with more groups is no summary
	for _, name := range t.Names {
		c, ok := t.column(name)
		if !ok || c.filled == 0 {
			continue
		}
		// A column of numbers may have some faulty values, and IDs are numbers that have no sum.
		switch {
		case c.numbers*2 > c.filled:
			if !notAFigure.MatchString(name) && len(t.numbers) < 3 {
				t.numbers = append(t.numbers, name)
			}
		case len(c.texts) < fewest && (len(c.texts) > 1 || len(t.Sample) == 1):
			t.group = name
			fewest = len(c.texts)
		}
	}
}

// column is what the sample of a table has in a column.
type column struct {
	texts   map[string]bool // the different values
	numbers int             // values that are numbers
	filled  int             // values that are not empty
}

// column reads a column of the sample. It reports false for values other than texts and numbers.
func (t *table) column(name string) (c column, ok bool) {
	c.texts = map[string]bool{}
	for _, r := range t.Sample {
		switch v := r[name].(type) {
		case nil:
		case string, json.Number:
			s := fmt.Sprint(v)
			if s == "" {
				continue
			}
			c.filled++
			if numeric.MatchString(s) {
				c.numbers++
			}
			c.texts[s] = true
		default:
			return c, false
		}
	}
	return c, true
}

// decode decodes the result of a call into v. It reports whether that is possible; otherwise the
// file is left out.
func (t *table) decode(tool, result string, v any) bool {
	d := json.NewDecoder(strings.NewReader(result))
	d.UseNumber()
	err := d.Decode(v)
	if err != nil {
		t.trouble = "the answer of " + tool + " could not be read: " + err.Error()
	}
	return err == nil
}

func (t *table) aggregate(a arguments, result string) {
	f := new(figures)
	if !t.decode("data_aggregate", result, f) {
		return
	}
	if a.GroupBy != nil {
		t.grouped = f
	} else {
		t.all = f
	}
	if t.wrong != nil && slices.Equal(t.wrong.GroupBy, a.GroupBy) {
		t.wrong = nil // this call corrected it
	}
}

// parses reads the files that are not read yet, all in one reply, and learns their columns.
func (n *notes) parses() (string, []script.Turn) {
	var calls []script.Turn
	for _, t := range n.tables {
		if !t.parsed {
			calls = append(calls, script.Call("data_parse", arguments{Path: t.file, SaveAs: t.name, Limit: 40}))
		}
	}
	return fmt.Sprintf("%s with data. I look at the columns of %s.\n", cli.Count(len(calls), "file"),
		text.Plural(len(calls), "it", "them all at once")), calls
}

// aggregates asks for the figures of each table, by group and over all rows. Its first call has an
// unknown op, as calls of models often have.
func (n *notes) aggregates() (string, []script.Turn) {
	var calls []script.Turn
	var what []string
	for _, t := range n.tables {
		answered := t.grouped != nil || t.all != nil
		if t.trouble != "" || t.wrong != nil || answered {
			continue
		}

		groups := [][]string{nil}
		if t.group != "" {
			groups = [][]string{{t.group}, nil}
			what = append(what, fmt.Sprintf("%s by %s", t.file, t.group))
		} else {
			what = append(what, t.file+" as a whole")
		}
		for _, by := range groups {
			metrics := t.metrics()
			if len(calls) == 0 {
				metrics[len(metrics)-1].Op = "total"
			}
			a := arguments{Table: t.name, Metrics: metrics, GroupBy: by}
			calls = append(calls, script.Call("data_aggregate", a))
		}
	}
	return "I add up " + strings.Join(what, ",\n") + ".\n", calls
}

// metrics returns the figures that are asked for: how many rows there are, and the sums.
func (t *table) metrics() []metric {
	all := []metric{{t.counted(), "count"}}
	for _, c := range t.numbers {
		all = append(all, metric{c, "sum"})
	}
	return all
}

// counted returns the column that is counted.
func (t *table) counted() string { return cmp.Or(t.group, t.Names[0]) }

// corrections repeats a refused call with an op that the error offers.
func (n *notes) corrections() (string, []script.Turn) {
	for _, t := range n.tables {
		if t.wrong == nil || t.trouble != "" {
			continue
		}
		repaired := "sum"
		if len(t.numbers) == 0 {
			repaired = "count"
		}
		// The script corrects itself as a model does: by the words of the error.
		if !strings.Contains(t.offered, `"`+repaired+`"`) {
			t.trouble = t.offered // nothing offered that would do
			continue
		}
		for i, m := range t.wrong.Metrics {
			if m.Op == "total" {
				t.wrong.Metrics[i].Op = repaired
			}
		}
		return fmt.Sprintf("One call was wrong: there is no op \"total\". It is called %q here.\n", repaired),
			[]script.Turn{script.Call("data_aggregate", t.wrong)}
	}
	return "", nil
}

// report returns the findings of the demo's model as Markdown. Every figure comes from a tool.
func (n *notes) report() string {
	var b strings.Builder
	b.WriteString("# Report\n\nEvery figure comes from a result of `data_aggregate`. " +
		"The model that wrote this is a script.\n")
	for _, t := range n.tables {
		fmt.Fprintf(&b, "\n## %s\n\n", t.file)
		if t.omitted() {
			first, _, _ := strings.Cut(t.trouble, "\n")
			fmt.Fprintf(&b, "Left out: %s\n", first)
			continue
		}
		fmt.Fprintf(&b, "%s with the columns %s.\n\n", cli.Count(t.Rows, "record"), strings.Join(t.Names, ", "))
		t.rows(&b)
		notes := t.remarks()
		if len(notes) > 0 {
			b.WriteString("\n- " + strings.Join(notes, "\n- ") + "\n")
		}
	}
	return b.String()
}

// omitted reports whether the report has no figures of the file.
func (t *table) omitted() bool { return t.trouble != "" || t.all == nil || len(t.all.Groups) == 0 }

// rows writes a row for each group, and one for all.
func (t *table) rows(b *strings.Builder) {
	// Values of a file may have the characters that end a cell or a row.
	quote := strings.NewReplacer("|", `\|`, "\n", " ").Replace
	row := func(first string, cell func(column string) string) {
		b.WriteString("| " + quote(first) + " | " + cell("") + " |")
		for _, c := range t.numbers {
			b.WriteString(" " + quote(cell(c)) + " |")
		}
		b.WriteString("\n")
	}

	row(cmp.Or(t.group, "records"), func(c string) string {
		if c == "" {
			return "count"
		}
		return "sum of " + c
	})
	b.WriteString("|---|" + strings.Repeat("---:|", len(t.numbers)+1) + "\n")

	figuresOf := func(g map[string]any) func(string) string {
		return func(c string) string {
			if c == "" {
				return figure(g["count_"+t.counted()])
			}
			return figure(g["sum_"+c])
		}
	}
	if t.grouped != nil {
		for _, g := range t.grouped.Groups {
			row(cmp.Or(figure(g[t.group]), "(none)"), figuresOf(g))
		}
	}
	row("**all**", figuresOf(t.all.Groups[0]))
}

// remarks says which values were repaired and which are not in the sums.
func (t *table) remarks() (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(t.all.Skipped)) {
		n := t.all.Skipped[name]
		notes = append(notes, fmt.Sprintf("%s of %s %s no number and not in the sum.", cli.Count(n, "value"),
			strings.TrimPrefix(name, "sum_"), text.Plural(n, "is", "are")))
	}
	notes = append(notes, t.all.Notes...)
	if t.grouped != nil && t.grouped.Cut {
		notes = append(notes, "there are more groups than are listed here.")
	}
	return notes
}

// figure writes a value in the form of the tool.
func figure(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

var money = regexp.MustCompile(`(?i)amount|total|price|cost|refund|revenue|sales|value`)

// conclusion is the demo's answer: the largest group of each file by the sum of its most important
// numbers, and where the report is.
func (n *notes) conclusion() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The report is in %s. In short:\n", reportName)
	for _, t := range n.tables {
		if t.omitted() {
			fmt.Fprintf(&b, "- %s was left out; the report says why.\n", t.file)
			continue
		}
		fmt.Fprintf(&b, "- %s: %s", t.file, cli.Count(t.Rows, "record"))
		if len(t.numbers) > 0 {
			c := "sum_" + t.numbers[max(0, slices.IndexFunc(t.numbers, money.MatchString))]
			fmt.Fprintf(&b, "; %s %s", strings.TrimPrefix(c, "sum_"), figure(t.all.Groups[0][c]))
			if best := t.most(c); best != nil {
				fmt.Fprintf(&b, ", most in %s (%s)", figure(best[t.group]), figure(best[c]))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// most returns the group with the greatest figure. nil means that there are no groups.
func (t *table) most(name string) (best map[string]any) {
	top := 0.0
	if t.grouped == nil {
		return nil
	}
	for _, g := range t.grouped.Groups {
		n, _ := g[name].(json.Number)
		if f, err := n.Float64(); err == nil && (best == nil || f > top) {
			best = g
			top = f
		}
	}
	return best
}
