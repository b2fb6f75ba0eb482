package main

import (
	"fmt"
	"runtime/debug"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

type versionCmd struct{}

// Run prints the version, the commit if it is known, and the Go version.
func (versionCmd) Run(sys *cli.System) error {
	_, err := fmt.Fprintln(sys.Out, cli.Version(debug.ReadBuildInfo()))
	return err
}
