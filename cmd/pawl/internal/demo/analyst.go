package demo

import (
	"bytes"
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
	past := exchanges(req)
	listing := past.last("file_list")
	if listing == nil {
		return script.Together(script.Say("I will look at what there is.\n"), script.Call("file_list", nil))
	}
	tables := tablesIn(listing.result)
	for _, t := range tables {
		t.take(past)
	}
	for _, next := range []func([]*table) (string, []script.Turn){parses, aggregates, corrections} {
		if words, calls := next(tables); len(calls) > 0 {
			return script.Together(append([]script.Turn{script.Say(words)}, calls...)...)
		}
	}
	if past.last("file_write") == nil {
		return script.Together(script.Say("That is all the figures. I write the report.\n"),
			script.Call("file_write", map[string]string{"path": reportName, "content": report(tables)}))
	}
	return script.Say(conclusion(tables, past.last("file_write")))
}

const reportName = "report.md"

// isData reports whether the demo can read a file.
func isData(name string) bool {
	return slices.Contains([]string{".csv", ".json", ".jsonl"}, strings.ToLower(path.Ext(name)))
}

// exchange is a call with its result.
type exchange struct {
	name   string
	args   map[string]json.RawMessage
	result string
	failed bool
}

func (e *exchange) text(arg string) string {
	var s string
	_ = json.Unmarshal(e.args[arg], &s) // another kind of argument is no text
	return s
}

type exchangeList []*exchange

// exchanges pairs the calls in a conversation with their results, in call order.
func exchanges(req *llm.Request) exchangeList {
	var all exchangeList
	open := map[string]*exchange{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				e := &exchange{name: p.Name}
				_ = json.Unmarshal(p.Args, &e.args) // the script wrote it
				open[p.ID] = e
				all = append(all, e)
			case llm.ToolResult:
				if e := open[p.CallID]; e != nil {
					e.result = p.Text()
					e.failed = p.IsError || strings.HasPrefix(e.result, "Error")
				}
			}
		}
	}
	return all
}

func (h exchangeList) last(name string) *exchange {
	for _, e := range slices.Backward(h) {
		if e.name == name {
			return e
		}
	}
	return nil
}

// table is the knowledge of the model about one file.
type table struct {
	file    string
	name    string // of the stored table
	trouble string // why the file is skipped

	parsed  bool
	rows    int
	columns []string
	sample  []map[string]any

	group   string // the column to group by; empty means that none fits
	numbers []string
	grouped *figures // by group
	all     *figures // over all rows
	wrong   *exchange
}

// figures is an answer of data_aggregate.
type figures struct {
	Groups  []map[string]any `json:"groups"`
	Skipped map[string]int   `json:"skipped"`
	Notes   []string         `json:"notes"`
	Cut     bool             `json:"truncated"`
}

// tablesIn finds the data files in a listing: a type, a tab and a name a line.
func tablesIn(listing string) []*table {
	var all []*table
	for l := range strings.Lines(listing) {
		kind, name, _ := strings.Cut(strings.TrimSpace(l), "\t")
		name, _, _ = strings.Cut(name, "\t")
		if kind == "file" && isData(name) {
			all = append(all, &table{file: name, name: fmt.Sprintf("table%d", len(all)+1)})
		}
	}
	return all
}

// take reads the results of the calls about the file.
func (t *table) take(past exchangeList) {
	for _, e := range past {
		switch e.name {
		case "data_parse":
			if e.text("path") == t.file {
				t.parse(e)
			}
		case "data_aggregate":
			if e.text("table") == t.name {
				t.aggregate(e)
			}
		}
	}
}

func (t *table) parse(e *exchange) {
	t.parsed = true
	if e.failed {
		t.trouble = e.result
		return
	}
	var a struct {
		Count   int              `json:"count"`
		Columns []string         `json:"columns"`
		Records []map[string]any `json:"records"`
	}
	if !t.decode(e, &a) {
		return
	}
	t.rows, t.columns, t.sample = a.Count, a.Columns, a.Records
	if a.Count == 0 || len(a.Columns) == 0 {
		t.trouble = "there is nothing in it"
		return
	}
	t.choose()
}

var (
	notAFigure = regexp.MustCompile(`(?i)(^|[_ ])(id|no|nr|number|code|zip|phone|year|month|day|date|time)$|[a-z](Id|ID|No|Code|Date)$`)
	numeric    = regexp.MustCompile(`^-?\d+(\.\d+)?$`)
)

