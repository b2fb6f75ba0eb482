package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/tui"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// remade builds the agent of a run again, from the recipe of the run and from flags.
type remade struct {
	File string `name:"file" placeholder:"FILE.yaml" help:"@remade_file"`
	assemble.AgentFlags
}

// remember completes the flags with the recipe of the run, and changes to its working directory.
func (c *remade) remember(ctx context.Context, sys *cli.System, j *assemble.Journal, id string) error {
	meta, err := j.Meta(j.Scoped(ctx), id)
	if err != nil {
		return j.Failed(id, err)
	}
	n := assemble.ReadRecipe(meta)
	if n == nil {
		if c.File == "" && c.Model == "" {
			return cli.Usage("--file FILE.yaml, or --model and the other flags of pawl run",
				"the run %s was not started by pawl run, so its agent is not known", id)
		}
		return nil
	}

	// Names in the flags of today are made absolute before the recipe adds its names.
	if err := n.Enter(&c.AgentFlags, &c.File); err != nil {
		return err
	}
	c.File = cmp.Or(c.File, n.File)
	if err := n.Over(&c.AgentFlags); err != nil {
		return err
	}
	if n.Changed(c.File) {
		sys.Notice(c.File + " has changed since the run was started")
	}
	return nil
}

// again builds the agent of the run.
func (c *remade) again(ctx context.Context, sys *cli.System, j *assemble.Journal, id string) (*assemble.Setup, error) {
	if err := c.remember(ctx, sys, j, id); err != nil {
		return nil, err
	}
	return c.Setup(ctx, sys, c.File)
}

// recorded builds the agent of the run for a replay by transport, which asks no model.
func (c *remade) recorded(ctx context.Context, sys *cli.System, j *assemble.Journal, id string,
	transport http.RoundTripper) (*assemble.Setup, error) {
	c.CarryBy(transport, true)
	s, err := c.again(ctx, sys, j, id)
	if err == nil {
		s.Agent.Middleware = append(s.Agent.Middleware, s.Rules.Middleware())
	}
	return s, err
}

type runsResumeCmd struct {
	ID string `arg:"" optional:"" name:"RUN" help:"@runs_resume_id"`
	chosen
	remade
	assemble.SettleFlags
	assemble.TelemetryFlags `group:"telemetry"`

	Changed bool           `name:"accept-changes" help:"@runs_resume_accept"`
	Accept  []string       `name:"accept-changed-tool" hidden:"" help:"@runs_resume_tools"`
	Lease   *time.Duration `name:"lease" placeholder:"TIME" help:"@runs_resume_lease"`
	JSON    bool           `name:"json" help:"@runs_resume_json"`
	assemble.EngineFlags
}

// Run resumes the run.
func (c *runsResumeCmd) Run(sys *cli.System) error {
	if err := c.EngineFlags.Check(&c.StoreFlags); err != nil {
		return err
	}
	if err := c.check(c.ID); err != nil {
		return err
	}
	if c.isSeveral() {
		return c.resumeSeveral(sys)
	}
	if c.Away() {
		agent := c.File != "" || len(assemble.Given(&c.AgentFlags)) > 0
		settings := c.Changed || len(c.Accept) > 0 || c.Lease != nil
		if agent || settings {
			return cli.Usage("set it in the agent's file, which pawl worker reads",
				"on Temporal the worker has the agent and its settings")
		}
		return remote{&c.ClusterFlags}.resume(sys, c.ID, c.SettleFlags, c.JSON)
	}

	ctx, stop := cli.InterruptibleBy(context.Background(), sys.Err, cli.ErrStopped)
	defer stop()
	ctx, sys = cli.Attended(ctx, sys, cli.ErrStopped)
	if err := (&assemble.DurableFlags{Durable: true, Lease: c.Lease}).Check(); err != nil {
		return err
	}
	return c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		j.AcceptChangedTools = c.Accept
		j.AcceptChanges = c.Changed
		if c.Lease != nil {
			j.Engine.Lease = *c.Lease
		}
		return c.resume(ctx, sys, j, r)
	})
}

