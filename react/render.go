package react

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// history returns the conversation as text, under one system message of the instructions and
// prompt. All messages are there in order, so the task is in every request. Messages without calls
// and results are sent unchanged.
func (f Format) history(msgs []llm.Message, prompt string) []llm.Message {
	out := make([]llm.Message, 1, len(msgs)+4)
	var instructions []string
	// One system message: many chat templates accept it only as the first message.
	for len(msgs) > 0 && msgs[0].Role == llm.RoleSystem {
		instructions = append(instructions, msgs[0].Text())
		msgs = msgs[1:]
	}
	out[0] = llm.System(strings.Join(append(instructions, prompt), "\n\n"))
	number := 0 // of the last call
	var calls []llm.ToolCall
	for _, m := range msgs {
		switch m.Role {
		case llm.RoleAssistant:
			calls = m.Calls()
			out = append(out, llm.Assistant(llm.Text{Text: f.said(m, calls, number)}))
			number += len(calls)
		case llm.RoleTool:
			for _, p := range m.Parts {
				if r, ok := p.(llm.ToolResult); ok {
					out = append(out, f.observed(r, calls, number-len(calls)))
				}
			}
		default:
			out = append(out, m)
		}
	}
	return out
}

// forms are how a reply stands in the history. JSON has the form of Text.
var forms = map[Format]struct{ thought, call, answer string }{
	XML:   {"<thought>%s</thought>\n", "<tool>%[1]s</tool>\n<args>%[2]s</args>\n", "<answer>%s</answer>"},
	Plain: {"%s\n", "Calling tool: %s with args: %s (#%d)\n", "%s"},
	Text:  {"Thought: %s\n", "Action: %[1]s\nAction Input: %[2]s\n", "Final Answer: %s"},
}

// said is a reply as text. before is how many calls were made before it.
func (f Format) said(m llm.Message, calls []llm.ToolCall, before int) string {
	var thoughts []string
	for _, p := range m.Parts {
		text := ""
		switch p := p.(type) {
		case llm.Text:
			if len(calls) > 0 {
				text = p.Text // words with a call
			}
		case llm.Reasoning:
			if p.Opaque == nil {
				text = p.Text // otherwise the thinking belongs to its author
			}
		}
		text = strings.TrimSpace(text)
		if text != "" {
			thoughts = append(thoughts, text)
		}
	}

	// The conversation shows the form that the prompt asks for, so that the model imitates it.
	form, ok := forms[f]
	if !ok {
		form = forms[Text]
	}
	var b strings.Builder
	if thought := strings.Join(thoughts, "\n"); thought != "" && (f != Plain || len(calls) > 0) {
		fmt.Fprintf(&b, form.thought, thought)
	}
	for i, c := range calls {
		fmt.Fprintf(&b, form.call, c.Name, cmp.Or(strings.TrimSpace(string(c.Args)), "{}"), before+i+1)
	}
	if len(calls) == 0 {
		fmt.Fprintf(&b, form.answer, m.Text())
	}
	return strings.TrimRight(b.String(), "\n")
}

// observed returns a result as a message of the user. If there are several calls, it names the
// call.
func (f Format) observed(r llm.ToolResult, calls []llm.ToolCall, before int) llm.Message {
	var b strings.Builder
	place := 0
	for i, c := range calls {
		if c.ID == r.CallID {
			place = i
		}
	}

	// Results have numbers, since a text has no ids that would connect a result with its call.
	switch {
	case f == Plain:
		fmt.Fprintf(&b, "Tool result: (#%d) ", before+place+1)
	case len(calls) > 1:
		fmt.Fprintf(&b, "Observation: (%d of %d, %s) ", place+1, len(calls), calls[place].Name)
	default:
		b.WriteString("Observation: ")
	}
	if r.IsError {
		b.WriteString("ERROR - ")
	}
	b.WriteString(r.Text())

	m := llm.User(b.String())
	for _, p := range r.Parts {
		if media, ok := p.(llm.Media); ok {
			m.Parts = append(m.Parts, media)
		}
	}
	return m
}
