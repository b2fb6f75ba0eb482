package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// checkCmd checks files with agents.
type checkCmd struct {
	Files   []string `arg:"" optional:"" name:"FILE" help:"Files with agents."`
	Explain bool     `help:"@check_explain"`
	Task    string   `default:"Hello." placeholder:"TEXT" help:"@check_task"`
	Connect bool     `help:"@check_connect"`
	Schema  bool     `help:"Print the JSON Schema of files, for editors."`
	assemble.FileFlags
}

// Run checks the files.
func (c *checkCmd) Run(sys *cli.System) error {
	if c.Schema {
		_, err := sys.Out.Write(agentfile.Schema())
		return err
	}
	if here := assemble.FileHere(); len(c.Files) == 0 && here != "" {
		c.Files = []string{here}
	}
	if len(c.Files) == 0 {
		return cli.Usage("pawl check agent.yaml", "there is no file")
	}
	o, err := c.options(sys)
	if err != nil {
		return err
	}

	bad := false
	// All files are checked, also after a faulty one: a person repairs them together.
	for _, name := range c.Files {
		file, all, right := c.check(name, sys, o)
		for _, f := range all {
			fmt.Fprintln(sys.Out, cli.Visible(strings.ReplaceAll(f.Error(), "\n", " ")))
		}
		bad = bad || !right
		if c.Explain && right {
			if err := c.explain(file, sys, *o); err != nil {
				return err
			}
		}
	}
	if bad {
		return cli.Silent(cli.StatusFailed)
	}
	return nil
}

// check returns the findings about a file and its agents. right means that none of them is a fault:
// all are warnings.
func (c *checkCmd) check(name string, sys *cli.System, o *agentfile.Options) (file *agentfile.File,
	all agentfile.Findings, right bool) {
	file, err := agentfile.Load(name, &agentfile.LoadOptions{Getenv: sys.Env})
	all = agentfile.FindingsOf(err)
	right = err == nil
	for _, a := range file.Agents {
		all = append(all, a.Warnings()...)
		// An agent of a faulty file would be built from the half that could be read.
		if err != nil {
			continue
		}
		wrong, unstated := a.CheckEffects(context.Background(), o)
		right = right && len(wrong) == 0
		all = append(all, wrong...)
		all = append(all, a.Endings(o)...)
		all = append(all, unstated...)
	}
	return file, all, right
}

// options returns the options of a check. Only the check prints notices; the explanation does not
// repeat them.
func (c *checkCmd) options(sys *cli.System) (*agentfile.Options, error) {
	o, err := assemble.BuildOptions(sys)
	if err != nil {
		return nil, err
	}
	o.Connect = c.Connect
	return o, nil
}

// explain prints the agents of a file with all settings, and their first requests.
func (c *checkCmd) explain(file *agentfile.File, sys *cli.System, o agentfile.Options) error {
	// The check has shown the notices.
	o.Notice = nil
	for i, a := range file.Agents {
		if c.Agent != "" && a.Name != c.Agent {
			continue
		}
		x, err := a.Explain(context.Background(), &o, c.Task)
		if err != nil {
			return assemble.Misconfigured(err)
		}
		if i > 0 && c.Agent == "" {
			fmt.Fprintln(sys.Out, "\n---") // a document of YAML for each agent
		}
		fmt.Fprintf(sys.Out, "# %s, when all is said:\n%s\n", cli.Visible(file.Name), cli.Visible(string(x.Agent)))

		if places := a.Protected(); len(places) > 0 {
			fmt.Fprintf(sys.Out, "# Protected in %s: %s\n\n",
				cli.Visible(a.Directory()), cli.Visible(strings.Join(places, ", ")))
		}
		if x.Window > 0 {
			fmt.Fprintf(sys.Out, "# Context window: %d tokens, %d of them for a request; "+
				"instructions and tools take about %d\n\n", x.Window, x.Room, x.Taken)
		}

		fmt.Fprintln(sys.Out, "# The first request:")
		if x.Method != "" {
			fmt.Fprintf(sys.Out, "%s %s\n", x.Method, cli.Visible(x.URL))
		}
		fmt.Fprintf(sys.Out, "%s\n", x.Body)
	}
	return nil
}