// resumeSeveral lets the selected runs go on.
func (c *runsResumeCmd) resumeSeveral(sys *cli.System) error {
	given := assemble.Given(&c.AgentFlags)
	for _, name := range []string{"DB", "Tenant", "User"} {
		delete(given, name)
	}
	agent := c.File != "" || len(given) > 0
	settings := c.Changed || len(c.Accept) > 0 || c.Lease != nil || !c.SettleFlags.Empty()
	if c.Away() || agent || settings {
		return cli.Usage("resume one run at a time with them: pawl runs resume RUN",
			"several runs are resumed by the servers that have their agents, without other flags")
	}
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	return c.WithRuns(sys, func(j *assemble.Journal) error { return c.resumeAll(ctx, sys, j, c.JSON) })
}

type runsForkCmd struct {
	runArg
	At     int               `name:"at" required:"" placeholder:"STEP" help:"@runs_fork_at"`
	Called string            `name:"as" placeholder:"ID" help:"@runs_fork_called"`
	Tool   map[string]string `name:"tool" mapsep:"none" placeholder:"NAME=RESULT" help:"@fork_tool"`
	remade
}

// Run creates the new run.
func (c *runsForkCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	if err := (&assemble.DurableFlags{Durable: true, Run: c.Called}).Check(); err != nil {
		var f *cli.Failure
		errors.As(err, &f)
		return cli.Usage(f.Hint, "%s", "--as"+f.Error()[len("--run"):])
	}

	return c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		if err := c.copiable(ctx, j, r.ID); err != nil {
			return err
		}
		// What is wrong with the agent is found before there is a run.
		s, err := c.again(ctx, sys, j, r.ID)
		if err != nil {
			return err
		}
		defer s.Close()

		fork := durable.Fork{
			Run:     r.ID,
			ID:      cmp.Or(c.Called, assemble.NewRunID()),
			Steps:   c.At,
			Results: c.result,
		}
		fork.Meta, err = assemble.NewRecipe(c.File, &c.AgentFlags, s)
		if err != nil {
			return err
		}

		err = j.Fork(j.Scoped(ctx), fork)
		switch {
		case errors.Is(err, store.ErrConflict):
			return cli.Usage("--as ANOTHER", "--as: there is a run %s", fork.ID)
		case err != nil:
			return err
		}
		sys.Notice("to resume it: " + j.Command("runs", "resume", fork.ID))
		_, err = fmt.Fprintln(sys.Out, fork.ID)
		return err
	})
}

// result returns the result of --tool for a copied call.
func (c *runsForkCmd) result(key llm.Key, x pawl.Execution) (llm.ToolResult, bool) {
	for _, name := range []string{string(key), x.Call.Name} {
		if text, ok := c.Tool[name]; ok {
			return llm.TextResult(text), true
		}
	}
	return llm.ToolResult{}, false
}

