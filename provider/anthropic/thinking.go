package anthropic

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// thinking is how a request lets the model think.
type thinking struct {
	on        bool   // it thinks whatever comes; where it decides itself, it may also not think, and calls may be forced
	adaptive  bool   // the model decides how much; else up to budget
	budget    int    // tokens; 0: nothing is sent
	effort    string // of output_config; "": not sent
	maxTokens int
}

// The thinking budgets of the efforts, for models that do not know the word. With the room for the answer they stay below the
// 32,000 tokens that the oldest of these models can write.
var budgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 23000, "max": 23000}

// toThinking reads the effort. Newer models take the word, and decide themselves how much to think; older ones are given a budget, and
// the oldest do not think.
func (e *encoder) toThinking(s *llm.Settings, messages []llm.Message) thinking {
	t := thinking{maxTokens: s.MaxTokens}
	if t.maxTokens == 0 {
		t.maxTokens = e.facts.reply
	}
	t.on = e.own.thinking == "enabled"
	switch {
	case s.Effort == "" || s.Effort == "none":
		return t
	case !e.facts.thinks:
		e.Fail(unsupported("settings.effort", "%s does not think", e.model))
		return t
	case e.facts.adaptive:
		t.adaptive, t.effort = true, s.Effort
		return t
	}
	budget, ok := budgets[s.Effort]
	if !ok {
		e.Fail(invalid("settings.effort", "%q is none of none, minimal, low, medium, high, xhigh, max", s.Effort))
		return t
	}
	if e.facts.version == 405 && strings.Contains(e.model, "opus") {
		t.effort = s.Effort
	}
	if e.own.thinking != "" {
		return t // the options' own budget
	}
	t.on, t.budget = true, budget
	if s.MaxTokens == 0 {
		t.maxTokens = budget + 8192
	}
	if e.unthought(messages) {
		t.on, t.budget = false, 0
		return t
	}
	if s.MaxTokens == 0 {
		return t
	}
	if t.budget = min(budget, s.MaxTokens*3/4); t.budget < 1024 {
		if t.budget = 1024; s.MaxTokens <= t.budget {
			e.Fail(invalid("settings.max_tokens", "%d leaves no room for an answer after the least thinking there is, 1024 tokens", s.MaxTokens))
		}
	}
	return t
}

// unthought reports whether messages go on from calls that were made without a thought of this server's model, because another model made
// them or because it was not asked to think. Such a turn must be ended as it was begun, so no budget is sent with it.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking, "Toggling thinking modes in conversations".
func (d *dialect) unthought(messages []llm.Message) bool {
	found := false
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		switch {
		case m.Role == llm.RoleTool:
		case m.Role != llm.RoleAssistant:
			if found {
				return true // here the turn began
			}
		case !found && !m.HasCalls(), d.thinks(m):
			return false
		default:
			found = true
		}
	}
	return found
}

// thinks reports whether a reply begins with a thought that goes back to this server.
func (d *dialect) thinks(m *llm.Message) bool {
	for _, p := range m.Parts {
		r, ok := p.(llm.Reasoning)
		if !ok {
			return false
		}
		if r.Opaque != nil && r.Opaque.Provider == d.tag {
			kind := member(r.Opaque.Data, "type")
			return kind == "thinking" || kind == "redacted_thinking"
		}
	}
	return false
}

// tellUnthought says that a reply is asked for without the thinking that the settings want.
func (m *Model) tellUnthought(req *llm.Request, own options, yield func(llm.Delta, error) bool) bool {
	if req.Settings.Effort == "" || req.Settings.Effort == "none" || own.thinking != "" {
		return true
	}
	name := m.name
	if req.Model != "" {
		name = req.Model
	}
	if f := m.factsOf(name); f.adaptive || !f.thinks || !m.unthought(req.Messages) {
		return true
	}
	return yield(llm.Delta{Notice: &llm.Notice{Code: "thinking_off",
		Text: "anthropic: the model does not think in this reply: it goes on from calls that were made without its thinking. It thinks again from the next message on"}}, nil)
}

func fromThinking(e *encoder, t thinking) {
	if !t.adaptive && t.budget == 0 || !e.Key("thinking") {
		return
	}
	if t.adaptive {
		e.Raw(`{"type":"adaptive"}`)
		return
	}
	e.Raw(`{"type":"enabled","budget_tokens":`)
	e.Int(t.budget)
	e.Raw(`}`)
}

// defaultMaxTokens is the bound on the reply where the request has none, since the API asks for one. It is what every model of
// a version can write.
func defaultMaxTokens(version int) int {
	switch {
	case version == unknown, version >= 305 && version < 307:
		return 8192
	case version < 305:
		return 4096
	}
	return 16384
}

// unknown is the version of a model that is none of Claude's.
const unknown = -1

// version reads the version out of a model's name: 405 for claude-sonnet-4-5-20250929, 307 for claude-3-7-sonnet. A Claude
// without a number is taken for a new one.
func version(model string) int {
	_, name, ok := strings.Cut(model, "claude")
	if !ok {
		return unknown
	}
	v, digits := 0, 0
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' || r == '@' || r == ':' }) {
		n := 0
		for _, c := range []byte(word) {
			if c < '0' || c > '9' || len(word) > 2 {
				n = -1
				break
			}
			n = n*10 + int(c-'0')
		}
		switch {
		case n < 0 && digits > 0:
			return v // the number has ended
		case n < 0:
		case digits == 0:
			v, digits = n*100, 1
		default:
			return v + n
		}
	}
	if digits == 0 {
		return 9900
	}
	return v
}
