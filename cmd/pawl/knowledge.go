package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/knowledge"
)

// knowledgeCmd is about the documents that knowledge_search looks through.
type knowledgeCmd struct {
	Add    knowledgeAddCmd    `cmd:"" help:"@knowledge_add"`
	Search knowledgeSearchCmd `cmd:"" help:"Search them, as the tool knowledge_search does."`
	List   knowledgeListCmd   `cmd:"" help:"List them."`
	Delete knowledgeDeleteCmd `cmd:"" help:"Remove documents."`
}

// knowledgeFlags are those of all its commands.
type knowledgeFlags struct {
	assemble.StoreFlags
	assemble.EmbedFlags
}

// set opens the database, and makes the set that o says over it. Close the database.
func (f *knowledgeFlags) set(sys *cli.System, create bool, o knowledge.Options) (*config.Database, *knowledge.Set,
	error) {
	e, err := config.Embed{Model: f.Embed, URL: f.EmbedURL}.Open()
	if err != nil {
		return nil, nil, assemble.Misconfigured(err)
	}
	d, db, err := f.Open(sys, create)
	if err != nil {
		return nil, nil, err
	}
	o.Threads, o.Embedder = db, e
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
		case ctx.Err() != nil:
		case path == "-":
			data, err := knowledge.ReadSource(sys.In)
			a.add(knowledge.Source{Name: c.Name, Data: data}, "standard input", err)
		case strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://"):
			added, err := set.AddPage(ctx, a.scope, path)
			a.told(added, path, err)
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

// adding takes documents in, one after another, and counts them.
type adding struct {
	ctx   context.Context
	sys   *cli.System
	set   *knowledge.Set
	scope store.Scope

	files, added, same, skipped, failed int
}

// below takes in a file, or what is below a directory: hidden names and what is no file are passed
// over, and what is no document is skipped.
func (a *adding) below(path string) {
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			a.fail(p, err)
			return nil
		case a.ctx.Err() != nil:
			return fs.SkipAll
		case p != path && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() || p != path && !e.Type().IsRegular():
			return nil
		}
		src, err := knowledge.FileSource(p)
		if full, abs := filepath.Abs(p); abs == nil {
			src.ID = full
		}
		if p != path { // nobody named it
			a.files++
			a.addSkipping(src, p, err)
		} else {
			a.add(src, p, err)
		}
		return nil
	})
	if err != nil {
		a.fail(path, err)
	}
}

func (a *adding) add(src knowledge.Source, what string, err error) {
	added := knowledge.Added{}
	if err == nil {
		added, err = a.set.Add(a.ctx, a.scope, a.watched(src, what))
	}
	a.told(added, what, err)
}

// addSkipping is add for a file that nobody named: what is no document is no fault.
func (a *adding) addSkipping(src knowledge.Source, what string, err error) {
	added := knowledge.Added{}
	if err == nil {
		added, err = a.set.Add(a.ctx, a.scope, a.watched(src, what))
	}
	var p *llm.ProviderError
	if err == nil || errors.As(err, &p) || errors.Is(err, fs.ErrPermission) || a.ctx.Err() != nil {
		a.told(added, what, err)
		return
	}
	a.skipped++
	fmt.Fprintf(a.sys.Err, "skipped %s: %s\n", cli.Visible(what), cli.Visible(strings.TrimPrefix(cli.Plain(err), what+
		": ")))
}

// watched shows on a terminal how far a long document is.
func (a *adding) watched(src knowledge.Source, what string) knowledge.Source {
	if a.sys.ErrTerm {
		src.Progress = func(done, total int) {
			if total > done {
				fmt.Fprintf(a.sys.Err, "%s: %d of %d chunks\r", cli.Line(cli.Visible(what), a.sys.Width-30), done,
					total)
			}
		}
	}
	return src
}

func (a *adding) told(added knowledge.Added, what string, err error) {
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
	Query string `arg:"" help:"What to look for."`
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
		found.Documents[i].Vector = store.Vector{}
	}
	return cli.PrintJSON(sys.Out, map[string]any{"documents": found.Documents, "conversations": found.Messages,
		"notes": found.Notes})
}

type knowledgeListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	assemble.StoreFlags
}

// Run lists the documents by their IDs.
func (c *knowledgeListCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := cli.Everything(func(p store.Page) ([]store.Document,
		error) {
		return db.Documents(context.Background(), c.Scope(), p)
	},
		func(d store.Document) string { return d.ID })
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, all)
	}
	w := tabwriter.NewWriter(sys.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DOCUMENT\tTITLE\tKIND\tCHUNKS\tUPDATED")
	for _, doc := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", cli.Visible(doc.ID), cli.Line(doc.Title, 40), cli.Visible(doc.Kind),
			doc.Chunks, doc.Updated.Format(time.DateOnly))
	}
	return w.Flush()
}

type knowledgeDeleteCmd struct {
	IDs []string `arg:"" name:"DOCUMENT" help:"@knowledge_delete_ids"`
	assemble.StoreFlags
}

// Run removes documents, and reports the missing ones.
func (c *knowledgeDeleteCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	var bad []string
	for _, id := range c.IDs {
		err := db.DeleteDocument(context.Background(), c.Scope(), id)
		if full, abs := filepath.Abs(id); errors.Is(err, store.ErrNotFound) && abs == nil {
			err = db.DeleteDocument(context.Background(), c.Scope(), full)
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			bad = append(bad, id)
		case err != nil:
			return err
		}
	}
	if len(bad) > 0 {
		return cli.Fail(cli.StatusFailed, fmt.Errorf("there is no document %s", strings.Join(bad, ", ")),
			"pawl knowledge list")
	}
	return nil
}
