package llm

// pricer.go: Pricer, a model with known prices, and the token bounds of a request.

// Pricer is a Model with a known price: its replies have Usage.Cost. catalog.Price makes one.
//
// A run with Limits.Cost, or nested in a run with it, fails before its first request if its Model
// is not a Pricer. As finds the ability through wrappers. A middleware implements it only if it
// sends more requests than the model it wraps, as policy.Fallback does: the outermost Pricer
// counts.
type Pricer interface {
	// MaxCost returns the highest possible cost of req in US dollars, or math.Inf(1) if there is no
	// bound. known is false if the price is unknown. A run with a cost limit calls MaxCost before
	// each request, so it must not block.
	MaxCost(req *Request) (dollars float64, known bool)
}

const longestReply = 128 << 10 // tokens; no model writes a longer reply

// Bounds returns the largest possible number of tokens of the request, one for each byte, and of
// its reply: Settings.MaxTokens, or 128 Ki if that is 0.
func (req *Request) Bounds() (input, output int) {
	input = aroundRequest + len(req.Output)
	for _, m := range req.Messages {
		input += m.bytes()
	}
	for _, t := range req.Tools {
		input += aroundPart + len(t.Name) + len(t.Description) + len(t.Input)
	}
	output = req.Settings.MaxTokens
	if output <= 0 {
		output = longestReply
	}
	return input, output
}

// Upper bounds of the tokens that a provider adds itself.
const (
	aroundRequest = 1 << 10
	aroundPart    = 16
	aroundMedia   = 16 << 10 // a URL may refer to any picture
)

// bytes returns the bytes of m, with an allowance for the text that a provider adds.
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
