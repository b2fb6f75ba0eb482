package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/docgen"
	"github.com/pawl-go/pawl/internal/test/soak"
)

var update = flag.Bool("update", false, "write docs/cli.md again")

// commands are all commands, each before its subcommands. The first is the program itself.
func commands(t *testing.T) []string {
	t.Helper()
	k, err := parser(&cli.System{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	var walk func(n *kong.Node, path string)
	walk = func(n *kong.Node, path string) {
		all = append(all, strings.TrimSpace(path))
		for _, below := range n.Children {
			if below.Type == kong.CommandNode {
				walk(below, path+" "+below.Name)
			}
		}
	}
	walk(k.Model.Node, "")
	return all
}

// docs/cli.md is the output of --help, command by command. Flags of several commands appear once,
// at the end. make docs writes it.
func TestCLIPage(t *testing.T) {
	soak.Sequential(t)
	t.Setenv("COLUMNS", "")
	var page strings.Builder
	page.WriteString("<!-- Made from the help of cmd/pawl. Change it there, then: make docs -->\n\n# The command\n\n" +
		"What `pawl COMMAND --help` and `pawl man COMMAND` say. Flags that several commands take stand [at the end](#flags-of-several-commands).\n")
	groups := sharedFlags(t)
	for _, command := range commands(t) {
		title := strings.TrimSpace("pawl " + command)
		text, also := withoutGroups(helpOf(t, command), groups)
		fmt.Fprintf(&page, "\n## %s\n\n```text\n%s\n```\n", title, text)
		if len(also) > 0 {
			fmt.Fprintf(&page, "\nAnd flags of [several commands](#flags-of-several-commands): %s.\n",
				strings.Join(also, "; "))
		}
	}
	page.WriteString("\n## Flags of several commands\n")
	for _, g := range groups {
		fmt.Fprintf(&page, "\n### %s\n\n```text\n%s\n```\n", g.title, g.text)
	}
	path := filepath.Join("..", "..", "docs", "cli.md")
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), page.String()); diff != "" {
		t.Errorf("docs/cli.md is not what --help says; make docs writes it. Got -, want +\n%s", diff)
	}
}

// helpOf returns the help of a command.
func helpOf(t *testing.T, command string) string {
	t.Helper()
	var out bytes.Buffer
	sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
	if status := execute(append(strings.Fields(command), "--help-all"), sys); status != 0 {
		t.Errorf("pawl %s --help: exit status %d", command, status)
	}
	return strings.TrimSpace(out.String()) + "\n"
}

// sharedGroup is a group of flags in the form of the page.
type sharedGroup struct {
	title, text string
	flags       []string
}

var flagLine = regexp.MustCompile(`(?m)^  (?:    |-\w, )?(--[\w-]+)`)

// titled returns the part of a help below the title of a group, with its start and its end.
func titled(help, title string) (text string, from, to int) {
	from = strings.Index(help, "\n"+title+":\n")
	if from < 0 {
		return "", 0, 0
	}
	rest := help[from+len(title)+3:]
	to = strings.Index(rest, "\n\n")
	if to < 0 {
		to = len(rest) - 1
	}
	return rest[:to], from, from + len(title) + 3 + to + 1
}

// sharedFlags are the groups of flags, each with all its flags of any command.
func sharedFlags(t *testing.T) []sharedGroup {
	t.Helper()
	var groups []sharedGroup
	k, err := parser(&cli.System{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range flagsOf(n) {
			if f.Group == nil {
				continue
			}
			title := strings.TrimSuffix(f.Group.Title, ":")
			if !slices.ContainsFunc(groups, func(have sharedGroup) bool { return have.title == title }) {
				groups = append(groups, sharedGroup{title: title})
			}
		}
		for _, below := range n.Children {
			walk(below)
		}
	}
	walk(k.Model.Node)
	var helps []string
	for _, command := range commands(t) {
		helps = append(helps, helpOf(t, command))
	}
	for i := range groups {
		g := &groups[i]
		seen := map[string]bool{}
		for _, help := range helps {
			text, _, _ := titled(help, g.title)
			flags := flagsIn(text)
			for _, f := range flags {
				seen[f] = true
			}
			if len(flags) > len(g.flags) {
				g.text, g.flags = text, flags
			}
		}
		if len(seen) != len(g.flags) {
			t.Errorf("%s: no command has all of its flags, so the page cannot show them together", g.title)
		}
	}
	return groups
}

func flagsIn(text string) []string {
	var all []string
	for _, m := range flagLine.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// withoutGroups removes the shared flags from a help and returns them.
func withoutGroups(help string, groups []sharedGroup) (string, []string) {
	var also []string
	for _, g := range groups {
		text, from, to := titled(help, g.title)
		if text == "" {
			continue
		}
		help = help[:from] + help[to:]
		link := fmt.Sprintf("[%s](#%s)", g.title, docgen.Anchors("# " + g.title)[0])
		if flags := flagsIn(text); len(flags) < len(g.flags) {
			link += " (`" + strings.Join(flags, "`, `") + "`)"
		}
		also = append(also, link)
	}
	return strings.TrimSpace(help), also
}

// A failure prints a line and returns a status, without a stack trace.
func TestInternalError(t *testing.T) {
	var out bytes.Buffer
	// no standard input: reading it panics
	sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
	if status := execute([]string{"tools", "call", "read_file", "-"}, sys); status != cli.StatusFailed {
		t.Errorf("got exit status %d, want %d", status, cli.StatusFailed)
	}
	if !strings.HasPrefix(out.String(), "pawl: error: internal error: ") || strings.Contains(out.String(),
		"goroutine") {
		t.Errorf("got %q", out.String())
	}
}
