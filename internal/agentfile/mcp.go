package agentfile

import (
	"cmp"
	"context"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/callermcp"
	"github.com/pawl-go/pawl/internal/guard"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/tools/find"
	"github.com/pawl-go/pawl/tools/skill"
)

var serverType = reflect.TypeFor[mcp.Server]()

// LockFile returns the path of the file with the accepted tools of MCP servers.
func (a *Agent) LockFile() string { return a.relative("tools_lock", cmp.Or(a.Lock, "tools.lock")) }

// MCP returns the MCP servers whose tools a has, in the order of its tools.
func (a *Agent) MCP() []mcp.Server {
	var all []mcp.Server
	for _, t := range a.Tools {
		s, ok := a.Servers[t.MCP]
		if !ok || slices.ContainsFunc(all, func(s mcp.Server) bool { return s.Name == t.MCP }) {
			continue
		}
		s.Name = t.MCP
		if s.Command != "" { // a program runs where the file is that names it
			path := "mcp_servers." + t.MCP
			s.Dir = a.relative(path, cmp.Or(s.Dir, "."))
			if s.Dir == "." {
				s.Dir = ""
			}
		}
		all = append(all, s)
	}
	return all
}

// wrongServers reports invalid servers, unknown names of servers, and servers without a use.
func (a *Agent) wrongServers() (all Findings) {
	names := slices.Sorted(maps.Keys(a.Servers))
	used := map[string]bool{}
	for i, t := range a.Tools {
		used[t.MCP] = true
		if _, ok := a.Servers[t.MCP]; ok || t.MCP == "" {
			continue
		}
		hint := "mcp_servers says how a server is reached"
		if len(names) > 0 {
			hint = nearest.Hint(t.MCP, names)
		}
		all = append(all, finding(CodeUnknownServer, index("tools", i)+".mcp", hint,
			"no server in mcp_servers is named %q", cut(t.MCP)))
	}

	for _, name := range names {
		s := a.Servers[name]
		s.Name = name
		path := "mcp_servers." + name
		if err := s.Check(); err != nil {
			all = append(all, finding(CodeBadServer, path, serverHint, "%v", err))
		} else if !used[name] {
			all = append(all, finding(CodeReported, path, "write {mcp: "+name+"} among tools",
				"nothing takes the tools of the server %s", name))
		}
	}
	return all
}

const serverHint = "docs/yaml.md has the keys"

// served is the tools of an MCP server.
type served struct{ pawl.Toolset }

// servers makes the tools of MCP servers. It connects to one after another, because each must know
// the tool names of those before. A dry build connects to none and takes the tools in the lock.
func (b *builder) servers(ctx context.Context, ready *builtin) (sets []Set, err error) {
	a := b.agent
	if err := a.wrongServers().err(); err != nil {
		return nil, err
	}
	list := a.MCP()
	if len(list) == 0 {
		return nil, nil
	}
	lock, err := a.readLock()
	if err != nil {
		return nil, err
	}
	taken, err := b.takenNames(ctx, ready)
	if err != nil {
		return nil, err
	}

	var clients clients
	ready.closers = append(ready.closers, &clients)
	for _, s := range list {
		b.private(s)
		set, tools, err := b.server(ctx, s, &clients, mcp.Options{
			Lock:         lock,
			OtherTools:   taken,
			OtherServers: without(list, s.Name),
			Getenv:       b.env,
			Ask:          b.opts.Ask,
			Notice:       func(n mcp.Notice) { b.notice(n.String()) },
		})
		if err != nil {
			return nil, err
		}
		if s.Optional && len(tools) == 0 {
			b.unseen = append(b.unseen, s.NamePrefix())
		}
		taken = append(taken, mcp.Names(tools)...)
		sets = append(sets, Set{"mcp:" + s.Name, served{set}})
	}
	return sets, nil
}

