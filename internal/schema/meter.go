package schema

import (
	"errors"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// meter bounds the work of a check against a schema with references. If definitions refer to
// themselves through several alternatives, the validator checks a value that fits none once for
// each path through them. The number of paths is exponential in the depth, so that a few hundred
// bytes of arguments could keep the validator busy for hours. Both the schema and the arguments may
// come from strangers.
//
// The meter counts steps instead of time, so that the same check always has the same outcome.
type meter struct {
	mu   sync.Mutex // one check at a time: the validator has no state per check
	left int
}

// The largest number of steps of a check. A step is one value against one schema. A check of
// arguments that fit takes a few steps for each value.
const (
	minSteps     = 20_000
	stepsPerByte = 8
	maxSteps     = 1_000_000
)

var errTooMuch = errors.New("it takes too many steps to check")

// newMeter installs a meter in a schema. It returns nil for a schema without references, whose
// checks take no more steps than the product of the parts of schema and value.
func newMeter(root *jsonschema.Schema) *meter {
	m, needed := new(meter), false
	seen := map[*jsonschema.Schema]bool{}
	var nodes []*jsonschema.Schema
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		// The schemas of the standard are shared by all.
		if s == nil || seen[s] || !strings.HasPrefix(s.Location, schemaURL) {
			return
		}
		seen[s] = true
		nodes = append(nodes, s)
		needed = needed || s.Ref != nil || s.RecursiveRef != nil || s.DynamicRef != nil
		children(s, visit)
	}
	visit(root)
	if !needed {
		return nil
	}
	for _, s := range nodes {
		m.install(s)
	}
	return m
}

// install makes s count. The validator checks the format of s before it enters a value.
func (m *meter) install(s *jsonschema.Schema) {
	counted := &jsonschema.Format{}
	own := func(any) error { return nil }
	if s.Format != nil {
		counted.Name, own = s.Format.Name, s.Format.Validate
	}
	counted.Validate = func(v any) error {
		if m.left--; m.left < 0 {
			panic(errTooMuch)
		}
		return own(v)
	}
	s.Format = counted
}

// run calls check, which checks arguments of the given size. It returns false if the check was
// given up.
func (m *meter) run(size int, check func()) (done bool) {
	if m == nil {
		check()
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = min(minSteps+size*stepsPerByte, maxSteps)
	defer func() {
		if v := recover(); v != nil && v != errTooMuch {
			panic(v)
		}
	}()
	check()
	return true
}

// children calls visit with every schema in s, and with the schemas that s refers to.
func children(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	for _, c := range []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames,
		s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema} {
		visit(c)
	}
	if s.DynamicRef != nil {
		visit(s.DynamicRef.Ref)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		for _, c := range list {
			visit(c)
		}
	}
	for _, c := range s.Properties {
		visit(c)
	}
	for _, c := range s.PatternProperties {
		visit(c)
	}
	for _, c := range s.DependentSchemas {
		visit(c)
	}
	for _, c := range s.Dependencies {
		if c, ok := c.(*jsonschema.Schema); ok {
			visit(c)
		}
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch v := v.(type) {
		case *jsonschema.Schema:
			visit(v)
		case []*jsonschema.Schema:
			for _, c := range v {
				visit(c)
			}
		}
	}
}
