// Command demo is the command pawl demo as a program of its own. It builds in a third of the time,
// since it links no database and no cluster.
package main

import (
	"os"

	"github.com/alecthomas/kong"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/demo"
)

func main() {
	c := demo.Cmd{Alone: true}
	kong.Parse(&c, kong.Name("demo"), cli.HelpTexts(true))
	os.Exit(cli.Report(os.Stderr, c.Run(cli.Here())))
}
