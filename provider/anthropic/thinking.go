package anthropic

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// thinking is how a request enables thinking.
type thinking struct {
	// on means that the model always thinks. An adaptive model may skip it, so calls may be
	// forced.
	on        bool
	adaptive  bool   // the model decides how much; otherwise up to budget
	budget    int    // tokens; 0 means not sent
	effort    string // of output_config; "" means not sent
	maxTokens int
}

// budgets are the thinking budgets of efforts, for models that do not accept an effort. With room
// for an answer they fit the 32,000 tokens of the oldest of these models.
var budgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 23000, "max": 23000}

// toThinking translates the effort. New models accept it and decide how much to think; older
// models need a budget, and the oldest do not think.
func (e *encoder) toThinking(s *llm.Settings, messages []llm.Message) thinking {
	t := thinking{maxTokens: cmp.Or(s.MaxTokens, e.facts.reply), on: e.own.thinking == "enabled"}
	switch {
	case s.Effort == "" || s.Effort == "none":
		return t
	case !e.facts.thinks:
		e.Fail(unsupported("settings.effort", "%s does not think", e.model))
		return t
	case e.facts.adaptive:
		t.adaptive = true
		t.effort = s.Effort
		return t
	}
	budget, ok := budgets[s.Effort]
	if !ok {
		e.Fail(invalid("settings.effort", "%q is none of none, minimal, low, medium, high, xhigh, max", s.Effort))
		return t
	}
	// Opus 4.5 takes the effort in addition to a budget.
	if e.facts.version == 405 && strings.Contains(e.model, "opus") {
		t.effort = s.Effort
	}
	if e.own.thinking != "" {
		return t // the budget in the options
	}
	// Thinking counts as output. Without a limit by the program, the answer gets the room of a
	// common reply on top of the budget.
	t.on, t.budget = true, budget
	if s.MaxTokens == 0 {
		t.maxTokens = budget + 8192
	}
	if e.unthought(messages) {
		t.on = false
		t.budget = 0
		return t
	}
	if s.MaxTokens == 0 {
		return t
	}
	// A quarter of the program's limit stays for the answer. 1024 is the least budget that the API
	// accepts.
	t.budget = min(budget, s.MaxTokens*3/4)
	if t.budget < 1024 {
		t.budget = 1024
		if s.MaxTokens <= t.budget {
			e.Fail(invalid("settings.max_tokens", "%d leaves no room for an answer after the least thinking there is, 1024 tokens", s.MaxTokens))
		}
	}
	return t
}

// unthought reports whether messages continue calls that this server's model made without
// thinking, because another model made them or because thinking was off. Such a turn must end
// without thinking, so no budget is sent.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking, "Toggling thinking modes in
// conversations".
func (d *dialect) unthought(messages []llm.Message) bool {
	found := false
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		switch {
		case m.Role == llm.RoleTool:
		case m.Role != llm.RoleAssistant:
			if found {
				return true // the beginning of the turn
			}
		case !found && !m.HasCalls(), d.thinks(m):
			return false
		default:
			found = true
		}
	}
	return found
}

// thinks reports whether a reply begins with thinking that is sent back to this server.
func (d *dialect) thinks(m *llm.Message) bool {
	for _, p := range m.Parts {
		if r, ok := p.(llm.Reasoning); !ok || r.Opaque != nil && r.Opaque.Provider == d.tag {
			return d.isThinking(p)
		}
	}
	return false
}

// isThinking reports whether p is thinking of this server.
func (d *dialect) isThinking(p llm.Part) bool {
	r, ok := p.(llm.Reasoning)
	if !ok || r.Opaque == nil || r.Opaque.Provider != d.tag {
		return false
	}
	kind := wire.MemberText(r.Opaque.Data, "type")
	return kind == "thinking" || kind == "redacted_thinking"
}

// emitUnthought emits a notice if a request is sent without the thinking that its settings ask
// for.
func (m *Model) emitUnthought(req *llm.Request, own options, yield func(llm.Delta, error) bool) bool {
	if req.Settings.Effort == "" || req.Settings.Effort == "none" || own.thinking != "" {
		return true
	}
	if f := m.factsOf(cmp.Or(req.Model, m.name)); f.adaptive || !f.thinks || !m.unthought(req.Messages) {
		return true
	}
	return yield(llm.Delta{Notice: &llm.Notice{Code: "thinking_off",
		Text: "anthropic: the model does not think in this reply, because it continues calls that were made " +
			"without its thinking. It thinks again from the next message on"}}, nil)
}

// binds reports whether a model checks thinking against what stands before it: Claude from 5.5 on,
// and models above Opus from 5.1 on.
// https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Preserved thinking".
func binds(name string, version int) bool {
	above := !strings.Contains(name, "opus") && !strings.Contains(name, "sonnet") && !strings.Contains(name, "haiku")
	return version >= 505 || above && version >= 501
}

// without returns req without the thinking of the replies before message n. It returns req itself
// if they have none.
func (d *dialect) without(req *llm.Request, n int) *llm.Request {
	own := func(p llm.Part) bool { return d.isThinking(p) }
	r := req
	for i := range min(n, len(req.Messages)) {
		m := &req.Messages[i]
		if m.Role != llm.RoleAssistant || !slices.ContainsFunc(m.Parts, own) {
			continue
		}
		if r == req {
			r = new(*req)
			r.Messages = slices.Clone(req.Messages)
		}
		r.Messages[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), own)
	}
	return r
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

// defaultMaxTokens is the max_tokens of requests that do not set it, because the API requires it.
// All models of the version support it.
func defaultMaxTokens(version int) int {
	switch {
	case version == unknown, version >= 305 && version < 307:
		return 8192
	case version < 305:
		return 4096
	}
	return 16384
}

// unknown is the version of a model that is not a Claude.
const unknown = -1

// version returns the version in a model's name: 405 for claude-sonnet-4-5-20250929, 307 for
// claude-3-7-sonnet. A Claude without a number counts as new.
func version(model string) int {
	_, name, ok := strings.Cut(model, "claude")
	if !ok {
		return unknown
	}
	v := 0
	digits := 0
	separates := func(r rune) bool { return strings.ContainsRune("-.@:", r) }
	for _, word := range strings.FieldsFunc(name, separates) {
		n := 0
		for _, c := range []byte(word) {
			// A longer number is a date, not a version.
			if c < '0' || c > '9' || len(word) > 2 {
				n = -1
				break
			}
			n = n*10 + int(c-'0')
		}
		switch {
		case n < 0 && digits > 0:
			return v // the end of the number
		case n < 0:
		case digits == 0:
			v = n * 100
			digits = 1
		default:
			return v + n
		}
	}
	if digits == 0 {
		return 9900
	}
	return v
}
