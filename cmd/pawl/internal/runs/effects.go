package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
	"github.com/pawl-go/pawl/store"
)

// EffectsCmd shows and settles the effects of runs.
type EffectsCmd struct {
	List      effectsListCmd      `cmd:"" help:"@effects_list"`
	Show      effectsShowCmd      `cmd:"" help:"Show one."`
	Reconcile effectsReconcileCmd `cmd:"" help:"@effects_reconcile"`
}

// effectOf is an effect with its run.
type effectOf struct {
	Run string `json:"run"`
	journal.LedgerEntry
}

type effectsListCmd struct {
	Of    string `arg:"" optional:"" name:"RUN" help:"@effects_list_of"`
	State string `enum:"${effects}" default:"" placeholder:"STATE" help:"@effects_list_state"`
	assemble.ListFlags
}

// Run lists the effects.
func (c *effectsListCmd) Run(sys *cli.System) error {
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ctx := context.Background()
		all, err := c.effects(ctx, sys, j)
		if err != nil {
			return err
		}
		return cli.List(sys.Out, c.JSON, all, "RUN|KEY|STATE|EFFECT|TOOL|BEGAN|ARGUMENTS", func(f effectOf) []any {
			began := cli.Moment(f.Began, "")
			args := cli.Line(string(f.Call.Args), 60)
			return []any{cli.Visible(f.Run), f.Key, f.State, f.Effect, cli.Visible(f.Tool), began, args}
		})
	})
}

// effects returns the effects of the run, or of all runs that have not ended.
func (c *effectsListCmd) effects(ctx context.Context, sys *cli.System, j *assemble.Journal) ([]effectOf, error) {
	var runs []store.JournalRun
	var err error
	if c.Of != "" {
		runs = make([]store.JournalRun, 1)
		runs[0], err = j.Find(ctx, c.Of)
	} else {
		runs, err = j.All(ctx, "")
	}
	if err != nil {
		return nil, err
	}

	all := []effectOf{} // a list in JSON, too
	for _, r := range runs {
		// An effect of a run that has ended is history. It is listed only if the run is named.
		if c.Of == "" && r.State == store.JournalOver {
			continue
		}
		effects, err := j.EffectsOf(ctx, sys, r.ID)
		if err != nil {
			return nil, err
		}
		for _, f := range effects {
			if c.lists(f.State) {
				all = append(all, effectOf{r.ID, f})
			}
		}
	}
	return all, nil
}

// wantedOf are the questions of the inbox, by what a call waits for.
var wantedOf = map[string]string{
	"approval": "may it run?",
	"result":   "what is its result?",
	"word":     "did it happen?",
}

// lists reports whether the list has effects of that state: the state of the flag, or else all of
// one run, or what is not settled of all runs.
func (c *effectsListCmd) lists(state journal.EffectState) bool {
	settled := state == journal.EffectCompleted || state == journal.EffectFailed
	switch {
	case c.State != "":
		return string(state) == c.State
	case c.Of != "":
		return true
	}
	return !settled
}

// effectArg names a call of a run.
type effectArg struct {
	runArg
	Key string `arg:"" name:"KEY" help:"The call's key, as pawl effects list shows it."`
}

// with calls do with the ID of the run and the effect of the call.
func (a *effectArg) with(sys *cli.System, flags *assemble.StoreFlags,
	do func(context.Context, *assemble.Journal, string, journal.LedgerEntry) error) error {
	ctx := context.Background()
	return flags.WithRun(ctx, sys, a.ID, func(j *assemble.Journal, r store.JournalRun) error {
		effects, err := j.Effects(j.Scoped(ctx), r.ID)
		if err != nil {
			return j.Failed(r.ID, err)
		}
		i := slices.IndexFunc(effects, func(f journal.LedgerEntry) bool { return string(f.Key) == a.Key })
		if i < 0 {
			keys := cli.Names(effects, func(f journal.LedgerEntry) string { return string(f.Key) })
			return cli.Unknown("effect", a.Key, keys, j.Command("effects", "list", r.ID))
		}
		return do(ctx, j, r.ID, effects[i])
	})
}

type effectsShowCmd struct {
	effectArg
	JSON bool `name:"json" help:"Print a JSON object."`
	assemble.StoreFlags
}

