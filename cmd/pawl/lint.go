package main

import (
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/mcp"
)

type toolsLintCmd struct {
	File     string   `arg:"" optional:"" help:"@tools_lint_file"`
	Provider []string `default:"all" placeholder:"NAME" help:"@tools_lint_provider"`
	Verbose  bool     `short:"v" help:"@tools_lint_verbose"`
	JSON     bool     `name:"json" help:"@tools_lint_json"`
	MCP      string   `name:"mcp" placeholder:"SERVER" help:"@tools_lint_mcp"`
}

// Run reports the parts of the schemas that each provider loses, and the faults that make tools
// hard to choose. If a provider cannot express a tool, the status is 1.
func (c *toolsLintCmd) Run(sys *cli.System) error {
	var dialects []*dialect.Dialect
	for _, name := range c.Provider {
		d := dialect.ByName(name)
		switch {
		case name == "all":
			dialects = append(dialects, dialect.All()...)
		case d == nil:
			return cli.Usage("there are: openai, openai-strict, anthropic, anthropic-strict, gemini, gemini-json, all", "--provider: no provider is named %q", name)
		default:
			dialects = append(dialects, d)
		}
	}
	var b []byte
	var err error
	switch {
	case c.MCP != "" && c.File != "", c.MCP == "" && c.File == "":
		return cli.Usage("pawl tools lint FILE, or pawl tools lint --mcp SERVER", "either a file or --mcp is needed, and not both")
	case c.MCP != "":
		c.File = "--mcp " + c.MCP
		if b, err = c.listed(sys); err != nil {
			return err
		}
	case c.File == "-":
		b, err = io.ReadAll(sys.In)
	default:
		b, err = os.ReadFile(c.File)
	}
	if err != nil {
		return cli.Usage("", "%s: %s", c.File, cli.Cause(err))
	}
	tools, err := dialect.ReadTools(b)
	if err != nil {
		return cli.Usage("", "%s: %v", c.File, err)
	}
	if len(tools) == 0 {
		return cli.Usage("", "%s: there is no tool in it", c.File)
	}
	r := dialect.Lint(tools, dialects...)
	if c.JSON {
		err = cli.PrintJSON(sys.Out, r)
	} else {
		var text strings.Builder
		if err = r.Text(&text, c.Verbose); err == nil {
			s := text.String()
			if sys.OutTerm {
				s = cli.Visible(s)
			}
			_, err = io.WriteString(sys.Out, s)
		}
	}
	if err == nil && !r.OK() {
		return cli.Silent(cli.StatusFailed)
	}
	return err
}

// listed returns the tools of the server of --mcp, as the server sent them.
func (c *toolsLintCmd) listed(sys *cli.System) ([]byte, error) {
	var tools []mcp.Definition
	f := lockedFlags{ServerFlags: assemble.ServerFlags{MCP: []string{c.MCP}}}
	err := f.each(sys, func(_ mcp.Server, listed []mcp.Listed, _ *mcp.Lock, _ string) error {
		for _, l := range listed {
			tools = append(tools, l.Definition)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(tools)
}
