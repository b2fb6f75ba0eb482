package tui

// pasted.go: the message of a line that a person entered: what was typed, and what was pasted.

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// pastes are the lines of texts of several lines that a person pasted. Others may have written
// them. The zero value has none.
type pastes struct {
	whole map[string]bool // lines that stand alone in a text, trimmed
	edges []string        // first and last lines, which may share a line with typed text
}

// maxEdges bounds the first and last lines that are looked for in a message.
const maxEdges = 64

// add adds a pasted text. One line is often a word or an address that the person chose.
func (p *pastes) add(text string) {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	if len(lines) < 2 {
		return
	}
	if p.whole == nil {
		p.whole = map[string]bool{}
	}
	for _, l := range lines {
		p.whole[strings.TrimSpace(l)] = true
	}
	p.edges = append(p.edges, lines[0], lines[len(lines)-1])
	p.edges = p.edges[max(0, len(p.edges)-maxEdges):]
}

// message returns the user message with this text. Its pasted lines are attached, also if the
// person has edited the lines around them, and the others are the user's own words.
func (p *pastes) message(text string) llm.Message {
	var parts []llm.Part
	add := func(s string, of *llm.Label) {
		last := len(parts) - 1
		switch {
		case s == "":
		case last >= 0 && parts[last].(llm.Text).Label == of:
			parts[last] = llm.Text{Text: parts[last].(llm.Text).Text + s, Label: of}
		default:
			parts = append(parts, llm.Text{Text: s, Label: of})
		}
	}

	typed := llm.Typed.Label()
	attached := llm.Attached.Label()
	for line := range strings.Lines(text) {
		from, to := p.within(line)
		add(line[:from], typed)
		add(line[from:to], attached)
		add(line[to:], typed)
	}
	return llm.Message{Role: llm.RoleUser, Parts: parts}
}

// within returns the place of pasted text in a line. Both are 0 if there is none.
func (p *pastes) within(line string) (from, to int) {
	trimmed := strings.TrimSpace(line)
	if trimmed == "" {
		return 0, 0
	}
	if p.whole[trimmed] {
		return 0, len(line)
	}
	for _, edge := range p.edges {
		if strings.TrimSpace(edge) == "" {
			continue
		}
		at := strings.Index(line, edge)
		if at >= 0 && len(edge) > to-from {
			from = at
			to = at + len(edge)
		}
	}
	return from, to
}
