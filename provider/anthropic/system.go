package anthropic

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// fromSystem writes the system prompt, one block per message, and returns the number of its
// messages. A prompt for structured output comes last, if the API cannot enforce it.
func fromSystem(e *encoder, req *llm.Request) int {
	lead := 0
	for lead < len(req.Messages) {
		m := &req.Messages[lead]
		if !wire.Instructs(m) {
			break
		}
		if !wire.OnlyText(m.Parts) {
			e.Fail(unsupported("messages", "message %d: Anthropic takes nothing but text in a system message", lead))
		}
		lead++
	}
	prompt := ""
	if len(req.Output) > 0 && !e.enforced {
		prompt = wire.SchemaPrompt(req.Output)
	}
	any := prompt != ""
	for _, m := range req.Messages[:lead] {
		any = any || strings.TrimSpace(m.Text()) != ""
	}
	if !any || !e.Key("system") {
		return lead
	}
	e.Raw("[")
	for _, m := range req.Messages[:lead] {
		if text := m.Text(); strings.TrimSpace(text) != "" {
			fromSystemText(e, text)
		}
	}
	if prompt != "" {
		fromSystemText(e, prompt)
	}
	// The mark is behind the last block: the cache has tools and system prompt together.
	if e.cache.on {
		e.mark()
	}
	e.Raw("]")
	return lead
}

func fromSystemText(e *encoder, text string) {
	e.Comma()
	e.Quote(`{"type":"text","text":`, text, `}`)
}
