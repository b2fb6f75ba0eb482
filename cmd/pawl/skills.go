package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

// skillsCmd is about the skills that models have made. Those of folders are looked at where they
// stand.
type skillsCmd struct {
	List   skillsListCmd   `cmd:"" help:"@skills_list"`
	Show   skillsShowCmd   `cmd:"" help:"Show the text of one."`
	Delete skillsDeleteCmd `cmd:"" help:"Remove skills with all their versions."`
}

func skillName(k store.Skill) string { return k.Name }

func skills(ctx context.Context, db store.Skills, s store.Scope) ([]store.Skill, error) {
	return cli.Everything(func(p store.Page) ([]store.Skill, error) { return db.Skills(ctx, s, p) }, skillName)
}

func noSkill(ctx context.Context, db store.Skills, s store.Scope, name string) error {
	all, err := skills(ctx, db, s)
	if err != nil {
		return err
	}
	return cli.Unknown("skill", name, cli.Names(all, skillName), "pawl skills list")
}

type skillsListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	assemble.StoreFlags
}

// Run lists the skills of the user.
func (c *skillsListCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := skills(context.Background(), db, c.Scope())
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, all)
	}
	w := tabwriter.NewWriter(sys.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SKILL\tVERSION\tUPDATED\tWHAT IT IS FOR")
	for _, k := range all {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", cli.Visible(k.Name), k.Version, k.Updated.Format(time.DateOnly),
			cli.Line(k.Description, 50))
	}
	return w.Flush()
}

type skillsShowCmd struct {
	Name    string `arg:"" name:"SKILL" help:"As pawl skills list shows it."`
	Version int    `placeholder:"N" help:"An older version, from 1. Default: the newest."`
	JSON    bool   `name:"json" help:"Print a JSON object."`
	assemble.StoreFlags
}

// Run shows a skill.
func (c *skillsShowCmd) Run(sys *cli.System) error {
	if c.Version < 0 {
		return cli.Usage("versions count from 1; without the flag the newest is shown", "--version %d is less than 0",
			c.Version)
	}
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx := context.Background()
	k, err := db.Skill(ctx, c.Scope(), c.Name, c.Version)
	if errors.Is(err, store.ErrNotFound) {
		if newest, err := db.Skill(ctx, c.Scope(), c.Name, 0); err == nil {
			return cli.Fail(cli.StatusFailed, fmt.Errorf("skill %s has no version %d; the newest is %d", c.Name,
				c.Version, newest.Version), "")
		}
		return noSkill(ctx, db, c.Scope(), c.Name)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, k)
	}
	fmt.Fprintf(sys.Out, "%s, version %d: %s\n\n%s\n", cli.Visible(k.Name), k.Version, cli.Visible(k.Description),
		cli.Visible(k.Text))
	for _, l := range []struct {
		what string
		list []string
	}{{"tags", k.Tags}, {"tools", k.Tools}, {"see also", k.References}} {
		if len(l.list) > 0 {
			fmt.Fprintf(sys.Out, "\n%s: %s\n", l.what, cli.Visible(strings.Join(l.list, ", ")))
		}
	}
	return nil
}

type skillsDeleteCmd struct {
	Names []string `arg:"" name:"SKILL" help:"As pawl skills list shows them."`
	assemble.StoreFlags
}

// Run removes skills, and reports the first missing one.
func (c *skillsDeleteCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	return cli.Deleted(sys.Out, c.Names, func(name string) error {
		return db.DeleteSkill(context.Background(), c.Scope(), name)
	},
		func(name string) error { return noSkill(context.Background(), db, c.Scope(), name) })
}
