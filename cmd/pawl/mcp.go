package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/mcp"
)

// mcpCmd is about MCP servers, and about being one.
type mcpCmd struct {
	Serve  mcpServeCmd  `cmd:"" help:"Offer tools and agents to MCP clients."`
	List   mcpListCmd   `cmd:"" help:"List a server's tools, with what became of each."`
	Lock   mcpLockCmd   `cmd:"" help:"Write down what servers say of their tools."`
	Diff   mcpDiffCmd   `cmd:"" help:"Show what servers say now and did not say when they were locked; status 1 if there is something."`
	Accept mcpAcceptCmd `cmd:"" help:"Take what a server says now into the lock."`
}

// serverFlags name MCP servers.
type serverFlags struct {
	MCP   []string `group:"tools" name:"mcp" sep:"none" placeholder:"SERVER" help:"An MCP server: a URL, or a command line, with NAME= before it if it is to be called so: files='npx -y @modelcontextprotocol/server-filesystem .'. May be given again."`
	Env   []string `group:"tools" name:"mcp-env" placeholder:"NAME" help:"Variables that the servers' programs get beside PATH, HOME and the like."`
	Trust []string `group:"tools" name:"mcp-trust" placeholder:"NAME" help:"Servers that are believed: what they call read-only is not asked about."`
	Lock  string   `group:"tools" name:"mcp-lock" placeholder:"FILE" help:"What was accepted of servers; a tool that differs is left out. Default: tools.lock, where there is one here, or beside the file with the agent."`
}

// mcpFlags let an agent use MCP servers.
type mcpFlags struct {
	serverFlags
	Search string `group:"tools" name:"tool-search" enum:"auto,on,off," default:"" placeholder:"WHEN" help:"Whether the model finds the tools of MCP servers by tool_search instead of being told of all: on, off, or auto: from 20 on. Default: auto."`
}

// servers reads the flags.
func (f *serverFlags) servers() ([]mcp.Server, error) {
	var out []mcp.Server
	seen := map[string]bool{}
	for _, text := range f.MCP {
		s, err := mcp.Parse(text)
		if err != nil {
			return nil, usage("--mcp https://mcp.example.com/mcp, or --mcp NAME='command with arguments'", "--mcp: %v", err)
		}
		if s.Command != "" {
			s.Env = f.Env
		}
		if seen[s.Name] {
			return nil, usage("--mcp NAME='…' gives each a name of its own", "--mcp: two servers are named %q", s.Name)
		}
		seen[s.Name] = true
		out = append(out, s)
	}
	return out, nil
}

// over adds the servers to the agent, and takes all of their tools.
func (f *serverFlags) over(a *config.Agent) error {
	servers, err := f.servers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if _, twice := a.Servers[s.Name]; twice {
			return usage("--mcp NAME='…' gives it another name", "--mcp: the file has a server %q already", s.Name)
		}
		if a.Servers == nil {
			a.Servers = map[string]mcp.Server{}
		}
		a.Servers[s.Name] = s
		a.Tools = append(a.Tools, config.Tool{MCP: s.Name})
		a.Override("mcp_servers." + s.Name)
	}
	for _, name := range f.Trust {
		s, ok := a.Servers[name]
		if !ok {
			return usage("", "--mcp-trust: no server is named %q", name)
		}
		s.Trust = true
		a.Servers[name] = s
	}
	set(a, "tools_lock", &a.Lock, f.Lock)
	return nil
}

// over adds the servers to the agent, and says how the model finds their tools.
func (f *mcpFlags) over(a *config.Agent) error {
	set(a, "tool_search", &a.Search, f.Search)
	return f.serverFlags.over(a)
}

// box holds who is asked, which is known later than the servers are.
type box struct {
	mu  sync.Mutex
	ask func(context.Context, mcp.Question) (mcp.Answer, error)
}

func (b *box) set(ask func(context.Context, mcp.Question) (mcp.Answer, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ask = ask
}

func (b *box) question(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	b.mu.Lock()
	ask := b.ask
	b.mu.Unlock()
	if ask == nil {
		return mcp.Answer{}, errors.New("nobody sits at the terminal")
	}
	return ask(ctx, q)
}

// question puts what an MCP server wants to know to the person at the terminal, under the server's name: an answer goes there and approves nothing here.
func (a *asker) question(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	done := a.out.hold()
	defer done()
	fmt.Fprintf(a.out.w, "\n%s\n", a.style.yellow("  the MCP server "+line(q.Server, 40)+" asks (pawl does not; what you say goes to the server):"))
	for _, l := range wholeArgs(q.Message, a.width-6) {
		fmt.Fprintf(a.out.w, "      | %s\n", l)
	}
	if q.URL != "" {
		fmt.Fprintf(a.out.w, "      it wants you to open: %s\n", visible(q.URL))
	}
	content, err := a.form(ctx, q.Schema)
	if err != nil {
		return mcp.Answer{}, err
	}
	said, err := a.typed(ctx, "  y: send this answer, n: refuse > ")
	if err != nil {
		return mcp.Answer{}, err
	}
	said = strings.ToLower(said)
	return mcp.Answer{Accept: said == "y" || said == "yes", Content: content}, nil
}

// form asks for each field. What is left empty is left out.
func (a *asker) form(ctx context.Context, schema json.RawMessage) (map[string]any, error) {
	var s struct {
		Properties map[string]struct {
			Title, Description, Type string
			Enum                     []string
		}
	}
	_ = json.Unmarshal(schema, &s)
	names := make([]string, 0, len(s.Properties))
	for n := range s.Properties {
		names = append(names, n)
	}
	sort.Strings(names)
	content := map[string]any{}
	for _, n := range names {
		p := s.Properties[n]
		about := strings.TrimSpace(p.Title + " " + p.Description)
		if len(p.Enum) > 0 {
			about += " (" + strings.Join(p.Enum, ", ") + ")"
		}
		said, err := a.typed(ctx, "  "+line(n+" "+about, 100)+" > ")
		if err != nil {
			return nil, err
		}
		var v any
		switch {
		case said == "":
			continue
		case p.Type == "string" || p.Type == "":
			v = said
		case json.Unmarshal([]byte(said), &v) != nil:
			v = said // the SDK says what is wrong with it
		}
		content[n] = v
	}
	return content, nil
}

func (a *asker) typed(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(a.out.w, prompt)
	said, err := a.in.next(ctx)
	return strings.TrimSpace(said), err
}
