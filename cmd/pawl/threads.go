package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// threadsCmd is about the conversations that chat keeps.
type threadsCmd struct {
	List   threadsListCmd   `cmd:"" help:"List conversations, the last one first."`
	Show   threadsShowCmd   `cmd:"" help:"Show what was said in one."`
	Delete threadsDeleteCmd `cmd:"" help:"Remove conversations."`
}

func threadID(t store.Thread) string { return t.ID }

// threads are those of a scope, the last one first.
func threads(ctx context.Context, db store.Threads, s store.Scope) ([]store.Thread, error) {
	all, err := everything(func(p store.Page) ([]store.Thread, error) { return db.Threads(ctx, s, p) }, threadID)
	slices.SortStableFunc(all, func(a, b store.Thread) int { return b.Updated.Compare(a.Updated) })
	return all, err
}

func notThere(ctx context.Context, db store.Threads, s store.Scope, id string) error {
	all, err := threads(ctx, db, s)
	if err != nil {
		return err
	}
	return unknown("conversation", id, names(all, threadID), "pawl threads list")
}

type threadsListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	storeFlags
}

// Run lists the conversations of the user.
func (c *threadsListCmd) Run(sys *system) error {
	d, db, err := c.open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := threads(context.Background(), db, c.scope())
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(sys.out, all)
	}
	w := tabwriter.NewWriter(sys.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "THREAD\tMESSAGES\tLAST\tBEGAN WITH")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", visible(t.ID), t.Messages, moment(t.Updated, ""), line(t.Title, 50))
	}
	return w.Flush()
}

type threadsShowCmd struct {
	ID   string `arg:"" name:"THREAD" help:"As pawl threads list shows it, or last."`
	JSON bool   `name:"json" help:"Print the messages as JSON, as --messages reads them."`
	storeFlags
}

// Run shows a conversation.
func (c *threadsShowCmd) Run(sys *system) error {
	d, db, err := c.open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx := context.Background()
	t, from, err := loadThread(ctx, db, c.scope(), c.ID)
	if err != nil {
		return err
	}
	if t == nil {
		return notThere(ctx, db, c.scope(), c.ID)
	}
	if c.JSON {
		return printJSON(sys.out, from.Messages)
	}
	for _, m := range from.Messages {
		said(sys.out, m)
	}
	return nil
}

// said shows a message: who said what, calls and results in a line each.
func said(w io.Writer, m llm.Message) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			fmt.Fprintf(w, "%s: %s\n", m.Role, indented(visible(p.Text)))
		case llm.ToolCall:
			fmt.Fprintf(w, "%s calls %s %s\n", m.Role, visible(p.Name), line(string(p.Args), 200))
		case llm.ToolResult:
			fmt.Fprintf(w, "result: %s\n", beginning(p.Text(), 200))
		case llm.Media:
			fmt.Fprintf(w, "%s: (%s)\n", m.Role, visible(cmp.Or(p.MIME, "media")))
		}
	}
}

type threadsDeleteCmd struct {
	IDs []string `arg:"" name:"THREAD" help:"As pawl threads list shows them."`
	storeFlags
}

// Run removes what it can, and tells of the first that is not there.
func (c *threadsDeleteCmd) Run(sys *system) error {
	d, db, err := c.open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	return deleted(sys.out, c.IDs, func(id string) error { return db.DeleteThread(context.Background(), c.scope(), id) },
		func(id string) error { return notThere(context.Background(), db, c.scope(), id) })
}
