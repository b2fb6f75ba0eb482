package fold

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// What media cost, in tokens.
const (
	tokensPerImage = 1_500 // what providers count for an image of about a megapixel
	bytesPerToken  = 32    // of documents and sound, which are denser than text
)

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
			text, media = text+len(p.CallID)+t, media+m
		case llm.Media:
			n := tokensPerImage
			if !strings.HasPrefix(p.MIME, "image/") {
				// documents and sound are denser than text
				n = max(n, len(p.Data)/bytesPerToken)
			}
			media += n
		}
	}
	return text, media
}

func opaque(o *llm.Opaque) int {
	if o == nil {
		return 0
	}
	return len(o.Data)
}
