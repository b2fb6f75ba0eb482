package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
		if node = below(node, name); node == nil {
			return cli.Usage("there are "+commandNames()+"; see: pawl --help", "there is no command %s",
				strings.Join(c.Command, " "))
		}
	}
	page := manPage(node, cli.BuiltOn())
	man, err := exec.LookPath("man")
	if !sys.OutTerm || err != nil {
		_, err := sys.Out.Write(page)
		return err
	}
	show := exec.Command(man, "-l", "-")
	show.Stdin, show.Stdout, show.Stderr = bytes.NewReader(page), sys.Out, sys.Err
	return show.Run()
}

// below returns the subcommand of n with a name. nil means that there is none.
func below(n *kong.Node, name string) *kong.Node {
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && child.Name == name {
			return child
		}
	}
	return nil
}

// write writes the pages of n and of all commands below it.
func (c *manCmd) write(n *kong.Node) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return cli.Usage("", "--dir: %v", err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, pageName(n)+".1"), manPage(n, cli.BuiltOn()), 0o644); err != nil {
		return cli.Usage("", "--dir: %v", err)
	}
	var all []error
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			all = append(all, c.write(child))
		}
	}
	return errors.Join(all...)
}

// pageName returns the name of the page of a command, such as pawl-runs-show.
func pageName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// manPage returns the page of a command in the form of man(7).
func manPage(n *kong.Node, day time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %s 1 %s pawl \"pawl's manual\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(pageName(n)),
		day.UTC().Format(time.DateOnly), roff(pageName(n)), roff(manSummary(n)))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", roff(n.FullPath()),
		roff(strings.TrimSpace(strings.TrimPrefix(n.Summary(), n.Path()))))
	text, examples, _ := strings.Cut(n.Detail, examplesTitle)
	if n.Parent == nil {
		text = n.Help + "\n\n" + text
	}
	section(&b, "DESCRIPTION", text)
	if len(n.Positional) > 0 {
		b.WriteString(".SH ARGUMENTS\n")
		for _, p := range n.Positional {
			item(&b, p.Name, p.Help)
		}
	}
	manFlags(&b, n)
	also := []string{}
	if len(n.Children) > 0 {
		b.WriteString(".SH COMMANDS\n")
	}
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			item(&b, child.FullPath(), child.Help)
			also = append(also, pageName(child))
		}
	}
	section(&b, "EXAMPLES", examples)
	if n.Parent != nil {
		also = append([]string{pageName(n.Parent)}, also...)
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range also {
		also[i] = ".BR " + roff(name) + " (1)"
	}
	b.WriteString(strings.Join(also, ",\n") + "\n")
	return b.Bytes()
}

// manSummary returns the summary of a command without its full stop.
func manSummary(n *kong.Node) string {
	if n.Parent == nil {
		return "runs agents that call tools"
	}
	return strings.TrimSuffix(n.Help, ".")
}

// manFlags writes the flags. Flags that commands share follow under their titles.
func manFlags(b *bytes.Buffer, n *kong.Node) {
	b.WriteString(".SH OPTIONS\n")
	group := ""
	for _, f := range flagsOf(n) {
		if f.Group != nil && f.Group.Key != group {
			fmt.Fprintf(b, ".SS %s\n", roff(strings.TrimSuffix(f.Group.Title, ":")))
			group = f.Group.Key
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", " + name
		}
		if !f.IsBool() {
			name += "=" + f.FormatPlaceHolder()
		}
		item(b, name, f.Help)
	}
}

// flagsOf returns the flags of a command: those without a group, and the others by group in the
// order of their first flags.
func flagsOf(n *kong.Node) []*kong.Flag {
	all := slices.Concat(n.AllFlags(true)...)
	rank := map[string]int{"": -1}
	key := func(f *kong.Flag) string {
		if f.Group == nil {
			return ""
		}
		return f.Group.Key
	}
	for _, f := range all {
		if _, known := rank[key(f)]; !known {
			rank[key(f)] = len(rank)
		}
	}
	slices.SortStableFunc(all, func(a, b *kong.Flag) int { return rank[key(a)] - rank[key(b)] })
	return all
}

// item writes a name and its description.
func item(b *bytes.Buffer, name, text string) {
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(text))
}

// section writes prose under a title. Empty prose has no section. Indented lines are not wrapped.
func section(b *bytes.Buffer, title, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for i, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(p, "    ") {
			b.WriteString(".nf\n.RS 4\n")
			for l := range strings.Lines(p) {
				b.WriteString(roff(strings.TrimPrefix(strings.TrimRight(l, "\n"), "    ")) + "\n")
			}
			b.WriteString(".RE\n.fi\n")
			continue
		}
		b.WriteString(roff(p) + "\n")
	}
}

var atStart = regexp.MustCompile(`(?m)^[.']`)

// roff quotes text for the formatter.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "–", `\-`, "“", `"`, "”", `"`).Replace(s)
	return atStart.ReplaceAllStringFunc(s, func(c string) string { return `\&` + c })
}