// copiable checks --at and --tool.
func (c *runsForkCmd) copiable(ctx context.Context, j *assemble.Journal, id string) error {
	x, err := j.Export(j.Scoped(ctx), id)
	if err != nil {
		return j.Failed(id, err)
	}
	if n := stepsOf(x); c.At < 0 || c.At > n {
		return cli.Usage(fmt.Sprintf("--at 0 to --at %d", n), "--at %d: the run %s has %s", c.At, id,
			cli.Count(n, "step"))
	}

	// Keys count all replies of the conversation, and steps count the replies of the run alone.
	begun := 0
	for _, m := range x.Messages {
		if m.Role == llm.RoleAssistant {
			begun++
		}
	}
	var known []string
	for _, call := range x.Calls {
		if depth(call.Key) <= begun+c.At {
			known = append(known, call.Call.Name, string(call.Key))
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for name := range c.Tool {
		if !slices.Contains(known, name) {
			return notCopied(name, known)
		}
	}
	return nil
}

// depth returns the step of a call: 1 for the calls of the first reply and the calls nested in
// them.
func depth(key llm.Key) int {
	n, _ := strconv.Atoi(strings.Split(string(key)+"//", "/")[1])
	return n
}

func notCopied(name string, known []string) error {
	hint := "no call is copied"
	if len(known) > 0 {
		hint = "copied are: " + strings.Join(known, ", ")
	}
	return cli.Usage(hint, "--tool %s: no call of this name or key is copied%s", name, cli.Meant(name, known))
}

type runsReplayCmd struct {
	runArg
	remade
	JSON bool `name:"json" help:"@runs_replay_json"`
}

// replayed is what --json prints.
type replayed struct {
	Run        string      `json:"run"`
	Requests   int         `json:"requests"` // that were compared
	Bytes      int         `json:"bytes"`    // of them as bytes
	Calls      int         `json:"calls"`
	Same       bool        `json:"same"`
	Error      string      `json:"error,omitempty"`
	Difference *difference `json:"difference,omitempty"`
}

type difference struct {
	Key llm.Key `json:"key"`
	At  int     `json:"at"` // the first byte that differs
	Was string  `json:"was"`
	Is  string  `json:"is"`
}

// Run replays the run.
func (c *runsReplayCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	return c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		s, err := c.recorded(ctx, sys, j, r.ID, durable.Transport(offline{}))
		if err != nil {
			return err
		}
		defer s.Close()

		p, err := j.Replay(j.Scoped(ctx), r.ID, s.Agent)
		hide, hideErr := j.Hide(ctx, sys, r.ID, s.Secrets)
		if hideErr != nil {
			return j.Failed(r.ID, hideErr)
		}
		var mismatch *durable.Mismatch
		if errors.As(err, &mismatch) { // it has the requests, which secrets may be in
			err = mismatch.Redacted(hide)
		}
		// That the program has changed is the answer of this command, and no failure of it.
		if err != nil && !errors.Is(err, durable.ErrChanged) {
			return j.Failed(r.ID, err)
		}

		if c.JSON {
			return c.report(sys, r.ID, p, hide.Error(err))
		}
		if err != nil {
			return cli.Fail(cli.StatusFailed, hide.Error(err), "")
		}
		_, err = fmt.Fprintf(sys.Out, "%s: %s made again%s, %s played back: the same\n", cli.Visible(r.ID),
			cli.Count(p.Requests, "request"), comparedHow(p), cli.Count(p.Calls, "call"))
		return err
	})
}

// comparedHow says how the requests of a replay were compared.
func comparedHow(p durable.Played) string {
	switch {
	case p.Bytes == 0:
		return " (compared by digest)"
	case p.Bytes < p.Requests:
		return fmt.Sprintf(" (%s of them byte for byte)", cli.Grouped(p.Bytes))
	}
	return " byte for byte"
}

func (c *runsReplayCmd) report(sys *cli.System, id string, p durable.Played, err error) error {
	out := replayed{Run: id, Requests: p.Requests, Bytes: p.Bytes, Calls: p.Calls, Same: err == nil}
	var mismatch *durable.Mismatch
	if errors.As(err, &mismatch) {
		out.Difference = &difference{
			Key: mismatch.Key,
			At:  mismatch.At(),
			Was: string(mismatch.Was),
			Is:  string(mismatch.Is),
		}
	}
	if err != nil {
		out.Error = err.Error()
	}

	// The difference is the result, so that it is printed before the status says that there is one.
	if err := cli.PrintJSON(sys.Out, out); err != nil {
		return err
	}
	if err != nil {
		return cli.Silent(cli.StatusFailed)
	}
	return nil
}

type runsCancelCmd struct {
	runArg
	assemble.StoreFlags
	assemble.EngineFlags
}

