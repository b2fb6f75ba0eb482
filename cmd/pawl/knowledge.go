package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/knowledge"
)

// knowledgeCmd adds, searches, lists and removes the documents of the tool knowledge_search.
type knowledgeCmd struct {
	Add    knowledgeAddCmd    `cmd:"" help:"@knowledge_add"`
	Search knowledgeSearchCmd `cmd:"" help:"Search them, as the tool knowledge_search does."`
	List   knowledgeListCmd   `cmd:"" help:"List them."`
	Delete knowledgeDeleteCmd `cmd:"" help:"Remove documents."`
}

var documents = assemble.Stored[store.Document]{
	Kind:    "document",
	Command: "pawl knowledge list",
	ID:      documentID,
	Text:    func(d store.Document) string { return d.Title },
	All:     assemble.Pages(store.Store.Documents, documentID),
	Head:    "DOCUMENT|TITLE|KIND|CHUNKS|UPDATED",
	Row: func(d store.Document) []any {
		updated := d.Updated.Format(time.DateOnly)
		return []any{cli.Visible(d.ID), cli.Line(d.Title, 40), cli.Visible(d.Kind), d.Chunks, updated}
	},
}

func documentID(d store.Document) string { return d.ID }

// knowledgeFlags are the flags of add and search.
type knowledgeFlags struct {
	assemble.StoreFlags
	assemble.EmbedFlags
}

// set opens the database, and returns the set of tools over it. The caller closes the database.
func (f *knowledgeFlags) set(sys *cli.System, create bool, o knowledge.Options) (*agentfile.Database, *knowledge.Set,
	error) {
	e, err := agentfile.Embed{Model: f.Embed, URL: string(f.EmbedURL)}.Open()
	if err != nil {
		return nil, nil, assemble.Misconfigured(err)
	}
	d, db, err := f.Open(sys, create)
	if err != nil {
		return nil, nil, err
	}
	o.Threads = db
	o.Embedder = e
	return d, knowledge.New(db, &o), nil
}

type knowledgeAddCmd struct {
	Paths     []string `arg:"" name:"PATH" help:"@knowledge_add_paths"`
	Name      string   `placeholder:"NAME" help:"@knowledge_add_name"`
	HTTPAllow []string `name:"http-allow" placeholder:"HOST" help:"@knowledge_add_httpallow"`
	knowledgeFlags
}

// Run adds documents, and reports the ones that failed.
func (c *knowledgeAddCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	d, set, err := c.set(sys, true, knowledge.Options{Allow: c.HTTPAllow})
	if err != nil {
		return err
	}
	defer d.Close()

	a := &adding{ctx: ctx, sys: sys, set: set, scope: c.Scope()}
	for _, path := range c.Paths {
		switch {
		case ctx.Err() != nil: // the rest is not begun
		case path == "-":
			data, err := knowledge.ReadSource(sys.In)
			a.add(knowledge.Source{Name: c.Name, Data: data}, "standard input", true, err)
		case strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://"):
			added, err := set.AddPage(ctx, a.scope, path)
			a.report(added, path, err)
		default:
			a.below(path)
		}
	}
	if len(c.Paths) > 1 || a.files > 1 {
		fmt.Fprintf(sys.Err, "%d added, %d as before, %d skipped, %d failed\n", a.added, a.same, a.skipped, a.failed)
	}

	switch {
	case ctx.Err() != nil:
		return cli.Silent(cli.StatusInterrupted)
	case a.failed > 0:
		return cli.Silent(cli.StatusFailed)
	}
	return nil
}

// adding adds documents one after another, and counts them.
type adding struct {
	ctx   context.Context
	sys   *cli.System
	set   *knowledge.Set
	scope store.Scope

	files, added, same, skipped, failed int
}

// below adds a file, or the files below a directory. It ignores hidden names and special files.
func (a *adding) below(path string) {
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		named := p == path // what the person named is always added
		switch {
		case err != nil:
			a.fail(p, err)
			return nil
		case a.ctx.Err() != nil:
			return fs.SkipAll
		case !named && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() || !named && !e.Type().IsRegular():
			return nil
		}

		src, err := knowledge.FileSource(p)
		// The same file is the same document from every working directory.
		if full, abs := filepath.Abs(p); abs == nil {
			src.ID = full
		}
		if !named {
			a.files++
		}
		a.add(src, p, named, err)
		return nil
	})
	if err != nil {
		a.fail(path, err)
	}
}

