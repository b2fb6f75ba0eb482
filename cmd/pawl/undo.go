package main

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// undoCmd undoes the last change of a file.
type undoCmd struct {
	File string `arg:"" optional:"" name:"FILE" help:"@undo_file"`
	assemble.FileFlags
	Root  string `placeholder:"DIR" help:"@tool_root"`
	Force bool   `help:"@undo_force"`
}

// Run restores a file.
func (c *undoCmd) Run(sys *cli.System) error {
	a, err := c.Read(c.File, sys)
	if err != nil {
		return err
	}
	assemble.Apply(c, a)
	change, err := a.Undo(context.Background(), sys.Env, c.Force)
	if err != nil {
		return cli.Fail(cli.StatusFailed, err,
			"checkpoints: true keeps changes, and pawl undo --force restores a file that differs")
	}
	_, err = fmt.Fprintf(sys.Out, "%s is as before the last call\n", cli.Visible(change.Path))
	return err
}
