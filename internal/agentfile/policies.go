package agentfile

// policies.go: makes the policies of the keys approve, rates, breaker, cache and
// guards, and checks their lists of tools. toolset.go makes the timeouts.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/advice"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/openai"
)

// Rules returns what a says about approval. Built.Rules also knows the files of the workspace.
func (a *Agent) Rules() policy.Rules {
	missing := a.remote()
	r := policy.Rules{
		Deny:         perhaps(a.Approve.Deny, missing),
		Ask:          perhaps(a.Approve.Ask, missing),
		Allow:        perhaps(a.Approve.Allow, missing),
		AskByDefault: []string{"execute_code"},
		Flow:         a.flow(missing),
	}
	switch a.Approve.Else {
	case "allow":
		r.Default = pawl.VerdictAllow
	case "ask":
		r.Default = pawl.VerdictAsk
	case "deny":
		r.Default = pawl.VerdictDeny
	}
	if w := a.Approve.Within; w != nil {
		r.ValidFor = time.Duration(*w)
	}
	return r
}

// flow returns the policy of the key flow.
func (a *Agent) flow(missing []string) *policy.Flow {
	f := &policy.Flow{Mode: a.flowMode(), Words: a.Instructions, Labels: map[string]string{}}
	for entry, labels := range a.FlowLabels {
		for _, e := range perhaps([]string{entry}, missing) {
			f.Labels[e] = labels
		}
	}
	return f
}

// flowModes are the modes of policy.Flow, the strictest last.
var flowModes = []string{"off", "log", "on", "ask", "strict"}

// stricter returns the stricter mode of two.
func stricter(a, b string) string {
	if slices.Index(flowModes, b) > slices.Index(flowModes, a) {
		return b
	}
	return a
}

// flowMode returns the mode of the key flow. Without the key, tools that fetch what strangers write
// turn the policy on. A team has one mode, the strictest of its agents, since one agent acts on
// what another has read.
func (a *Agent) flowMode() string { return a.flowModeTo(mostNested) }

// flowModeTo is flowMode, of managers that stand at most deep above one another.
func (a *Agent) flowModeTo(deep int) string {
	mode := a.Flow
	if mode == "" {
		mode = "log"
		if len(a.Servers) > 0 || slices.ContainsFunc(a.Tools, Tool.readsStrangers) {
			mode = "on"
		}
	}
	for _, w := range a.group().Workers {
		if w.of != nil && deep > 0 {
			mode = stricter(mode, w.of.flowModeTo(deep-1))
		}
	}
	return mode
}

// readsStrangers reports whether a tool fetches what strangers write.
func (t Tool) readsStrangers() bool {
	return t.Set == "http" || t.Set == "search" || t.MCP != ""
}

// ruled finds entries of lists that are about none of the tools.
func (b *builder) ruled(tools []*pawl.Tool) error {
	a := b.agent
	own := tools // rules about a tool's time or end are about the agent's own tools
	tools = append(slices.Clip(tools), a.workers()...)

	all := b.ruledLabels(tools)
	all = append(all, b.ruledEnds(own)...)
	for _, l := range a.lists() {
		for i, name := range l.names {
			all = append(all, b.about(name, index(l.path, i), tools)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Timeouts)) {
		all = append(all, b.about(name, "timeouts."+name, own)...)
	}
	return all.err()
}

// ruledLabels finds entries of flow_labels that are about no tool, or that have an unknown label.
func (b *builder) ruledLabels(tools []*pawl.Tool) (all Findings) {
	labels := b.agent.FlowLabels
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		path := "flow_labels." + name
		all = append(all, b.about(name, path, tools)...)
		one := policy.Flow{Labels: map[string]string{"*": labels[name]}}
		if err := one.Check(nil); err != nil {
			all = append(all, finding(CodeBadValue, path, "trusted, private, final or out",
				"%q has a word that is no label", labels[name]))
		}
	}
	return all
}

// ruledEnds finds entries of terminal_tools that name no tool. Patterns are not allowed there.
func (b *builder) ruledEnds(own []*pawl.Tool) (all Findings) {
	for i, name := range b.agent.Terminal {
		path := index("terminal_tools", i)
		if strings.ContainsAny(name, `*?[\:`) {
			all = append(all, finding(CodeUnknownTool, path, "the name of a tool, written out",
				"%s is no name of a tool", name))
			continue
		}
		all = append(all, b.about(name, path, own)...)
	}
	return all
}

// entries are the names in the list at a path.
type entries struct {
	path  string
	names []string
}

// lists returns the lists of names, patterns, effects and servers that rules have.
func (a *Agent) lists() []entries {
	all := []entries{
		{"approve.deny", a.Approve.Deny},
		{"approve.ask", a.Approve.Ask},
		{"approve.allow", a.Approve.Allow},
	}
	for i, r := range a.Rates {
		all = append(all, entries{index("rates", i) + ".tools", r.Tools})
	}
	if a.Breaker != nil {
		all = append(all, entries{"breaker.tools", a.Breaker.Tools})
	}
	if a.Cache != nil {
		all = append(all, entries{"cache.tools", a.Cache.Tools})
	}
	return all
}

