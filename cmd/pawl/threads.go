package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// threadsCmd shows the conversations that chat stores.
type threadsCmd struct {
	List   threadsListCmd   `cmd:"" help:"List conversations, the last one first."`
	Show   threadsShowCmd   `cmd:"" help:"Show the messages of one."`
	Delete threadsDeleteCmd `cmd:"" help:"Remove conversations."`
}

var threads = assemble.Stored[store.Thread]{
	Kind:    "conversation",
	Command: "pawl threads list",
	ID:      assemble.ThreadID,
	Text:    func(t store.Thread) string { return t.Title },
	All: func(ctx context.Context, db store.Store, s store.Scope) ([]store.Thread, error) {
		return assemble.Threads(ctx, db, s)
	},
	Remove: store.Store.DeleteThread,
	Head:   "THREAD|MESSAGES|LAST|BEGAN WITH",
	Row: func(t store.Thread) []any {
		return []any{cli.Visible(t.ID), t.Messages, cli.Moment(t.Updated, ""), cli.Line(t.Title, 50)}
	},
}

type threadsListCmd struct{ assemble.ListFlags }

// Run lists the conversations of the user.
func (c *threadsListCmd) Run(sys *cli.System) error { return threads.List(sys, &c.ListFlags) }

type threadsShowCmd struct {
	ID   string `arg:"" name:"THREAD" help:"The name, as pawl threads list shows it, or last."`
	JSON bool   `name:"json" help:"Print the messages as JSON, as --messages reads them."`
	assemble.StoreFlags
}

// Run shows a conversation.
func (c *threadsShowCmd) Run(sys *cli.System) error {
	return c.With(sys, false, func(ctx context.Context, db store.Store) error {
		t, from, err := assemble.LoadThread(ctx, db, c.Scope(), c.ID)
		switch {
		case err != nil:
			return err
		case t == nil || t.Created.IsZero():
			return threads.Unknown(ctx, db, c.Scope(), c.ID)
		case c.JSON:
			return cli.PrintJSON(sys.Out, from.Messages)
		}
		for _, m := range from.Messages {
			printMessage(sys.Out, m)
		}
		return nil
	})
}

// printMessage prints the parts of a message, calls and results in a line each.
func printMessage(w io.Writer, m llm.Message) {
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
	IDs []string `arg:"" name:"THREAD" help:"The names, as pawl threads list shows them."`
	assemble.StoreFlags
}

// Run removes conversations, and reports the first missing entry.
func (c *threadsDeleteCmd) Run(sys *cli.System) error {
	return threads.Delete(sys, &c.StoreFlags, c.IDs)
}
