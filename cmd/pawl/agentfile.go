package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/pawl-go/pawl/config"
)

// fileFlags choose an agent of a file.
type fileFlags struct {
	Agent string `placeholder:"NAME" help:"Which agent of the file, where it has several."`
}

// isAgentFile reports whether an argument names a file with agents, and is no task.
func isAgentFile(arg string) bool {
	return !strings.ContainsAny(arg, " \n") && (strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml"))
}

// read returns the agent in the file called name; "" is an empty one, for flags alone.
func (f *fileFlags) read(name string, sys *system) (*config.Agent, error) {
	if name == "" {
		if f.Agent != "" {
			return nil, usage("pawl run FILE.yaml --agent NAME", "--agent: there is no file with agents")
		}
		return new(config.Agent), nil
	}
	file, err := config.Load(name, &config.LoadOptions{Getenv: sys.env})
	if err != nil {
		return nil, misconfigured(err)
	}
	a, err := file.Agent(f.Agent)
	if err != nil {
		return nil, misconfigured(err)
	}
	for _, w := range a.Warnings() {
		sys.tell(w.Error())
	}
	return a, nil
}

// checkCmd says what is wrong with files.
type checkCmd struct {
	Files   []string `arg:"" optional:"" name:"FILE" help:"Files with agents."`
	Explain bool     `help:"Print each agent as it is when all is said, and the first request that a run of it makes, byte for byte. Nothing is sent."`
	Task    string   `default:"Hello." placeholder:"TEXT" help:"The task of the request that --explain shows. Default: Hello."`
	Connect bool     `help:"Ask MCP servers for their tools, which starts the programs of some. Without it tools.lock stands for them, and names that may be theirs are not checked."`
	Schema  bool     `help:"Print the JSON Schema of files, for editors."`
	fileFlags
}

// Help says what comes out.
func (*checkCmd) Help() string {
	return `Each finding is a line: FILE:LINE:COLUMN: what is wrong (what would be right). The status is 1 if there is one, 0 if not; warnings are told and change nothing. docs/yaml.md has the form.

An editor knows the keys with a first line like this: # yaml-language-server: $schema=agent.schema.json, where the file is what --schema prints.`
}

// Run checks the files.
func (c *checkCmd) Run(sys *system) error {
	if c.Schema {
		_, err := sys.out.Write(config.Schema())
		return err
	}
	if len(c.Files) == 0 {
		return usage("pawl check agent.yaml", "there is no file")
	}
	bad := false
	for _, name := range c.Files {
		file, err := config.Load(name, &config.LoadOptions{Getenv: sys.env})
		all := config.FindingsOf(err)
		bad = bad || err != nil
		for _, a := range file.Agents {
			all = append(all, a.Warnings()...)
			if err == nil {
				wrong := a.Check(context.Background(), c.options(sys))
				bad = bad || len(wrong) > 0
				all = append(all, wrong...)
			}
		}
		for _, f := range all {
			fmt.Fprintln(sys.out, visible(strings.ReplaceAll(f.Error(), "\n", " ")))
		}
		if c.Explain && len(all) == 0 {
			if err := c.explain(file, sys); err != nil {
				return err
			}
		}
	}
	if bad {
		return silent(statusFailed)
	}
	return nil
}

// options are those of a check. What is worth knowing is told once: explaining is silent.
func (c *checkCmd) options(sys *system) *config.Options {
	return &config.Options{Getenv: sys.env, Connect: c.Connect, Tell: sys.tell}
}

// explain shows the agents of a file.
func (c *checkCmd) explain(file *config.File, sys *system) error {
	for i, a := range file.Agents {
		if c.Agent != "" && a.Name != c.Agent {
			continue
		}
		x, err := a.Explain(context.Background(), &config.Options{Getenv: sys.env, Connect: c.Connect}, c.Task)
		if err != nil {
			return misconfigured(err)
		}
		if i > 0 && c.Agent == "" {
			fmt.Fprintln(sys.out, "\n---")
		}
		fmt.Fprintf(sys.out, "# %s, when all is said:\n%s\n# The first request:\n", visible(file.Name), visible(string(x.Agent)))
		if x.Method != "" {
			fmt.Fprintf(sys.out, "%s %s\n", x.Method, visible(x.URL))
		}
		fmt.Fprintf(sys.out, "%s\n", x.Body)
	}
	return nil
}

// initCmd writes a file to begin with.
type initCmd struct {
	File string `arg:"" optional:"" default:"agent.yaml" help:"The file. Default: agent.yaml."`
}

// Run writes the file, if it is not there.
func (c *initCmd) Run(sys *system) error {
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usage("pawl init OTHER.yaml", "%s is there already, and stays as it is", c.File)
	}
	if err != nil {
		return usage("", "%s", plain(err))
	}
	_, err = f.WriteString(config.Starter)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.out, "wrote %s; next: %s check %[1]s\n", visible(c.File), sys.self())
	return err
}