// server returns the tools of a server, and what they are now. It adds what must be closed to open.
func (b *builder) server(
	ctx context.Context, s mcp.Server, open *clients, o mcp.Options,
) (pawl.Toolset, []*pawl.Tool, error) {
	bad := func(err error) error { return finding(CodeBadServer, "mcp_servers."+s.Name, serverHint, "%v", err) }
	if callermcp.Uses(s) {
		set, err := callermcp.New(s, o, callermcp.Limits{})
		if err != nil {
			return nil, nil, bad(err)
		}
		*open = append(*open, set)
		b.callers = append(b.callers, "mcp:"+s.Name)
		return set, b.toolsOfCallers(s, set), nil
	}

	c, err := mcp.New(s, &o)
	if err != nil {
		return nil, nil, bad(err)
	}
	*open = append(*open, c)
	return b.serverTools(ctx, s, c)
}

// toolsOfCallers returns the tools in the lock of a server that acts for the callers of runs.
// Outside of a run there is no caller, so that no others are known.
func (b *builder) toolsOfCallers(s mcp.Server, set *callermcp.Sessions) []*pawl.Tool {
	tools, known := set.Locked()
	if !known {
		b.unseen = append(b.unseen, s.NamePrefix())
	}
	return tools
}

// readLock reads the accepted tools of MCP servers.
func (a *Agent) readLock() (*mcp.Lock, error) {
	lock, err := mcp.ReadLock(a.LockFile())
	if err != nil {
		path := "tools_lock"
		if a.Lock == "" {
			path = "mcp_servers"
		}
		return nil, finding(CodeBadFile, path, "pawl mcp lock writes one", "%s", plain(err))
	}
	return lock, nil
}

// takenNames returns the names that no tool of an MCP server may have: of all built-in tools, and
// of the tools that are ready.
func (b *builder) takenNames(ctx context.Context, ready *builtin) ([]string, error) {
	taken, err := ToolNames(b.env)
	if err != nil {
		return nil, err
	}
	for _, s := range ready.sets {
		tools, err := s.Tools.Tools(ctx)
		if err != nil {
			return nil, finding(CodeBadTool, "tools", "", "%v", err)
		}
		taken = append(taken, mcp.Names(tools)...)
	}
	return taken, nil
}

// without returns the servers except the server of a name.
func without(list []mcp.Server, name string) []mcp.Server {
	return slices.DeleteFunc(slices.Clone(list), func(s mcp.Server) bool { return s.Name == name })
}

// serverTools returns the tools of a server, and what they are now. In a dry build these are the
// tools in the lock.
func (b *builder) serverTools(ctx context.Context, s mcp.Server, c *mcp.Client) (pawl.Toolset, []*pawl.Tool, error) {
	if b.opts.Dry && !b.opts.Connect {
		tools, known := c.Locked()
		if !known {
			b.unseen = append(b.unseen, s.NamePrefix())
			b.notice("mcp " + s.Name + ": its tools are not in tools.lock, and it is not asked")
		}
		return toolList(tools), tools, nil
	}

	tools, err := c.Tools(ctx)
	if err != nil {
		return nil, nil, finding(CodeUnavailable, "mcp_servers."+s.Name,
			"pawl mcp list connects to this server alone; with optional: true the run continues without it",
			"%s", b.agent.hide([]byte(err.Error())))
	}
	return c, tools, nil
}

// firsts is the tools of MCP servers, without a tool that has the name of an earlier one. A server
// may list such a tool at any time, and it must not end the runs of the others.
type firsts []pawl.Toolset

// Tools returns the tools of all servers.
func (f firsts) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	var all []*pawl.Tool
	seen := map[string]bool{}
	for _, set := range f {
		tools, err := set.Tools(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			if !seen[t.Name] {
				all = append(all, t)
			}
			seen[t.Name] = true
		}
	}
	return all, nil
}

