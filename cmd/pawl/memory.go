package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

// memoryCmd shows, confirms and forgets the memories of the tool remember.
type memoryCmd struct {
	List    memoryListCmd    `cmd:"" help:"List the memories of the user."`
	Show    memoryShowCmd    `cmd:"" help:"Print memories and their sources."`
	Export  memoryShowCmd    `cmd:"" help:"Print all memories and their sources, as JSON."`
	Confirm memoryConfirmCmd `cmd:"" help:"Confirm memories, so that models are shown them."`
	Forget  memoryForgetCmd  `cmd:"" help:"Forget memories: by ID, words or run, or all."`
}

func memoryID(m store.Memory) string { return m.ID }

var memories = assemble.Stored[store.Memory]{
	Kind:    "memory",
	Command: "pawl memory list",
	ID:      memoryID,
	Text:    func(m store.Memory) string { return m.Text },
	All:     assemble.Pages(store.Store.Memories, memoryID),
}

// mostFound is the largest number of memories that a query finds.
const mostFound = 200

// found returns the memories that match words, the best first.
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
	assemble.ListFlags
}

// Run lists the memories.
func (c *memoryListCmd) Run(sys *cli.System) error {
	return c.With(sys, false, func(ctx context.Context, db store.Store) (err error) {
		var all []store.Memory
		if c.Query == "" {
			all, err = memories.All(ctx, db, c.Scope())
		} else {
			all, err = found(ctx, db, c.Scope(), c.Query)
		}
		if err != nil {
			return err
		}
		return cli.List(sys.Out, c.JSON, all, "MEMORY|SINCE|WHAT", func(m store.Memory) []any {
			if of := m.Source.Thread; of != "" {
				m.Text = "(conversation " + of + ") " + m.Text
			}
			if m.Source.Unconfirmed {
				m.Text = "(unconfirmed) " + m.Text
			}
			return []any{cli.Visible(m.ID), m.Created.Format(time.DateOnly), cli.Line(m.Text, max(40, sys.Width-28))}
		})
	})
}

type memoryShowCmd struct {
	IDs []string `arg:"" optional:"" name:"MEMORY" help:"@memory_show_ids"`
	assemble.StoreFlags
}

// Run prints the memories. IDs that are not stored are reported at the end.
func (c *memoryShowCmd) Run(sys *cli.System) error {
	return c.With(sys, false, func(ctx context.Context, db store.Store) error {
		all, missing, err := named(ctx, db, c.Scope(), c.IDs)
		return cmp.Or(err, cli.PrintJSON(sys.Out, all), missing)
	})
}

type memoryConfirmCmd struct {
	IDs    []string `arg:"" name:"MEMORY" help:"IDs, as pawl memory list shows them."`
	Always bool     `help:"Recall them in every turn."`
	assemble.StoreFlags
}

// Run confirms the memories. IDs that are not stored are reported at the end.
func (c *memoryConfirmCmd) Run(sys *cli.System) error {
	return c.With(sys, false, func(ctx context.Context, db store.Store) error {
		all, missing, err := named(ctx, db, c.Scope(), c.IDs)
		for _, m := range all {
			m.Source.Unconfirmed = false
			m.Source.Always = c.Always || m.Source.Always
			if _, _, err := db.AddMemory(ctx, c.Scope(), m); err != nil {
				return err
			}
			fmt.Fprintf(sys.Out, "confirmed %s: %s\n", cli.Visible(m.ID), cli.Line(m.Text, 100))
		}
		return cmp.Or(err, missing)
	})
}

type memoryForgetCmd struct {
	IDs   []string `arg:"" optional:"" name:"MEMORY" help:"IDs, as pawl memory list shows them."`
	Query string   `placeholder:"WORDS" help:"@memory_forget_query"`
	Of    string   `name:"run" placeholder:"RUN" help:"@memory_forget_run"`
	All   bool     `help:"@memory_forget_all"`
	assemble.StoreFlags
}