// Run shows an effect.
func (c *effectsShowCmd) Run(sys *cli.System) error {
	return c.with(sys, &c.StoreFlags, func(ctx context.Context, j *assemble.Journal, id string,
		f journal.LedgerEntry) error {
		hide, err := j.Hide(ctx, sys, id, nil)
		if err != nil {
			return err
		}
		f = f.Redacted(hide)
		if c.JSON {
			return cli.PrintJSON(sys.Out, effectOf{id, f})
		}

		fields := [][2]string{
			{"run", id},
			{"key", string(f.Key)},
			{"tool", f.Tool},
			{"effect", f.Effect.String()},
			{"state", string(f.State)},
			{"arguments", string(f.Call.Args)},
			{"attempts", fmt.Sprint(f.Attempts)},
			{"began", cli.Moment(f.Began, "")},
			{"ended", cli.Moment(f.Ended, "")},
			{"outcome", string(f.Outcome)},
			{"certainty", string(f.Certainty)},
			{"error", f.Error},
			{"idempotency key", f.IdempotencyKey},
		}
		for _, d := range f.Derivations {
			fields = append(fields, [2]string{"unasked", grounds(d)})
		}

		// What the person can do next depends on who has been asked about the call.
		resume := j.Command("runs", "resume", id)
		switch {
		case f.Question != nil:
			open := assemble.WaitingCalls([]pawl.PendingCall{*f.Question})
			fields = append(fields, [2]string{"waits", j.Settling(id, open)})
		case f.Answer != nil:
			fields = append(fields, [2]string{"answered", answered(f.Answer) + "; to resume: " + resume})
		case f.State == journal.EffectUnknown && f.Outcome == "":
			fields = append(fields, [2]string{"waits", "for " + resume + ", which asks the tool, or a person"})
		}

		// A person decides by this text, so nothing may hide in it.
		for i := range fields {
			fields[i][1] = cli.Indented(cli.Exact(hide.String(fields[i][1])))
		}
		return cli.Fields(sys.Out, fields)
	})
}

// grounds describes why a value needed no question.
func grounds(d derivation.Value) string {
	if d.Ground == derivation.Clean {
		return "nothing of others was read"
	}
	text := d.Arg + " " + d.Value + ": " + string(d.Ground)
	if d.Name != "" {
		text += " " + d.Name
	}
	if d.Call != "" {
		text += ", in the result of the call " + d.Call
	}
	return text
}

// answered describes a decision.
func answered(d *llm.Decision) string {
	by := cmp.Or(cli.Visible(d.By), "an unnamed person")
	if d.Identity != "" {
		by += " (" + cli.Visible(d.Identity) + ")"
	}
	switch {
	case d.Result != nil:
		return by + " gave its result"
	case d.Approve:
		return by + " let it run"
	}
	return by + " refused it"
}

type effectsReconcileCmd struct {
	effectArg
	Happened *string `xor:"what" placeholder:"RESULT" help:"@effects_reconcile_happened"`
	Again    bool    `xor:"what" help:"It did not happen, and must run again."`
	Never    *string `xor:"what" placeholder:"REASON" help:"@effects_reconcile_never"`
	byFlag
	assemble.StoreFlags
}

// Run settles the effect.
func (c *effectsReconcileCmd) Run(sys *cli.System) error {
	return c.with(sys, &c.StoreFlags, func(ctx context.Context, j *assemble.Journal, id string,
		f journal.LedgerEntry) error {
		if err := c.unsettled(j, id, f); err != nil {
			return err
		}

		said := c.decision(sys, f.Question)
		said.Identity = assemble.Identity()
		if err := j.Engine.Decide(j.Scoped(ctx), id, said); errors.Is(err, store.ErrConflict) {
			return cli.Fail(cli.StatusFailed, err,
				"another client was faster; "+j.Command("effects", "show", id, string(f.Key)))
		} else if err != nil {
			return err
		}
		_, err := fmt.Fprintf(sys.Out, "%s in %s is settled; to resume: %s\n", f.Key, cli.Visible(id),
			cli.Visible(j.Command("runs", "resume", id)))
		return err
	})
}

// unsettled returns the error for an effect that cannot be settled now, or for flags that do not
// say how.
func (c *effectsReconcileCmd) unsettled(j *assemble.Journal, id string, f journal.LedgerEntry) error {
	of := fmt.Sprintf("%s of run %s", f.Key, id)
	switch {
	case f.State != journal.EffectUnknown:
		return cli.Fail(cli.StatusFailed, fmt.Errorf("%s is %s: its outcome is known", of, f.State),
			j.Command("effects", "list", id))

	case c.Happened == nil && !c.Again && c.Never == nil:
		return cli.Usage("--happened RESULT, --again or --never REASON",
			"the outcome of %s (%s) is missing", f.Key, f.Tool)

	case f.Answer != nil:
		return cli.Fail(cli.StatusFailed, fmt.Errorf("%s is settled: %s", of, answered(f.Answer)),
			j.Command("runs", "resume", id))

	// Another result would contradict the conversation.
	case f.Outcome != "":
		read := fmt.Errorf("%s has its result: the model has read that it may have happened, and the run went on", of)
		return cli.Fail(cli.StatusFailed, read, j.Command("effects", "show", id, string(f.Key)))

	case f.Question == nil:
		return cli.Fail(cli.StatusFailed,
			errors.New("the run was not resumed since, so its tool has not been asked yet"),
			"first "+j.Command("runs", "resume", id)+", then repeat this command")
	}
	return nil
}

// decision returns what the flags say to a question.
func (c *effectsReconcileCmd) decision(sys *cli.System, q *pawl.PendingCall) llm.Decision {
	by := c.who(sys)
	switch {
	case c.Again:
		return q.Approve(by)
	case c.Happened != nil:
		return q.Answer(by, llm.TextResult(*c.Happened))
	}
	return q.Deny(by, *c.Never)
}

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
			fmt.Fprintf(sys.Out, "  %-10s %s %s %s\n",
				item.Key, wantedOf[item.Wants], cli.Visible(item.Tool), cli.WholeLine(string(item.Args)))
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
	// The person may have copied the key from elsewhere, and not have seen what the call does.
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
