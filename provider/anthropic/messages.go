package anthropic

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// fromMessages writes the messages after the first lead ones. It merges messages so that the sides
// alternate.
func fromMessages(e *encoder, messages []llm.Message, lead int) {
	i := lead
	for i < len(messages) {
		if messages[i].Role == llm.RoleAssistant {
			fromReply(e, i, &messages[i], i == len(messages)-1)
			i++
			continue
		}
		// All messages until the next reply are one turn of the user's side: the API wants its
		// results first, in one message.
		end := i + 1
		for end < len(messages) && messages[end].Role != llm.RoleAssistant {
			end++
		}
		users := end
		for e.instructs() && users > i && wire.Instructs(&messages[users-1]) {
			users--
		}
		if users == i {
			users = end // no user turn that they could follow
		}
		fromMessage(e, messages, i, users)
		// The marks of the prompt cache are at the end of a turn, so that the next request finds
		// all of it in the cache.
		switch {
		case e.cache.moves:
			e.turned()
		case e.cache.fixed && i == lead && e.role == "user":
			e.mark()
		}
		fromInstructions(e, messages, users, end)
		i = end
	}
	if e.role == "" {
		e.Fail(invalid("messages", "Anthropic wants at least one message that is no instruction"))
	}
	e.markTurns()
	e.close()
}

// block begins a block of a message of role.
func (e *encoder) block(role string) {
	if e.role != role {
		e.close()
		e.Comma()
		e.Raw(`{"role":"`)
		e.Raw(role)
		e.Raw(`","content":[`)
		e.role = role
	}
	e.Comma()
}

// close ends the current message.
func (e *encoder) close() {
	if e.role != "" {
		e.Raw(`]}`)
		e.role = ""
	}
}

// fromMessage writes messages[from:to], which all belong to the user's side. All results of a
// reply come first, in one message.
func fromMessage(e *encoder, messages []llm.Message, from, to int) {
	for i := from; i < to; i++ {
		for j, p := range messages[i].Parts {
			if r, ok := p.(llm.ToolResult); ok {
				fromResult(e, i, j, &r)
			}
		}
	}
	// Behind all results: the API wants the results of a turn before anything else.
	fromErrorMedia(e, messages, from, to)
	for i := from; i < to; i++ {
		m := &messages[i]
		switch m.Role {
		case llm.RoleUser, llm.RoleTool:
		case llm.RoleSystem, llm.RoleDeveloper:
			if !wire.OnlyText(m.Parts) {
				e.Fail(unsupported("messages", "message %d: Anthropic takes nothing but text in a system message", i))
			}
			// The API has no instructions at this place. The tags say that the text is not the
			// user's.
			if text := m.Text(); strings.TrimSpace(text) != "" {
				e.block("user")
				e.Quote(`{"type":"text","text":`, "<system>\n"+text+"\n</system>", `}`)
			}
			continue
		default:
			e.Fail(invalid("messages", "message %d has the unknown role %q", i, m.Role))
			return
		}
		for j, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolResult:
			case llm.Text:
				fromText(e, "user", &p)
			case llm.Media:
				e.block("user")
				fromMedia(e, wire.Field(i, j), p, true)
			default:
				e.Fail(invalid(wire.Field(i, j), "%T has no place in this message", p))
			}
		}
	}
}

// instructs reports whether the model accepts instructions between a user turn and its reply. By
// name, that is Claude from Opus 4.8 on, at Anthropic (platform.claude.com, mid-conversation
// system messages).
func (e *encoder) instructs() bool { return e.newest() && e.facts.instructs }

// fromInstructions writes messages[from:to], which are instructions after a user turn, as a turn
// of their own.
func fromInstructions(e *encoder, messages []llm.Message, from, to int) {
	for i := from; i < to; i++ {
		if !wire.OnlyText(messages[i].Parts) {
			e.Fail(unsupported("messages", "message %d: Anthropic takes nothing but text in a system message", i))
		}
		fromText(e, "system", &llm.Text{Text: messages[i].Text()})
	}
}