// add adds a document. If the person did not name it, a file that is no document is skipped.
func (a *adding) add(src knowledge.Source, what string, named bool, err error) {
	added := knowledge.Added{}
	if err == nil {
		added, err = a.set.Add(a.ctx, a.scope, a.watched(src, what))
	}
	if named || err == nil || !a.skips(err) {
		a.report(added, what, err)
		return
	}

	a.skipped++
	fmt.Fprintf(a.sys.Err, "skipped %s: %s\n", cli.Visible(what),
		cli.Visible(strings.TrimPrefix(cli.Plain(err), what+": ")))
}

// skips reports whether err is about the form of a document: not about the embedding of its text,
// the right to read it, or an interruption.
func (a *adding) skips(err error) bool {
	var provider *llm.ProviderError
	if errors.As(err, &provider) || errors.Is(err, fs.ErrPermission) {
		return false
	}
	return a.ctx.Err() == nil
}

// watched shows the progress of a long document on a terminal.
func (a *adding) watched(src knowledge.Source, what string) knowledge.Source {
	if !a.sys.ErrTerm {
		return src
	}
	src.Progress = func(done, total int) {
		if total > done { // the report of the document replaces the last line
			name := cli.Line(cli.Visible(what), a.sys.Width-30)
			fmt.Fprintf(a.sys.Err, "%s: %d of %d chunks\r", name, done, total)
		}
	}
	return src
}

func (a *adding) report(added knowledge.Added, what string, err error) {
	switch {
	case err != nil:
		a.fail(what, err)
		return
	case added.Same:
		a.same++
		fmt.Fprintf(a.sys.Out, "as before  %s\n", cli.Visible(added.ID))
	default:
		a.added++
		fmt.Fprintf(a.sys.Out, "added      %s  (%s, chunks: %d)\n", cli.Visible(added.ID), cli.Line(added.Title, 60),
			added.Chunks)
	}
	// Notes go to standard error, so that the list of documents can be piped.
	for _, n := range added.Notes {
		fmt.Fprintf(a.sys.Err, "pawl: %s: %s\n", cli.Visible(what), cli.Visible(n))
	}
}

func (a *adding) fail(what string, err error) {
	if a.ctx.Err() != nil {
		return
	}
	a.failed++
	text := cli.Plain(err)
	if !strings.HasPrefix(text, what) {
		text = what + ": " + text
	}
	cli.Report(a.sys.Err, cli.Fail(cli.StatusFailed, errors.New(text), ""))
}

type knowledgeSearchCmd struct {
	Query string `arg:"" help:"The words to search for."`
	Limit int    `placeholder:"N" default:"5" help:"@knowledge_search_limit"`
	JSON  bool   `name:"json" help:"Print the hits as JSON, with their whole text."`
	assemble.SharedFlag
	knowledgeFlags
}

// Run prints the result that a model would get.
func (c *knowledgeSearchCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	d, set, err := c.set(sys, false, knowledge.Options{Shared: c.Shared})
	if err != nil {
		return err
	}
	defer d.Close()
	if c.Limit < 1 || c.Limit > 20 {
		return cli.Usage("--limit 5", "--limit %d: want 1 to 20", c.Limit)
	}

	found, err := set.Find(ctx, c.Scope(), c.Query, c.Limit)
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintln(sys.Out, cli.Visible(found.Text(c.Query)))
		return nil
	}
	for i := range found.Documents {
		found.Documents[i].Vector = store.Vector{} // thousands of numbers that mean nothing
	}
	return cli.PrintJSON(sys.Out, map[string]any{
		"documents":     found.Documents,
		"conversations": found.Messages,
		"notes":         found.Notes,
	})
}

type knowledgeListCmd struct{ assemble.ListFlags }

// Run lists the documents by their IDs.
func (c *knowledgeListCmd) Run(sys *cli.System) error { return documents.List(sys, &c.ListFlags) }

type knowledgeDeleteCmd struct {
	IDs []string `arg:"" name:"DOCUMENT" help:"@knowledge_delete_ids"`
	assemble.StoreFlags
}

// Run removes documents, and reports all that do not exist.
func (c *knowledgeDeleteCmd) Run(sys *cli.System) error {
	return c.With(sys, false, func(ctx context.Context, db store.Store) error {
		var missing []string
		for _, id := range c.IDs {
			err := db.DeleteDocument(ctx, c.Scope(), id)
			// The ID of a file is its absolute path, and the person may type the path as for add.
			if full, abs := filepath.Abs(id); errors.Is(err, store.ErrNotFound) && abs == nil {
				err = db.DeleteDocument(ctx, c.Scope(), full)
			}
			switch {
			case errors.Is(err, store.ErrNotFound):
				missing = append(missing, id)
			case err != nil:
				return err
			}
		}
		if len(missing) > 0 {
			return cli.Fail(cli.StatusFailed, fmt.Errorf("there is no document %s", strings.Join(missing, ", ")),
				documents.Command)
		}
		return nil
	})
}
