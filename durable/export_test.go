package durable

import (
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
)

// SetClock sets the wall clock of e.
func (e *Engine) SetClock(now func() time.Time) { e.now = now }

// Told stores body as its difference from prev, and restores it after was, or after prev.
func Told(prev, body []byte, was ...[]byte) ([]byte, error) {
	b := record.NewSentRequest("", prev, body, false)
	for _, prev = range was {
	}
	return b.After(prev)
}

// StateOf returns the state in a journal of a run that stopped with res. text is Event.Error of its
// end.
func StateOf(res *pawl.Result, text string) string { return stateOf(res, text) }
