package runs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
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
		v := &runView{w: sys.Out, export: x, effects: effects, secrets: hide, width: sys.Width}
		made := ""
		if meta, err := j.Meta(j.Scoped(ctx), r.ID); err == nil {
			if n := assemble.ReadRecipe(meta); n != nil {
				made = n.Command()
			}
		}
		return v.print([][2]string{{"run", r.ID}, {"state", j.StateOf(r)}, {"cause", endOf(x)}, {"task", r.Task},
			{"agent", r.Agent}, {"forked", forkedFrom(x)}, {"made of", made}, {"began",
				cli.Moment(r.Created, "")}, {"last", cli.Moment(r.Updated, "")},
			{"spent", spentLine(assemble.SummaryOf(r).Spent)}, {"kept",
				fmt.Sprintf("%s, %s", cli.Count(int(r.Records), "record"), cli.Count(int(r.Fence), "attempt"))}})
	})
}

// runView prints a run for a person.
type runView struct {
	w       io.Writer
	export  *durable.Export
	effects []durable.LedgerEntry
	secrets *redact.Redactor
	width   int
}

// forkedFrom returns the origin of a forked run. Empty means that the run was not forked.
func forkedFrom(x *durable.Export) string {
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
	_, err := v.w.Write(out.Bytes())
	return err
}

// steps prints replies and calls in the order of their keys.
func (v *runView) steps(w io.Writer) {
	type entry struct {
		key  llm.Key
		text string
	}
	var all []entry
	for _, r := range v.export.Replies {
		all = append(all, entry{r.Key, "reply: " + replyText(r)})
	}
	for _, c := range v.export.Calls {
		all = append(all, entry{c.Key, fmt.Sprintf("%s %s: %s", c.Execution.Outcome, c.Call.Name,
			c.Execution.Result.Text())})
	}
	for _, m := range v.export.Steered {
		text := ""
		for _, one := range m.Messages {
			text += one.Text() + " "
		}
		all = append(all, entry{m.Key, "steered: " + text})
	}
	for _, f := range v.effects {
		if f.State == durable.EffectUnknown || f.State == durable.EffectStarted {
			all = append(all, entry{f.Key, fmt.Sprintf("%s %s %s", f.State, f.Tool, f.Call.Args)})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return durable.CompareKeys(a.key, b.key) })
	for _, e := range all {
		fmt.Fprintf(w, "%-14s %s\n", e.key, v.line(e.text, v.width-15))
	}
}

// line returns a text of the run as one line, without secrets.
func (v *runView) line(text string, width int) string {
	return cli.Line(v.secrets.String(text), max(width, 40))
}
