// Package advice has errors in two parts: what is wrong, and what would be right. A caller that
// shows the parts in different places takes them from the value, and never from the text.
package advice

import "errors"

// Error says what is wrong, and what would be right.
type Error struct {
	Message string // what is wrong
	Joint   string // stands between the two in the text of the error, such as "; "
	Hint    string // what would be right; empty means that there is nothing to say
}

// New returns an Error whose text is the message, "; " and the hint.
func New(message, hint string) *Error { return &Error{Message: message, Joint: "; ", Hint: hint} }

// Error returns the message and the hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + e.Joint + e.Hint
}

// Parts returns the message and the hint of the first Error in the tree of err, or the whole text
// of err and no hint.
func Parts(err error) (message, hint string) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message, e.Hint
	}
	return err.Error(), ""
}
