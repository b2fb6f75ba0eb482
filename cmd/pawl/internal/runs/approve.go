package runs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/policy/backtest"
)

// ApproveCmd has the commands about approval rules.
type ApproveCmd struct {
	Learn approveLearnCmd `cmd:"" help:"@approve_learn"`
	Test  approveTestCmd  `cmd:"" help:"@approve_test"`
}

// answerFlags select the answers of people.
type answerFlags struct {
	Agent string `placeholder:"NAME" help:"@approve_agent"`
	assemble.StoreFlags
}

// answers returns the answers to questions of the stored runs.
func (f *answerFlags) answers(ctx context.Context, j *assemble.Journal) (out []backtest.Answer, err error) {
	all, err := j.All(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if f.Agent != "" && r.Agent != f.Agent {
			continue
		}
		run, err := journal.Read(j.Scoped(ctx), j.Journal, r.ID, time.Now())
		if err != nil {
			return nil, j.Failed(r.ID, err)
		}
		for _, a := range run.Answers() {
			out = append(out, backtest.Answer{
				Run:     r.ID,
				Key:     a.Key,
				Call:    a.Call,
				Effect:  a.Effect,
				Allowed: a.Allowed(),
			})
		}
	}
	if len(out) == 0 {
		return nil, cli.Fail(cli.StatusFailed, errors.New("no question of a stored run has an answer"),
			j.Command("runs", "list"))
	}
	return out, nil
}

type approveLearnCmd struct {
	Least int  `default:"20" placeholder:"N" help:"@approve_learn_least"`
	JSON  bool `name:"json" help:"@approve_learn_json"`
	answerFlags
}

// Run prints the proposed rules as a file of rules.
func (c *approveLearnCmd) Run(sys *cli.System) error {
	if c.Least < 1 {
		return cli.Usage("--least 20", "--least %d: want at least one call", c.Least)
	}
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ctx := context.Background()
		answers, err := c.answers(ctx, j)
		if err != nil {
			return err
		}
		learned, err := backtest.Learn(ctx, answers, c.Least)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return cli.PrintJSON(sys.Out, learned)
		case len(learned) == 0:
			return cli.Fail(cli.StatusFailed, fmt.Errorf("no rule covers %s that people allowed, and none that they denied",
				cli.Count(c.Least, "call")), "--least with a lower number")
		}

		hide := assemble.Secrets(sys.Env, nil)
		fmt.Fprintln(sys.Out, "allow:")
		for _, e := range learned {
			fmt.Fprintf(sys.Out, "  - %s # asked %d, allowed %d\n", strconv.Quote(hide.String(e.Entry)),
				e.Allowed+e.Denied, e.Allowed)
		}
		return nil
	})
}

type approveTestCmd struct {
	Rules string `arg:"" name:"RULES.yaml" help:"@approve_test_rules"`
	JSON  bool   `name:"json" help:"@approve_test_json"`
	answerFlags
}

// Run prints what the rules would have allowed. It fails if a denied call is let through.
func (c *approveTestCmd) Run(sys *cli.System) error {
	rules, err := agentfile.ReadRules(c.Rules)
	if err != nil {
		return assemble.Misconfigured(err)
	}
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ctx := context.Background()
		answers, err := c.answers(ctx, j)
		if err != nil {
			return err
		}
		report, err := backtest.Test(ctx, rules.Policy(), answers)
		if err != nil {
			return cli.Usage("", "%s: %v", c.Rules, err)
		}

		if c.JSON {
			err = cli.PrintJSON(sys.Out, report)
		} else {
			err = c.print(sys, report, answers)
		}
		if err == nil && len(report.LetThrough) > 0 {
			err = cli.Fail(cli.StatusFailed, fmt.Errorf("the rules let %s through that people denied",
				cli.Count(len(report.LetThrough), "call")), "narrow the rules above with a number under DENIED")
		}
		return err
	})
}

// print prints the report for a person.
func (c *approveTestCmd) print(sys *cli.System, report *backtest.Report, answers []backtest.Answer) error {
	err := cli.List(sys.Out, false, report.Entries, "RULE|ALLOWED|DENIED", func(e backtest.Entry) []any {
		return []any{cli.Line(e.Entry, 100), e.Allowed, e.Denied}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(sys.Out, "%s asked, %s would be left", cli.Count(report.Asked, "question"), cli.Grouped(report.Left))
	if report.Refused > 0 {
		fmt.Fprintf(sys.Out, "; %s that people allowed would be denied", cli.Count(report.Refused, "call"))
	}
	fmt.Fprintln(sys.Out)

	// Keys and tools alone: arguments may have secrets.
	for _, i := range report.LetThrough {
		a := &answers[i]
		fmt.Fprintf(sys.Out, "let through: %s %s %s\n", cli.Visible(a.Run), a.Key, cli.Visible(a.Call.Name))
	}
	return nil
}
