package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
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
