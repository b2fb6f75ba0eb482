package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

// memoryCmd is about what the tool remember keeps.
type memoryCmd struct {
	List   memoryListCmd   `cmd:"" help:"List what is remembered of the user."`
	Forget memoryForgetCmd `cmd:"" help:"Remove it: by id, by words, or all."`
}

func memoryID(m store.Memory) string { return m.ID }

// memories are those of a scope.
func memories(ctx context.Context, db store.Memories, s store.Scope) ([]store.Memory, error) {
	return cli.Everything(func(p store.Page) ([]store.Memory, error) { return db.Memories(ctx, s, p) }, memoryID)
}

// mostFound is how many memories a query finds at most.
const mostFound = 200

// found are the memories that words find, the best first.
func found(ctx context.Context, db store.Memories, s store.Scope, words string) ([]store.Memory, error) {
	hits, err := db.SearchMemories(ctx, s, store.Query{Text: words, Limit: mostFound})
	all := make([]store.Memory, len(hits))
	for i, h := range hits {
		all[i] = h.Memory
	}
	return all, err
}

type memoryListCmd struct {
	Query string `arg:"" optional:"" help:"@memory_list_query"`
	JSON  bool   `name:"json" help:"Print a JSON list."`
	assemble.StoreFlags
}

// Run lists what is remembered.
func (c *memoryListCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx := context.Background()
	var all []store.Memory
	if c.Query == "" {
		all, err = memories(ctx, db, c.Scope())
	} else {
		all, err = found(ctx, db, c.Scope(), c.Query)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		for i := range all {
			all[i].Vector = store.Vector{}
		}
		return cli.PrintJSON(sys.Out, all)
	}
	w := tabwriter.NewWriter(sys.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEMORY\tSINCE\tWHAT")
	for _, m := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", cli.Visible(m.ID), m.Created.Format(time.DateOnly),
			cli.Line(m.Text, max(40, sys.Width-28)))
	}
	return w.Flush()
}

type memoryForgetCmd struct {
	IDs   []string `arg:"" optional:"" name:"MEMORY" help:"As pawl memory list shows them."`
	Query string   `placeholder:"WORDS" help:"@memory_forget_query"`
	All   bool     `help:"@memory_forget_all"`
	assemble.StoreFlags
}

// Run forgets memories. Missing ones are reported at the end.
func (c *memoryForgetCmd) Run(sys *cli.System) error {
	if len(c.IDs) > 0 && (c.Query != "" || c.All) || len(c.IDs) == 0 && c.Query == "" && !c.All {
		return cli.Usage("pawl memory forget MEMORY, --query WORDS, or --all",
			"want ids, a query or --all to say what is forgotten")
	}
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx := context.Background()
	var doomed []store.Memory
	var missing error
	switch {
	case c.Query != "":
		doomed, err = found(ctx, db, c.Scope(), c.Query)
	case c.All:
		doomed, err = memories(ctx, db, c.Scope())
	default:
		doomed, missing, err = c.named(ctx, db)
	}
	if err == nil && c.Query != "" && !c.All && len(doomed) > 0 {
		err = c.sure(sys, doomed)
	}
	if err != nil {
		return err
	}
	for _, m := range doomed {
		if err := db.ForgetMemory(ctx, c.Scope(), m.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		fmt.Fprintf(sys.Out, "forgotten %s: %s\n", cli.Visible(m.ID), cli.Line(m.Text, 100))
	}
	if missing == nil && len(doomed) == 0 {
		fmt.Fprintln(sys.Err, "pawl: nothing was found, and nothing is forgotten")
	}
	return missing
}

// named are the memories with the IDs that were given; missing says which is not there.
func (c *memoryForgetCmd) named(ctx context.Context, db store.Memories) (all []store.Memory, missing, err error) {
	for _, id := range c.IDs {
		m, err := db.Memory(ctx, c.Scope(), id)
		switch {
		case errors.Is(err, store.ErrNotFound) && missing == nil:
			known, err := memories(ctx, db, c.Scope())
			if err != nil {
				return nil, nil, err
			}
			missing = cli.Unknown("memory", id, cli.Names(known, memoryID), "pawl memory list")
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, nil, cli.Usage("pawl memory list", "%v", err)
		default:
			all = append(all, m)
		}
	}
	return all, missing, nil
}

// sure asks the person at the terminal whether all of it is to be forgotten. Without one it is not.
func (c *memoryForgetCmd) sure(sys *cli.System, doomed []store.Memory) error {
	for _, m := range doomed {
		fmt.Fprintf(sys.Err, "  %s  %s\n", cli.Visible(m.ID), cli.Line(m.Text, 100))
	}
	if !sys.InTerm || !sys.ErrTerm {
		return cli.Usage("--all forgets them without a question",
			"%d of what is remembered would be forgotten, and nobody is here to ask", len(doomed))
	}
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	in := cli.NewLines(sys.In)
	defer in.Stop()
	fmt.Fprintf(sys.Err, "forget all %d? y: yes, n: no > ", len(doomed))
	answer, err := in.Next(ctx)
	if errors.Is(err, pawl.ErrCancelled) {
		return cli.Silent(cli.StatusInterrupted)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a == "y" || a == "yes" {
		return nil
	}
	return cli.Fail(cli.StatusFailed, errors.New("nothing is forgotten"), "")
}
