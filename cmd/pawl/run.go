package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/runs"
	"github.com/pawl-go/pawl/cmd/pawl/internal/tui"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/team"
)

// runCmd executes one task.
type runCmd struct {
	File string `arg:"" optional:"" name:"FILE" help:"@run_file"`
	Task string `arg:"" optional:"" name:"TASK" help:"@run_task"`
	assemble.AgentFlags
	assemble.TranscriptFlags
	assemble.SettleFlags
	assemble.DurableFlags
	assemble.RecordFlags
	assemble.TelemetryFlags `group:"telemetry"`

	assemble.EngineFlags
	Plan string `placeholder:"FILE" help:"@run_plan" rare:""`
	JSON bool   `name:"json" help:"Print the events, one JSON object a line, and nothing else."`
	Raw  bool   `help:"@run_raw" rare:""`
}

// Run executes the task, prints its result, and writes the recording.
func (c *runCmd) Run(sys *cli.System) error {
	return c.Keep(sys, c.run(sys))
}

func (c *runCmd) run(sys *cli.System) (err error) {
	sys.Raw = c.Raw
	// Ctrl-C ends a run of this process, but a stored run stays open and can be resumed.
	cause := error(pawl.ErrCancelled)
	if c.Durable || c.Away() {
		cause = cli.ErrStopped
	}
	ctx, sys, stop := tui.Attend(context.Background(), sys, cause, c.JSON)
	defer stop()

	// A reader such as head wants no more, and no error. A durable run is open, and says how it is
	// resumed.
	defer func() {
		if sys.Gone() && !c.Durable && !c.Away() {
			err = cli.Silent(cli.StatusClosed)
		}
	}()

	if err := c.words(); err != nil {
		return err
	}
	if err := c.EngineFlags.Check(nil); err != nil {
		return err
	}
	if c.Away() {
		return c.onCluster(ctx, sys)
	}
	if err := c.DurableFlags.Check(); err != nil {
		return err
	}

	// What is wrong with the input is found before the agent is built.
	from, msgs, err := c.start(sys)
	if err != nil {
		return err
	}
	if err := cli.Savable("--save", c.Save); err != nil {
		return err
	}
	if err := c.Carrier(sys, &c.AgentFlags); err != nil {
		return err
	}

	if c.Durable {
		c.Durably()
	}
	s, err := c.Setup(ctx, sys, c.File)
	if err != nil {
		return err
	}
	// The function is read at the end, because telemetry adds to it.
	defer func() { s.Close() }()
	c.Hide(s.Secrets)

	out := tui.NewScreen(sys.Err)
	person := tui.AskPerson(s, sys, out, nil, assemble.Decided(msgs), !c.Durable)
	if err := c.TelemetryFlags.Open(sys, s); err != nil {
		return err
	}
	if c.Durable {
		return c.durable(ctx, sys, s, out, from, msgs)
	}

	d := tui.NewDisplay(sys, out, c.JSON)
	res, truth, err := person.Run(ctx, s, from, msgs, d.Show)
	if res == nil {
		return cli.NotBegun(err)
	}
	return d.End(res, s.Shown(assemble.OpenCalls(truth)), c.Save, assemble.Ended(res, err, c.File, c.Save))
}

// durable starts a durable run. If the run exists, with the same transcript and messages, it is
// resumed.
func (c *runCmd) durable(ctx context.Context, sys *cli.System, s *assemble.Setup, out *tui.Screen, from *pawl.Result,
	msgs []llm.Message) error {
	db, err := s.DB.Create()
	if err != nil {
		return assemble.Misconfigured(err)
	}
	j := assemble.NewJournal(db, c.StoreFlags, c.Lease)
	runner := j.Runner(cmp.Or(c.DurableFlags.Run, assemble.NewRunID()), s.Agent)
	if len(from.Messages)+len(from.Values) > 0 {
		runner.From = from
	}
	runner.Meta, err = assemble.NewRecipe(c.File, &c.AgentFlags, s)
	if err != nil {
		return err
	}

	// The person needs the ID to resume the run, also if this process dies.
	sys.Notice("run " + runner.ID)
	shown := &tui.DurableRun{
		Journal: j,
		Runner:  runner,
		Setup:   s,
		Sys:     sys,
		Out:     out,
		JSON:    c.JSON,
		Save:    c.Save,
	}
	return shown.Do(ctx, msgs)
}

// words finds out whether the first argument is the file or the task.
func (c *runCmd) words() error {
	switch {
	case assemble.IsAgentFile(c.File):
	case c.Task != "":
		return cli.Usage(`pawl run FILE.yaml "what to do"; put quotes around a task of several words`,
			"%s is no agent's file: its name does not end in .yaml", c.File)
	default:
		c.Task = c.File
		c.File = ""
	}
	return nil
}

// start returns the input of the run: the transcript to continue, and the new messages.
func (c *runCmd) start(sys *cli.System) (*pawl.Result, []llm.Message, error) {
	from, err := assemble.LoadTranscript(c.Messages)
	if err != nil {
		return nil, nil, err
	}
	if c.Messages == "" && !c.SettleFlags.Empty() {
		hint := "--messages FILE, with what --save wrote"
		if c.Durable {
			hint = "pawl runs approve, deny and answer are for the calls of durable runs"
		}
		return nil, nil, cli.Usage(hint,
			"--approve, --deny and --answer need an earlier run with open calls, and none is given")
	}

	if err := c.planned(from); err != nil {
		return nil, nil, err
	}
	msgs, waiting, err := c.SettleFlags.Settle(from)
	if err != nil {
		return nil, nil, err
	}

	task, err := c.task(sys)
	if err != nil {
		return nil, nil, err
	}
	if strings.TrimSpace(task.Text()) == "" {
		return from, msgs, nil
	}
	if len(waiting) > 0 {
		return nil, nil, cli.Usage("first "+strings.TrimPrefix(assemble.Settling(waiting), ", and "),
			"%s for an answer before a new message: %s", assemble.Waits(len(waiting)), assemble.Keys(waiting))
	}

	// A new task has a budget of its own.
	fresh := *from
	fresh.Spent = pawl.Spent{}
	return &fresh, append(msgs, task), nil
}

