package demo

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/data"
	"github.com/pawl-go/pawl/tools/file"
)

// samples are the orders, returns and shipments of a small shop in a month, with the usual
// faults of such files.
//
//go:embed samples
var samples embed.FS

// Cmd shows an agent at work.
type Cmd struct {
	Data string `placeholder:"DIR" help:"@demo_data"`
	Out  string `placeholder:"DIR" help:"@demo_out"`
	API  string `name:"api" enum:"openai,openai-chat" default:"openai" help:"@demo_api"`

	// Alone says that the demo is a program of its own, and no command of pawl.
	Alone bool `kong:"-"`
}

const (
	demoTask  = "Add up what is in the data files here, by group and in all, and write what you find to report.md."
	demoFiles = 8         // at most
	demoBytes = 512 << 10 // of one file
)

// Run starts the simulator, sets an agent to work against it, and shows every step.
func (c *Cmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	dir, names, skipped, err := c.prepare()
	if err != nil {
		return err
	}

	// The model is behind HTTP, so that the demo shows the adapter and the stream, too.
	sim, err := pawltest.NewSimulator(script.New(script.Loop(script.Func(paced(sys)))), nil)
	if err != nil {
		return err
	}
	defer sim.Close()
	files, err := file.New(dir, nil)
	if err != nil {
		return err
	}
	defer files.Close()
	model, err := provider.Open(c.API+":script", &provider.Options{BaseURL: sim.URL, Key: "none-needed"})
	if err != nil {
		return err
	}
	// The agent reads and writes only in its folder, a copy of the data.
	agent := &pawl.Agent{
		Name:         "analyst",
		Instructions: "Work only with what the tools return.",
		Model:        model,
		Tools:        []pawl.Toolset{files, data.New(&data.Options{Open: files.Open})},
	}

	style := sys.Colours(sys.OutTerm)
	introduce(sys, style, sim.URL, dir, names, skipped)
	started := time.Now()
	res, err := pawl.Collect(agent.Stream(ctx, llm.User(demoTask)), show.Printing(sys, sys.Out, style))
	if res == nil {
		return cli.NotBegun(err)
	}
	line := style.Dim(strings.Repeat("─", sys.Width))
	fmt.Fprintf(sys.Out, "\n%s\n%s\n", line, cli.Totals(res.Spent, time.Since(started)))
	if failure := ended(res, err); failure != nil {
		return failure
	}
	return c.conclude(sys, style, filepath.Join(dir, reportName))
}

// paced returns the turns of the model. On a terminal they arrive about as fast as a model writes,
// so that a person can read along.
func paced(sys *cli.System) func(*llm.Request) script.Turn {
	pace := time.Duration(0)
	if sys.OutTerm {
		pace = 5 * time.Millisecond
	}
	return func(req *llm.Request) script.Turn {
		t := analyst(req)
		t.Pace = pace
		return t
	}
}

// introduce prints what is real, and where the files are.
func introduce(sys *cli.System, style cli.Style, url, dir string, names, skipped []string) {
	folded := func(text string, lines int) string {
		return strings.Join(cli.Folded(text, sys.Width-10, lines), "\n          ")
	}
	fmt.Fprintf(sys.Out, `%s

The model is a script: no key is needed, and nothing leaves this machine. All
else is real: HTTP requests and event streams over loopback, tools that read and
write files, the check of every call, and the answer to a wrong one.

  model   a script behind %s
  files   %s
          in %s
  task    %s
`, style.Bold("pawl demo: an agent at work"), url, folded(cli.Visible(strings.Join(names, ", ")), 5),
		cli.Visible(dir), folded(demoTask, 3))
	for _, note := range skipped {
		fmt.Fprintf(sys.Out, "  note    %s\n", style.Yellow(cli.Visible(note)))
	}
}

// ended returns the failure of the run. Nil means that it ended with an answer.
func ended(res *pawl.Result, err error) error {
	switch res.Stop.Class() {
	case pawl.ClassAnswered:
		return nil
	case pawl.ClassCancelled:
		return cli.Fail(cli.StatusInterrupted, errors.New(res.Cause), "")
	}
	return cli.Failed(cmp.Or(err, errors.New(res.Cause)))
}

