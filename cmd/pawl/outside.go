package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl/tools/outside"
)

// outsideFlags name files that define tools: programs, requests, OpenAPI documents.
type outsideFlags struct {
	ToolFile      []string `name:"tool-file" sep:"none" placeholder:"FILE" help:"Tools that are defined in YAML or JSON, see docs/outside.md: programs (command), requests (http), the operations of an API (openapi). May be given again."`
	AllowCommands bool     `name:"allow-commands" help:"Let the command tools of --tool-file run their programs, with your rights."`
}

// mostLeftOut is how many operations are named that could be no tools; the rest is counted.
const mostLeftOut = 10

// sets makes the tools of the files, a set for each, and returns what is to be hidden. With show, programs are there to be looked at, whether or not
// they may run.
func (f *outsideFlags) sets(sys *system, allow []string, show bool) (sets []toolset, hidden []string, err error) {
	for _, path := range f.ToolFile {
		b, err := readFile("--tool-file", path)
		if err != nil {
			return nil, nil, err
		}
		defs, err := outside.Parse(b)
		if err != nil {
			return nil, nil, usage("docs/outside.md has the form", "--tool-file %s: %v", path, err)
		}
		o := &outside.Options{Dir: filepath.Dir(path), Allow: allow, Getenv: sys.env}
		if f.AllowCommands || show {
			o.Run = outside.Exec
		}
		set, err := outside.New(defs, o)
		if err != nil {
			hint := "docs/outside.md has the form"
			if strings.Contains(err.Error(), "--allow-commands") {
				hint = "--allow-commands"
			}
			return nil, nil, usage(hint, "--tool-file %s: %v", path, err)
		}
		for i, left := range set.LeftOut() {
			if i == mostLeftOut {
				fmt.Fprintf(sys.err, "pawl: %s: %d more were left out\n", path, len(set.LeftOut())-i)
				break
			}
			fmt.Fprintf(sys.err, "pawl: %s: left out: %s\n", path, visible(left.String()))
		}
		sets = append(sets, toolset{filepath.Base(path), set})
		hidden = append(hidden, set.Secrets()...)
	}
	return sets, hidden, nil
}