// choose finds a column to group by, the one with the fewest different texts, and up to three
// columns of numbers to add up.
func (t *table) choose() {
	fewest := 0
	for _, c := range t.columns {
		texts, numbers, other := map[string]bool{}, 0, 0
		filled := 0
		for _, r := range t.sample {
			switch v := r[c].(type) {
			case json.Number:
				numbers++
				filled++
			case string:
				if v == "" {
					continue
				}
				filled++
				if numeric.MatchString(v) {
					numbers++
				}
				texts[v] = true
			case nil:
			default:
				other++
			}
		}
		switch {
		case other > 0 || filled == 0:
		case numbers*2 > filled:
			if !notAFigure.MatchString(c) && len(t.numbers) < 3 {
				t.numbers = append(t.numbers, c)
			}
		case len(texts) <= 20 && (fewest == 0 || len(texts) < fewest) && (len(texts) > 1 || len(t.sample) == 1):
			t.group, fewest = c, len(texts)
		}
	}
}

// decode decodes the result of a call into v. It reports whether that is possible; otherwise the
// file is left out.
func (t *table) decode(e *exchange, v any) bool {
	d := json.NewDecoder(strings.NewReader(e.result))
	d.UseNumber()
	err := d.Decode(v)
	if err != nil {
		t.trouble = "the answer of " + e.name + " could not be read: " + err.Error()
	}
	return err == nil
}

func (t *table) aggregate(e *exchange) {
	if e.failed {
		t.wrong = e
		return
	}
	f := new(figures)
	if !t.decode(e, f) {
		return
	}
	if _, by := e.args["group_by"]; by {
		t.grouped = f
	} else {
		t.all = f
	}
	if t.wrong != nil && bytes.Equal(t.wrong.args["group_by"], e.args["group_by"]) {
		t.wrong = nil // this call corrected it
	}
}

// parses reads the files that are not read yet, all in one reply, and learns their columns.
func parses(tables []*table) (string, []script.Turn) {
	var calls []script.Turn
	for _, t := range tables {
		if !t.parsed {
			calls = append(calls, script.Call("data_parse", map[string]any{"path": t.file, "save_as": t.name, "limit": 40}))
		}
	}
	return fmt.Sprintf("%s with data. I look at the columns of %s.\n", cli.Count(len(calls), "file"),
		text.Plural(len(calls), "it", "them all at once")), calls
}

// aggregates asks for the figures of each table, by group and over all rows. Its first call has an
// unknown op, as calls of models often have.
func aggregates(tables []*table) (string, []script.Turn) {
	var calls []script.Turn
	var what []string
	for _, t := range tables {
		if t.trouble != "" || t.grouped != nil || t.all != nil || t.wrong != nil {
			continue
		}
		ask := func(groupBy []string) {
			metrics := t.metrics()
			if len(calls) == 0 {
				metrics[len(metrics)-1]["op"] = "total"
			}
			calls = append(calls, t.call(metrics, groupBy))
		}
		if t.group != "" {
			ask([]string{t.group})
			what = append(what, fmt.Sprintf("%s by %s", t.file, t.group))
		} else {
			what = append(what, t.file+" as a whole")
		}
		ask(nil)
	}
	return "I add up " + strings.Join(what, ",\n") + ".\n", calls
}

// counted returns the column that is counted.
func (t *table) counted() string { return cmp.Or(t.group, t.columns[0]) }

func (t *table) metrics() []map[string]string {
	all := []map[string]string{{"column": t.counted(), "op": "count"}}
	for _, c := range t.numbers {
		all = append(all, map[string]string{"column": c, "op": "sum"})
	}
	return all
}

func (t *table) call(metrics any, groupBy []string) script.Turn {
	args := map[string]any{"table": t.name, "metrics": metrics}
	if groupBy != nil {
		args["group_by"] = groupBy
	}
	return script.Call("data_aggregate", args)
}

// corrections repeats a refused call with an op that the error offers.
func corrections(tables []*table) (string, []script.Turn) {
	for _, t := range tables {
		if t.wrong == nil || t.trouble != "" {
			continue
		}
		var metrics []map[string]string
		if err := json.Unmarshal(t.wrong.args["metrics"], &metrics); err != nil {
			continue
		}
		repaired := "sum"
		if len(t.numbers) == 0 {
			repaired = "count"
		}
		if !strings.Contains(t.wrong.result, `"`+repaired+`"`) {
			t.trouble = t.wrong.result // nothing offered that would do
			continue
		}
		for i := range metrics {
			if metrics[i]["op"] == "total" {
				metrics[i]["op"] = repaired
			}
		}
		var groupBy []string
		_ = json.Unmarshal(t.wrong.args["group_by"], &groupBy) // left out is nil
		return fmt.Sprintf("One call was wrong: there is no op \"total\". It is called %q here.\n", repaired),
			[]script.Turn{t.call(metrics, groupBy)}
	}
	return "", nil
}

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
