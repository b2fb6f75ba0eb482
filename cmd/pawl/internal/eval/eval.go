package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/eval"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// Cmd has the commands of evaluations.
type Cmd struct {
	Run   runCmd   `cmd:"" default:"withargs" help:"@eval_run"`
	Check checkCmd `cmd:"" help:"@eval_check"`
	Score scoreCmd `cmd:"" help:"@eval_score"`
	List  listCmd  `cmd:"" help:"@eval_list"`
	Show  showCmd  `cmd:"" help:"@eval_show"`
	Add   addCmd   `cmd:"" help:"@eval_add"`

	Compare compareCmd `cmd:"" help:"@eval_compare"`
	Import  importCmd  `cmd:"" help:"@eval_import"`
}

// where is the folder of all evals.
type where struct {
	Dir string `placeholder:"DIR" help:"@eval_dir"`
}

// folder returns the folder of all evals.
func (w *where) folder() string {
	if w.Dir != "" {
		return w.Dir
	}
	return filepath.Join(".pawl", "evals")
}

// eval returns the folder of an eval of a suite: of this ID, unless id is a folder itself.
func (w *where) eval(s *eval.Suite, id string) string {
	if _, err := os.Stat(id); errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(w.folder(), s.Name(), id)
	}
	return id
}

// selection says which trials run.
type selection struct {
	Only    string   `placeholder:"PATTERN" help:"@eval_only"`
	Tag     []string `placeholder:"TAG" help:"@eval_tag"`
	Variant []string `placeholder:"NAME" help:"@eval_variant"`
}

// outputs are the files of a report.
type outputs struct {
	JUnit string `name:"junit" placeholder:"FILE" help:"@eval_junit"`
	MD    string `name:"md" placeholder:"FILE" help:"@eval_md"`
	JSON  string `name:"json" placeholder:"FILE" help:"@eval_json"`
}

// savable returns an error if a file cannot be written. It is called before a long eval, so that no
// report is lost.
func (o *outputs) savable() error {
	for _, file := range []struct{ flag, path string }{{"--junit", o.JUnit}, {"--md", o.MD}, {"--json", o.JSON}} {
		if err := cli.Savable(file.flag, file.path); err != nil {
			return err
		}
	}
	return nil
}

// gating is what the gate of a report compares with.
type gating struct {
	Baseline string `placeholder:"FILE" help:"@eval_baseline"`
	Update   bool   `name:"update-baseline" help:"@eval_update"`
}

type runCmd struct {
	Files []string `arg:"" name:"FILE.eval.yaml" help:"@eval_files"`
	where
	selection
	Trials   int           `placeholder:"N" help:"@eval_trials"`
	Parallel int           `placeholder:"N" help:"@eval_parallel"`
	Budget   float64       `placeholder:"USD" help:"@eval_budget"`
	Time     time.Duration `placeholder:"TIME" help:"@eval_time"`
	Strict   bool          `help:"@eval_strict"`
	Replay   string        `placeholder:"ID" help:"@eval_replay"`
	Resume   string        `placeholder:"ID" help:"@eval_resume"`
	gating
	outputs
}

// Run runs suites, one after another.
func (c *runCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	if len(c.Files) > 1 && (c.Resume != "" || c.Replay != "" || c.JUnit != "" || c.MD != "" || c.JSON != "") {
		return cli.Usage("name one suite", "--resume, --replay and the files of a report are for one suite")
	}

	if err := c.savable(); err != nil {
		return err
	}

	worst := 0
	for _, file := range c.Files {
		s, err := load(sys, file)
		if err != nil {
			return err
		}
		r, err := eval.Run(ctx, s, c.options(sys, s))
		if err != nil {
			return refused(err)
		}
		if err := finish(sys, s, r, c.gating, c.outputs); err != nil {
			return err
		}
		worst = worse(worst, r.Status())
	}
	return ended(worst)
}

// options are the options of a run.
func (c *runCmd) options(sys *cli.System, s *eval.Suite) *eval.Options {
	o := &eval.Options{
		Dir:      c.folder(),
		Only:     c.Only,
		Tags:     c.Tag,
		Variants: c.Variant,
		Trials:   c.Trials,
		Parallel: c.Parallel,
		Budget:   c.Budget,
		Time:     c.Time,
		Strict:   c.Strict,
		Resume:   c.Resume,
		Baseline: c.Baseline,
	}
	if c.Update {
		o.Baseline = "" // it may not exist yet
	}
	if c.Replay != "" {
		o.Replay = c.eval(s, c.Replay)
	}
	o.Progress = func(p eval.Progress) {
		line := fmt.Sprintf("%d/%d %s %s %d: %s", p.Done, p.Total, p.Case, p.Variant, p.Number, p.Verdict)
		if p.Reason != "" {
			line += ": " + cli.Line(p.Reason, 200)
		}
		if p.Done < p.Total {
			line += fmt.Sprintf(" (about %s left)", p.Left.Round(time.Second))
		}
		fmt.Fprintln(sys.Err, cli.Visible(line))
	}
	return o
}

