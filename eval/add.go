package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/running"
	"github.com/pawl-go/pawl/eval/internal/stored"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// add.go: makes a case of a run that happened.

// StoredRun is a run that happened. Hide its secrets first: they would be written into a file.
type StoredRun struct {
	// ID is the name of the run.
	ID string

	// Date is when it began. The zero time means unknown.
	Date time.Time

	// Export is what happened: durable.Engine.Export returns it, and ResultExport.
	Export *journal.Export

	// Effects is the ledger of the run. Nil means that its tools say what its calls may have done.
	Effects []journal.LedgerEntry

	// Limits are limits that the run had, and that the file of its agent does not state. Nil means
	// none.
	Limits *pawl.Limits
}

// ResultExport returns the part of an Export that a Result has, for StoredRun.
func ResultExport(r *pawl.Result) *journal.Export { return stored.FromResult(r) }

// AddOptions say what was wrong with a run, or that nothing was. Nil means that nothing is said.
type AddOptions struct {
	// Name is the ID of the case. Empty means the ID of the run.
	Name string

	// Forbid are calls that must not be asked for: the key of a call of the run, such as run/1/0,
	// the name or the pattern of a tool, or TOOL=ARGS with matchers of arguments. The call may have
	// more arguments.
	Forbid []string

	// Want are calls that must be done, and no other writes: TOOL, or TOOL=ARGS as in Forbid.
	Want []string

	// WantAnswer are texts that must be in the answer. Case and spaces do not count.
	WantAnswer []string

	// Good is true for a run that must pass: it becomes the reference, and its writes, its stop and
	// the form of its output become checks.
	Good bool

	// Files is the folder of the files of the world, for runs whose tools work on files. Empty
	// means that these tools answer as they did.
	Files string

	// Getenv is as in LoadOptions.
	Getenv func(name string) string
}

// Added is a case that was made of a run.
type Added struct {
	// Case is the ID of the case.
	Case string `json:"case"`

	// File is the file of the case.
	File string `json:"file"`

	// Draft is true if the stored run passes all checks, so that they do not say what was wrong.
	// The case runs then, and neither passes nor fails.
	Draft bool `json:"draft"`

	// Failed are the checks that the stored run fails, each with its reason. Nil with Good, and
	// for a draft.
	Failed []string `json:"failed,omitzero"`

	// Missing is what the run had and the case cannot have.
	Missing []string `json:"missing,omitzero"`
}

// Add makes a case of a run, and writes it into cases/NAME.yaml next to the suite. A suite that
// does not read such files gets an entry for them. The checks are played on the run as it was: if
// it passes them all, the case is a draft, so that no case asserts a fault. Nothing is written if
// the case has a fault, such as a tool that could change something outside of a trial.
func Add(ctx context.Context, file string, run *StoredRun, o *AddOptions) (*Added, error) {
	if o == nil {
		o = new(AddOptions)
	}
	a, err := newAdding(file, run, o)
	if err != nil {
		return nil, err
	}
	if err := a.make(ctx); err != nil {
		return nil, err
	}
	if err := a.judge(); err != nil {
		return nil, err
	}
	if err := a.control(ctx); err != nil {
		return nil, err
	}
	return a.result, a.write()
}

// adding is a case that is made of a run.
type adding struct {
	file    string // of the suite
	options LoadOptions
	run     *stored.Run
	wish    *stored.Wish
	result  *Added
	suite   *Suite // with the case
	made    *suite.Case
	tools   []stored.Tool // of the first variant
}

func newAdding(file string, run *StoredRun, o *AddOptions) (*adding, error) {
	name := cmp.Or(o.Name, suite.IDOf(run.ID))
	states := o.Forbid != nil || o.Want != nil || o.WantAnswer != nil
	if o.Good && states {
		return nil, errors.New("a good run has its own checks; say either that it was good, or what was wrong")
	}

	a := &adding{
		file:    file,
		options: LoadOptions{Getenv: o.Getenv},
		run: &stored.Run{
			ID:      run.ID,
			Date:    run.Date,
			Export:  run.Export,
			Effects: run.Effects,
			Limits:  run.Limits,
		},
		wish: &stored.Wish{
			ID:     name,
			Forbid: o.Forbid,
			Want:   o.Want,
			Answer: o.WantAnswer,
			Good:   o.Good,
		},
		result: &Added{Case: name, File: filepath.Join(filepath.Dir(file), "cases", name+".yaml")},
	}
	if _, err := os.Stat(a.result.File); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is a file %s; give the case another name", a.result.File)
	}
	return a, a.files(o.Files)
}

// files sets the folder of the files, relative to the file of the case.
func (a *adding) files(dir string) (err error) {
	if dir == "" {
		return nil
	}
	a.wish.Files, err = relative(filepath.Dir(a.result.File), dir)
	return err
}

