package main

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/runs"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/store"
)

// candidate is a word that may complete the line, with its description.
type candidate struct{ value, what string }

// The instructions to the shell, in addition to the candidates.
const (
	besidesFiles = ":files" // offer files
	besidesDirs  = ":dirs"  // offer folders
	besidesOpen  = ":open"  // put no space behind a candidate: more comes
)

// completer finds the candidates for the word at the cursor, by the grammar that also parses the
// line. It uses no network, so it reads a database only if that is a file.
type completer struct {
	sys     *cli.System
	node    *kong.Node          // the command so far
	said    map[string][]string // the flags of the line and their values
	args    []string            // the arguments of the line
	found   []candidate
	besides string // an instruction to the shell; empty means none
}

// mostTime limits the time for reading the database, because a person waits.
const mostTime = time.Second

// complete reads the words before the cursor, and finds the candidates for current.
func (c *completer) complete(before []string, current string) {
	c.said = map[string][]string{}
	var open *kong.Flag // a flag whose value is the next word
	flags := true
	for _, w := range before {
		switch name, value, whole := strings.Cut(w, "="); {
		case open != nil:
			c.said[open.Name] = append(c.said[open.Name], w)
			open = nil
		case flags && w == "--":
			flags = false
		case flags && len(w) > 1 && w[0] == '-':
			f := c.flag(name)
			if f == nil {
				continue
			}
			c.said[f.Name] = append(c.said[f.Name], value)
			if !whole && !f.IsBool() {
				open = f
			}
		default:
			c.argument(w)
		}
	}
	switch name, value, whole := strings.Cut(current, "="); {
	case open != nil:
		c.value(open.Value, open.PlaceHolder, current, "")
	case flags && whole && strings.HasPrefix(name, "--"):
		if f := c.flag(name); f != nil {
			c.value(f.Value, f.PlaceHolder, value, name+"=")
		}
	case flags && strings.HasPrefix(current, "-"):
		c.flags()
	default:
		c.place(current)
	}
}

// argument reads a word that is no flag: the name of a command, or an argument.
func (c *completer) argument(w string) {
	for _, child := range c.node.Children {
		if len(c.args) == 0 && child.Type == kong.CommandNode && child.Name == w {
			c.node = child
			return
		}
	}
	if c.node.DefaultCmd != nil && len(c.args) == 0 {
		c.node = c.node.DefaultCmd
	}
	c.args = append(c.args, w)
}

// flag returns the flag of the command with the typed name. nil means that there is none.
func (c *completer) flag(word string) *kong.Flag {
	for f := range c.all() {
		if "--"+f.Name == word || f.Short != 0 && "-"+string(f.Short) == word {
			return f
		}
	}
	return nil
}

// all yields the flags of the command and of the commands above it.
func (c *completer) all() iter.Seq[*kong.Flag] {
	return func(yield func(*kong.Flag) bool) {
		nodes := []*kong.Node{c.node}
		if c.node.DefaultCmd != nil {
			nodes = append(nodes, c.node.DefaultCmd)
		}
		for _, n := range nodes {
			for _, level := range slices.Backward(n.AllFlags(true)) {
				for _, f := range level {
					if !yield(f) {
						return
					}
				}
			}
		}
	}
}

// flags offers the flags that can still be given.
func (c *completer) flags() {
	seen := map[string]bool{}
	for f := range c.all() {
		if seen[f.Name] || c.said[f.Name] != nil && !f.IsCumulative() {
			continue
		}
		seen[f.Name] = true
		c.found = append(c.found, candidate{"--" + f.Name, cli.FirstSentence(f.Help, 60)})
	}
}

// place offers commands, or values of the next argument.
func (c *completer) place(current string) {
	if len(c.args) == 0 {
		for _, child := range c.node.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				c.found = append(c.found, candidate{child.Name, cli.FirstSentence(child.Help, 60)})
			}
		}
	}
	places := c.node.Positional
	if len(places) == 0 {
		return
	}
	n := min(len(c.args), len(places)-1)
	if len(c.args) >= len(places) && !places[n].IsCumulative() {
		return
	}
	c.value(places[n], places[n].Name, current, "")
}

// value offers the values of a flag or an argument. kind is its placeholder in the help, and before
// the text that each candidate starts with.
func (c *completer) value(v *kong.Value, kind, current, before string) {
	if v.Enum != "" {
		for _, e := range v.EnumSlice() {
			if e != "" {
				c.found = append(c.found, candidate{before + e, ""})
			}
		}
		return
	}
	if v.IsSlice() && v.Tag.Sep == ',' && v.Flag != nil { // in a list, the last word is completed
		before += current[:strings.LastIndexByte(current, ',')+1]
	}
	if v.Name == "agent" {
		kind = "AGENT"
	}
	kind, _, _ = strings.Cut(kind, "[")
	for _, x := range c.known(kind) {
		c.found = append(c.found, candidate{before + x.value, x.what})
	}
}

// known returns the values of a kind of argument. Other kinds have none.
func (c *completer) known(kind string) []candidate {
	switch kind {
	case "FILE", "FILE.yaml", "SCHEMA.json", "PATH", "OUT":
		c.besides = besidesFiles
	case "DIR":
		c.besides = besidesDirs
	case "SET":
		return bare(config.SetNames())
	case "TOOL", "CHOICE":
		return c.tools(kind)
	case "PROVIDER:NAME":
		return c.models()
	case "AGENT":
		return c.agents()
	case "RUN", "A", "B", "THREAD", "SCHEDULE", "SKILL", "KEY", "KEY=TEXT", "MEMORY", "DOCUMENT":
		return c.stored(kind)
	}
	return nil
}