// load reads a suite.
func load(sys *cli.System, file string) (*eval.Suite, error) {
	s, err := eval.Load(file, &eval.LoadOptions{Getenv: sys.Env})
	if err != nil {
		return nil, cli.Fail(cli.StatusUsage, err, "docs/eval.md has the form of suites")
	}
	return s, nil
}

// refused returns the failure of an eval that began no trial.
func refused(err error) error {
	var unsafe *eval.UnsafeError
	hint := ""
	if errors.As(err, &unsafe) {
		hint = "no trial was begun; to check a suite without a model: pawl eval check FILE"
	}
	if agentfile.FindingsOf(err) == nil && unsafe == nil {
		hint = "pawl eval run --help"
	}
	return cli.Fail(cli.StatusUsage, err, hint)
}

// finish writes the report, and the baseline.
func finish(sys *cli.System, s *eval.Suite, r *eval.Report, g gating, files outputs) error {
	if err := r.Text(sys.Out); err != nil {
		return err
	}
	for _, out := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{files.JUnit, r.JUnit},
		{files.MD, r.Markdown},
		{files.JSON, func(w io.Writer) error { return cli.PrintJSON(w, r) }},
	} {
		if out.name == "" {
			continue
		}
		var content bytes.Buffer
		if err := out.write(&content); err != nil {
			return err
		}
		if err := cli.WriteFile(out.name, content.Bytes()); err != nil {
			return err
		}
	}
	if !g.Update {
		return nil
	}

	name := g.Baseline
	if name == "" {
		name = s.BaselineFile()
	}
	if name == "" {
		return cli.Usage("--baseline FILE, or baseline: FILE in the suite", "--update-baseline wants the name of a file")
	}
	b, err := r.Baseline()
	if err != nil {
		return cli.Fail(cli.StatusFailed, err, "")
	}
	return b.Write(name)
}

// worse returns the status that counts of two: the first of 130, 2, 4, 5, 1.
func worse(a, b int) int {
	for _, status := range []int{130, 2, 4, 5, 1} {
		if a == status || b == status {
			return status
		}
	}
	return 0
}

// ended returns the failure with a status that the report has explained.
func ended(status int) error {
	if status == 0 {
		return nil
	}
	return cli.Silent(status)
}

type checkCmd struct {
	Files  []string `arg:"" name:"FILE.eval.yaml" help:"@eval_files"`
	Strict bool     `help:"@eval_strict"`
}

// Run finds the faults of suites without a model.
func (c *checkCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	for _, file := range c.Files {
		s, err := load(sys, file)
		if err != nil {
			return err
		}
		warnings, err := s.Check(ctx, c.Strict)
		if err != nil {
			return cli.Fail(cli.StatusUsage, err, "")
		}
		for _, text := range warnings {
			sys.Notice(text)
		}
		fmt.Fprintf(sys.Out, "%s: %s, %s, %s; each check can fail, and nothing leaks\n", s.Name(),
			cli.Count(len(s.Cases()), "case"), cli.Count(len(s.Variants()), "variant"), cli.Count(s.Trials(), "trial"))
	}
	return nil
}

type scoreCmd struct {
	File string `arg:"" name:"FILE.eval.yaml" help:"@eval_file"`
	ID   string `arg:"" name:"ID" help:"@eval_id"`
	where
	gating
	outputs
}

// Run judges the trials of an eval again.
func (c *scoreCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	if err := c.savable(); err != nil {
		return err
	}
	s, err := load(sys, c.File)
	if err != nil {
		return err
	}
	o := &eval.Options{Baseline: c.Baseline}
	if c.Update {
		o.Baseline = ""
	}
	r, err := eval.Score(ctx, c.eval(s, c.ID), s, o)
	if err != nil {
		return refused(err)
	}
	if err := finish(sys, s, r, c.gating, c.outputs); err != nil {
		return err
	}
	return ended(r.Status())
}

type listCmd struct {
	where
}

// Run lists the evals of the folder, a line each, the last one last.
func (c *listCmd) Run(sys *cli.System) error {
	found, err := c.all()
	if err != nil {
		return err
	}
	for _, dir := range found {
		fmt.Fprintf(sys.Out, "%s %s\n", cli.Visible(filepath.Base(filepath.Dir(dir))), cli.Visible(filepath.Base(dir)))
	}
	return nil
}
