package agentfile

// check.go: what is wrong with an agent, found without a request.

import (
	"context"
	"strings"

	"github.com/pawl-go/pawl"
)

// Check returns the faults that can be found without a request and that reading the file did not
// show, such as unknown tools in rules. A machine that lacks something is no fault of the agent.
// Getenv, Connect, Notice and Catalog of o are used; o may be nil. Nil means no faults.
func (a *Agent) Check(ctx context.Context, o *Options) Findings {
	faults, _ := a.CheckEffects(ctx, o)
	return faults
}

// CheckEffects is Check with warnings: the tools whose effect is not stated, and state of the
// runtime in the root. Nil means none, or faults that hide the tools. Without Connect the tools of
// MCP servers are those in tools.lock.
func (a *Agent) CheckEffects(ctx context.Context, o *Options) (faults, unstated Findings) {
	built, err := a.Build(ctx, o.dry())
	if err != nil {
		if f := FindingsOf(err); f != nil {
			return f, nil
		}
		return Findings{a.found(finding(CodeBadTool, "tools", "", "%v", err))}, nil
	}
	defer built.Close()

	if room, taken := built.Room(); taken*10 > room*6 && room > 0 {
		faults = Findings{a.found(finding(CodeBadValue, "tools", "let the model find tools: tool_search: on",
			"instructions and tools take about %d tokens, more than 60 %% of the room of %d in the context window",
			taken, room))}
	}
	return faults, append(a.exposed(a.Own(o.getenv())), a.unstated(built.Tools)...)
}

// unstated returns a warning that names the tools whose effect is not stated, or nil.
func (a *Agent) unstated(tools []*pawl.Tool) Findings {
	var names []string
	for _, t := range tools {
		if t.Effect == pawl.EffectUnstated && !t.Passive {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return Findings{a.found(finding(CodeReported, "tools",
		"state effect: read, idempotent, write or pure, or trust the MCP server that states it",
		"no effect is stated for %s: calls run together, are never retried or cached and never start early, "+
			"and wait for a person after a crash", strings.Join(names, ", ")))}
}

// Room returns the tokens of the context window without a quarter for the reply, and about how many
// of them instructions and tools take. A room of 0 means that the window is unknown.
func (b *Built) Room() (room, taken int) {
	bytes := len(b.Agent.Instructions)
	for _, t := range b.Tools {
		if !t.Deferred {
			bytes += len(t.Name) + len(t.Description) + len(t.Input)
		}
	}
	return b.Window - b.Window/4, bytes / 3 // about three bytes a token
}

// getenv returns o.Getenv. Nil means os.Getenv.
func (o *Options) getenv() func(string) string {
	if o == nil {
		return nil
	}
	return o.Getenv
}

// dry is o for an agent that will not run.
func (o *Options) dry() *Options {
	if o == nil {
		return &Options{Dry: true}
	}
	return &Options{
		Getenv:  o.Getenv,
		Dry:     true,
		Connect: o.Connect,
		Notice:  o.Notice,
		Catalog: o.Catalog,
		Now:     o.Now,
		Own:     o.Own,
	}
}
