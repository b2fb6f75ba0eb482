package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/eval"
	"github.com/pawl-go/pawl/store"
)

type addCmd struct {
	File   string   `arg:"" name:"FILE.eval.yaml" help:"@eval_file"`
	ID     string   `arg:"" optional:"" name:"RUN" help:"@eval_add_run"`
	Result string   `placeholder:"FILE" help:"@eval_add_result"`
	Name   string   `placeholder:"NAME" help:"@eval_add_name"`
	Forbid []string `sep:"none" placeholder:"CALL" help:"@eval_add_forbid"`
	Want   []string `sep:"none" placeholder:"CALL" help:"@eval_add_want"`
	Answer []string `name:"want-answer" sep:"none" placeholder:"TEXT" help:"@eval_add_answer"`
	Good   bool     `help:"@eval_add_good"`
	Files  string   `placeholder:"DIR" help:"@eval_add_files"`
	assemble.StoreFlags
}

// Run makes a case of a run.
func (c *addCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	run, err := c.stored(ctx, sys)
	if err != nil {
		return err
	}
	added, err := eval.Add(ctx, c.File, run, &eval.AddOptions{
		Name:       c.Name,
		Forbid:     c.Forbid,
		Want:       c.Want,
		WantAnswer: c.Answer,
		Good:       c.Good,
		Files:      c.Files,
		Getenv:     sys.Env,
	})
	if err != nil {
		return cli.Fail(cli.StatusUsage, err, "nothing was written; docs/eval.md has the form of cases")
	}

	for _, text := range added.Missing {
		sys.Notice("not in the case: " + cli.Line(text, 300))
	}
	if added.Draft {
		return cli.Fail(cli.StatusUsage,
			fmt.Errorf("the stored run passes; say what was wrong: %s is a draft", added.File),
			"add checks to it and remove draft, or delete it and add again with --forbid, --want or --want-answer")
	}
	fmt.Fprintf(sys.Out, "%s: the case %s\n", cli.Visible(added.File), cli.Visible(added.Case))
	for _, text := range added.Failed {
		fmt.Fprintf(sys.Out, "  the stored run fails it: %s\n", cli.Line(text, 200))
	}
	return nil
}

// stored reads the run, without its secrets.
func (c *addCmd) stored(ctx context.Context, sys *cli.System) (run *eval.StoredRun, err error) {
	switch {
	case c.Result != "" && c.ID != "":
		return nil, cli.Usage("one of them", "a run and --result both name what becomes a case")
	case c.Result == "" && c.ID == "":
		return nil, cli.Usage("pawl runs list shows the runs", "name a run, or --result FILE")
	case c.Result != "":
		return c.saved(sys)
	}
	err = c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		run, err = durableRun(ctx, sys, j, r)
		return err
	})
	return run, err
}

// durableRun reads a run of the database.
func durableRun(ctx context.Context, sys *cli.System, j *assemble.Journal,
	r store.JournalRun) (*eval.StoredRun, error) {
	x, err := j.Export(j.Scoped(ctx), r.ID)
	if err != nil {
		return nil, j.Failed(r.ID, err)
	}
	hide, err := j.Hide(ctx, sys, r.ID, nil)
	if err != nil {
		return nil, err
	}
	effects, err := j.EffectsOf(ctx, sys, r.ID)
	if err != nil {
		return nil, err
	}
	run := &eval.StoredRun{ID: r.ID, Date: r.Created, Export: x.Redacted(hide), Effects: effects}
	meta, err := j.Meta(j.Scoped(ctx), r.ID)
	if err != nil {
		return nil, j.Failed(r.ID, err)
	}
	if recipe := assemble.ReadRecipe(meta); recipe != nil { // a run of pawl serve has none
		run.Limits = limitsOf(recipe)
	}
	return run, nil
}

// limitsOf returns the limits of a command line.
func limitsOf(recipe *assemble.Recipe) *pawl.Limits {
	l := new(pawl.Limits)
	for name, into := range map[string]any{
		"MaxRounds": &l.Rounds,
		"MaxCalls":  &l.Calls,
		"MaxTokens": &l.Tokens,
		"MaxCost":   &l.Cost,
	} {
		if value := recipe.Flags[name]; value != nil {
			_ = json.Unmarshal(value, into) // a limit in another form is none
		}
	}
	return l
}

// saved reads a file of pawl run --save.
func (c *addCmd) saved(sys *cli.System) (*eval.StoredRun, error) {
	text, err := cli.ReadFile("--result", c.Result)
	if err != nil {
		return nil, err
	}
	res := new(pawl.Result)
	err = json.Unmarshal(text, res)
	if err == nil && len(res.Messages) == 0 {
		err = errors.New("it has no messages")
	}
	if err != nil {
		return nil, cli.Usage("a file of pawl run --save", "--result %s: %v", c.Result, err)
	}
	res = assemble.Secrets(sys.Env, nil).Result(res)
	base := filepath.Base(c.Result)
	return &eval.StoredRun{ID: strings.TrimSuffix(base, filepath.Ext(base)), Export: eval.ResultExport(res)}, nil
}
