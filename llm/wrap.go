package llm

// wrap.go: As, which finds an ability of a Model through the wrappers around it.

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
		w, ok := m.(interface{ Unwrap() Model })
		if !ok {
			break
		}
		m = w.Unwrap()
	}
	var none T
	return none, false
}
