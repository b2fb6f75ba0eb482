package schema

import (
	"errors"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// meter bounds the work of checking against a schema with references. Where definitions lead back to themselves through several
// alternatives, a value that fits none is looked at once for each way through them, and there are exponentially many in its depth: a
// few hundred bytes of arguments would keep the validator busy for hours. Both the schema and the arguments may come from strangers.
//
// What is counted is steps, not time, so that a check of the same arguments ends the same everywhere and always.
type meter struct {
	mu   sync.Mutex // one check at a time: the validator has no place for what belongs to one
	left int
}

// Steps that a check may take: a value of a schema is one. A check of arguments that fit takes a few for each value in them.
const (
	minSteps     = 20_000
	stepsPerByte = 8
	maxSteps     = 1_000_000
)

var errTooMuch = errors.New("it takes too many steps to check")

// newMeter puts a meter into a schema; nil where none is needed, since without references a check takes no more steps than
// schema and value have parts together.
func newMeter(root *jsonschema.Schema) *meter {
	m, needed := new(meter), false
	seen := map[*jsonschema.Schema]bool{}
	var nodes []*jsonschema.Schema
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		if s == nil || seen[s] || !strings.HasPrefix(s.Location, schemaURL) { // the standard's own schemas are shared by all
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

// install lets s count. Its format is what the validator looks at before it goes into a value.
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

// run calls check, which checks arguments of that size, and reports false when it was given up.
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

// children calls visit with every schema inside of s, and those that it refers to.
func children(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	for _, c := range []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
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
