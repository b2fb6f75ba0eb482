package main

import (
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/recording/vcr"
)

// recordCmd is about recordings.
type recordCmd struct {
	Import recordImportCmd `cmd:"" help:"@record_import"`
}

type recordImportCmd struct {
	File string `arg:"" name:"FILE" help:"A cassette in YAML."`
	Out  string `arg:"" optional:"" name:"OUT" help:"@record_import_out"`
}

// Help says what is read.
func (*recordImportCmd) Help() string {
	return `It reads what go-vcr writes (all versions), VCR for Ruby, and VCR.py with what is built on it (pytest-recording, pydantic-ai's). Keys and other headers are left behind. pawl run --replay OUT plays it: each request must be the recorded one, in its body too.`
}

// Run reads the cassette.
func (c *recordImportCmd) Run(sys *cli.System) error {
	b, err := cli.ReadFile("record import", c.File)
	if err != nil {
		var f *cli.Failure
		errors.As(err, &f)
		return cli.Usage("", "%s", f.Error()[len("record import: "):])
	}
	r, err := vcr.Parse(b, assemble.Secrets(sys.Env, nil))
	if err != nil {
		return cli.Usage("a cassette of go-vcr, VCR or VCR.py, in YAML", "%s: %v", c.File, err)
	}
	out, err := r.JSON()
	if err != nil {
		return err
	}
	if c.Out == "" {
		_, err = sys.Out.Write(out)
		return err
	}
	if err := cli.Savable("OUT", c.Out); err != nil {
		return err
	}
	if err := cli.WriteFile(c.Out, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.Err, "pawl: %s in %s\n", cli.Count(len(r.Exchanges), "exchange"), cli.Visible(c.Out))
	return err
}
