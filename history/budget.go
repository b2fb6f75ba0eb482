package history

import (
	"context"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Options tune Budget and Summary. Nil, and every zero field, stands for the default.
type Options struct {
	// Estimate returns the estimated tokens of a message. It must return the same for the same
	// message, or cuts move without need. Nil means the function Estimate.
	Estimate func(m llm.Message) int

	// Prompt is the task of Summary's model. Empty means the page summary.md of this package.
	Prompt string
}

func (o *Options) estimate() func(llm.Message) int {
	if o == nil || o.Estimate == nil {
		return Estimate
	}
	return o.Estimate
}

// What Estimate takes for granted.
const (
	bytesPerToken  = 4     // of English; other scripts and code need more tokens for as many bytes
	tokensPerImage = 1_500 // what providers count for an image of about a megapixel
	tokensPerTurn  = 4     // roles and separators
)

// Estimate estimates the tokens of a message without a tokenizer: a token for four bytes of text,
// calls, results and reasoning (opaque data included), and 1,500 for an image or another medium,
// more for a large document. It is often wrong by a fifth, and by half for Chinese or for dense
// code, so leave room. Tools and schemas do not count.
func Estimate(m llm.Message) int {
	text, media := size(m.Parts)
	return tokensPerTurn + media + (text+bytesPerToken-1)/bytesPerToken
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
			text, media = text+len(p.CallID)+t, media+m
		case llm.Media:
			n := tokensPerImage
			if !strings.HasPrefix(p.MIME, "image/") {
				// documents and sound are denser than text
				n = max(n, len(p.Data)/(8*bytesPerToken))
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

// Budget returns the middleware that sends the instructions and the last turns that fit into
// tokens, as estimated. When they no longer fit, the first turns are left out until the rest fits
// into half of tokens; then the cut stays until the budget is full again. The current turn is
// always sent whole, even if it alone is larger than the budget. It is then the only turn that is
// sent. The same happens if it needs more than half of tokens.
func Budget(tokens int, o *Options) pawl.Middleware {
	estimate := o.estimate()
	return cutter(func(_ context.Context, _ llm.Model, req *llm.Request) (view, error) {
		c := parse(req)
		cuts := c.budget(tokens, estimate)
		return c.from(cuts[len(cuts)-1], req), nil
	}).middleware()
}

// budget returns the cuts of the conversation in the order in which they arose, the first before
// everything. It replays the growth of the conversation, so the cuts depend on nothing else.
func (c *conversation) budget(tokens int, estimate func(llm.Message) int) []cut {
	cuts := []cut{{}}
	used := 0
	for _, m := range c.messages[:c.head] {
		used += estimate(m)
	}
	var turns []int // what each cost
	left := 0       // turns left out
	for t, start := range c.starts {
		turns = append(turns, 0)
		for i := start; i < c.end(t); i++ {
			n := estimate(c.messages[i])
			turns[t] += n
			last := min(t, c.current)
			if used += n; used <= tokens || left == last {
				continue
			}
			for left < last && used > tokens/2 {
				used -= turns[left]
				left++
			}
			cuts = append(cuts, cut{turn: left, at: i + 1})
		}
	}
	return cuts
}
