package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

type runsDiffCmd struct {
	A    string `arg:"" name:"A" help:"@runs_diff_a"`
	B    string `arg:"" name:"B" help:"The other one."`
	JSON bool   `name:"json" help:"@runs_diff_json"`
	assemble.StoreFlags
}

// Run compares the runs.
func (c *runsDiffCmd) Run(sys *cli.System) error {
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ctx := context.Background()
		var sides [2]side
		var hide *redact.Redactor
		for i, name := range []string{c.A, c.B} {
			r, err := j.Find(ctx, name)
			if err != nil {
				return err
			}
			x, err := j.Export(j.Scoped(ctx), r.ID)
			if err != nil {
				return j.Failed(r.ID, err)
			}
			sides[i] = newSide(r.ID, j.StateOf(r), x)
			if hide, err = j.Hide(ctx, sys, r.ID, hide); err != nil {
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

	export *durable.Export
}

func newSide(id, state string, x *durable.Export) side {
	s := side{Run: id, State: state, Steps: stepsOf(x), Requests: len(x.Replies), Calls: len(x.Calls), export: x}
	for _, r := range x.Replies {
		s.Usage.Add(r.Response.Usage)
	}
	s.Usage.Raw = nil // a provider's own words for one reply
	return s
}

// stepsOf returns the number of replies of a run, without the replies of nested agents.
func stepsOf(x *durable.Export) (n int) {
	for _, r := range x.Replies {
		if strings.Count(string(r.Key), "/") == 2 {
			n++
		}
	}
	return n
}

// compareRuns prints the differences of two runs.
func compareRuns(sys *cli.System, sides [2]side, hide *redact.Redactor, asJSON bool) error {
	ds, err := durable.Diff(sides[0].export, sides[1].export, hide)
	if err != nil {
		return err
	}
	if asJSON {
		err = cli.PrintJSON(sys.Out, map[string]any{"a": sides[0], "b": sides[1],
			"differences": append([]durable.Difference{}, ds...)})
	} else {
		err = printDiff(sys, sides, ds)
	}
	if err == nil && len(ds) > 0 {
		return cli.Silent(cli.StatusFailed)
	}
	return err
}

func printDiff(sys *cli.System, sides [2]side, ds []durable.Difference) error {
	err := cli.List(sys.Out, false, []int{0, 1}, "|RUN|STATE|STEPS|REQUESTS|CALLS|TOKENS|COST", func(i int) []any {
		s, cost := sides[i], "-"
		if s.Usage.Cost > 0 {
			cost = cli.Dollars(s.Usage.Cost)
		}
		return []any{"AB"[i : i+1], cli.Visible(s.Run), s.State, s.Steps, s.Requests, s.Calls,
			cli.Grouped(s.Usage.Total()), cost}
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
		a, b := parting(words(d.What, d.A), words(d.What, d.B), max(40, sys.Width-6))
		if bytes.Equal(d.A, d.B) {
			where += ", in what is hidden here"
		}
		if _, err := fmt.Fprintf(sys.Out, "\n%s\n  A  %s\n  B  %s\n", where, a, b); err != nil {
			return err
		}
	}
	return nil
}

// replyText returns the text of a reply and its calls.
func replyText(r durable.ExportedReply) string {
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
		var r durable.ExportedReply
		if json.Unmarshal(form, &r) == nil {
			return replyText(r) + fmt.Sprintf(" (%s, %s)", r.Response.Model,
				cli.Count(r.Response.Usage.Total(), "token"))
		}
	case "call":
		var c durable.ExportedCall
		if json.Unmarshal(form, &c) == nil {
			return fmt.Sprintf("%s %s: %s, %s", c.Call.Name, c.Call.Args, c.Execution.Outcome,
				c.Execution.Result.Text())
		}
	case "end":
		var e durable.ExportedEnd
		if json.Unmarshal(form, &e) == nil {
			text := strings.TrimSpace(string(e.Stop) + " " + e.Cause + " " + e.Error)
			return fmt.Sprintf("%s; %s, %s, %s", text, cli.Count(e.Spent.Requests, "request"),
				cli.Count(e.Spent.Calls, "call"), cli.Count(e.Spent.Usage.Total(), "token"))
		}
	}
	return string(form)
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
