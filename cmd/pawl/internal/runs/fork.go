package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

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
		s, err := c.again(ctx, sys, j, r.ID) // what is wrong with it is found before there is a run
		if err != nil {
			return err
		}
		defer s.Close()
		o := &durable.ForkOptions{Results: c.result}
		if o.Meta, err = assemble.NewRecipe(c.File, &c.AgentFlags, s); err != nil {
			return err
		}
		id := cmp.Or(c.Called, assemble.NewRunID())
		switch err := j.Fork(j.Scoped(ctx), r.ID, id, c.At, o); {
		case errors.Is(err, store.ErrConflict):
			return cli.Usage("--as ANOTHER", "--as: there is a run %s", id)
		case err != nil:
			return err
		}
		sys.Notice("to resume it: " + j.Command("runs", "resume", id))
		_, err = fmt.Fprintln(sys.Out, id)
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
	begun := 0 // the replies that the run was begun with
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
