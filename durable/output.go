package durable

// output.go: Runners whose answer fits a schema, for pawl.Into.

import (
	"encoding/json"

	"github.com/pawl-go/pawl"
)

// WithOutput returns a copy of r whose answer fits schema, for pawl.Into. For a runner that is no
// pawl.OutputRunner it returns a copy without a schema, and Into then returns a *pawl.OutputError.
func (r *Runner) WithOutput(schema json.RawMessage) pawl.Runner {
	if r == nil {
		return r // Stream reports it
	}
	c := *r
	if o, ok := r.runner.(pawl.OutputRunner); ok {
		c.runner = o.WithOutput(schema)
	}
	return &c
}

// WithCheck returns a copy of r whose answers check must accept too, for pawl.Into. It returns
// false if the runner inside cannot check its answers. A resume repeats the checks of stored
// answers.
func (r *Runner) WithCheck(check func(answer json.RawMessage) error) (pawl.Runner, bool) {
	if r == nil {
		return r, false
	}
	inner, ok := r.runner.(pawl.CheckedRunner)
	if !ok {
		return r, false
	}
	c := *r
	c.runner, ok = inner.WithCheck(check)
	return &c, ok
}
