package agentfile

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/internal/advice"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/outside"
)

// Toolsets returns the sets of tools of a, without the middleware of Build: the built-in sets, and
// the definitions of a and of its files. No output may show the values in hidden. Call closeSets
// after the last call. Errors are *Finding or Findings.
func (a *Agent) Toolsets(ctx context.Context, o *Options) (sets []Set, hidden []string, closeSets func(), err error) {
	b := &builder{agent: a}
	b.opts = *cmp.Or(o, new(Options))
	b.env = b.opts.Getenv
	if b.env == nil {
		b.env = os.Getenv
	}
	sets, _, closeSets, err = b.sets(caller.OutsideRuns(ctx))
	return sets, b.hidden, closeSets, err
}

func (b *builder) sets(ctx context.Context) (sets []Set, db *Database, closeSets func(), err error) {
	ready, err := builtins(b.agent, b.env, b.own(), !b.opts.Dry, b.opts.ForAll)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			ready.close()
		}
	}()

	// Servers are last: no tool of a server may have the name of a tool that is ready.
	servers := func() ([]Set, error) { return b.servers(ctx, ready) }
	for _, more := range []func() ([]Set, error){b.defined, b.files, servers} {
		var others []Set
		others, err = more()
		if err != nil {
			return nil, nil, nil, err
		}
		ready.sets = append(ready.sets, others...)
	}
	b.kept = ready.kept
	b.pinned = ready.pinned

	sets = ready.sets
	for _, t := range b.opts.Tools {
		sets = append(sets, Set{"", t})
	}
	if err = b.unlike(ctx, sets); err == nil {
		err = ready.mayCall(ctx, sets)
	}
	return sets, ready.db, ready.close, err
}

// unlike finds two tools of one name.
func (b *builder) unlike(ctx context.Context, sets []Set) error {
	all := make(pawl.Toolsets, len(sets))
	for i, s := range sets {
		all[i] = s.Tools
	}
	_, err := all.Tools(ctx)
	if err == nil {
		return nil
	}
	text, _ := advice.Parts(err)
	return finding(CodeDuplicateTool, "tools", "rename one of them", "%s", text)
}

// flat returns the sets without their names. The sets of MCP servers become one, with tools on
// demand.
func (b *builder) flat(sets []Set) (all []pawl.Toolset) {
	var found firsts
	for _, s := range sets {
		if served, ok := s.Tools.(served); ok {
			found = append(found, served.Toolset)
			continue
		}
		all = append(all, s.Tools)
	}
	if len(found) > 0 {
		all = append(all, searched(found, b.agent.Search))
	}
	return all
}

// around puts around the tools their timeouts and the ends of the run.
func (b *builder) around(all []pawl.Toolset) []pawl.Toolset {
	a := b.agent
	if len(a.Timeouts) > 0 {
		times := policy.Timeouts{}
		missing := a.remote()
		for name, d := range a.Timeouts {
			entry := perhaps([]string{name}, missing)[0]
			times[entry] = time.Duration(d)
		}
		all = []pawl.Toolset{times.Over(all...)}
	}
	if len(a.Terminal) > 0 {
		all = []pawl.Toolset{ending{a.Terminal, b.secrets, pawl.Toolsets(all)}}
	}
	return all
}

// defined makes the tools that the agent's own list defines.
func (b *builder) defined() (sets []Set, err error) {
	for i, t := range b.agent.Tools {
		d := outside.Definition{Command: t.Command, HTTP: t.HTTP, OpenAPI: t.OpenAPI, A2A: t.A2A}
		if d == (outside.Definition{}) {
			continue
		}
		path := index("tools", i)
		set, err := b.outside([]outside.Definition{d}, path, "")
		if err != nil {
			return nil, err
		}
		sets = append(sets, Set{path, set})
	}
	return sets, nil
}

// files makes the tools of ToolFiles, a set for each.
func (b *builder) files() (sets []Set, err error) {
	for i, name := range b.agent.ToolFiles {
		path := index("tool_files", i)
		file := b.agent.relative("tool_files", name)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, finding(CodeBadFile, path, "", "%s", plain(err))
		}
		defs, err := outside.Parse(text)
		if err != nil {
			return nil, finding(CodeBadFile, path, "docs/outside.md has the form", "%s: %v", name, err)
		}
		set, err := b.outside(defs, path, name)
		if err != nil {
			return nil, err
		}
		sets = append(sets, Set{filepath.Base(file), set})
	}
	return sets, nil
}

