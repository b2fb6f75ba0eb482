package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
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
	durable.LedgerEntry
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
		runs := make([]store.JournalRun, 1)
		var err error
		if c.Of != "" {
			runs[0], err = j.Find(ctx, c.Of)
		} else {
			runs, err = j.All(ctx, "")
		}
		if err != nil {
			return err
		}
		all := []effectOf{}
		for _, r := range runs {
			if c.Of == "" && r.State == store.JournalOver {
				continue
			}
			effects, err := j.EffectsOf(ctx, sys, r.ID)
			if err != nil {
				return err
			}
			for _, f := range effects {
				settled := f.State == durable.EffectCompleted || f.State == durable.EffectFailed
				if c.State != "" && string(f.State) != c.State || c.State == "" && c.Of == "" && settled {
					continue
				}
				all = append(all, effectOf{r.ID, f})
			}
		}
		return cli.List(sys.Out, c.JSON, all, "RUN|KEY|STATE|EFFECT|TOOL|BEGAN|ARGUMENTS", func(f effectOf) []any {
			return []any{cli.Visible(f.Run), f.Key, f.State, f.Effect, cli.Visible(f.Tool), cli.Moment(f.Began, ""),
				cli.Line(string(f.Call.Args), 60)}
		})
	})
}

// effectArg names a call of a run.
type effectArg struct {
	runArg
	Key string `arg:"" name:"KEY" help:"The call's key, as pawl effects list shows it."`
}

// with calls do with the ID of the run and the effect of the call.
func (a *effectArg) with(sys *cli.System, flags *assemble.StoreFlags,
	do func(context.Context, *assemble.Journal, string, durable.LedgerEntry) error) error {
	ctx := context.Background()
	return flags.WithRun(ctx, sys, a.ID, func(j *assemble.Journal, r store.JournalRun) error {
		effects, err := j.Effects(j.Scoped(ctx), r.ID)
		if err != nil {
			return j.Failed(r.ID, err)
		}
		i := slices.IndexFunc(effects, func(f durable.LedgerEntry) bool { return string(f.Key) == a.Key })
		if i < 0 {
			keys := cli.Names(effects, func(f durable.LedgerEntry) string { return string(f.Key) })
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
		f durable.LedgerEntry) error {
		hide, err := j.Hide(ctx, sys, id, nil)
		if err != nil {
			return err
		}
		if f = f.Redacted(hide); c.JSON {
			return cli.PrintJSON(sys.Out, effectOf{id, f})
		}
		fields := [][2]string{{"run", id}, {"key", string(f.Key)}, {"tool", f.Tool}, {"effect", f.Effect.String()},
			{"state", string(f.State)}, {"arguments", string(f.Call.Args)}, {"attempts", fmt.Sprint(f.Attempts)},
			{"began", cli.Moment(f.Began, "")}, {"ended", cli.Moment(f.Ended, "")}, {"outcome", string(f.Outcome)},
			{"error", f.Error}, {"idempotency key", f.IdempotencyKey}}
		resume := j.Command("runs", "resume", id)
		switch {
		case f.Question != nil:
			fields = append(fields, [2]string{"waits", j.Settling(id, assemble.WaitingCalls([]pawl.PendingCall{*f.Question}))})
		case f.Answer != nil:
			fields = append(fields, [2]string{"answered", answered(f.Answer) + "; to resume: " + resume})
		case f.State == durable.EffectUnknown:
			fields = append(fields, [2]string{"waits", "for " + resume + ", which asks the tool, or a person"})
		}
		for i := range fields {
			fields[i][1] = cli.Indented(cli.Exact(hide.String(fields[i][1])))
		}
		return cli.Fields(sys.Out, fields)
	})
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
		f durable.LedgerEntry) error {
		switch {
		case f.State != durable.EffectUnknown:
			return cli.Fail(cli.StatusFailed, fmt.Errorf("%s of run %s is %s: its outcome is known", f.Key, id,
				f.State), j.Command("effects", "list", id))
		case c.Happened == nil && !c.Again && c.Never == nil:
			return cli.Usage("--happened RESULT, --again or --never REASON", "the outcome of %s (%s) is missing", f.Key,
				f.Tool)
		case f.Answer != nil:
			return cli.Fail(cli.StatusFailed, fmt.Errorf("%s of run %s is settled: %s", f.Key, id, answered(f.Answer)),
				j.Command("runs", "resume", id))
		case f.Question == nil:
			return cli.Fail(cli.StatusFailed, errors.New("the run was not resumed since, so its tool has not been asked yet"),
				"first "+j.Command("runs", "resume", id)+", then repeat this command")
		}
		var said llm.Decision
		by := c.who(sys)
		switch {
		case c.Again:
			said = f.Question.Approve(by)
		case c.Happened != nil:
			said = f.Question.Answer(by, llm.TextResult(*c.Happened))
		default:
			said = f.Question.Deny(by, *c.Never)
		}
		said.Identity = assemble.Identity()
		if err := j.Engine.Decide(j.Scoped(ctx), id, said); errors.Is(err, store.ErrConflict) {
			return cli.Fail(cli.StatusFailed, err, "another client was faster; "+j.Command("effects", "show", id, string(f.Key)))
		} else if err != nil {
			return err
		}
		_, err := fmt.Fprintf(sys.Out, "%s in %s is settled; to resume: %s\n", f.Key, cli.Visible(id),
			cli.Visible(j.Command("runs", "resume", id)))
		return err
	})
}
