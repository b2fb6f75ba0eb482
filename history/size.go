package history

import (
	"cmp"

	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/llm"
)

// sizes are the bytes of requests that the rules compare.
type sizes struct {
	ratio           float64 // tokens for a byte
	room, high, low float64 // room 0 means unknown
	window, native  int     // in tokens; native is where the provider's own means begin
}

func (s *sending) sizes(p *fold.Mark) (z sizes) {
	o, req, output := &s.w.o, s.c.Req, 0
	z.window = o.Tokens
	z.ratio = firstRatio
	if m, ok := llm.As[interface {
		Window(*llm.Request) (window, output int)
	}](s.w.inner); ok {
		known, longest := m.Window(req)
		z.window, output = cmp.Or(z.window, known), longest
	}
	z.window = cmp.Or(z.window, o.HighTokens*2)
	room := z.window - cmp.Or(o.Reserve, min(cmp.Or(req.Settings.MaxTokens, output, z.window), z.window/4))
	if p.Room > 0 && (z.window == 0 || p.Room < room) {
		room = p.Room
	}
	high := min(o.High, blindHigh)
	low := o.Low
	if p.Tokens > 0 && p.Bytes > 0 {
		z.ratio = float64(p.Tokens) / float64(p.Bytes)
		high = o.High
	}
	if s.own != nil {
		high = max(high, nativeHigh)
	}
	if p.Thrash >= thrashAt {
		low = min(low, thrashLow)
	}
	z.room, z.native = float64(max(0, room))/z.ratio, int(o.High*float64(room))
	z.high = high * z.room
	if most := float64(o.HighTokens) / z.ratio; most > 0 {
		z.high, z.native = min(z.high, most), min(z.native, o.HighTokens*4/5)
	}
	z.low = min(low*z.room, z.high/2)
	return z
}

func (s sizes) tokens(bytes int) int { return int(float64(bytes) * s.ratio) }
