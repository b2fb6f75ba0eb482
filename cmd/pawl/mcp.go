package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/serve"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/callermcp"
	"github.com/pawl-go/pawl/mcp"
)

// mcpCmd serves tools over MCP, and inspects MCP servers.
type mcpCmd struct {
	Serve  serve.MCPCmd `cmd:"" help:"Offer tools and agents to MCP clients."`
	List   mcpListCmd   `cmd:"" help:"List the tools of servers with a verdict on each."`
	Lock   mcpLockCmd   `cmd:"" help:"Store the tools of servers in the lock."`
	Diff   mcpDiffCmd   `cmd:"" help:"@mcp_diff"`
	Accept mcpAcceptCmd `cmd:"" help:"Update the lock with the present tools."`
}

// lockedFlags name MCP servers: the servers of an agent's file, and others.
type lockedFlags struct {
	File string `placeholder:"FILE.yaml" help:"@locked_file"`
	assemble.FileFlags
	assemble.ServerFlags
}

// agent returns an agent with the servers. It fails if there is no server.
func (f *lockedFlags) agent(sys *cli.System) (*agentfile.Agent, error) {
	a, err := f.Read(f.File, sys)
	if err == nil {
		err = f.ServerFlags.Over(a)
	}
	if err == nil && len(a.MCP()) == 0 {
		err = cli.Usage("--mcp https://mcp.example.com/mcp, --mcp NAME='command with arguments', or --file agent.yaml",
			"no server is named")
	}
	return a, err
}

// each calls do with the tools that each server lists, and with the lock file at path.
func (f *lockedFlags) each(sys *cli.System, do func(s mcp.Server, listed []mcp.Listed, lock *mcp.Lock,
	path string) error) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	a, err := f.agent(sys)
	if err != nil {
		return err
	}
	lock, err := mcp.ReadLock(a.LockFile())
	if err != nil {
		return cli.Usage("", "%s", cli.Plain(err))
	}
	beside, err := agentfile.ToolNames(sys.Env)
	if err != nil {
		return assemble.Misconfigured(err)
	}

	for _, s := range a.MCP() {
		if callermcp.Uses(s) {
			fmt.Fprintf(sys.Err, "pawl: mcp %s: left out: "+
				"it acts in the name of the caller of a run, and here is none\n", s.Name)
			continue
		}
		// The verdicts are the same as in a run: a tool must not have the name of another tool.
		listed, err := list(ctx, s, &mcp.Options{
			Lock:         lock,
			OtherTools:   beside,
			OtherServers: slices.DeleteFunc(a.MCP(), func(other mcp.Server) bool { return other.Name == s.Name }),
			Getenv:       sys.Env,
		})
		if err != nil {
			return err
		}
		if err := do(s, listed, lock, a.LockFile()); err != nil {
			return err
		}
	}
	return nil
}

// list returns the tools of a server, with a verdict on each.
func list(ctx context.Context, s mcp.Server, o *mcp.Options) ([]mcp.Listed, error) {
	c, err := mcp.New(s, o)
	if err != nil {
		return nil, cli.Usage("", "--mcp: %v", err)
	}
	defer c.Close()
	listed, err := c.List(ctx)
	if err != nil {
		return nil, cli.Fail(cli.StatusUsage, err, "")
	}
	return listed, nil
}

type mcpListCmd struct {
	JSON bool `name:"json" help:"Print JSON, with the definitions as the servers sent them."`
	lockedFlags
}

// Run lists the tools of the servers.
func (c *mcpListCmd) Run(sys *cli.System) error {
	type server struct {
		Server string       `json:"server"`
		Tools  []mcp.Listed `json:"tools"`
	}
	type listed struct {
		server string
		mcp.Listed
	}
	var servers []server
	var tools []listed
	err := c.each(sys, func(s mcp.Server, all []mcp.Listed, _ *mcp.Lock, _ string) error {
		servers = append(servers, server{s.Name, all})
		for _, l := range all {
			tools = append(tools, listed{s.Name, l})
		}
		return nil
	})
	if err != nil {
		return err
	}

	if c.JSON {
		return cli.PrintJSON(sys.Out, servers)
	}
	return cli.List(sys.Out, false, tools, "SERVER|TOOL|VERDICT|WHY, OR WHAT IT DOES", func(l listed) []any {
		return []any{l.server, cli.Line(l.As, 64), l.Verdict,
			cli.Line(cmp.Or(l.Why, strings.Join(l.Ignored, "; "), cli.FirstSentence(l.Description, 60)), 120)}
	})
}

