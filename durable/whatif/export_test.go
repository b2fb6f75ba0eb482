package whatif

// Leak plants a leak: tools are not replaced, so that a Write would be executed.
func (t *Trial) Leak() { t.leaks = true }