// outside makes tools of the definitions at path, in the agent's file or in the named one.
func (b *builder) outside(defs []outside.Definition, path, name string) (*outside.Set, error) {
	o := &outside.Options{Dir: b.agent.dir, Allow: b.agent.HTTPAllow, Getenv: b.env}
	prefix := ""
	if name != "" {
		o.Dir = filepath.Dir(b.agent.relative("tool_files", name))
		prefix = name + ": "
	}
	var err error
	o.Run, err = b.runner(defs, path)
	if err != nil {
		return nil, err
	}

	set, err := outside.New(defs, o)
	if err != nil {
		text := err.Error()
		if name == "" { // the path says which entry it is
			text = strings.TrimPrefix(text, "tools[0]: ")
		}
		return nil, finding(CodeBadTool, path, "docs/outside.md has the form", "%s%s", prefix, text)
	}
	b.noticeLeftOut(set.LeftOut(), prefix)
	b.hidden = append(b.hidden, set.Secrets()...)
	b.callers = append(b.callers, set.ForCallers()...)
	return set, nil
}

// mostLeftOut is how many operations are named that could be no tools; the rest is counted.
const mostLeftOut = 10

// noticeLeftOut reports operations that could be no tools.
func (b *builder) noticeLeftOut(all []outside.LeftOut, prefix string) {
	for i, left := range all {
		if i == mostLeftOut {
			b.notice(fmt.Sprintf("%s%d more were left out", prefix, len(all)-i))
			return
		}
		b.notice(fmt.Sprintf("%sleft out: %s", prefix, left))
	}
}

// runner returns the runner of command tools. For an agent that will run, a program that the
// sandbox cannot run is an error here.
func (b *builder) runner(defs []outside.Definition, path string) (outside.Runner, error) {
	if b.opts.Commands != nil {
		return b.opts.Commands, nil
	}
	level, err := b.agent.level()
	if err != nil {
		return nil, err
	}
	hosts, err := b.agent.hosts(level)
	if err != nil {
		return nil, err
	}
	base := sandbox.Spec{Level: level, Hide: b.own().Real()}
	if hosts != nil {
		base.Proxy = hosts.Serve
	}

	for _, d := range defs {
		if d.Command == nil || b.opts.Dry {
			continue
		}
		if err := outside.Enforceable(base, d.Command.Network); err != nil {
			return nil, finding(CodeUnavailable, path, unheld(d.Command.Network), "command %s: %v", d.Command.Name, err)
		}
	}
	return outside.Sandboxed(base), nil
}

// unheld is what helps a program that the sandbox does not run.
func unheld(network bool) string {
	if network {
		return "sandbox_hosts (--sandbox-host) names what it may reach; " +
			"--allow-commands runs command tools outside of the sandbox, with your rights"
	}
	return "pawl doctor says what can be enforced; another sandbox level takes it, " +
		"and --allow-commands runs command tools outside of it, with your rights"
}

// ending is the tools of set. A good result of a tool in names ends the run.
type ending struct {
	names   []string
	secrets *redact.Redactor // hides them in the results, which no middleware sees
	set     pawl.Toolset
}

// Tools returns the tools.
func (e ending) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	tools, err := e.set.Tools(ctx)
	if err != nil {
		return nil, err
	}
	tools = slices.Clone(tools)
	for i, t := range tools {
		if !t.Passive && slices.Contains(e.names, t.Name) {
			tools[i] = e.finishing(t)
		}
	}
	return tools, nil
}

// finishing returns t with results that end the run, unless they are errors.
func (e ending) finishing(t *pawl.Tool) *pawl.Tool {
	last := t.Clone()
	last.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		res, err := t.Run(ctx, call)
		if err != nil || res.IsError {
			return res, err
		}
		res = e.secrets.ToolResult(res)
		return res, pawl.FinishError(res)
	}
	return last
}
