package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

// InboxCmd lists and settles the pending calls of all runs.
type InboxCmd struct {
	List    inboxListCmd   `cmd:"" default:"withargs" help:"@inbox_list"`
	Approve runsApproveCmd `cmd:"" help:"Approve pending calls."`
	Deny    runsDenyCmd    `cmd:"" help:"Refuse pending calls."`
	Answer  runsAnswerCmd  `cmd:"" help:"Give pending calls their results."`
}

type inboxListCmd struct{ assemble.ListFlags }

// Run lists the pending calls.
func (c *inboxListCmd) Run(sys *cli.System) error {
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		items, err := j.Inbox(context.Background(), sys)
		if err != nil {
			return err
		}
		if c.JSON {
			return cli.PrintJSON(sys.Out, items)
		}
		if len(items) == 0 {
			_, err := fmt.Fprintln(sys.Out, "nothing waits")
			return err
		}
		for i, item := range items {
			if i == 0 || items[i-1].Run != item.Run {
				fmt.Fprintf(sys.Out, "%s  %s\n", cli.Visible(item.Run), cli.Line(item.Task, max(40, sys.Width-12)))
			}
			wants := map[string]string{"approval": "may it run?", "result": "what is its result?",
				"word": "did it happen?"}[item.Wants]
			fmt.Fprintf(sys.Out, "  %-10s %s %s %s\n", item.Key, wants, cli.Visible(item.Tool), cli.WholeLine(string(item.Args)))
			if item.Why != "" {
				fmt.Fprintf(sys.Out, "  %-10s %s\n", "", cli.WholeLine(item.Why))
			}
		}
		return nil
	})
}

// byFlag names the person who decides.
type byFlag struct {
	By string `name:"by" placeholder:"NAME" help:"@by_flag_by"`
}

func (f *byFlag) who(sys *cli.System) string { return cmp.Or(f.By, assemble.WhoSays(sys)) }

// settleArgs are the run and the flags of a command that settles calls.
type settleArgs struct {
	runArg
	byFlag
	assemble.StoreFlags
	assemble.EngineFlags
}

// settle stores decisions, and prints the next command. done is the word for the person, such as
// "approved".
func (a *settleArgs) settle(sys *cli.System, done string, flags assemble.SettleFlags) error {
	if err := a.EngineFlags.Check(&a.StoreFlags); err != nil {
		return err
	}
	if a.Away() {
		return remote{&a.ClusterFlags}.settle(sys, a.ID, a.who(sys), done, flags)
	}
	ctx := context.Background()
	return a.WithRun(ctx, sys, a.ID, func(j *assemble.Journal, r store.JournalRun) error {
		if err := reads(ctx, sys, j, r.ID, flags); err != nil {
			return err
		}
		left, err := j.Decide(ctx, r.ID, a.who(sys), flags)
		return printSettled(sys, done, r.ID, left, "to resume: "+j.Command("runs", "resume", cli.Visible(r.ID)), err)
	})
}

// printSettled prints the calls of a run that are still pending, or else the next step. err is the
// error of the decisions.
func printSettled(sys *cli.System, done, id string, left []assemble.OpenCall, next string, err error) error {
	if err != nil {
		return withoutFlags(err)
	}
	if len(left) > 0 {
		next = fmt.Sprintf("%s: %s", assemble.Waits(len(left)), assemble.Keys(left))
	}
	_, err = fmt.Fprintf(sys.Out, "%s in %s; %s\n", done, cli.Visible(id), cli.Visible(next))
	return err
}

// reads shows a person at a terminal the whole of each open call of the run, if flags approve any,
// and asks whether that is meant. Without a terminal, a program decides.
func reads(ctx context.Context, sys *cli.System, j *assemble.Journal, id string, flags assemble.SettleFlags) error {
	if len(flags.Approve) == 0 || !sys.InTerm || !sys.ErrTerm {
		return nil
	}
	items, err := j.Inbox(ctx, sys)
	if err != nil {
		return err
	}
	for _, item := range items {
		if item.Run == id && item.Wants != "result" {
			fmt.Fprintf(sys.Err, "%s %s %s\n  %s\n", item.Key, cli.Visible(item.Tool), cli.WholeLine(string(item.Args)),
				cli.WholeLine(item.Why))
		}
	}
	question := fmt.Sprintf("approve %s? y: yes > ", cli.WholeLine(strings.Join(flags.Approve, " ")))
	if yes, _ := cli.NewLines(sys.In).Yes(ctx, sys.Err, question); !yes {
		return cli.Fail(cli.StatusFailed, errors.New("nothing was approved"), "y approves")
	}
	return nil
}

type runsApproveCmd struct {
	settleArgs
	Keys []string `arg:"" name:"KEY[=ARGS]" sep:"none" help:"@runs_approve_keys"`
}

// Run approves calls.
func (c *runsApproveCmd) Run(sys *cli.System) error {
	return c.settle(sys, "approved", assemble.SettleFlags{Approve: c.Keys})
}

type runsDenyCmd struct {
	settleArgs
	Keys []string `arg:"" name:"KEY[=REASON]" sep:"none" help:"@runs_deny_keys"`
}

// Run refuses calls.
func (c *runsDenyCmd) Run(sys *cli.System) error {
	return c.settle(sys, "denied", assemble.SettleFlags{Deny: c.Keys})
}

type runsAnswerCmd struct {
	settleArgs
	Answers []string `arg:"" name:"KEY=TEXT" sep:"none" help:"@runs_answer_answers"`
}

// Run gives calls their results.
func (c *runsAnswerCmd) Run(sys *cli.System) error {
	answers := map[string]string{}
	for _, a := range c.Answers {
		key, text, ok := strings.Cut(a, "=")
		if !ok {
			return cli.Usage(key+"=TEXT", "%s: the result is missing", key)
		}
		answers[key] = text
	}
	return c.settle(sys, "answered", assemble.SettleFlags{Answer: answers})
}