// about finds an entry that is about none of the tools: a name, a pattern, an effect or a server.
func (b *builder) about(entry, path string, tools []*pawl.Tool) Findings {
	name, _, _ := strings.Cut(entry, "(")
	if name, ok := strings.CutPrefix(name, "mcp:"); ok && name != "" {
		if _, known := b.agent.Servers[name]; !known {
			hint := nearest.Hint(name, slices.Sorted(maps.Keys(b.agent.Servers)))
			return Findings{finding(CodeUnknownServer, path, hint, "no server in mcp_servers is named %q", cut(name))}
		}
	}
	err := policy.Rules{Deny: []string{entry}}.Check(tools)
	if err == nil || b.mayBe(entry) {
		return nil
	}
	message, hint := advice.Parts(err)
	return Findings{finding(CodeUnknownTool, path, hint, "%s", message)}
}

// policies are the layers that bound calls.
func (b *builder) policies() (layers []pawl.Middleware, err error) {
	a := b.agent
	missing := a.remote()
	for i, r := range a.Rates {
		if r.Every <= 0 {
			return nil, finding(CodeBadValue, index("rates", i)+".every", "a time such as 1s", "it is not more than 0")
		}
		rate := policy.Rate{
			Tools: perhaps(r.Tools, missing),
			Every: time.Duration(r.Every),
			Burst: value(r.Burst),
			Wait:  time.Duration(r.Wait),
		}
		layers = append(layers, rate.Middleware())
	}
	if c := a.Breaker; c != nil {
		breaker := policy.Breaker{
			Tools:    perhaps(c.Tools, missing),
			Failures: value(c.Failures),
			Pause:    time.Duration(c.Pause),
		}
		layers = append(layers, breaker.Middleware())
	}
	if c := a.Cache; c != nil {
		cache := policy.Cache{
			Tools: perhaps(c.Tools, missing),
			Bytes: value(c.Bytes),
			Age:   time.Duration(c.Age),
		}
		layers = append(layers, cache.Middleware())
	}
	return layers, nil
}

// guards are the checks of texts. A dry build has none, since it sends no request but the first.
func (b *builder) guards() (layers []pawl.Middleware, err error) {
	for i, g := range b.agent.Guards {
		check, err := b.check(g, index("guards", i))
		if err != nil {
			return nil, err
		}
		if b.opts.Dry {
			continue
		}
		made := policy.Guard{Name: g.Name, Open: g.OnError == "allow", Check: check}
		for _, p := range g.Check {
			made.Places = append(made.Places, policy.GuardPlace(p))
		}
		layers = append(layers, made.Middleware())
	}
	return layers, nil
}

// textCheck rules on a text: the field Check of policy.Guard.
type textCheck = func(context.Context, policy.Guarded) (policy.Ruling, error)

// check returns the check of a guard at path: by a model with rules, or by a moderation endpoint.
func (b *builder) check(g Guard, path string) (textCheck, error) {
	switch {
	case (g.Model == nil) == (g.Moderation == nil):
		return nil, finding(CodeConflict, path, "model with rules, or moderation", "want one of model and moderation")
	case g.Model != nil && strings.TrimSpace(g.Rules) == "":
		return nil, finding(CodeMissingKey, path, "rules: what to stop, in plain language", "the key rules is missing")
	case g.Model != nil:
		m, err := b.model(*g.Model, path+".model")
		if err != nil {
			return nil, err
		}
		return policy.ModelCheck(m, g.Rules), nil
	}

	m, err := b.moderator(g.Moderation, path+".moderation")
	if err != nil {
		return nil, err
	}
	return policy.FlagCheck(m.Flagged), nil
}

// moderator returns the model of a moderation endpoint.
func (b *builder) moderator(m *Model, path string) (*openai.Moderator, error) {
	name, ok := strings.CutPrefix(m.Name, "openai:")
	if !ok {
		return nil, finding(CodeUnknownModel, path,
			"openai:omni-moderation-latest, with base_url for another server of this kind",
			"%s has no moderation endpoint that is known", m.Name)
	}
	key, err := b.key(m.KeyEnv, path+".key_env")
	if err != nil {
		return nil, err
	}
	o := &openai.Options{BaseURL: m.BaseURL, Key: key, HTTP: b.opts.HTTP}
	if m.BaseURL == "" && key != "" { // the file names no address, so the key is the provider's
		o.BaseURL = cmp.Or(strings.TrimSpace(b.env("OPENAI_BASE_URL")), openai.DefaultBaseURL)
	}
	return openai.NewModerator(name, o), nil
}
