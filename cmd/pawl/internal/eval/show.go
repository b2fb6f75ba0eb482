package eval

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/eval"
)

// lastEval is a name for the eval that was begun last.
const lastEval = "last"

// open opens the eval with an ID, with an ID that begins with id if it is the only one, the last
// eval, or the eval of a folder.
func (w *where) open(id string) (*eval.Eval, error) {
	if info, err := os.Stat(id); err == nil && info.IsDir() {
		return opened(id)
	}
	all, err := w.all()
	if err != nil {
		return nil, err
	}
	if id == lastEval && len(all) > 0 {
		return opened(all[len(all)-1])
	}

	var found []string
	for _, dir := range all {
		name := filepath.Base(dir)
		if name == id {
			return opened(dir)
		}
		if strings.HasPrefix(name, id) && id != "" {
			found = append(found, dir)
		}
	}
	switch len(found) {
	case 0:
		return nil, cli.Unknown("eval", id, cli.Names(all, filepath.Base), "pawl eval list")
	case 1:
		return opened(found[0])
	}
	return nil, cli.Fail(cli.StatusFailed, fmt.Errorf("%s begin with %s", cli.Count(len(found), "eval"), id),
		"give more of the ID")
}

func opened(dir string) (*eval.Eval, error) {
	e, err := eval.Open(dir)
	if err != nil {
		return nil, cli.Fail(cli.StatusFailed, err, "")
	}
	return e, nil
}

// all returns the folders of all evals, the last one last.
func (w *where) all() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(w.folder(), "*", "*", "eval.json"))
	if err != nil {
		return nil, err
	}

	// IDs begin with the second, in which several evals may begin. The first file of an eval is
	// written once.
	began := map[string]time.Time{}
	for i, name := range found {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		found[i] = filepath.Dir(name)
		began[found[i]] = info.ModTime()
	}
	slices.SortFunc(found, func(a, b string) int { return began[a].Compare(began[b]) })
	return found, nil
}

type showCmd struct {
	ID    string `arg:"" name:"ID" help:"@eval_show_id"`
	Case  string `arg:"" optional:"" name:"CASE" help:"@eval_show_case"`
	Trial int    `arg:"" optional:"" name:"TRIAL" help:"@eval_show_trial"`
	where
	Variant string `placeholder:"NAME" help:"@eval_show_variant"`
	JSON    bool   `name:"json" help:"@eval_show_json"`
}

// Run shows an eval, the trials of a case, or a trial.
func (c *showCmd) Run(sys *cli.System) error {
	e, err := c.open(c.ID)
	if err != nil {
		return err
	}
	if c.Variant != "" {
		if e, err = e.Only(c.Variant); err != nil {
			return cli.Fail(cli.StatusFailed, err, "")
		}
	}
	switch {
	case c.Case == "" && c.JSON:
		return cli.PrintJSON(sys.Out, e.Report)
	case c.Case == "":
		return e.Report.Text(sys.Out)
	}

	trials, err := e.Trials(c.Case)
	if err != nil {
		return cli.Fail(cli.StatusFailed, err, "")
	}
	if c.Trial == 0 {
		if c.JSON {
			return cli.PrintJSON(sys.Out, trials)
		}
		return eval.WriteTrials(sys.Out, trials, sys.Width)
	}
	shown := slices.DeleteFunc(trials, func(t eval.TrialReport) bool { return t.Number != c.Trial })
	if len(shown) == 0 {
		return cli.Fail(cli.StatusFailed, fmt.Errorf("the case %s has no trial %d", c.Case, c.Trial), "")
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, shown)
	}
	for i := range shown {
		if i > 0 {
			fmt.Fprintln(sys.Out)
		}
		if err := shown[i].Text(sys.Out, sys.Width); err != nil {
			return err
		}
	}
	return nil
}

type compareCmd struct {
	Before string `arg:"" name:"A" help:"@eval_compare_a"`
	After  string `arg:"" name:"B" help:"@eval_compare_b"`
	where
	JSON bool `name:"json" help:"@eval_compare_json"`
}

// Run compares two evals, or two variants.
func (c *compareCmd) Run(sys *cli.System) error {
	before, err := c.side(c.Before)
	if err != nil {
		return err
	}
	after, err := c.side(c.After)
	if err != nil {
		return err
	}
	changes, err := eval.Compare(before, after)
	if err != nil {
		return cli.Fail(cli.StatusFailed, err, "")
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, changes)
	}
	return changes.Text(sys.Out, sys.Width)
}

// side opens an eval, or with ID@VARIANT one of its variants.
func (c *compareCmd) side(name string) (*eval.Eval, error) {
	_, err := os.Stat(name)
	id, variant, hasVariant := strings.Cut(name, "@")
	if !hasVariant || !errors.Is(err, fs.ErrNotExist) {
		return c.open(name)
	}
	e, err := c.open(id)
	if err != nil {
		return nil, err
	}
	e, err = e.Only(variant)
	if err != nil {
		return nil, cli.Fail(cli.StatusFailed, err, "")
	}
	return e, nil
}
