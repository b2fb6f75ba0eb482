package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

type runsShowCmd struct {
	runArg
	JSON bool `name:"json" help:"@runs_show_json"`
	assemble.StoreFlags
	assemble.EngineFlags
}

// Run shows a run.
func (c *runsShowCmd) Run(sys *cli.System) error {
	if err := c.EngineFlags.Check(&c.StoreFlags); err != nil {
		return err
	}
	if c.Away() {
		return remote{&c.ClusterFlags}.show(sys, c.ID, c.JSON)
	}
	ctx := context.Background()
	return c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		x, err := j.Export(j.Scoped(ctx), r.ID)
		if err != nil {
			return j.Failed(r.ID, err)
		}
		hide, err := j.Hide(ctx, sys, r.ID, nil)
		if err != nil {
			return err
		}
		x = x.Redacted(hide)
		if c.JSON {
			return printExport(sys, x)
		}

		effects, err := j.EffectsOf(ctx, sys, r.ID)
		if err != nil {
			return err
		}
		made := "" // a run of pawl serve has no recipe
		if meta, err := j.Meta(j.Scoped(ctx), r.ID); err == nil {
			if n := assemble.ReadRecipe(meta); n != nil {
				made = n.Command()
			}
		}
		records := cli.Count(int(r.Records), "record")
		attempts := cli.Count(int(r.Fence), "attempt")
		v := &runView{out: sys.Out, export: x, effects: effects, secrets: hide, width: sys.Width}
		return v.print([][2]string{
			{"run", r.ID},
			{"state", j.StateOf(r)},
			{"cause", endOf(x)},
			{"task", r.Task},
			{"agent", r.Agent},
			{"forked", forkedFrom(x)},
			{"made of", made},
			{"began", cli.Moment(r.Created, "")},
			{"last", cli.Moment(r.Updated, "")},
			{"spent", spentLine(assemble.SummaryOf(r).Spent)},
			{"kept", records + ", " + attempts},
		})
	})
}

// runView prints a run for a person.
type runView struct {
	out     io.Writer
	export  *journal.Export
	effects []journal.LedgerEntry
	secrets *redact.Redactor
	width   int
}

// forkedFrom returns the origin of a forked run. Empty means that the run was not forked.
func forkedFrom(x *journal.Export) string {
	if x.Forked == nil {
		return ""
	}
	return fmt.Sprintf("from %s after %s", x.Forked.Run, cli.Count(x.Forked.Steps, "step"))
}

// spentLine returns the usage of a run. Empty means no usage.
func spentLine(s pawl.Spent) string {
	if s.Requests == 0 {
		return ""
	}
	cost := ""
	if s.Usage.Cost > 0 {
		cost = ", " + cli.Dollars(s.Usage.Cost)
	}
	return fmt.Sprintf("%s, %s, %s%s", cli.Count(s.Requests, "request"), cli.Count(s.Calls, "call"),
		cli.Count(s.Usage.Total(), "token"), cost)
}

// print prints the rows that are not empty, and the steps.
func (v *runView) print(rows [][2]string) error {
	var out bytes.Buffer
	for i, r := range rows {
		if r[1] != "" {
			rows[i][1] = v.line(r[1], v.width-12)
		}
	}
	_ = cli.Fields(&out, rows) // a buffer takes everything
	fmt.Fprintln(&out)
	v.steps(&out)

	// The questions come last and whole, because the person answers them.
	for _, q := range v.export.Pending {
		what := "may it run?"
		switch {
		case q.Outcome == pawl.OutcomeUnknown:
			what = "did it happen?"
		case q.Passive:
			what = "what is its result?"
		}
		fmt.Fprintf(&out, "%-14s waits: %s %s %s\n", q.Key, what, cli.Visible(q.Call.Name),
			cli.WholeLine(v.secrets.String(string(q.Call.Args))))
		if q.Why != "" {
			fmt.Fprintf(&out, "%-14s %s\n", "", cli.WholeLine(v.secrets.String(q.Why)))
		}
	}
	_, err := v.out.Write(out.Bytes())
	return err
}

