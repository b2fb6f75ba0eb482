package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// initCmd writes a first agent's file.
type initCmd struct {
	File string `arg:"" optional:"" default:"agent.yaml" help:"The file. Default: agent.yaml."`
	Kind string `default:"minimal" enum:"${kinds}" placeholder:"KIND" help:"@init_kind"`
}

// Run writes the file. It fails if the file exists.
func (c *initCmd) Run(sys *cli.System) error {
	text, _ := agentfile.Templates.ReadFile("templates/" + c.Kind + ".yaml")
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usage("pawl init OTHER.yaml", "%s already exists, and is not changed", c.File)
	}
	if err != nil {
		return cli.Usage("", "%s", cli.Plain(err))
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.Out, "wrote %s; next: %s check %[1]s\n", cli.Visible(c.File), sys.Self())
	return err
}
