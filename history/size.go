package history

import (
	"cmp"
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

// sizes are the bytes of requests that the rules compare.
type sizes struct {
	ratio           float64 // tokens for a byte
	room, high, low float64 // room 0 means unknown
	window          int     // in tokens
}

func (w *windowed) sizes(req *llm.Request, p *mark) sizes {
	s, output := sizes{window: w.o.Tokens, ratio: firstRatio}, 0
	if m, ok := llm.As[interface {
		Window(*llm.Request) (window, output int)
	}](w.inner); ok {
		known, longest := m.Window(req)
		s.window, output = cmp.Or(s.window, known), longest
	}
	s.window = cmp.Or(s.window, w.o.HighTokens*2)
	room := s.window - cmp.Or(w.o.Reserve, min(cmp.Or(req.Settings.MaxTokens, output, s.window), s.window/4))
	if p.Room > 0 && (s.window == 0 || p.Room < room) {
		room = p.Room
	}
	high, low := min(w.o.High, blindHigh), w.o.Low
	if p.Tokens > 0 && p.Bytes > 0 {
		s.ratio, high = float64(p.Tokens)/float64(p.Bytes), w.o.High
	}
	if p.Thrash >= thrashAt {
		low = min(low, thrashLow)
	}
	s.room = float64(max(0, room)) / s.ratio
	s.high = high * s.room
	if most := float64(w.o.HighTokens) / s.ratio; most > 0 {
		s.high = min(s.high, most)
	}
	s.low = min(low*s.room, s.high/2)
	return s
}

func (s sizes) tokens(bytes int) int { return int(float64(bytes) * s.ratio) }
