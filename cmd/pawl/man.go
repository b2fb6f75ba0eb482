package main

import (
	"bytes"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/alecthomas/kong"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// manCmd shows the manual. Its pages are generated from the grammar, like the help.
type manCmd struct {
	Command []string `arg:"" optional:"" name:"COMMAND" help:"@man_command"`
	Dir     string   `placeholder:"DIR" help:"Write a page for every command into this folder."`
}

// Run shows a page, or writes all pages.
func (c *manCmd) Run(sys *cli.System) error {
	k, err := parser(sys)
	if err != nil {
		return err
	}
	if c.Dir != "" {
		return c.write(k.Model.Node)
	}

	node := k.Model.Node
	for _, name := range c.Command {
		i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == name })
		if i < 0 {
			return cli.Usage("there are "+commandNames()+"; see: pawl --help", "there is no command %s",
				strings.Join(c.Command, " "))
		}
		node = node.Children[i]
	}
	page, err := manPage(node)
	if err != nil {
		return err
	}

	// A pipe gets the source, and so does a machine without man, where it can still be read.
	man, err := exec.LookPath("man")
	if !sys.OutTerm || err != nil {
		_, err := sys.Out.Write(page)
		return err
	}
	show := exec.Command(man, "-l", "-")
	show.Stdin = bytes.NewReader(page)
	show.Stdout = sys.Out
	show.Stderr = sys.Err
	return show.Run()
}

// write writes the pages of n and of all commands below it.
func (c *manCmd) write(n *kong.Node) error {
	page, err := manPage(n)
	if err == nil {
		err = os.MkdirAll(c.Dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(c.Dir, pageName(n)+".1"), page, 0o644)
	}
	if err != nil {
		return cli.Usage("", "--dir: %v", err)
	}
	for _, child := range shownCommands(n) {
		if err := c.write(child); err != nil {
			return err
		}
	}
	return nil
}

// pageName returns the name of the page of a command, such as pawl-runs-show.
func pageName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// shownCommands returns the commands of n that are not hidden.
func shownCommands(n *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(c *kong.Node) bool {
		return c.Type != kong.CommandNode || c.Hidden
	})
}

//go:embed man.tmpl
var manTemplate string

// manPage returns the page of a command in the form of man(7).
func manPage(n *kong.Node) ([]byte, error) {
	t, err := template.New("man").Funcs(template.FuncMap{
		"commands": shownCommands,
		"day":      func() string { return cli.BuiltOn().UTC().Format(time.DateOnly) },
		"flags":    flagsOf,
		"page":     pageName,
		"roff":     roff,
		"section":  section,
		"trim":     func(s string) string { return strings.TrimRight(s, ".:") },
		"upper":    strings.ToUpper,
		"usage":    func(n *kong.Node) string { return strings.TrimSpace(strings.TrimPrefix(n.Summary(), n.Path())) },
	}).Parse(manTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, n)
	return b.Bytes(), err
}

// flagsOf returns the flags of a command: those without a group, and the others by group in the
// order of their first flags.
func flagsOf(n *kong.Node) []*kong.Flag {
	all := slices.Concat(n.AllFlags(true)...)
	key := func(f *kong.Flag) string {
		if f.Group == nil {
			return ""
		}
		return f.Group.Key
	}

	rank := map[string]int{"": -1}
	for _, f := range all {
		if _, known := rank[key(f)]; !known {
			rank[key(f)] = len(rank)
		}
	}
	// The order within a group stays the order of the grammar.
	slices.SortStableFunc(all, func(a, b *kong.Flag) int { return rank[key(a)] - rank[key(b)] })
	return all
}

// section returns the part of a text before or after its examples, under a title. Empty prose has
// no section. Indented lines are not wrapped.
func section(title, text string) string {
	text, examples, _ := strings.Cut(text, examplesTitle)
	if title == "EXAMPLES" {
		text = examples
	}
	text = strings.Trim(text, "\n")
	if text == "" {
		return ""
	}

	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if lines, fixed := strings.CutPrefix("\n"+p, "\n    "); fixed {
			p = ".nf\n.RS 4\n" + roff(strings.ReplaceAll(lines, "\n    ", "\n")) + "\n.RE\n.fi"
		} else {
			p = roff(p)
		}
		paragraphs[i] = p + "\n"
	}
	return ".SH " + title + "\n" + strings.Join(paragraphs, ".PP\n")
}

var atStart = regexp.MustCompile(`(?m)^[.']`)

// roff quotes text for the formatter: its escapes, its requests, which start a line with a dot or
// an apostrophe, and characters that old formatters do not have.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "–", `\-`, "“", `"`, "”", `"`).Replace(s)
	return atStart.ReplaceAllStringFunc(s, func(c string) string { return `\&` + c })
}
