package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/runs"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/store"
)

// completionCmd prints the script by which a shell completes command lines of pawl. The scripts ask
// the program at each press of the key, so they are never out of date.
type completionCmd struct {
	Shell string `arg:"" name:"SHELL" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

//go:embed completion
var completionScripts embed.FS

// Run prints the script.
func (c *completionCmd) Run(sys *cli.System) error {
	b, err := completionScripts.ReadFile("completion/pawl." + c.Shell)
	if err != nil {
		return err
	}
	_, err = sys.Out.Write(b)
	return err
}

// completeWord is the hidden command of the scripts: pawl __complete SHELL, and the typed words.
const completeWord = "__complete"

// complete prints the candidates for the word at the cursor: a value a line, for zsh and fish with
// a tab and its description. A last line that starts with a colon is an instruction to the shell.
// zsh and fish pass the words up to the cursor, bash its word breaks and the line up to the cursor.
func complete(args []string, sys *cli.System) error {
	if len(args) < 2 {
		return nil
	}
	shell := args[0]
	words := args[1:]
	breaks := "" // the characters at which bash begins a new word
	if shell == "bash" {
		// Its own words are cut at the breaks, as in effect: and write, so the line is split here.
		breaks = args[1]
		words = wordsOf(strings.Join(args[2:], " "))[1:]
	}
	before := words[:len(words)-1]
	current := words[len(words)-1]

	k, err := parser(sys, before...)
	if err != nil {
		return err
	}
	done := &completer{sys: sys, node: k.Model.Node}
	done.complete(before, current)

	// Bash replaces only what stands behind the last of its breaks.
	cut := strings.LastIndexAny(current, breaks) + 1
	for _, c := range done.found {
		// A value with white space would be several words of the line.
		if !strings.HasPrefix(c.value, current) || strings.ContainsAny(c.value, " \n\t") {
			continue
		}
		if shell == "bash" {
			fmt.Fprintln(sys.Out, c.value[cut:])
			continue
		}
		fmt.Fprintln(sys.Out, strings.TrimSuffix(c.value+"\t"+cli.Line(c.what, 60), "\t"))
	}
	if done.besides != "" {
		fmt.Fprintln(sys.Out, done.besides)
	}
	return nil
}

// wordsOf splits an unfinished line as a shell does. The last word is the word at the cursor, which
// may be empty.
func wordsOf(text string) []string {
	words := []string{""}
	quote := rune(0)
	escaped := false
	for _, r := range text {
		last := &words[len(words)-1]
		isBlank := r == ' ' || r == '\t'
		isQuote := r == '\'' || r == '"'

		switch {
		case escaped:
			*last += string(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && isQuote:
			quote = r
		case quote == 0 && isBlank:
			if *last != "" || len(words) == 1 {
				words = append(words, "")
			}
		default:
			*last += string(r)
		}
	}

	if len(words) == 1 { // the name of the program alone
		words = append(words, "")
	}
	return words
}

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
	prefix  string              // what the shell wants before each value
	found   []candidate
	besides string // an instruction to the shell; empty means none
}

// mostTime limits the time for reading the database, because a person waits.
const mostTime = time.Second

// complete reads the words before the cursor, and finds the candidates for current.
func (c *completer) complete(before []string, current string) {
	open, flags := c.read(before)
	name, value, whole := strings.Cut(current, "=")
	switch {
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

// read reads the words before the cursor. open is a flag whose value is the next word, or nil.
// flags reports whether the next word may be a flag.
func (c *completer) read(before []string) (open *kong.Flag, flags bool) {
	c.said = map[string][]string{}
	flags = true
	for _, w := range before {
		switch {
		case open != nil:
			c.said[open.Name] = append(c.said[open.Name], w)
			open = nil
		case flags && w == "--":
			flags = false
		case flags && len(w) > 1 && w[0] == '-':
			name, value, whole := strings.Cut(w, "=")
			f := c.flag(name)
			if f == nil { // a mistake, or a flag of a later version
				continue
			}

			c.said[f.Name] = append(c.said[f.Name], value)
			// A flag with its value in the same word, or without any, takes no further word.
			if !whole && !f.IsBool() {
				open = f
			}
		default:
			c.argument(w)
		}
	}
	return open, flags
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
		// A flag of the default command may follow the name of the command above it.
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
		c.offer("--"+f.Name, cli.FirstSentence(f.Help, 60))
	}
}

// place offers commands, or values of the next argument.
func (c *completer) place(current string) {
	if len(c.args) == 0 {
		for _, child := range c.node.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				c.offer(child.Name, cli.FirstSentence(child.Help, 60))
			}
		}
	}

	places := c.node.Positional
	if len(places) == 0 {
		return
	}
	n := min(len(c.args), len(places)-1)
	// Only the last argument can take several words.
	if len(c.args) >= len(places) && !places[n].IsCumulative() {
		return
	}
	c.value(places[n], places[n].Name, current, "")
}

// value offers the values of a flag or an argument. kind is its placeholder in the help, and before
// the text that each candidate starts with.
func (c *completer) value(v *kong.Value, kind, current, before string) {
	c.prefix = before
	if v.Enum != "" {
		for _, e := range v.EnumSlice() {
			if e != "" { // the value of a flag that is not given
				c.offer(e, "")
			}
		}
		return
	}
	if v.IsSlice() && v.Tag.Sep == ',' && v.Flag != nil { // in a list, the last word is completed
		c.prefix += current[:strings.LastIndexByte(current, ',')+1]
	}

	// Placeholders are words for people: an agent's is NAME, and KEY[=ARGS] begins with a KEY.
	if v.Name == "agent" {
		kind = "AGENT"
	}
	kind, _, _ = strings.Cut(kind, "[")
	switch kind {
	case "FILE", "FILE.yaml", "SCHEMA.json", "PATH", "OUT":
		c.besides = besidesFiles
	case "DIR":
		c.besides = besidesDirs
	case "SET":
		c.offerAll(agentfile.SetNames()...)
	case "TOOL", "CHOICE":
		c.tools(kind)
	case "PROVIDER:NAME":
		c.models()
	case "AGENT":
		c.agents()
	case "RUN", "A", "B", "THREAD", "SCHEDULE", "SKILL", "KEY", "KEY=TEXT", "MEMORY", "DOCUMENT":
		c.stored(kind)
	}
}

// offer adds a value with its description.
func (c *completer) offer(value, what string) {
	c.found = append(c.found, candidate{c.prefix + value, what})
}

// offerAll adds values without descriptions.
func (c *completer) offerAll(values ...string) {
	for _, v := range values {
		c.offer(v, "")
	}
}

// tools offers the built-in tools, and the other words that the flag accepts.
func (c *completer) tools(kind string) {
	switch {
	case kind == "CHOICE":
		c.offerAll("auto", "none", "required")
	case c.node.Parent == nil || c.node.Parent.Name != "tools":
		for e := pawl.EffectUnstated; e <= pawl.EffectCompose; e++ {
			c.offerAll("effect:" + e.String())
		}
	}

	// Messages would appear in the middle of the line that the person writes.
	quiet := *c.sys
	quiet.Err = io.Discard
	tools, _, closeSets, err := builtinTools(context.Background(), &quiet, assemble.ToolFlags{},
		assemble.OutsideFlags{}, assemble.ServerFlags{})
	if err != nil {
		return
	}
	defer closeSets()
	for _, t := range tools {
		c.offer(t.Name, cli.FirstSentence(t.Description, 60))
	}
}

// models offers the models of the catalogue, and the providers, which any name may follow.
func (c *completer) models() {
	if known, err := assemble.Catalogue(c.sys, "--catalog", c.last("catalog")); err == nil {
		for _, m := range known.Models("") {
			if e, _ := known.Ending(m.Name(), time.Now()); !e.Over {
				c.offer(m.Name(), "")
			}
		}
	}
	for _, p := range provider.Names() {
		c.offer(p+":", "")
	}
	c.besides = besidesOpen
}

// last returns the last value of a flag on the line. Empty means that it is not given.
func (c *completer) last(flag string) string {
	if v := c.said[flag]; v != nil {
		return v[len(v)-1]
	}
	return ""
}

// agents offers the agents of the file on the line.
func (c *completer) agents() {
	for _, name := range append(slices.Clone(c.args), c.said["file"]...) {
		if !assemble.IsAgentFile(name) {
			continue
		}
		file, _ := agentfile.Load(name, &agentfile.LoadOptions{Getenv: c.sys.Env})
		for _, a := range file.Agents {
			c.offer(a.Name, "")
		}
		return
	}
}

// stored offers the IDs of entries of the database, unless it is on a server.
func (c *completer) stored(kind string) {
	f := &assemble.StoreFlags{DB: c.last("db"), Tenant: c.last("tenant"), User: c.last("user")}
	// A completion must not wait for a network.
	if strings.Contains(f.DB, "://") {
		return
	}
	j, err := f.OpenRuns(c.sys)
	if err != nil {
		return
	}
	defer j.Close()
	db, err := j.Database.Open()
	if err != nil {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	switch kind {
	case "RUN", "A", "B":
		c.runs(ctx, j)
	case "KEY", "KEY=TEXT":
		c.keys(ctx, j)
	default:
		storedKinds[kind](ctx, c, db, f.Scope())
	}
}

// storedKinds offer the entries of the database, by the placeholder of their ID.
var storedKinds = map[string]func(context.Context, *completer, store.Store, store.Scope){
	"THREAD":   entries(threads),
	"SCHEDULE": entries(runs.Schedules),
	"SKILL":    entries(skills),
	"MEMORY":   entries(memories),
	"DOCUMENT": entries(documents),
}

func entries[T any](kind assemble.Stored[T]) func(context.Context, *completer, store.Store, store.Scope) {
	return func(ctx context.Context, c *completer, db store.Store, s store.Scope) {
		all, _ := kind.All(ctx, db, s)
		for _, x := range all {
			c.offer(kind.ID(x), cli.Visible(kind.Text(x)))
		}
	}
}

// runs offers the runs that the command accepts.
func (c *completer) runs(ctx context.Context, j *assemble.Journal) {
	all, err := j.All(ctx, "")
	if err != nil || len(all) == 0 {
		return
	}

	hide := assemble.Secrets(c.sys.Env, nil)
	waiting := slices.Contains([]string{"approve", "deny", "answer"}, c.node.Name)
	for _, r := range all {
		if state := j.StateOf(r); !waiting || state == store.JournalWaiting {
			c.offer(r.ID, cli.Visible(state+": "+hide.String(r.Task)))
		}
	}
	c.offer(assemble.LastRun, "the run written to last")
}

// keys offers the pending calls of the run on the line.
func (c *completer) keys(ctx context.Context, j *assemble.Journal) {
	if len(c.args) == 0 {
		return
	}
	r, err := j.Find(ctx, c.args[0])
	if err != nil {
		return
	}
	items, err := j.Inbox(ctx, c.sys)
	if err != nil {
		return
	}

	// Other runs have pending calls too.
	for _, i := range items {
		if i.Run == r.ID {
			c.offer(string(i.Key), cli.Visible(i.Tool))
		}
	}
	c.offer("all", "all pending calls")
}