// steps prints replies and calls in the order of their keys.
func (v *runView) steps(w io.Writer) {
	type entry struct {
		key  llm.Key
		text string
	}
	var all []entry
	add := func(key llm.Key, format string, args ...any) {
		all = append(all, entry{key, fmt.Sprintf(format, args...)})
	}

	for _, r := range v.export.Replies {
		if edit := history.Edited(r.Response.Message); edit != "" {
			add(r.Key, "window %s, %s sent", edit, cli.Count(r.Response.Usage.Input, "token"))
		}
		add(r.Key, "reply: %s", replyText(r))
	}
	for _, c := range v.export.Calls {
		add(c.Key, "%s %s: %s", c.Execution.Outcome, c.Call.Name, c.Execution.Result.Text())
	}
	for _, m := range v.export.Steered {
		text := ""
		for _, one := range m.Messages {
			text += one.Text() + " "
		}
		add(m.Key, "steered: %s", text)
	}
	// The export has calls with results alone. These began, and nothing is known of their end.
	for _, f := range v.effects {
		if f.Outcome == "" && (f.State == journal.EffectUnknown || f.State == journal.EffectStarted) {
			add(f.Key, "%s %s %s", f.State, f.Tool, f.Call.Args)
		}
	}

	// A reply and the effects of its calls have one key, so the order above counts.
	slices.SortStableFunc(all, func(a, b entry) int { return journal.CompareKeys(a.key, b.key) })
	for _, e := range all {
		fmt.Fprintf(w, "%-14s %s\n", e.key, v.line(e.text, v.width-15))
	}
}

// line returns a text of the run as one line, without secrets.
func (v *runView) line(text string, width int) string {
	return cli.Line(v.secrets.String(text), max(width, 40))
}

type runsDiffCmd struct {
	One   string `arg:"" name:"A" help:"@runs_diff_a"`
	Other string `arg:"" name:"B" help:"The other one."`
	JSON  bool   `name:"json" help:"@runs_diff_json"`
	assemble.StoreFlags
}

// Run compares the runs.
func (c *runsDiffCmd) Run(sys *cli.System) error {
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ctx := context.Background()
		var sides [2]side
		var hide *redact.Redactor
		for i, name := range []string{c.One, c.Other} {
			r, err := j.Find(ctx, name)
			if err != nil {
				return err
			}
			x, err := j.Export(j.Scoped(ctx), r.ID)
			if err != nil {
				return j.Failed(r.ID, err)
			}
			sides[i] = newSide(r.ID, j.StateOf(r), x)

			// The secrets of one run may stand in the other.
			hide, err = j.Hide(ctx, sys, r.ID, hide)
			if err != nil {
				return err
			}
		}
		return compareRuns(sys, sides, hide, c.JSON)
	})
}

// side is one of the two compared runs with its totals.
type side struct {
	Run      string    `json:"run"`
	State    string    `json:"state"`
	Steps    int       `json:"steps"`
	Requests int       `json:"requests"` // with the requests of nested agents
	Calls    int       `json:"calls"`
	Usage    llm.Usage `json:"usage"`

	export *journal.Export
}

func newSide(id, state string, x *journal.Export) side {
	s := side{Run: id, State: state, Steps: stepsOf(x), Requests: len(x.Replies), Calls: len(x.Calls), export: x}
	for _, r := range x.Replies {
		s.Usage.Add(r.Response.Usage)
	}
	s.Usage.Raw = nil // a provider's own words for one reply
	return s
}

// stepsOf returns the number of replies of a run, without the replies of nested agents.
func stepsOf(x *journal.Export) (n int) {
	for _, r := range x.Replies {
		if strings.Count(string(r.Key), "/") == 2 {
			n++
		}
	}
	return n
}

