package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// summaryType is the type of a summary of earlier messages in the APIs of Anthropic and OpenAI.
const summaryType = "compaction"

// IsSummary reports whether p is a summary that the server of a tag wrote, or failed to write.
func IsSummary(p llm.Part, tag string) bool {
	r, ok := p.(llm.Reasoning)
	own := ok && r.Opaque != nil && r.Opaque.Provider == tag
	return own && isSummary(r.Opaque.Data)
}

// Compaction reports whether p is a summary by the server of a tag. text is the member that has it.
func Compaction(p llm.Part, tag, text string) bool {
	return IsSummary(p, tag) && MemberText(p.(llm.Reasoning).Opaque.Data, text) != ""
}

func isSummary(data []byte) bool {
	// Most parts are reasoning, and long. Reading them costs more than this.
	return bytes.Contains(data, []byte(`"`+summaryType+`"`)) && MemberText(data, "type") == summaryType
}

// withSummaryTexts returns req with a text in place of each summary that another server wrote and
// that can be read, as Anthropic's can: the messages that it replaces may not be in the transcript.
// It returns req itself if there is none. reads reports whether this server reads a part itself;
// nil means that it reads none.
func withSummaryTexts(req *llm.Request, reads func(llm.Part) bool) *llm.Request {
	foreign := func(p llm.Part) bool {
		return summaryText(p) != "" && (reads == nil || !reads(p))
	}
	hasForeign := func(m llm.Message) bool { return slices.ContainsFunc(m.Parts, foreign) }
	if !slices.ContainsFunc(req.Messages, hasForeign) {
		return req
	}

	r := new(*req)
	r.Messages = make([]llm.Message, 0, len(req.Messages)+1)
	begun := false
	for _, m := range req.Messages {
		if hasForeign(m) {
			m.Parts = withTexts(m.Parts, foreign)
			if !begun {
				// A conversation begins with the user.
				first := slices.IndexFunc(m.Parts, isSummaryText)
				r.Messages = append(r.Messages, llm.Message{Role: llm.RoleUser, Parts: m.Parts[first : first+1]})
				m.Parts = slices.Concat(m.Parts[:first], m.Parts[first+1:])
			}
		}
		begun = begun || !Instructs(&m)
		if len(m.Parts) > 0 || m.Role != llm.RoleAssistant {
			r.Messages = append(r.Messages, m)
		}
	}
	return r
}

// summaryTitle begins the text of a summary of another server.
const summaryTitle = "[A summary of the conversation before this.]\n"

// withTexts returns parts with the text of each that is foreign in its place.
func withTexts(parts []llm.Part, foreign func(llm.Part) bool) []llm.Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if foreign(p) {
			parts[i] = llm.Text{Text: summaryTitle + summaryText(p) + "\n"}
		}
	}
	return parts
}

func isSummaryText(p llm.Part) bool {
	t, ok := p.(llm.Text)
	return ok && strings.HasPrefix(t.Text, summaryTitle)
}

// summaryText returns the text of a summary; "" means that p is none, or cannot be read.
func summaryText(p llm.Part) string {
	r, ok := p.(llm.Reasoning)
	if !ok || r.Opaque == nil || !isSummary(r.Opaque.Data) {
		return ""
	}
	return MemberText(r.Opaque.Data, "content")
}