// taskHint shows how a task is given.
const taskHint = `pawl run --model … "what to do"`

// task returns the new task: of the command line, of standard input, or of both. Only a transcript
// can be continued without one. What is piped to a task of the command line is its material, and
// not the user's words.
func (c *runCmd) task(sys *cli.System) (llm.Message, error) {
	stated := strings.TrimSpace(c.Task) != ""
	switch {
	case c.Task == "-", c.Task == "" && c.Messages == "" && !sys.InTerm:
		b, err := io.ReadAll(sys.In)
		if err != nil {
			return llm.Message{}, cli.Usage("", "the task could not be read from standard input: %v", err)
		}
		if strings.TrimSpace(string(b)) == "" {
			return llm.Message{}, cli.Usage(taskHint, "there is no task: standard input is empty")
		}
		return llm.User(string(b)), nil

	case stated && piped(sys):
		b, err := io.ReadAll(sys.In)
		if err != nil {
			return llm.Message{}, cli.Usage("", "standard input could not be read: %v", err)
		}
		task := llm.User(c.Task)
		if text := string(b); strings.TrimSpace(text) != "" {
			task.Parts = append(task.Parts, llm.Text{Text: "\n\n" + text, Label: llm.Attached.Label()})
		}
		return task, nil

	case !stated && c.Messages == "":
		return llm.Message{}, cli.Usage(taskHint, "there is no task")
	}
	return llm.User(c.Task), nil
}

// piped reports whether standard input is a pipe or a file: git diff | pawl run "Summarise:".
func piped(sys *cli.System) bool {
	if sys.InFile == nil {
		return false
	}
	info, err := sys.InFile.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeNamedPipe != 0)
}

// planned adds the plan of --plan to the values of the run.
func (c *runCmd) planned(from *pawl.Result) error {
	if c.Plan == "" {
		return nil
	}
	b, err := cli.ReadFile("--plan", c.Plan)
	if err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(b, &object); err != nil || object == nil {
		return cli.Usage(`{"phases":[{"worker":"…","goals":"…"}]}`, "--plan: %s is no JSON object", c.Plan)
	}
	values := pawl.Values{}
	maps.Copy(values, from.Values)
	values[team.PlanKey] = b
	from.Values = values
	return nil
}

// onCluster executes the task on a Temporal cluster.
func (c *runCmd) onCluster(ctx context.Context, sys *cli.System) error {
	name, err := c.agentThere(sys)
	if err != nil {
		return err
	}
	if err := c.CheckID(); err != nil {
		return err
	}
	from, msgs, err := c.start(sys)
	if err != nil {
		return err
	}
	if err := cli.Savable("--save", c.Save); err != nil {
		return err
	}

	r := &runs.RemoteRun{
		Flags: &c.ClusterFlags,
		Sys:   sys,
		ID:    cmp.Or(c.DurableFlags.Run, assemble.NewRunID()),
		Agent: name,
		JSON:  c.JSON,
		Save:  c.Save,
	}
	return r.Do(ctx, from, msgs)
}

// agentThere returns the name of the agent. Flags of an agent are refused, because the worker
// builds the agent.
func (c *runCmd) agentThere(sys *cli.System) (string, error) {
	if err := c.onlyHere(); err != nil {
		return "", err
	}
	if c.File == "" {
		if c.Agent == "" {
			return "", cli.Usage(`pawl run FILE.yaml --engine temporal "…", or --agent NAME`,
				"the agent of the workers to run is missing")
		}
		return c.Agent, nil
	}
	a, err := c.Read(c.File, sys)
	if err != nil {
		return "", err
	}
	return a.Name, nil
}

// onlyHere returns the error for flags that a run on a cluster does not have.
func (c *runCmd) onlyHere() error {
	flags := assemble.Given(&c.AgentFlags)
	delete(flags, "Agent")
	if len(flags) > 0 {
		// The smallest name, so that the same flags have the same error.
		field, _ := reflect.TypeFor[assemble.AgentFlags]().FieldByName(slices.Min(slices.Collect(maps.Keys(flags))))
		return cli.Usage("set it in the agent's file, which pawl worker reads",
			"%s: on Temporal the worker has the agent", assemble.FlagName(field))
	}

	for _, f := range []struct {
		flag  string
		given bool
	}{
		{"--durable", c.Durable},
		{"--lease", c.Lease != nil},
		{"--plan", c.Plan != ""},
		{"--record, --replay", c.RecordFlags != (assemble.RecordFlags{})},
		{"--approve, --deny, --answer", !c.SettleFlags.Empty()},
	} {
		if f.given {
			return cli.Usage("see docs/temporal.md", "%s: not supported with --engine temporal", f.flag)
		}
	}
	if !reflect.ValueOf(c.TelemetryFlags).IsZero() {
		return cli.Usage("set telemetry for pawl worker", "--engine temporal: this process has no data for a collector")
	}
	return nil
}
