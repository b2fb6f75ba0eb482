package fold

// weights.go: the size of messages before a provider has counted them.

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// What media cost, in tokens.
const (
	tokensPerImage = 1_500 // what providers count for an image of about a megapixel
	bytesPerToken  = 32    // of documents and sound, which are denser than text
)

const (
	perPart     = 8 // bytes that a provider adds around a part
	mediaFactor = 4 // bytes for each estimated token of a medium
)

// Weigh returns the size of parts in bytes: media count as the text of as many tokens.
func Weigh(parts []llm.Part) int {
	text, media := size(parts)
	return text + media*mediaFactor + len(parts)*perPart
}

// Weight returns the size in bytes of what is sent: messages and tools.
func Weight(msgs []llm.Message, tools []*llm.ToolSpec) (n int) {
	for i := range msgs {
		n += Weigh(msgs[i].Parts)
	}
	for _, t := range tools {
		n += len(t.Name) + len(t.Description) + len(t.Input) + perPart
	}
	return n
}

// size returns the bytes of text of parts and the tokens of their media.
func size(parts []llm.Part) (text, media int) {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			text += len(p.Text) + opaque(p.Opaque)
		case llm.Reasoning:
			text += len(p.Text) + opaque(p.Opaque)
		case llm.ToolCall:
			text += len(p.ID) + len(p.Name) + len(p.Args) + opaque(p.Opaque)
		case llm.ToolResult:
			t, m := size(p.Parts)
			text += len(p.CallID) + t
			media += m
		// Media are counted in tokens, because their bytes say nothing about their price.
		case llm.Media:
			media += mediaTokens(p)
		}
	}
	return text, media
}

func mediaTokens(m llm.Media) int {
	if strings.HasPrefix(m.MIME, "image/") {
		return tokensPerImage
	}
	return max(tokensPerImage, len(m.Data)/bytesPerToken)
}

func opaque(o *llm.Opaque) int {
	if o == nil {
		return 0
	}
	return len(o.Data)
}