// compareRuns prints the differences of two runs.
func compareRuns(sys *cli.System, sides [2]side, hide *redact.Redactor, asJSON bool) error {
	ds, err := journal.Diff(sides[0].export, sides[1].export, hide)
	if err != nil {
		return err
	}
	if asJSON {
		err = cli.PrintJSON(sys.Out, map[string]any{
			"a":           sides[0],
			"b":           sides[1],
			"differences": append([]journal.Difference{}, ds...),
		})
	} else {
		err = printDiff(sys, sides, ds)
	}
	if err == nil && len(ds) > 0 {
		return cli.Silent(cli.StatusFailed)
	}
	return err
}

func printDiff(sys *cli.System, sides [2]side, ds []journal.Difference) error {
	err := cli.List(sys.Out, false, []int{0, 1}, "|RUN|STATE|STEPS|REQUESTS|CALLS|TOKENS|COST", func(i int) []any {
		s := sides[i]
		cost := "-"
		if s.Usage.Cost > 0 {
			cost = cli.Dollars(s.Usage.Cost)
		}
		name := "AB"[i : i+1]
		tokens := cli.Grouped(s.Usage.Total())
		return []any{name, cli.Visible(s.Run), s.State, s.Steps, s.Requests, s.Calls, tokens, cost}
	})
	if err != nil {
		return err
	}
	if len(ds) == 0 {
		_, err := fmt.Fprintln(sys.Out, "\nthey do not differ")
		return err
	}

	for _, d := range ds {
		where := d.What
		if d.Key != "" {
			where = fmt.Sprintf("%s %s", d.Key, d.What)
		}
		a, b := parting(words(d.What, d.First), words(d.What, d.Second), max(40, sys.Width-6))
		// The runs differ in secrets, which both sides show as the same mask.
		if bytes.Equal(d.First, d.Second) {
			where += ", in what is hidden here"
		}
		if _, err := fmt.Fprintf(sys.Out, "\n%s\n  A  %s\n  B  %s\n", where, a, b); err != nil {
			return err
		}
	}
	return nil
}

// replyText returns the text of a reply and its calls.
func replyText(r journal.ExportedReply) string {
	text := r.Response.Message.Text()
	for _, c := range r.Response.Message.Calls() {
		text += fmt.Sprintf(" [%s %s]", c.Name, c.Args)
	}
	return strings.TrimSpace(text)
}

// words writes one side of a difference for a person.
func words(what string, form json.RawMessage) string {
	if form == nil {
		return "-"
	}
	switch what {
	case "reply":
		var r journal.ExportedReply
		if json.Unmarshal(form, &r) == nil {
			tokens := cli.Count(r.Response.Usage.Total(), "token")
			return replyText(r) + fmt.Sprintf(" (%s, %s)", r.Response.Model, tokens)
		}

	case "call":
		var c journal.ExportedCall
		if json.Unmarshal(form, &c) == nil {
			x := &c.Execution
			return fmt.Sprintf("%s %s: %s, %s", c.Call.Name, c.Call.Args, x.Outcome, x.Result.Text())
		}

	case "end":
		var e journal.ExportedEnd
		if json.Unmarshal(form, &e) == nil {
			text := strings.TrimSpace(string(e.Stop) + " " + e.Cause + " " + e.Error)
			return fmt.Sprintf("%s; %s, %s, %s", text, cli.Count(e.Spent.Requests, "request"),
				cli.Count(e.Spent.Calls, "call"), cli.Count(e.Spent.Usage.Total(), "token"))
		}
	}
	return string(form) // a kind of a later version, or an unreadable one
}

// parting cuts two texts to a line each that shows where they differ.
func parting(a, b string, width int) (string, string) {
	if utf8.RuneCountInString(a) <= width && utf8.RuneCountInString(b) <= width {
		return cli.Line(a, width), cli.Line(b, width)
	}
	from := text.Parting(a, b, width/3)
	if from == 0 {
		return cli.Line(a, width), cli.Line(b, width)
	}
	return "…" + cli.Line(a[from:], width-1), "…" + cli.Line(b[from:], width-1)
}
