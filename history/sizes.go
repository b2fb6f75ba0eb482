package history

// sizes.go: the sizes of requests that decide when something is put away.

import (
	"cmp"

	"github.com/pawl-go/pawl/history/internal/fold"
)

const (
	blindHigh  = 0.65   // in place of High while the provider has reported no usage
	thrashLow  = 0.25   // in place of Low while edits do not help
	firstRatio = 1. / 3 // tokens for a byte, before the provider has counted
)

// sizes are the sizes of requests that the rules compare, in bytes if nothing else is said.
type sizes struct {
	ratio  float64 // tokens for a byte
	room   float64 // 0 means unknown
	high   float64 // above it, requests are made shorter
	low    float64 // down to it
	window int     // in tokens; 0 means unknown
	native int     // where the provider's own means begin, in tokens
}

// sizes returns the sizes in state m.
func (p *planner) sizes(m *fold.Mark) (z sizes) {
	o := p.options
	z.window = cmp.Or(o.Tokens, p.window, o.HighTokens*2)
	longest := cmp.Or(p.rounds.Request.Settings.MaxTokens, p.output, z.window)
	reserve := cmp.Or(o.Reserve, min(longest, z.window/4))
	room := z.window - reserve
	if m.RoomTokens > 0 && (z.window == 0 || m.RoomTokens < room) {
		room = m.RoomTokens
	}

	z.ratio = firstRatio
	high := min(o.High, blindHigh)
	if m.Tokens > 0 && m.Bytes > 0 {
		z.ratio = float64(m.Tokens) / float64(m.Bytes)
		high = o.High
	}
	if p.provider != nil {
		high = max(high, nativeHigh)
	}
	low := o.Low
	if m.Unhelpful >= unhelpfulLow {
		low = min(low, thrashLow)
	}

	z.room = float64(max(0, room)) / z.ratio
	z.high = high * z.room
	z.native = int(o.High * float64(room))
	if o.HighTokens > 0 {
		z.high = min(z.high, float64(o.HighTokens)/z.ratio)
		z.native = min(z.native, o.HighTokens*4/5)
	}
	z.low = min(low*z.room, z.high/2)
	return z
}

// tokens returns about how many tokens so many bytes are.
func (z sizes) tokens(bytes int) int { return int(float64(bytes) * z.ratio) }