// Run forgets memories. IDs that are not stored are reported at the end.
func (c *memoryForgetCmd) Run(sys *cli.System) error {
	if !c.chooses() {
		return cli.Usage("pawl memory forget MEMORY, --query WORDS, --run RUN, or --all",
			"want ids, a query, a run or --all to choose the memories to forget")
	}
	return c.With(sys, false, func(ctx context.Context, db store.Store) error { return c.forget(ctx, sys, db) })
}

// chooses reports whether the flags choose the memories to forget in one way. With --query, --all
// means that no question is asked.
func (c *memoryForgetCmd) chooses() bool {
	byWords := c.Query != "" || c.All
	ways := 0
	for _, given := range []bool{len(c.IDs) > 0, byWords, c.Of != ""} {
		if given {
			ways++
		}
	}
	return ways == 1
}

func (c *memoryForgetCmd) forget(ctx context.Context, sys *cli.System, db store.Store) (err error) {
	var doomed []store.Memory
	var missing error
	switch {
	case c.Query != "":
		doomed, err = found(ctx, db, c.Scope(), c.Query)
	case c.All, c.Of != "":
		doomed, err = memories.All(ctx, db, c.Scope())
		doomed = slices.DeleteFunc(doomed, func(m store.Memory) bool { return !c.All && m.Source.Run != c.Of })
	default:
		doomed, missing, err = named(ctx, db, c.Scope(), c.IDs)
	}
	// What matches a query is a guess, unlike an ID or a run.
	asks := c.Query != "" && !c.All
	if err == nil && asks && len(doomed) > 0 {
		err = c.sure(sys, doomed)
	}
	if err != nil {
		return err
	}

	for _, m := range doomed {
		// Another process may forget it at the same time, which is what the person wants.
		if err := db.ForgetMemory(ctx, c.Scope(), m.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		fmt.Fprintf(sys.Out, "forgotten %s: %s\n", cli.Visible(m.ID), cli.Line(m.Text, 100))
	}

	if missing == nil && len(doomed) == 0 {
		fmt.Fprintln(sys.Err, "pawl: no memory was found, and none is forgotten")
	} else if len(doomed) > 0 {
		fmt.Fprintln(sys.Err, "pawl: stored runs keep what they recalled until pawl runs prune deletes them")
	}
	return missing
}

// named returns the memories with the given IDs, or all if there are none. The error missing names
// the first ID that is not stored.
func named(ctx context.Context, db store.Store, s store.Scope, ids []string) (all []store.Memory, missing, err error) {
	all, err = memories.All(ctx, db, s)
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(m store.Memory) bool { return m.ID == id }) {
			missing = cmp.Or(missing, memories.Unknown(ctx, db, s, id))
		}
	}
	other := func(m store.Memory) bool { return len(ids) > 0 && !slices.Contains(ids, m.ID) }
	return slices.DeleteFunc(all, other), missing, err
}

// sure asks the person at the terminal to confirm. Without a terminal it fails.
func (c *memoryForgetCmd) sure(sys *cli.System, doomed []store.Memory) error {
	for _, m := range doomed {
		fmt.Fprintf(sys.Err, "  %s  %s\n", cli.Visible(m.ID), cli.Line(m.Text, 100))
	}
	// A program must say that it means all of them, because forgetting cannot be undone.
	if !sys.InTerm || !sys.ErrTerm {
		return cli.Usage("--all forgets them without a question",
			"%d of the memories would be forgotten, and there is no terminal to confirm it", len(doomed))
	}

	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	in := cli.NewLines(sys.In)
	defer in.Stop()
	yes, err := in.Yes(ctx, sys.Err, fmt.Sprintf("forget all %d? y: yes, n: no > ", len(doomed)))
	switch {
	case errors.Is(err, pawl.ErrCancelled):
		return cli.Silent(cli.StatusInterrupted)
	case yes:
		return nil
	}
	return cli.Fail(cli.StatusFailed, errors.New("nothing is forgotten"), "")
}
