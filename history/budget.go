package history

import (
	"context"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Options tune Budget and Summary. Nil, and every zero field, stands for the default.
type Options struct {
	// Estimate returns how many tokens a message costs. It must give the same for the same message, or cuts move for nothing. Nil:
	// Estimate, the function.
	Estimate func(m llm.Message) int

	// Prompt tells Summary's model what to write. "": the page summary.md of this package.
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

// Estimate guesses how many tokens a message costs, without a tokenizer: a token for four bytes of text, calls, results and reasoning (what only
// its provider can read of it included), and 1,500 for an image or any other medium, more if that is a large document. It is often a fifth off and may be half off
// for Chinese or for dense code, so leave room. Tools and schemas are not counted.
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
				n = max(n, len(p.Data)/(8*bytesPerToken)) // documents and sound are stored more densely than text
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

// Budget returns the middleware that sends the last turns that fit into tokens, as estimated, with the instructions. When they no longer do, so many of the first
// turns are left out that the rest fits into half, and then nothing is until it is full again. The turn at hand is sent whole, even if
// it alone is larger; then, and where half is too little for it, it is all that is sent.
func Budget(tokens int, o *Options) pawl.Middleware {
	estimate := o.estimate()
	return compiler(func(_ context.Context, _ llm.Model, req *llm.Request) (view, error) {
		c := parse(req)
		cuts := c.budget(tokens, estimate)
		return c.from(cuts[len(cuts)-1], req.Turn), nil
	}).middleware()
}

// budget returns the cuts of the conversation in the order in which they came to be, the first before everything: it goes through the conversation as it
// grew, so that what is left out depends on nothing else.
func (c *conversation) budget(tokens int, estimate func(llm.Message) int) []cut {
	cuts := []cut{{}}
	kept := 0
	for _, m := range c.messages[:c.head] {
		kept += estimate(m)
	}
	var turns []int // what each cost
	left := 0       // turns left out
	for t, start := range c.starts {
		turns = append(turns, 0)
		for i := start; i < c.end(t); i++ {
			n := estimate(c.messages[i])
			turns[t] += n
			last := min(t, c.current)
			if kept += n; kept <= tokens || left == last {
				continue
			}
			for left < last && kept > tokens/2 {
				kept -= turns[left]
				left++
			}
			cuts = append(cuts, cut{turn: left, at: i + 1})
		}
	}
	return cuts
}
