package agentfile

// sandboxed.go: how hard programs are held, and what this machine lacks for an agent.

import (
	"slices"

	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/sandbox/proxy"
	"github.com/pawl-go/pawl/tools/search"
)

// searchVariables are the variables that search.Open reads.
const searchVariables = "BRAVE_API_KEY, TAVILY_API_KEY and SEARXNG_URL"

// needsSearch reports that this machine has no search service for the agent. That is no fault of
// the agent, because another machine may have one.
func (b *builder) needsSearch() {
	if !slices.ContainsFunc(b.agent.Tools, func(t Tool) bool { return t.Set == "search" }) {
		return
	}
	if _, err := search.Open(b.env); err != nil {
		b.notice("search: no search service is set up on this machine; a run needs one of " + searchVariables)
	}
}

// needsSandbox reports that this machine cannot enforce the sandbox of the agent's programs. That
// is no fault of the agent, because another machine may.
func (b *builder) needsSandbox() {
	if !slices.ContainsFunc(b.agent.Tools, b.sandboxed) {
		return
	}
	level, err := b.agent.level()
	if err != nil {
		return // a fault, which is reported as such
	}
	if err := sandbox.Check(level); err != nil {
		b.notice(err.Error() + "; on this machine the agent's commands and code are refused")
	}
}

// sandboxed reports whether a tool starts programs in the sandbox.
func (b *builder) sandboxed(t Tool) bool {
	switch {
	case t.Command != nil:
		return b.opts.Commands == nil
	case t.Set == "code":
		return b.agent.Code != "embedded"
	default:
		return t.Set == "shell"
	}
}

// hosts returns the way of programs to the hosts that the agent names. Nil means that it names
// none.
func (a *Agent) hosts(level sandbox.Level) (*proxy.Hosts, error) {
	if len(a.SandboxHosts) == 0 {
		return nil, nil
	}
	if level != sandbox.Strict {
		return nil, finding(CodeConflict, "sandbox_hosts", "",
			"level %s of the sandbox cannot hold a program to some hosts; strict can", level)
	}
	h, err := proxy.New(proxy.Options{Allow: a.SandboxHosts})
	if err != nil {
		return nil, badAllow("sandbox_hosts", err, "sandbox proxy: allow: ")
	}
	return h, nil
}

// level is how hard programs are held.
func (a *Agent) level() (l sandbox.Level, err error) {
	if a.Sandbox == "" {
		return sandbox.Strict, nil
	}
	if err = l.UnmarshalText([]byte(a.Sandbox)); err != nil {
		return l, finding(CodeBadValue, "sandbox", "strict, standard or none", "%v", err)
	}
	return l, nil
}
