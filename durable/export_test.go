package durable

import "time"

// SetClock gives e another wall clock.
func (e *Engine) SetClock(now func() time.Time) { e.now = now }

// Told keeps body as what prev did not have, and finds it again after was, or after prev.
func Told(prev, body []byte, was ...[]byte) ([]byte, error) {
	b := tell("", prev, body, false)
	for _, prev = range was {
	}
	return b.after(prev)
}