// fromText writes a text block. The API rejects blank text.
func fromText(e *encoder, role string, t *llm.Text) {
	if strings.TrimSpace(t.Text) == "" {
		return
	}
	e.block(role)
	e.Quote(`{"type":"text","text":`, t.Text)
	e.Extra(e.tag, t.Opaque)
	e.Raw(`}`)
}

// fromReply writes the blocks of an assistant message in order. last means that the conversation
// ends with it.
func fromReply(e *encoder, message int, m *llm.Message, last bool) {
	for i, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			if last && i == len(m.Parts)-1 {
				// the API rejects trailing white space in the last turn
				p.Text = strings.TrimRight(p.Text, " \t\r\n")
			}
			fromText(e, "assistant", &p)
		case llm.Reasoning:
			if p.Opaque != nil && p.Opaque.Provider == e.tag && wire.MemberText(p.Opaque.Data, "type") != "" {
				e.block("assistant")
				e.Body = append(e.Body, p.Opaque.Data...)
			}
		case llm.ToolCall:
			fromCall(e, &p)
		default:
			e.Fail(unsupported(wire.Field(message, i), "Anthropic cannot take %T in an assistant message", p))
		}
	}
}

// fromCall writes a call. Its input is always an object, even if the arguments are not.
func fromCall(e *encoder, c *llm.ToolCall) {
	e.block("assistant")
	e.Quote(`{"type":"tool_use","id":`, e.ids.ofCall(c.ID), `,"name":`, e.tools.ToWire(c.Name), `,"input":`)
	e.Body = append(e.Body, wire.Object(c.Args, "raw_arguments")...)
	e.Extra(e.tag, c.Opaque)
	e.Raw(`}`)
}

// fromErrorMedia writes the media of failed results. The API does not accept media in an error, so
// they follow all results, each after a line that names its call.
func fromErrorMedia(e *encoder, messages []llm.Message, from, to int) {
	for i := from; i < to; i++ {
		for j, p := range messages[i].Parts {
			r, ok := p.(llm.ToolResult)
			if !ok || !r.IsError {
				continue
			}
			for n, p := range r.Parts {
				switch p := p.(type) {
				case llm.Text:
				case llm.Media:
					e.block("user")
					e.Quote(`{"type":"text","text":`, "From the result of call "+e.ids.ofResult(r.CallID)+":", `}`)
					e.block("user")
					fromMedia(e, wire.Field(i, j), p, false)
				default:
					e.Fail(invalid(wire.Field(i, j), "part %d: %T has no place in a result", n, p))
				}
			}
		}
	}
}

// fromResult writes the result of a call. An error is text.
func fromResult(e *encoder, message, part int, r *llm.ToolResult) {
	e.block("user")
	e.Quote(`{"type":"tool_result","tool_use_id":`, e.ids.ofResult(r.CallID), `,"content":`)
	if r.IsError || wire.OnlyText(r.Parts) {
		text := r.Text()
		if r.IsError && text == "" {
			text = "Error" // the API rejects an empty error
		}
		e.String(text)
	} else {
		e.Raw("[")
		for i, p := range r.Parts {
			switch p := p.(type) {
			case llm.Text:
				// The API rejects a text block without a visible character.
				if strings.TrimSpace(p.Text) == "" {
					continue
				}
				e.Comma()
				e.Quote(`{"type":"text","text":`, p.Text, `}`)
			case llm.Media:
				e.Comma()
				fromMedia(e, wire.Field(message, part), p, false)
			default:
				e.Fail(invalid(wire.Field(message, part), "part %d: %T has no place in a result", i, p))
			}
		}
		e.Raw("]")
	}
	if r.IsError {
		e.Raw(`,"is_error":true`)
	}
	e.Raw(`}`)
}
