package agentfile

// policies.go: makes the policies of the keys approve, rates, breaker, cache and
// guards, and checks their lists of tools. toolset.go makes the timeouts.

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/openai"
)

// Rules returns what a says about approval.
func (a *Agent) Rules() policy.Rules {
	missing := a.remote()
	r := policy.Rules{Deny: perhaps(a.Approve.Deny, missing), Ask: perhaps(a.Approve.Ask, missing),
		Allow: perhaps(a.Approve.Allow, missing), AskByDefault: []string{"execute_code"}, Flow: a.flow(missing)}
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

// flow returns the policy of the key flow. Tools that fetch what strangers write turn it on.
func (a *Agent) flow(missing []string) *policy.Flow {
	f := &policy.Flow{Mode: a.Flow, Words: a.Instructions, Labels: map[string]string{}}
	if f.Mode == "" {
		f.Mode = "log"
		if len(a.Servers) > 0 ||
			slices.ContainsFunc(a.Tools, func(t Tool) bool { return t.Set == "http" || t.Set == "search" || t.MCP != "" }) {
			f.Mode = "on"
		}
	}
	for entry, labels := range a.FlowLabels {
		for _, e := range perhaps([]string{entry}, missing) {
			f.Labels[e] = labels
		}
	}
	return f
}

// ruled finds entries of lists that are about none of the tools.
func (b *builder) ruled(tools []*pawl.Tool) error {
	a := b.agent
	own := tools // rules about a tool's time or end are about the agent's own tools
	tools = append(slices.Clip(tools), a.workers()...)
	lists := []entries{{"approve.deny", a.Approve.Deny}, {"approve.ask", a.Approve.Ask}, {"approve.allow", a.Approve.Allow}}
	for i, r := range a.Rates {
		lists = append(lists, entries{index("rates", i) + ".tools", r.Tools})
	}
	if a.Breaker != nil {
		lists = append(lists, entries{"breaker.tools", a.Breaker.Tools})
	}
	if a.Cache != nil {
		lists = append(lists, entries{"cache.tools", a.Cache.Tools})
	}
	var all Findings
	for _, name := range slices.Sorted(maps.Keys(a.FlowLabels)) {
		all = append(all, b.about(name, "flow_labels."+name, tools)...)
		one := policy.Flow{Labels: map[string]string{"*": a.FlowLabels[name]}}
		if err := one.Check(nil); err != nil {
			all = append(all, finding(CodeBadValue, "flow_labels."+name, "trusted, private, final or out", "%q has a word that is no label", a.FlowLabels[name]))
		}
	}
	for i, name := range a.Terminal {
		if strings.ContainsAny(name, `*?[\:`) {
			all = append(all, finding(CodeUnknownTool, index("terminal_tools", i), "the name of a tool, written out", "%s is no name of a tool", name))
			continue
		}
		all = append(all, b.about(name, index("terminal_tools", i), own)...)
	}
	for _, l := range lists {
		for i, name := range l.names {
			all = append(all, b.about(name, index(l.path, i), tools)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Timeouts)) {
		all = append(all, b.about(name, "timeouts."+name, own)...)
	}
	return all.err()
}

type entries struct {
	path  string
	names []string
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
	message, hint, _ := strings.Cut(strings.TrimPrefix(err.Error(), "approval rules: deny: "), "; ")
	return Findings{finding(CodeUnknownTool, path, hint, "%s", message)}
}

// policies are the layers that bound calls.
func (b *builder) policies() (layers []pawl.Middleware, err error) {
	a := b.agent
	for i, r := range a.Rates {
		if r.Every <= 0 {
			return nil, finding(CodeBadValue, index("rates", i)+".every", "a time such as 1s", "it is not more than 0")
		}
		layers = append(layers, policy.Rate{Tools: perhaps(r.Tools, b.agent.remote()), Every: time.Duration(r.Every),
			Burst: value(r.Burst), Wait: time.Duration(r.Wait)}.Middleware())
	}
	if c := a.Breaker; c != nil {
		layers = append(layers, policy.Breaker{Tools: perhaps(c.Tools, b.agent.remote()), Failures: value(c.Failures),
			Pause: time.Duration(c.Pause)}.Middleware())
	}
	if c := a.Cache; c != nil {
		layers = append(layers, policy.Cache{Tools: perhaps(c.Tools, b.agent.remote()), Bytes: value(c.Bytes),
			Age: time.Duration(c.Age)}.Middleware())
	}
	return layers, nil
}

// guards are the checks of texts. A dry build has none, since it sends no request but the first.
func (b *builder) guards() (layers []pawl.Middleware, err error) {
	for i, g := range b.agent.Guards {
		path := index("guards", i)
		made := policy.Guard{Name: g.Name, Open: g.OnError == "allow"}
		for _, p := range g.Check {
			made.Places = append(made.Places, policy.GuardPlace(p))
		}
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
			made.Check = policy.ModelCheck(m, g.Rules)
		default:
			m, err := b.moderator(g.Moderation, path+".moderation")
			if err != nil {
				return nil, err
			}
			made.Check = policy.FlagCheck(m.Flagged)
		}
		if !b.opts.Dry {
			layers = append(layers, made.Middleware())
		}
	}
	return layers, nil
}

// moderator returns the model of a moderation endpoint.
func (b *builder) moderator(m *Model, path string) (*openai.Moderator, error) {
	name, ok := strings.CutPrefix(m.Name, "openai:")
	if !ok {
		return nil, finding(CodeUnknownModel, path, "openai:omni-moderation-latest, with base_url for another server of this kind",
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