type mcpLockCmd struct{ lockedFlags }

// Run adds the servers that the lock does not have.
func (c *mcpLockCmd) Run(sys *cli.System) error {
	return c.each(sys, func(s mcp.Server, listed []mcp.Listed, lock *mcp.Lock, path string) error {
		if lock.Has(s) && len(lock.Diff(s, listed)) > 0 {
			return cli.Fail(cli.StatusFailed, fmt.Errorf("the tools of the server %s differ from the lock",
				s.Name), "pawl mcp diff shows the changes, pawl mcp accept accepts them")
		}
		return accept(sys, lock, path, s, listed, nil)
	})
}

type mcpDiffCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	lockedFlags
}

// Run shows the differences between the servers and the lock.
func (c *mcpDiffCmd) Run(sys *cli.System) error {
	differ := false
	all := map[string][]mcp.Drift{}
	err := c.each(sys, func(s mcp.Server, listed []mcp.Listed, lock *mcp.Lock, _ string) error {
		all[s.Name] = lock.Diff(s, listed)
		differ = differ || len(all[s.Name]) > 0
		if c.JSON {
			return nil
		}
		for _, d := range all[s.Name] {
			name := s.Name
			if d.Tool != "" {
				name += ": " + d.Tool
			}
			fmt.Fprintf(sys.Out, "%s: %s: %s\n", cli.Visible(name), d.What, cli.Visible(d.Text))
		}
		return nil
	})

	// A difference is a failure for a script that compares, also when it reads JSON.
	if err == nil && c.JSON {
		err = cli.PrintJSON(sys.Out, all)
	}
	if err == nil && differ {
		return cli.Silent(cli.StatusFailed)
	}
	return err
}

type mcpAcceptCmd struct {
	Tools []string `arg:"" optional:"" name:"TOOL" help:"@mcp_accept_tools"`
	lockedFlags
}

// Run updates the lock with the present tools of the servers.
func (c *mcpAcceptCmd) Run(sys *cli.System) error {
	a, err := c.agent(sys)
	if err != nil {
		return err
	}
	if len(c.Tools) > 0 && len(a.MCP()) != 1 {
		return cli.Usage("name one server with --mcp", "tools are given without their server")
	}
	return c.each(sys, func(s mcp.Server, listed []mcp.Listed, lock *mcp.Lock, path string) error {
		return accept(sys, lock, path, s, listed, c.Tools)
	})
}

// accept writes the named tools of a server into the lock, or all of them if names is empty. It
// reports each tool that was hidden for a reason.
func accept(sys *cli.System, lock *mcp.Lock, path string, s mcp.Server, listed []mcp.Listed, names []string) error {
	for _, l := range listed {
		if len(names) > 0 && !slices.Contains(names, l.Name) {
			continue
		}
		switch l.Verdict {
		// Accepting is the decision of the person at the terminal. The notice says what was
		// decided.
		case mcp.Suspect:
			sys.Notice(fmt.Sprintf("%s: %s: accepted although it is %s: %s", s.Name, l.Name, l.Verdict, l.Why))
		case mcp.Quarantined:
			sys.Notice(fmt.Sprintf("%s: %s: not accepted: %s: %s", s.Name, l.Name, l.Verdict, l.Why))
		}
	}

	if err := lock.Accept(s, listed, names...); err != nil {
		return cli.Usage("pawl mcp list shows the tools", "%v", err)
	}
	if err := lock.Write(path); err != nil {
		return cli.Fail(cli.StatusFailed, err, "")
	}
	fmt.Fprintf(sys.Err, "pawl: %s: the lock has %s of %s\n", path, cli.Count(len(lock.Servers[s.Name].Tools), "tool"),
		s.Name)
	return nil
}
