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

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/knowledge"
)

// knowledgeCmd is about the documents that knowledge_search looks through.
type knowledgeCmd struct {
	Add    knowledgeAddCmd    `cmd:"" help:"Take documents in: text, Markdown, HTML, CSV, JSON, PDF, DOCX."`
	Search knowledgeSearchCmd `cmd:"" help:"Search them, as the tool knowledge_search does."`
	List   knowledgeListCmd   `cmd:"" help:"List them."`
	Delete knowledgeDeleteCmd `cmd:"" help:"Remove documents."`
}

// embedFlags name the model that makes vectors.
type embedFlags struct {
	Embed    string `group:"store" placeholder:"PROVIDER:MODEL" help:"The embedding model, to search documents and found pages by meaning too: openai:text-embedding-3-small, gemini:gemini-embedding-001#768, ollama:nomic-embed-text. The same for adding and searching. Default: none, words only."`
	EmbedURL string `group:"store" name:"embed-url" placeholder:"URL" help:"Where the embedding model's API is. Default: its provider's own."`
}

// storeFlags say where what is kept between runs is, and whose it is.
type storeFlags struct {
	DB     string `group:"store" name:"db" placeholder:"FILE" help:"The database with what is kept between runs: a file, or a PostgreSQL database, postgres://USER@HOST/DATABASE (with its password in PGPASSWORD). Default: pawl/pawl.db where the user's data is (XDG_DATA_HOME, else ~/.local/share)."`
	Tenant string `group:"store" placeholder:"NAME" help:"Whose it is: the tenant. Default: none."`
	User   string `group:"store" placeholder:"NAME" help:"Whose it is: the user. Default: none."`
}

func (f *storeFlags) store() config.Store {
	return config.Store{DB: f.DB, Tenant: f.Tenant, User: f.User}
}

func (f *storeFlags) scope() store.Scope { return f.store().Scope() }

// open opens the database. Close it.
func (f *storeFlags) open(sys *system, create bool) (*config.Database, store.Store, error) {
	d := config.NewDatabase(f.store(), sys.env, create)
	db, err := d.Open()
	if err != nil {
		return nil, nil, misconfigured(err)
	}
	return d, db, nil
}

// sharedFlag widens a search of documents.
type sharedFlag struct {
	Shared bool `group:"store" help:"Search the documents that the tenant shares, too: those that were added with the same --tenant and without --user."`
}

// knowledgeFlags are those of all its commands.
type knowledgeFlags struct {
	storeFlags
	embedFlags
}

// set opens the database, and makes the set that o says over it. Close the database.
func (f *knowledgeFlags) set(sys *system, create bool, o knowledge.Options) (*config.Database, *knowledge.Set, error) {
	e, err := config.Embed{Model: f.Embed, URL: f.EmbedURL}.Open()
	if err != nil {
		return nil, nil, misconfigured(err)
	}
	d, db, err := f.open(sys, create)
	if err != nil {
		return nil, nil, err
	}
	o.Threads, o.Embedder = db, e
	return d, knowledge.New(db, &o), nil
}

type knowledgeAddCmd struct {
	Paths     []string `arg:"" name:"PATH" help:"Files, directories with all below them, addresses of pages, or - for standard input."`
	Name      string   `placeholder:"NAME" help:"What standard input is kept as; its ending may say its kind."`
	HTTPAllow []string `name:"http-allow" placeholder:"HOST" help:"What may be fetched beside public addresses: localhost:8080, *.example.com, 10.1.0.0/16."`
	knowledgeFlags
}

// Run takes everything in that it can, and tells of the rest.
func (c *knowledgeAddCmd) Run(sys *system) error {
	ctx, stop := interruptible(context.Background(), sys.err)
	defer stop()
	d, set, err := c.set(sys, true, knowledge.Options{Allow: c.HTTPAllow})
	if err != nil {
		return err
	}
	defer d.Close()
	a := &adding{ctx: ctx, sys: sys, set: set, scope: c.scope()}
	for _, path := range c.Paths {
		switch {
		case ctx.Err() != nil:
		case path == "-":
			data, err := knowledge.ReadSource(sys.in)
			a.add(knowledge.Source{Name: c.Name, Data: data}, "standard input", err)
		case strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://"):
			added, err := set.AddPage(ctx, a.scope, path)
			a.told(added, path, err)
		default:
			a.below(path)
		}
	}
	if len(c.Paths) > 1 || a.files > 1 {
		fmt.Fprintf(sys.err, "%d added, %d as before, %d skipped, %d failed\n", a.added, a.same, a.skipped, a.failed)
	}
	switch {
	case ctx.Err() != nil:
		return silent(statusInterrupted)
	case a.failed > 0:
		return silent(statusFailed)
	}
	return nil
}

