package anthropic

import (
	"bytes"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// summaries reads the summaries of one server in a conversation. A summary is a block of the type
// compaction. There are two kinds:
//
//	signed    by a request for a summary (compaction). It stands first in each later request, and
//	          the messages that it replaces are not sent.
//	unsigned  by context_management, within a reply. The messages before it are sent, and the
//	          server leaves them out.
//
// A transcript has both where they arrived: at the beginning of a reply. What a signed one replaces
// follows from the messages: all before the exchange that its reply answers.
//
//	transcript  system, task, reply 0, results, reply 1, results, (summary, reply 2), results
//	sent        system, summary, reply 1, results, reply 2, results
//
// The first request after the summary is the same without reply 2 and its results.
// https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand
type summaries struct {
	tag string // of the server
	// isThinking reports whether a part is thinking that the model checks against what stands
	// before it. nil means that it does not check.
	isThinking func(llm.Part) bool
}

const (
	betaSigned   = "compact-2026-09-04" // of requests for a signed summary, and with one
	betaUnsigned = "compact-2026-01-12" // of requests for an unsigned summary, and with one

	orderSummary = `{"type":"summarize"}`
)

// isSummary reports whether p is a summary with a text.
func (s summaries) isSummary(p llm.Part) bool { return wire.Compaction(p, s.tag, "content") }

// isAny also reports a summary without a text, which the server failed to write.
func (s summaries) isAny(p llm.Part) bool { return wire.IsSummary(p, s.tag) }

// isSigned reports whether p is a signed summary.
func (s summaries) isSigned(p llm.Part) bool {
	return s.isSummary(p) && wire.MemberText(p.(llm.Reasoning).Opaque.Data, "signature") != ""
}

// anyPart reports whether a part of messages is one.
func anyPart(messages []llm.Message, is func(llm.Part) bool) bool {
	return slices.ContainsFunc(messages, func(m llm.Message) bool { return slices.ContainsFunc(m.Parts, is) })
}

// sent returns messages without what the last signed summary replaces. It returns messages
// themselves if there is no signed summary. The API takes no second summary.
func (s summaries) sent(messages []llm.Message) []llm.Message {
	if !anyPart(messages, s.isSigned) {
		return messages
	}
	at := len(messages) - 1
	for !slices.ContainsFunc(messages[at].Parts, s.isSummary) {
		at--
	}
	exchange := lastExchange(messages[:at])

	// Instructions stay in force. They become a part of the system prompt, since the summary must
	// be the first of the messages.
	said := func(m llm.Message) bool { return !wire.Instructs(&m) }
	out := slices.DeleteFunc(slices.Clone(messages[:exchange]), said)
	out = append(out, llm.Assistant(lastPart(messages[at].Parts, s.isSummary)))

	for i, m := range messages[exchange:] {
		earlier := exchange+i < at
		leftOut := s.isAny
		if earlier && s.isThinking != nil {
			leftOut = func(p llm.Part) bool { return s.isAny(p) || s.isThinking(p) }
		}
		if slices.ContainsFunc(m.Parts, leftOut) {
			m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), leftOut)
		}
		out = append(out, m)
	}
	return out
}

// lastPart returns the last of parts that is one, or nil.
func lastPart(parts []llm.Part, is func(llm.Part) bool) llm.Part {
	for _, p := range slices.Backward(parts) {
		if is(p) {
			return p
		}
	}
	return nil
}

// lastExchange returns the index of the first message of the exchange that ends messages: the last
// reply and its results, or, without results, what follows the last reply. It begins with no
// instructions, since the API does not take them right after a summary.
func lastExchange(messages []llm.Message) int {
	at := len(messages)
	results := false
	for at > 0 && messages[at-1].Role != llm.RoleAssistant {
		at--
		results = results || messages[at].Role == llm.RoleTool
	}
	if results && at > 0 {
		return at - 1
	}
	for at < len(messages) && wire.Instructs(&messages[at]) {
		at++
	}
	return at
}

// replaced returns how many of messages a summary in the next reply replaces. Without others, it
// summarizes the exchange that the reply answers, too.
func replaced(messages []llm.Message) int {
	exchange := lastExchange(messages)
	said := func(m llm.Message) bool { return !wire.Instructs(&m) }
	if slices.ContainsFunc(messages[:exchange], said) {
		return exchange
	}
	return len(messages)
}

// betas returns the beta features of a request for a summary, if asks is set, or with one among the
// messages that are sent.
func (s summaries) betas(sent []llm.Message, asks bool) []string {
	var betas []string
	signed := anyPart(sent, s.isSigned)
	if signed || asks {
		betas = append(betas, betaSigned)
	}
	if !signed && anyPart(sent, s.isAny) {
		betas = append(betas, betaUnsigned)
	}
	return betas
}

// excludesSummary returns the member of a body that the API does not accept in a request for a
// summary; "" means that there is none.
func excludesSummary(body []byte) string {
	choice := wire.MemberText(wire.Member(body, "tool_choice"), "type")
	switch {
	case wire.Member(body, "context_management") != nil:
		return "context_management"
	case wire.Member(body, "stop_sequences") != nil:
		return "stop_sequences"
	case choice == "any" || choice == "tool":
		return "tool_choice"
	case wire.Member(body, "output_format") != nil:
		return "output_format"
	case wire.Member(wire.Member(body, "output_config"), "format") != nil:
		return "output_config.format"
	}
	return remainingBudget(body)
}

// excludedBySigned returns the member of a body that the API does not accept with a signed summary
// among the messages; "" means that there is none.
func excludedBySigned(body []byte) string {
	if bytes.Contains(wire.Member(body, "context_management"), []byte(`"compact_20260112"`)) {
		return "context_management (compact_20260112)"
	}
	return remainingBudget(body)
}

// remainingBudget returns the member of a body that states what remains of a task budget, or "".
func remainingBudget(body []byte) string {
	budget := wire.Member(wire.Member(body, "output_config"), "task_budget")
	if wire.Member(budget, "remaining") == nil {
		return ""
	}
	return "output_config.task_budget.remaining"
}
