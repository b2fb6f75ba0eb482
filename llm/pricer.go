package llm

// Pricer is a Model that knows what its requests cost: the replies it gives have Usage.Cost. Price.Of makes one. A run with Limits.Cost, or
// inside one that has it, fails before its first request when its Model is none. A Model over a Model passes the question on. A middleware's need not, unless it
// asks more than the one inside of it, as policy.Fallback does: the outermost Pricer counts.
type Pricer interface {
	// MaxCost returns the most that req can cost in US dollars, math.Inf(1) where there is no telling. known is false when the price is not
	// known. It is asked before each request of a run whose cost is limited, and must not block.
	MaxCost(req *Request) (dollars float64, known bool)
}

const longestReply = 128 << 10 // tokens; no model writes more in one reply

// Bounds returns the most tokens that the request can be, one for each byte, and that its reply can be: Settings.MaxTokens, or 128 Ki.
func (req *Request) Bounds() (input, output int) {
	input = aroundRequest + len(req.Output)
	for _, m := range req.Messages {
		input += m.bytes()
	}
	for _, t := range req.Tools {
		input += aroundPart + len(t.Name) + len(t.Description) + len(t.Input)
	}
	if output = req.Settings.MaxTokens; output <= 0 {
		output = longestReply
	}
	return input, output
}

// What a provider adds of its own, in tokens, is no more than this.
const (
	aroundRequest = 1 << 10
	aroundPart    = 16
	aroundMedia   = 16 << 10 // behind an address may be any picture
)

// bytes returns the bytes of m, with what is put around them.
func (m *Message) bytes() (n int) {
	for _, p := range m.Parts {
		n += aroundPart
		switch p := p.(type) {
		case Text:
			n += len(p.Text)
		case Reasoning:
			n += len(p.Text)
			if p.Opaque != nil {
				n += len(p.Opaque.Data)
			}
		case Media:
			n += aroundMedia + len(p.Data)
		case ToolCall:
			n += len(p.Name) + len(p.Args)
		case ToolResult:
			for _, q := range p.Parts {
				n += (&Message{Parts: []Part{q}}).bytes()
			}
		}
	}
	return n
}