// adding takes documents in, one after another, and counts them.
type adding struct {
	ctx   context.Context
	sys   *system
	set   *knowledge.Set
	scope store.Scope

	files, added, same, skipped, failed int
}

// below takes in a file, or what is below a directory: hidden names and what is no file are passed over, and what is no document is skipped.
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
	var p *pawl.ProviderError
	if err == nil || errors.As(err, &p) || errors.Is(err, fs.ErrPermission) || a.ctx.Err() != nil {
		a.told(added, what, err)
		return
	}
	a.skipped++
	fmt.Fprintf(a.sys.err, "skipped %s: %s\n", visible(what), visible(strings.TrimPrefix(plain(err), what+": ")))
}

// watched shows on a terminal how far a long document is.
func (a *adding) watched(src knowledge.Source, what string) knowledge.Source {
	if a.sys.errTerm {
		src.Progress = func(done, total int) {
			if total > done {
				fmt.Fprintf(a.sys.err, "%s: %d of %d chunks\r", line(visible(what), a.sys.width-30), done, total)
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
		fmt.Fprintf(a.sys.out, "as before  %s\n", visible(added.ID))
	default:
		a.added++
		fmt.Fprintf(a.sys.out, "added      %s  (%s, chunks: %d)\n", visible(added.ID), line(added.Title, 60), added.Chunks)
	}
	for _, n := range added.Notes {
		fmt.Fprintf(a.sys.err, "pawl: %s: %s\n", visible(what), visible(n))
	}
}

func (a *adding) fail(what string, err error) {
	if a.ctx.Err() != nil {
		return
	}
	a.failed++
	text := plain(err)
	if !strings.HasPrefix(text, what) {
		text = what + ": " + text
	}
	tell(a.sys.err, fail(statusFailed, errors.New(text), ""))
}

type knowledgeSearchCmd struct {
	Query string `arg:"" help:"What to look for."`
	Limit int    `placeholder:"N" default:"5" help:"How many hits, of documents and of conversations each; at most 20. Default: 5."`
	JSON  bool   `name:"json" help:"Print the hits as JSON, with their whole text."`
	sharedFlag
	knowledgeFlags
}

// Run prints what a model would be told.
func (c *knowledgeSearchCmd) Run(sys *system) error {
	ctx, stop := interruptible(context.Background(), sys.err)
	defer stop()
	d, set, err := c.set(sys, false, knowledge.Options{Shared: c.Shared})
	if err != nil {
		return err
	}
	defer d.Close()
	if c.Limit < 1 || c.Limit > 20 {
		return usage("--limit 5", "--limit %d: want 1 to 20", c.Limit)
	}
	found, err := set.Find(ctx, c.scope(), c.Query, c.Limit)
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintln(sys.out, visible(found.Text(c.Query)))
		return nil
	}
	for i := range found.Documents {
		found.Documents[i].Vector = store.Vector{}
	}
	return printJSON(sys.out, map[string]any{"documents": found.Documents, "conversations": found.Messages, "notes": found.Notes})
}

type knowledgeListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	storeFlags
}

// Run lists the documents by their IDs.
func (c *knowledgeListCmd) Run(sys *system) error {
	d, db, err := c.open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := everything(func(p store.Page) ([]store.Document, error) { return db.Documents(context.Background(), c.scope(), p) },
		func(d store.Document) string { return d.ID })
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(sys.out, all)
	}
	w := tabwriter.NewWriter(sys.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DOCUMENT\tTITLE\tKIND\tCHUNKS\tUPDATED")
	for _, doc := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", visible(doc.ID), line(doc.Title, 40), visible(doc.Kind), doc.Chunks, doc.Updated.Format(time.DateOnly))
	}
	return w.Flush()
}

type knowledgeDeleteCmd struct {
	IDs []string `arg:"" name:"DOCUMENT" help:"As pawl knowledge list shows them; a file may be named by its path."`
	storeFlags
}

// Run removes what it can, and tells of the rest.
func (c *knowledgeDeleteCmd) Run(sys *system) error {
	d, db, err := c.open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	var bad []string
	for _, id := range c.IDs {
		err := db.DeleteDocument(context.Background(), c.scope(), id)
		if full, abs := filepath.Abs(id); errors.Is(err, store.ErrNotFound) && abs == nil {
			err = db.DeleteDocument(context.Background(), c.scope(), full)
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			bad = append(bad, id)
		case err != nil:
			return err
		}
	}
	if len(bad) > 0 {
		return fail(statusFailed, fmt.Errorf("there is no document %s", strings.Join(bad, ", ")), "pawl knowledge list")
	}
	return nil
}
