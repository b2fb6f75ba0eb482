package durable

import "time"

// SetClock gives e another wall clock.
func (e *Engine) SetClock(now func() time.Time) { e.now = now }
