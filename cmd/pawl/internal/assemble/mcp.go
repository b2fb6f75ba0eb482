package assemble

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/mcp"
)

// ServerFlags name MCP servers and the environment and trust that they get.
type ServerFlags struct {
	MCP   []string `group:"tools" name:"mcp" sep:"none" placeholder:"SERVER" help:"@server_mcp"`
	Env   []string `group:"tools" name:"mcp-env" placeholder:"NAME" help:"@server_env" rare:""`
	Trust []string `group:"tools" name:"mcp-trust" placeholder:"NAME" help:"@server_trust" rare:""`
	Lock  string   `group:"tools" name:"mcp-lock" placeholder:"FILE" help:"@server_lock" rare:""`
}

// mcpFlags add MCP servers to an agent and select how the model finds their tools.
type mcpFlags struct {
	ServerFlags
	Search string `group:"tools" name:"tool-search" placeholder:"WHEN" help:"@mcp_search" rare:""`
}

// Over adds the servers and all their tools to the agent.
func (f *ServerFlags) Over(a *agentfile.Agent) error {
	added := map[string]bool{}
	for _, text := range f.MCP {
		s, err := mcp.Parse(text)
		if err != nil {
			return cli.Usage("--mcp https://mcp.example.com/mcp, or --mcp NAME='command with arguments'",
				"--mcp: %v", err)
		}
		if s.Command != "" {
			s.Env = f.Env
		}
		if added[s.Name] {
			return cli.Usage("set a name for each with --mcp NAME='…'", "--mcp: two servers are named %q", s.Name)
		}
		if _, twice := a.Servers[s.Name]; twice {
			return cli.Usage("set another name with --mcp NAME='…'", "--mcp: the file has a server %q already", s.Name)
		}

		if a.Servers == nil {
			a.Servers = map[string]mcp.Server{}
		}
		a.Servers[s.Name] = s
		added[s.Name] = true // it is in a.Servers now, which is a fault of another kind
		a.Tools = append(a.Tools, agentfile.Tool{MCP: s.Name})
		a.Override("mcp_servers." + s.Name)
	}

	for _, name := range f.Trust {
		s, ok := a.Servers[name]
		if !ok {
			return cli.Usage("", "--mcp-trust: no server is named %q", name)
		}
		s.Trust = true
		a.Servers[name] = s
	}
	Apply(f, a)
	return nil
}

// questionBox forwards questions of MCP servers to a person. The person is set after the servers
// have connected.
type questionBox struct{ ask atomic.Pointer[answerer] }

type answerer func(context.Context, mcp.Question) (mcp.Answer, error)

func (b *questionBox) Set(ask answerer) { b.ask.Store(&ask) }

func (b *questionBox) question(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	if ask := b.ask.Load(); ask != nil {
		return (*ask)(ctx, q)
	}
	return mcp.Answer{}, errors.New("no person is at the terminal")
}
