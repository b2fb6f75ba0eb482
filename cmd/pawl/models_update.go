package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/provider/catalog"
)

// modelsUpdateCmd refreshes the catalogue of this user.
type modelsUpdateCmd struct {
	Source string `arg:"" name:"FILE|URL" help:"@models_update_source"`
	File   string `placeholder:"FILE" help:"@models_update_file"`
	Dry    bool   `name:"dry-run" help:"Show the changes, and write nothing."`
}

// mostCatalogue limits the size of a catalogue. The list of models.dev has about 2 MiB.
const mostCatalogue = 32 << 20

// Run reads the source, prints the changes, and writes the catalogue.
func (c *modelsUpdateCmd) Run(sys *cli.System) error {
	path := cmp.Or(c.File, assemble.UserCatalogue(sys))
	if path == "" {
		return cli.Usage("--file FILE", "HOME is not set, so there is no place for the catalogue")
	}
	before, err := assemble.Catalogue(sys, "--file", existing(c.File))
	if err != nil {
		return err
	}

	text, err := c.read()
	if err != nil {
		return cli.Fail(cli.StatusFailed, fmt.Errorf("%s: %w", c.Source, err), "")
	}
	read, err := catalog.Read(text, c.Source, time.Now())
	if err != nil {
		return cli.Usage("pawl models list --json prints a valid one", "%s: %v", c.Source, err)
	}

	// Each change is printed, since prices are limits of cost and a source may be wrong.
	after := before.Merge(read)
	changes := before.Changes(after)
	for _, change := range changes {
		if change.New {
			fmt.Fprintf(sys.Out, "new      %s\n", cli.Visible(change.Model))
			continue
		}
		fmt.Fprintf(sys.Out, "changed  %s: %s\n", cli.Visible(change.Model), strings.Join(change.Fields, ", "))
	}
	if c.Dry || len(changes) == 0 {
		_, err = fmt.Fprintf(sys.Out, "%s; nothing was written\n", cli.Count(len(changes), "change"))
		return err
	}
	if err := write(path, after); err != nil {
		return cli.Usage("", "%s: %s", path, cli.Plain(err))
	}
	_, err = fmt.Fprintf(sys.Out, "%s; wrote %s\n", cli.Count(len(changes), "change"), cli.Visible(path))
	return err
}

// existing returns the file if it exists. A catalogue that is written for the first time begins
// with the built-in one.
func existing(file string) string {
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// read returns the text of the source: a file, or the answer to a GET request without a key.
func (c *modelsUpdateCmd) read() ([]byte, error) {
	if !strings.Contains(c.Source, "://") {
		text, err := os.ReadFile(c.Source)
		if err != nil {
			return nil, errors.New(cli.Cause(err))
		}
		return text, nil
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Source, nil)
	if err != nil {
		return nil, errors.New("want a file, or an address with http:// or https://")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, errors.New(cli.Cause(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", res.Status)
	}

	// One byte more shows that a catalogue is too large, and not of just this size.
	text, err := io.ReadAll(io.LimitReader(res.Body, mostCatalogue+1))
	if len(text) > mostCatalogue {
		return nil, fmt.Errorf("it has more than %d bytes", mostCatalogue)
	}
	return text, err
}

// write replaces the file with the models of c.
func write(path string, c *catalog.Catalog) error {
	text, err := json.MarshalIndent(c.Models(""), "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return cli.WriteFile(path, append(text, '\n'))
}
