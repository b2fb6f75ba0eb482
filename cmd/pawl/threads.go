package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// threadsCmd is about the conversations that chat keeps.
type threadsCmd struct {
	List   threadsListCmd   `cmd:"" help:"List conversations, the last one first."`
	Show   threadsShowCmd   `cmd:"" help:"Show what was said in one."`
	Delete threadsDeleteCmd `cmd:"" help:"Remove conversations."`
}

func notThere(ctx context.Context, db store.Threads, s store.Scope, id string) error {
	all, err := assemble.Threads(ctx, db, s)
	if err != nil {
		return err
	}
	return cli.Unknown("conversation", id, cli.Names(all, assemble.ThreadID), "pawl threads list")
}

type threadsListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	assemble.StoreFlags
}

// Run lists the conversations of the user.
func (c *threadsListCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := assemble.Threads(context.Background(), db, c.Scope())
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, all)
	}
	w := tabwriter.NewWriter(sys.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "THREAD\tMESSAGES\tLAST\tBEGAN WITH")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", cli.Visible(t.ID), t.Messages, cli.Moment(t.Updated, ""),
			cli.Line(t.Title, 50))
	}
	return w.Flush()
}

type threadsShowCmd struct {
	ID   string `arg:"" name:"THREAD" help:"As pawl threads list shows it, or last."`
	JSON bool   `name:"json" help:"Print the messages as JSON, as --messages reads them."`
	assemble.StoreFlags
}

// Run shows a conversation.
func (c *threadsShowCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx := context.Background()
	t, from, err := assemble.LoadThread(ctx, db, c.Scope(), c.ID)
	if err != nil {
		return err
	}
	if t == nil {
		return notThere(ctx, db, c.Scope(), c.ID)
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, from.Messages)
	}
	for _, m := range from.Messages {
		said(sys.Out, m)
	}
	return nil
}

// said shows a message: who said what, calls and results in a line each.
func said(w io.Writer, m llm.Message) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			fmt.Fprintf(w, "%s: %s\n", m.Role, cli.Indented(cli.Visible(p.Text)))
		case llm.ToolCall:
			fmt.Fprintf(w, "%s calls %s %s\n", m.Role, cli.Visible(p.Name), cli.Line(string(p.Args), 200))
		case llm.ToolResult:
			fmt.Fprintf(w, "result: %s\n", cli.Beginning(p.Text(), 200))
		case llm.Media:
			fmt.Fprintf(w, "%s: (%s)\n", m.Role, cli.Visible(cmp.Or(p.MIME, "media")))
		}
	}
}

type threadsDeleteCmd struct {
	IDs []string `arg:"" name:"THREAD" help:"As pawl threads list shows them."`
	assemble.StoreFlags
}

// Run removes conversations, and reports the first missing one.
func (c *threadsDeleteCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	return cli.Deleted(sys.Out, c.IDs, func(id string) error {
		return db.DeleteThread(context.Background(), c.Scope(), id)
	},
		func(id string) error { return notThere(context.Background(), db, c.Scope(), id) })
}
