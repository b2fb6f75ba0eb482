package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

// skillsCmd shows the skills that models have created. Skills of folders are files.
type skillsCmd struct {
	List   skillsListCmd   `cmd:"" help:"@skills_list"`
	Show   skillsShowCmd   `cmd:"" help:"Show the text of one."`
	Delete skillsDeleteCmd `cmd:"" help:"Remove skills with all their versions."`
}

func skillName(k store.Skill) string { return k.Name }

var skills = assemble.Stored[store.Skill]{
	Kind:    "skill",
	Command: "pawl skills list",
	ID:      skillName,
	Text:    func(k store.Skill) string { return k.Description },
	All:     assemble.Pages(store.Store.Skills, skillName),
	Remove:  store.Store.DeleteSkill,
	Head:    "SKILL|VERSION|UPDATED|WHAT IT IS FOR",
	Row: func(k store.Skill) []any {
		return []any{cli.Visible(k.Name), k.Version, k.Updated.Format(time.DateOnly), cli.Line(k.Description, 50)}
	},
}

type skillsListCmd struct{ assemble.ListFlags }

// Run lists the skills of the user.
func (c *skillsListCmd) Run(sys *cli.System) error { return skills.List(sys, &c.ListFlags) }

type skillsShowCmd struct {
	Name    string `arg:"" name:"SKILL" help:"The name, as pawl skills list shows it."`
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
	return c.With(sys, false, func(ctx context.Context, db store.Store) error {
		k, err := db.Skill(ctx, c.Scope(), c.Name, c.Version)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return c.missing(ctx, db)
		case err != nil:
			return err
		case c.JSON:
			return cli.PrintJSON(sys.Out, k)
		}

		fmt.Fprintf(sys.Out, "%s, version %d: %s\n\n%s\n",
			cli.Visible(k.Name), k.Version, cli.Visible(k.Description), cli.Visible(k.Text))
		for _, l := range []struct {
			what string
			list []string
		}{
			{"tags", k.Tags},
			{"tools", k.Tools},
			{"see also", k.References},
		} {
			if len(l.list) > 0 {
				fmt.Fprintf(sys.Out, "\n%s: %s\n", l.what, cli.Visible(strings.Join(l.list, ", ")))
			}
		}
		return nil
	})
}

// missing returns the failure for a skill that is not stored, or for one of its versions.
func (c *skillsShowCmd) missing(ctx context.Context, db store.Store) error {
	newest, err := db.Skill(ctx, c.Scope(), c.Name, 0)
	if err != nil {
		return skills.Unknown(ctx, db, c.Scope(), c.Name)
	}
	return cli.Fail(cli.StatusFailed,
		fmt.Errorf("skill %s has no version %d; the newest is %d", c.Name, c.Version, newest.Version), "")
}

type skillsDeleteCmd struct {
	Names []string `arg:"" name:"SKILL" help:"The names, as pawl skills list shows them."`
	assemble.StoreFlags
}

// Run removes skills, and reports the first missing entry.
func (c *skillsDeleteCmd) Run(sys *cli.System) error {
	return skills.Delete(sys, &c.StoreFlags, c.Names)
}
