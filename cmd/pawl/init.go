package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/doctor"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/demomodel"
)

// initCmd writes a first agent's file.
type initCmd struct {
	File  string `arg:"" optional:"" default:"agent.yaml" help:"The file. Default: agent.yaml."`
	Kind  string `default:"minimal" enum:"${kinds}" placeholder:"KIND" help:"@init_kind"`
	Model string `placeholder:"NAME" help:"@init_model"`
}

// Run writes the file, and the documents that its agent needs. It fails if the file exists.
func (c *initCmd) Run(sys *cli.System) error {
	text, _ := agentfile.Templates.ReadFile("templates/" + c.Kind + ".yaml")
	found := doctor.Models(context.Background(), sys)
	model, why := c.choose(found)
	// The comments still say what the demo model is.
	asDefault := func(name string) []byte { return []byte(":-" + name + "}") }
	text = bytes.ReplaceAll(text, asDefault(demomodel.Prefix+c.Kind), asDefault(model))

	err := writeNew(c.File, text)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usage("pawl init OTHER.yaml", "%s already exists, and is not changed", c.File)
	}
	if err != nil {
		return cli.Usage("", "%s", cli.Plain(err))
	}
	written, err := c.documents()
	if err != nil {
		return err
	}

	for _, name := range written {
		fmt.Fprintf(sys.Out, "wrote %s\n", cli.Visible(name))
	}
	fmt.Fprintf(sys.Out, "model %s, %s\n", cli.Visible(model), why)
	for _, m := range found {
		if m.Name != model {
			fmt.Fprintf(sys.Out, "also here: %s, %s\n", cli.Visible(m.Name), m.Why)
		}
	}
	_, err = fmt.Fprintf(sys.Out, "wrote %s; next: %s check %[1]s, then %[2]s chat %[1]s\n", cli.Visible(c.File), sys.Self())
	return err
}

// choose returns the model of the file, and why: the model of --model, else the first that
// can be used here, else the demo model of the template.
func (c *initCmd) choose(found []doctor.Found) (model, why string) {
	switch {
	case c.Model != "":
		return c.Model, "as --model says"
	case len(found) > 0:
		return found[0].Name, found[0].Why
	}
	return demomodel.Prefix + c.Kind, "which follows rules and needs no key; a real one is one line of the file"
}

// documents writes the documents of the template next to the file, and returns their names. A file
// that exists is not changed.
func (c *initCmd) documents() (written []string, err error) {
	from := "templates/" + c.Kind
	err = fs.WalkDir(agentfile.Templates, from, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return fs.SkipAll // the template needs none
		}
		if err != nil || entry.IsDir() {
			return err
		}

		text, err := agentfile.Templates.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(filepath.Dir(c.File), filepath.FromSlash(strings.TrimPrefix(name, from+"/")))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		err = writeNew(to, text)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		written = append(written, to)
		return err
	})
	return written, err
}

// writeNew writes a file that does not exist yet. Otherwise the error is fs.ErrExist.
func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