// bare returns candidates without descriptions.
func bare(values []string) []candidate {
	var all []candidate
	for _, v := range values {
		all = append(all, candidate{v, ""})
	}
	return all
}

// tools returns the built-in tools, and the other words that the flag accepts.
func (c *completer) tools(kind string) []candidate {
	var all []candidate
	switch {
	case kind == "CHOICE":
		all = bare([]string{"auto", "none", "required"})
	case c.node.Parent == nil || c.node.Parent.Name != "tools":
		all = bare([]string{"effect:write", "effect:idempotent", "effect:read", "effect:pure", "effect:compose"})
	}
	quiet := *c.sys
	quiet.Err = io.Discard
	tools, _, closeSets, err := builtinTools(context.Background(), &quiet, assemble.ToolFlags{},
		assemble.OutsideFlags{}, assemble.ServerFlags{}, true)
	if err != nil {
		return all
	}
	defer closeSets()
	for _, t := range tools {
		all = append(all, candidate{t.Name, cli.FirstSentence(t.Description, 60)})
	}
	return all
}

// models returns the models of the catalogue, and the providers, which any name may follow.
func (c *completer) models() []candidate {
	var all []candidate
	file := ""
	if said := c.said["catalog"]; said != nil {
		file = said[0]
	}
	known, err := assemble.Catalogue("--catalog", file)
	if err == nil {
		for _, m := range known.Models("") {
			all = append(all, candidate{m.Name(), ""})
		}
	}
	for _, p := range provider.Names() {
		all = append(all, candidate{p + ":", ""})
	}
	c.besides = besidesOpen
	return all
}

// agents returns the agents of the file on the line.
func (c *completer) agents() []candidate {
	for _, name := range append(slices.Clone(c.args), c.said["file"]...) {
		if !assemble.IsAgentFile(name) {
			continue
		}
		file, _ := config.Load(name, &config.LoadOptions{Getenv: c.sys.Env})
		var all []candidate
		for _, a := range file.Agents {
			all = append(all, candidate{a.Name, ""})
		}
		return all
	}
	return nil
}

// stored returns the IDs of entries of the database, unless it is on a server.
func (c *completer) stored(kind string) []candidate {
	last := func(name string) string {
		if v := c.said[name]; v != nil {
			return v[len(v)-1]
		}
		return ""
	}
	f := &assemble.StoreFlags{DB: last("db"), Tenant: last("tenant"), User: last("user")}
	if strings.Contains(f.DB, "://") {
		return nil
	}
	j, err := f.OpenRuns(c.sys)
	if err != nil {
		return nil
	}
	defer j.Close()
	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	db, err := j.Database.Open()
	if err != nil {
		return nil
	}
	switch kind {
	case "RUN", "A", "B":
		return c.runs(ctx, j)
	case "KEY", "KEY=TEXT":
		return c.keys(ctx, j)
	case "THREAD":
		return entries(ctx, db, f, threads)
	case "SCHEDULE":
		return entries(ctx, db, f, runs.Schedules)
	case "SKILL":
		return entries(ctx, db, f, skills)
	case "MEMORY":
		return entries(ctx, db, f, memories)
	case "DOCUMENT":
		return entries(ctx, db, f, documents)
	}
	return nil
}

// entries returns the entries of a kind that the database has.
func entries[T any](ctx context.Context, db store.Store, f *assemble.StoreFlags, kind assemble.Stored[T]) []candidate {
	all, err := kind.All(ctx, db, f.Scope())
	if err != nil {
		return nil
	}
	var found []candidate
	for _, x := range all {
		found = append(found, candidate{kind.ID(x), cli.Visible(kind.Text(x))})
	}
	return found
}

// runs returns the runs that the command accepts.
func (c *completer) runs(ctx context.Context, j *assemble.Journal) []candidate {
	all, err := j.All(ctx, "")
	if err != nil || len(all) == 0 {
		return nil
	}
	hide := assemble.Secrets(c.sys.Env, nil)
	waiting := slices.Contains([]string{"approve", "deny", "answer"}, c.node.Name)
	var found []candidate
	for _, r := range all {
		if state := j.StateOf(r); !waiting || state == store.JournalWaiting {
			found = append(found, candidate{r.ID, cli.Visible(state + ": " + hide.String(r.Task))})
		}
	}
	return append(found, candidate{assemble.LastRun, "the run written to last"})
}

// keys returns the pending calls of the run on the line.
func (c *completer) keys(ctx context.Context, j *assemble.Journal) []candidate {
	if len(c.args) == 0 {
		return nil
	}
	r, err := j.Find(ctx, c.args[0])
	if err != nil {
		return nil
	}
	items, err := j.Inbox(ctx, c.sys)
	if err != nil {
		return nil
	}
	var all []candidate
	for _, i := range items {
		if i.Run == r.ID {
			all = append(all, candidate{string(i.Key), cli.Visible(i.Tool)})
		}
	}
	return append(all, candidate{"all", "all pending calls"})
}
