package history

// sizes.go: the sizes of requests that decide when something is put away.

import (
	"cmp"

	"github.com/pawl-go/pawl/history/internal/fold"
)

const (
	blindHigh  = 0.65   // in place of High while the provider has reported no usage
	nativeHigh = 0.95   // in place of High with Native, so that the provider comes first
	thrashLow  = 0.25   // in place of Low from fold.LowerAt on
	firstRatio = 1. / 3 // tokens for a byte, before the provider has counted
)

// window is what the program, the request and the model say about the context window.
type window struct {
	options *WindowOptions
	stated  int  // the window by the model, in tokens; 0 means unknown
	output  int  // the longest reply by the request or the model, in tokens; 0 means unknown
	native  bool // the provider shortens the conversation itself
}

// sizes are the sizes of requests that the rules compare, in bytes if nothing else is said.
//
//	0 ─────────── low ─────────────── high ─────────────── room ─────────────── window
//	              down to it an edit  above it the next    between them is the
//	              shortens a request  request is edited    reserve for the reply
type sizes struct {
	ratio  float64 // tokens for a byte
	room   float64 // 0 means unknown
	high   float64 // above it, requests are made shorter
	low    float64 // down to it
	window int     // in tokens; 0 means unknown
	native int     // where the provider's own means begin, in tokens
}

// sizes returns the sizes in state m.
func (w *window) sizes(m *fold.Mark) (z sizes) {
	o := w.options
	z.window = cmp.Or(o.Tokens, w.stated, o.HighTokens*2)
	room := w.room(z.window, m.RoomTokens)

	// A count of the provider, even for an earlier request, is better than the guess. Until it
	// comes, requests stay farther below the limit.
	z.ratio = firstRatio
	high := min(o.High, blindHigh)
	if m.Tokens > 0 && m.Bytes > 0 {
		z.ratio = float64(m.Tokens) / float64(m.Bytes)
		high = o.High
	}
	if w.native {
		high = max(high, nativeHigh)
	}
	low := o.Low
	if m.Unhelpful >= fold.LowerAt {
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

// room returns the room in tokens of a window. refused is the room that a refusal has taught; 0
// means none.
func (w *window) room(tokens, refused int) int {
	longest := cmp.Or(w.output, tokens)
	reserve := cmp.Or(w.options.Reserve, min(longest, tokens/4))
	room := tokens - reserve
	if refused > 0 && (tokens == 0 || refused < room) {
		return refused
	}
	return room
}

// tokens returns about how many tokens so many bytes are.
func (z sizes) tokens(bytes int) int { return int(float64(bytes) * z.ratio) }