// conclude prints where the report is, and what to try next.
func (c *Cmd) conclude(sys *cli.System, style cli.Style, report string) error {
	if _, err := os.Stat(report); err != nil {
		return fmt.Errorf("the run ended without a report: %s", cli.Plain(err))
	}
	again := sys.Self() + " demo --data DIR"
	if c.Alone {
		again = sys.Self() + "/demo --data DIR"
	}
	_, err := fmt.Fprintf(sys.Out, `
  report  %s

Next:
  your own files                   %s
  one call, checked like a model's %[3]s tools call file_read '{"path":7}'
  a real model, OPENAI_API_KEY set %[3]s run --model openai:gpt-6.1-terra \
                                     --tools file,data "What is in here?"
`, style.Bold(cli.Visible(report)), again, sys.Self())
	return err
}

// prepare copies the data files into the directory of the agent. skipped has a note for each file
// that is not copied.
func (c *Cmd) prepare() (dir string, names, skipped []string, err error) {
	files, skipped, err := c.dataFiles()
	if err != nil {
		return "", nil, nil, err
	}
	if len(files) == 0 {
		hint := cmp.Or(strings.Join(skipped, "\n"), dataHint+"; without it there are samples")
		return "", nil, nil, cli.Usage(hint, "--data %s: there is no usable data file", c.Data)
	}

	dir, err = c.emptyDir()
	if err != nil {
		return "", nil, nil, err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.content, 0o644); err != nil {
			return "", nil, nil, noOut(err)
		}
		names = append(names, f.name)
	}
	return dir, names, skipped, nil
}

const dataHint = "--data takes a directory with .csv, .json or .jsonl files"

// dataFile is a file of the agent's directory.
type dataFile struct {
	name    string
	content []byte
}

// dataFiles reads the files of --data, or the samples. skipped has a note for each data file that
// is left out.
func (c *Cmd) dataFiles() (files []dataFile, skipped []string, err error) {
	from, err := fs.Sub(samples, "samples")
	if c.Data != "" {
		from = os.DirFS(c.Data)
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = fs.ReadDir(from, ".")
	}
	if err != nil {
		return nil, nil, cli.Usage(dataHint, "--data %s: %s", c.Data, cli.Cause(err))
	}

	for _, e := range entries {
		// Stat follows links, which an entry of a directory does not.
		f := dataFile{name: e.Name()}
		info, err := fs.Stat(from, f.name)
		if !isData(f.name) || err == nil && info.IsDir() {
			continue
		}

		why := ""
		switch {
		case err != nil:
			why = cli.Cause(err)
		case unusable(info) != "":
			why = unusable(info)
		case len(files) == demoFiles:
			why = fmt.Sprintf("%d files are enough for a demo", demoFiles)
		default:
			f.content, err = fs.ReadFile(from, f.name)
			if err != nil {
				why = cli.Cause(err)
			}
		}

		if why != "" {
			skipped = append(skipped, fmt.Sprintf("left out %s: %s", f.name, why))
			continue
		}
		files = append(files, f)
	}
	return files, skipped, nil
}

// unusable returns why a demo does not use a file. Empty means that it does.
func unusable(info fs.FileInfo) string {
	switch {
	case !info.Mode().IsRegular():
		return "it is not a regular file"
	case info.Size() > demoBytes:
		return cli.Grouped(int(info.Size()>>10)) + " KiB is more than a demo takes"
	}
	return ""
}

// emptyDir makes the directory of the agent: DIR of --out, or a temporary directory.
func (c *Cmd) emptyDir() (dir string, err error) {
	dir = c.Out
	if dir == "" {
		dir, err = os.MkdirTemp("", "pawl-demo-")
	} else if err = os.MkdirAll(dir, 0o755); err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", noOut(err)
	}

	// The agent may write in this folder without a question.
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 {
		return "", cli.Usage("so that nothing of yours is overwritten", "--out %s: the directory is not empty", dir)
	}
	if err != nil {
		return "", noOut(err)
	}
	return dir, nil
}

// noOut returns the error for a directory that cannot be written to.
func noOut(err error) error {
	return cli.Usage("--out takes a directory that can be written to", "--out %s", cli.Plain(err))
}