// Run cancels the run.
func (c *runsCancelCmd) Run(sys *cli.System) error {
	if err := c.EngineFlags.Check(&c.StoreFlags); err != nil {
		return err
	}
	if c.Away() {
		return remote{&c.ClusterFlags}.cancel(sys, c.ID)
	}

	ctx, stop := cli.InterruptibleBy(context.Background(), sys.Err, cli.ErrStopped)
	defer stop()
	return c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		id := cli.Visible(r.ID)
		if r.State == store.JournalOver {
			return cli.Fail(cli.StatusFailed, fmt.Errorf("run %s is over: %s", id, j.StateOf(r)),
				j.Command("runs", "show", id))
		}
		if err := j.Cancel(j.Scoped(ctx), r.ID); err != nil {
			return err
		}

		// A process that executes the run stores its end; otherwise this one does.
		if j.StateOf(r) == "running" {
			_, err := fmt.Fprintf(sys.Out, "%s will stop soon\n", id)
			return err
		}
		if err := c.storeEnd(ctx, sys, j, r.ID); err != nil {
			sys.Notice(err.Error())
			_, err := fmt.Fprintf(sys.Out, "%s ends when it is resumed: its agent could not be built\n", id)
			return err
		}
		_, err := fmt.Fprintf(sys.Out, "cancelled %s\n", id)
		return err
	})
}

// storeEnd resumes the cancelled run so that it stores its end. No request is sent and no call
// runs.
func (c *runsCancelCmd) storeEnd(ctx context.Context, sys *cli.System, j *assemble.Journal, id string) error {
	// The loop itself writes the end, as for every run. offline makes sure that it sends nothing.
	again := remade{AgentFlags: assemble.AgentFlags{ToolFlags: assemble.ToolFlags{StoreFlags: c.StoreFlags}}}
	s, err := again.recorded(ctx, sys, j, id, offline{})
	if err != nil {
		return err
	}
	defer s.Close()

	res, err := j.Runner(id, s.Agent).Run(j.Scoped(ctx))
	var stop *pawl.StopError
	switch {
	case errors.Is(err, pawl.ErrCancelled):
		return nil
	case err == nil, errors.As(err, &stop) && stop.Err == nil:
		return fmt.Errorf("it had ended before: %s", res.Stop)
	}
	return err
}

// resume resumes the run in this process, with a person at the terminal.
func (c *runsResumeCmd) resume(ctx context.Context, sys *cli.System, j *assemble.Journal, r store.JournalRun) error {
	// Read before the recipe fills these flags: what the person typed is not taken over.
	changes := !c.Changed && (c.System != "" || c.Model != "")
	if err := c.remember(ctx, sys, j, r.ID); err != nil {
		return err
	}
	if !c.SettleFlags.Empty() {
		if _, err := j.Decide(ctx, r.ID, assemble.WhoSays(sys), c.SettleFlags); err != nil {
			return err
		}
	}

	c.Durably()
	s, err := c.Setup(ctx, sys, c.File)
	if err != nil {
		return err
	}
	defer func() { s.Close() }()
	if changes {
		sys.Notice("the run continues with the instructions and the model that it began with; " +
			"--accept-changes continues it with these")
	}

	out := tui.NewScreen(sys.Err)
	tui.AskPerson(s, sys, out, nil, nil, false)
	if err := c.TelemetryFlags.Open(sys, s); err != nil {
		return err
	}
	// A run that has ended is only shown again, so that no other process needs to release it.
	if r.State != store.JournalOver {
		if err := j.Free(ctx, sys, r.ID); err != nil {
			return err
		}
	}
	d := &tui.DurableRun{
		Journal: j,
		Runner:  j.Runner(r.ID, s.Agent),
		Setup:   s,
		Sys:     sys,
		Out:     out,
		JSON:    c.JSON,
	}
	return d.Do(ctx, nil)
}

// offline is the transport of models that must not be asked.
type offline struct{}

// RoundTrip fails.
func (offline) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return nil, &llm.ProviderError{Code: llm.CodeInvalidRequest, Message: "nothing is sent here"}
}
