package llm

// wrap.go: the optional abilities of a Model, and As, which finds them through wrappers.

// Namer is an optional ability of a Model. Name returns "provider:name", such as
// "openai:gpt-6.1-terra", which errors and journals contain. "" means that the name is unknown.
type Namer interface {
	Name() string
}

// Checker is an optional ability of a Model. Check returns what is wrong with its options, such as
// a missing key, and nil if a request can be sent. It sends nothing. Agent.Check calls it.
type Checker interface {
	Check() error
}

// Windower is an optional ability of a Model. Window returns the context window of the model that
// answers req, and its longest reply, in tokens. 0 means unknown. history.Window reads it.
type Windower interface {
	Window(req *Request) (window, output int)
}

// Compactor is an optional ability of a Model: its provider shortens long conversations itself.
// history.Window uses it.
type Compactor interface {
	// Compact returns req with the order to do so above that many tokens of input. 0 means with
	// this request: the provider summarizes the conversation before it answers. ok is false if the
	// provider does not follow that order.
	//
	// A reply begins with the summary before it. A summary of everything replaces the messages
	// before it. A summary by an order of 0 leaves the exchange that the reply answers: the reply
	// before it and its results, or, without results, the messages after that reply.
	Compact(req *Request, tokens int) (r *Request, ok bool)
	// Compacted reports whether p is the provider's summary of what precedes it.
	Compacted(p Part) bool
}

// wrapper is a Model around another.
type wrapper interface {
	Unwrap() Model
}

// Unwrap returns the Model that m wraps. The result is false if m wraps none. The returned Model is
// nil if m is broken.
func Unwrap(m Model) (inner Model, ok bool) {
	w, ok := m.(wrapper)
	if !ok {
		return nil, false
	}
	return w.Unwrap(), true
}

// As returns the first Model that is a T: m itself, then m.Unwrap(), and so on. It finds optional
// abilities, such as OutputHolder and Pricer. The result is false if no Model is a T.
//
// A Model that wraps another has the method Unwrap() Model. It implements an ability itself only
// if it answers differently from the wrapped Model. A wrapper without Unwrap hides the
// abilities of the wrapped Model.
func As[T any](m Model) (T, bool) {
	for m != nil {
		if t, ok := m.(T); ok {
			return t, true
		}
		m, _ = Unwrap(m)
	}
	var none T
	return none, false
}