// load reads the suite with the present case.
func (a *adding) load() (err error) {
	a.suite, err = loadWith(a.file, &a.options, &suite.Addition{
		Path: a.result.File,
		Text: agentfile.WriteDocument(a.made),
	})
	return err
}

// loaded returns the case in the suite.
func (a *adding) loaded() *suite.LoadedCase {
	all := a.suite.read.Cases
	return all[len(all)-1]
}

// make makes the case, with fakes for all tools that could change something.
func (a *adding) make(ctx context.Context) error {
	a.made = &suite.Case{ID: a.wish.ID, Input: []byte(`"…"`), Draft: true}
	if err := a.load(); err != nil {
		return err
	}
	first := a.suite.read.Variants[0]
	tools, err := running.Tools(ctx, first, a.suite.getenv)
	if err != nil {
		return err
	}
	for _, t := range tools {
		a.tools = append(a.tools, stored.Tool(t))
	}
	agent, err := first.Agent()
	if err != nil {
		return err
	}
	a.wish.Servers = len(agent.Servers) > 0
	if agent.Output != nil {
		a.wish.Output = agent.Output.Schema
	}
	a.made, a.result.Missing, err = a.run.Case(a.wish, a.tools)
	if err != nil {
		return err
	}
	if name := a.run.Export.Agent; name != "" && name != agent.Name {
		a.result.Missing = append(a.result.Missing, fmt.Sprintf("the agent %s: the suite runs %s", name, agent.Name))
	}

	// A draft needs no checks, so that the leaks are found first.
	a.made.Draft = true
	if err := a.load(); err != nil {
		return err
	}
	leaks, err := running.Leaks(ctx, first, a.loaded(), a.suite.getenv)
	if err != nil {
		return err
	}
	isKnown := func(name string) bool {
		return slices.ContainsFunc(a.tools, func(t stored.Tool) bool { return t.Name == name })
	}
	stored.FakeOthers(a.made, slices.DeleteFunc(leaks, func(name string) bool { return !isKnown(name) }))
	return nil
}

// judge plays the checks on the run as it was. A run that was wrong must fail one, and is a draft
// otherwise.
func (a *adding) judge() error {
	// The files of the run are unknown, so that no check of files says anything of it.
	judges := slices.DeleteFunc(slices.Clone(a.loaded().Judges), func(c *check.Check) bool {
		return c.Definition.Files != nil
	})
	record := a.run.Record(a.tools)
	check.Judge(record, judges)
	failed := failures(record)
	if a.wish.Good && len(failed) > 0 {
		return fmt.Errorf("the stored run is no good one: %s", strings.Join(failed, "; "))
	}
	a.result.Failed = failed
	a.result.Draft = len(failed) == 0 && !a.wish.Good
	a.made.Draft = a.result.Draft
	return nil
}

// control plays the controls on the case. A run that passes when it is played again is no
// counterexample, such as a run that only cost too much.
func (a *adding) control(ctx context.Context) error {
	if a.result.Draft {
		a.made.Counterexamples = nil // it must fail, and does not
	}
	if err := a.load(); err != nil {
		return err
	}
	c := a.loaded()
	x := newControls(a.suite, false)
	x.cases = []*suite.LoadedCase{c}
	if len(c.Counterexamples) > 0 {
		if why := notPlayed(ctx, x, c); why != "" {
			a.result.Missing = append(a.result.Missing, "the run as a counterexample: "+why)
			a.made.Counterexamples = nil
			c.Counterexamples = nil
		}
	}
	if err := x.run(ctx); err != nil {
		return err
	}
	return a.suite.read.Err()
}

// notPlayed says why the run is no counterexample. Empty means that it is.
func notPlayed(ctx context.Context, x *controls, c *suite.LoadedCase) string {
	record, err := x.made(ctx, c, &c.Counterexamples[0])
	switch {
	case ctx.Err() != nil:
		return ""
	case err != nil:
		return err.Error()
	case passes(*record, c.Judges):
		return "played again, it passes the checks"
	}
	return ""
}

// write writes the case, and makes the suite read it.
func (a *adding) write() error {
	if err := os.MkdirAll(filepath.Dir(a.result.File), 0o755); err != nil {
		return err
	}
	var text []byte
	if !a.suite.read.Reads(a.result.File) {
		before, err := os.ReadFile(a.file)
		if err != nil {
			return err
		}
		text, err = suite.Include(before, "cases/*.yaml")
		if err != nil {
			return fmt.Errorf("%s: %w; add files: cases/*.yaml to its cases", a.file, err)
		}
	}
	if err := os.WriteFile(a.result.File, agentfile.WriteDocument(a.made), 0o644); err != nil {
		return err
	}
	if text == nil {
		return nil
	}
	return os.WriteFile(a.file, text, 0o644)
}
