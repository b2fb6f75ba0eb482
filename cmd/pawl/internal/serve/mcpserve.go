package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/mcp"
)

// offered is the description of an agent without one.
const offered = "Executes a task, with tools of its own, and returns the answer."

// MCPCmd is the command mcp serve: tools and agents for MCP clients.
type MCPCmd struct {
	File     string   `arg:"" optional:"" name:"FILE.yaml" help:"@mcp_file"`
	Stdio    bool     `help:"Serve one client on standard input and output. The default."`
	HTTP     string   `name:"http" placeholder:"ADDR" help:"@mcp_http"`
	TokenEnv string   `name:"token-env" placeholder:"NAME" help:"@mcp_tokenenv"`
	Host     []string `placeholder:"HOST" help:"@mcp_host"`
	Origin   []string `placeholder:"ORIGIN" help:"@mcp_origin"`
	assemble.AgentFlags
}

// Run serves until the client disconnects or a signal ends the program.
func (c *MCPCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()

	if c.Stdio && c.HTTP != "" {
		return cli.Usage("", "--stdio and --http exclude each other")
	}
	token := ""
	if c.TokenEnv != "" {
		token = sys.Env(c.TokenEnv)
		if token == "" {
			return cli.Usage("export "+c.TokenEnv+"=…", "--token-env: the variable %s is empty", c.TokenEnv)
		}
	}
	if !c.offers() {
		return cli.Usage("--tools file,data, or a file with an agent", "there is nothing to serve")
	}

	s, err := c.Build(ctx, sys, c.File, true, false)
	if err != nil {
		return err
	}
	defer s.Close()
	service, err := serviceOf(s)
	if err != nil {
		return err
	}
	if c.HTTP != "" {
		return c.serveHTTP(ctx, sys, service, token)
	}
	if err := service.ServeStdio(ctx, sys.In, sys.Out); err != nil {
		return cli.Fail(cli.StatusFailed, err, "")
	}
	return nil
}

// offers reports whether the command line names an agent or tools.
func (c *MCPCmd) offers() bool {
	isAgent := c.Model != "" || c.File != ""
	return isAgent || len(c.Tools)+len(c.ToolFile)+len(c.MCP) > 0
}

// serviceOf returns the service for an agent or, without a model, for its tools.
func serviceOf(s *assemble.Setup) (*mcp.Service, error) {
	if s.Agent.Model == nil {
		s.Rules.Flow = nil // the calls of a client have no conversation here
	}
	service := &mcp.Service{
		Name:    "pawl",
		Version: cli.Release(),
		Approve: s.Rules.Approve,
		Secrets: s.Secrets,
	}
	if err := s.File.Offer(service, s.Own); err != nil {
		return nil, assemble.Misconfigured(err)
	}

	if s.Agent.Model == nil {
		service.Tools = s.Agent.Tools
		service.Middleware = s.Agent.Middleware
		return service, nil
	}
	service.Agents = []mcp.Offer{{
		Agent:       s.Agent,
		Title:       s.File.Title,
		Description: cmp.Or(s.File.Description, offered),
	}}
	return service, nil
}

func (c *MCPCmd) serveHTTP(ctx context.Context, sys *cli.System, service *mcp.Service, token string) error {
	addr, local, err := listenOn("--http", c.HTTP)
	if err != nil {
		return err
	}
	// Tools act with the rights of this user, for any client that reaches the address.
	if !local && token == "" {
		return cli.Usage("--token-env NAME",
			"--http %s: other machines could reach it, so it needs a token", c.HTTP)
	}
	handler, err := service.Handler(ctx, &mcp.HTTPOptions{Token: token, Hosts: c.Host, Origins: c.Origin})
	if err != nil {
		return cli.Fail(cli.StatusUsage, err, "")
	}

	l, err := net.Listen("tcp", addr)
	if err != nil {
		return cli.Usage("", "--http: %v", err)
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	fmt.Fprintf(sys.Err, "pawl: serving MCP on http://%s/mcp\n", l.Addr())
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return cli.Fail(cli.StatusFailed, err, "")
	}
	return nil
}