// private hides what a server is given under a name that says that it is a secret.
func (b *builder) private(s mcp.Server) {
	var names []string
	for _, entry := range s.Env {
		if isName := !strings.Contains(entry, "="); isName && keyLike(entry) {
			names = append(names, entry)
		}
	}
	if s.OAuth != nil {
		names = append(names, s.OAuth.SecretEnv)
		if s.OAuth.Identity != nil {
			names = append(names, s.OAuth.Identity.SecretEnv)
		}
	}
	for _, name := range names {
		if value := b.env(name); name != "" && value != "" {
			b.hidden = append(b.hidden, value)
		}
	}
}

// mayBe reports whether a tool of this name may exist, on a server that was not asked.
func (b *builder) mayBe(name string) bool { return begins(name, b.unseen) }

// begins reports whether a name begins with one of the prefixes.
func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// remote returns the name prefixes of the tools of MCP servers, which may be away when a run
// begins.
func (a *Agent) remote() (prefixes []string) {
	for _, s := range a.MCP() {
		prefixes = append(prefixes, s.NamePrefix())
	}
	return prefixes
}

// perhaps returns the entries with the names of tools that may be missing as patterns that match
// that name alone. An unknown name ends a run, a pattern without a match does not.
func perhaps(entries, prefixes []string) []string {
	out := slices.Clone(entries)
	for i, e := range out {
		name, _, _ := strings.Cut(e, "(")
		if begins(e, prefixes) && !strings.ContainsAny(name, `*?[\:`) && e != "" {
			out[i] = "[" + e[:1] + "]" + e[1:]
		}
	}
	return out
}

// searched returns the tools behind tool_search, if that is wanted.
func searched(tools pawl.Toolset, when string) pawl.Toolset {
	switch when {
	case "on":
		return find.OnDemand(tools, &find.Options{Least: 1})
	case "off":
		return tools
	}
	return find.OnDemand(tools, nil)
}

// toolList is tools that are known already.
type toolList []*pawl.Tool

// Tools returns them.
func (l toolList) Tools(context.Context) ([]*pawl.Tool, error) { return l, nil }

// clients are closed together: each may take its time to end.
type clients []io.Closer

// Close closes them all.
func (c *clients) Close() error {
	var all sync.WaitGroup
	for _, one := range *c {
		all.Go(func() { _ = guard.Call(func() { _ = one.Close() }) })
	}
	all.Wait()
	return nil
}

// ToolNames returns the names of all built-in tools, which no MCP server may use. A nil getenv
// means os.Getenv. Errors are *Finding.
func ToolNames(getenv func(string) string) ([]string, error) {
	a := new(Agent)
	for _, name := range SetNames() {
		a.Tools = append(a.Tools, Tool{Set: name})
	}
	sets, _, closeSets, err := a.Toolsets(context.Background(), &Options{Getenv: getenv, Dry: true})
	if err != nil {
		return nil, err
	}
	defer closeSets()
	var names []string
	for _, s := range sets {
		tools, err := s.Tools.Tools(context.Background())
		if err != nil {
			return nil, err
		}
		names = append(names, mcp.Names(tools)...)
	}
	return names, nil
}

// Offer adds the files and prompts of the agent, and its skills as prompts, to an MCP server. own
// is never offered.
func (a *Agent) Offer(s *mcp.Service, own []string) error {
	if a.Resources != nil {
		root, err := os.OpenRoot(a.Directory())
		if err != nil {
			return a.found(finding(CodeBadFile, "root", "want a directory that is there", "%s", plain(err)))
		}
		places, err := protect.New(a.Directory(), a.protected(), protect.NewOwn(own...))
		if err != nil {
			return a.found(finding(CodeBadValue, "protect", "", "%v", err))
		}
		files := visible{root.FS(), places}
		s.Resources = append(s.Resources, mcp.Files("pawl://files/"+a.Name, files, a.Resources...))
	}
	skills, err := skill.Read(a.folders())
	if err != nil {
		return a.found(finding(CodeBadFile, "skills", skillsHint, "%s", plain(err)))
	}
	s.Prompts = append(s.Prompts, a.Prompts...)
	for _, k := range skills {
		s.Prompts = append(s.Prompts, mcp.Prompt{Name: k.Name, Description: k.Description, Text: k.Text})
	}
	return nil
}
