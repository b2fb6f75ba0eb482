package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// meter bounds the work of the checks against a schema. Schema and arguments may both come from
// strangers, and a few hundred bytes of them can keep the validator busy for hours: definitions
// that refer to themselves through several alternatives, long lists against long enums, costly
// patterns, many fields against many rules.
//
// The meter counts steps instead of time, so that the same check always has the same outcome. Each
// schema charges the work that a value causes before the validator begins it.
type meter struct {
	turn chan struct{} // one check at a time: the validator has no state per check
	now  *effort       // of the check that has the turn; nil means none

	patterns map[string]*pattern        // while the schema is compiled
	program  int                        // the sum of their sizes
	refused  error                      // the first pattern that is too large
	before   map[*jsonschema.Schema]int // steps in a schema before the check of its format
	// unevaluated means that the validator collects the fields that no rule has read.
	unevaluated bool
}

// effort is the work that a check may still cause. One effort serves all checks of one Read.
type effort struct {
	ctx   context.Context
	left  int  // steps
	match int  // instructions of patterns, times bytes of text
	price int  // of a step: paths into deep values are long
	since int  // steps since the last look at ctx
	over  bool // a check was given up, and no other follows
}

// The largest number of steps of a check. A step is one value against one schema, about a
// microsecond. A check of arguments that fit takes a few steps for each value.
const (
	minSteps     = 50_000
	stepsPerByte = 8
	maxSteps     = 150_000
	maxMatch     = 6_000_000 // about 0.1 microseconds each, at worst
)

var (
	errTooMuch = errors.New("it takes too many steps to check")
	errEnded   = errors.New("the run ended before the check did")
	errBroken  = errors.New("the validator fails on the schema")
)

// newEffort returns the effort for arguments of the given size in bytes.
func newEffort(ctx context.Context, size int) *effort {
	return &effort{ctx: ctx, left: min(minSteps+min(size, maxSteps)*stepsPerByte, maxSteps), match: maxMatch, price: 1}
}

// spend charges n steps. It panics with errTooMuch or errEnded, which run recovers.
func (e *effort) spend(n int) {
	n = min(max(n, 0), maxSteps) * e.price
	e.left -= n
	if e.left < 0 {
		panic(errTooMuch)
	}
	e.since += n
	if e.since > 1000 {
		e.since = 0
		if e.ctx.Err() != nil {
			panic(errEnded)
		}
	}
}

func newMeter() *meter {
	return &meter{turn: make(chan struct{}, 1), patterns: map[string]*pattern{},
		before: map[*jsonschema.Schema]int{}}
}

// run calls check within the effort. The error is errTooMuch, errEnded, or wraps errBroken if the
// validator panicked.
func (m *meter) run(e *effort, check func()) (err error) {
	// One check at a time: the meter counts for the effort in now, and the validator's callbacks
	// know nothing else.
	select {
	case m.turn <- struct{}{}:
	case <-e.ctx.Done():
		e.over = true
		return errEnded
	}
	m.now = e
	defer func() {
		m.now = nil
		<-m.turn
		// The validator cannot be stopped but by a panic in one of its callbacks.
		switch v := recover(); v {
		case nil:
		case errTooMuch, errEnded:
			err = v.(error)
		default:
			err = fmt.Errorf("%w: %v", errBroken, v)
		}
		e.over = err != nil
	}()
	check()
	return nil
}

// spend charges the check that has the turn. The compilation of a schema is charged to no check.
func (m *meter) spend(n int) {
	if m.now != nil {
		m.now.spend(n)
	}
}

// nodes returns root and all schemas below it, but not the schemas of the standard, which all
// compiled schemas share.
func nodes(root *jsonschema.Schema) (all []*jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{}
	open := []*jsonschema.Schema{root}
	for len(open) > 0 {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		if s == nil || seen[s] || !own(s) {
			continue
		}
		seen[s] = true
		all = append(all, s)
		open = append(append(open, same(s)...), inner(s)...)
	}
	return all
}

func own(s *jsonschema.Schema) bool { return strings.HasPrefix(s.Location, schemaURL) }

// install makes s charge its work. The validator checks the format of s before it descends.
func (m *meter) install(s *jsonschema.Schema) {
	m.before[s] = compared(s)
	// The only hook that the validator calls for every value of every schema.
	counted := &jsonschema.Format{}
	format := func(any) error { return nil }
	if s.Format != nil {
		counted.Name, format = s.Format.Name, s.Format.Validate
	}
	count := 0
	enums := 0
	foreign := 0
	for _, c := range same(s) {
		count++
		enums += compared(c)
		if !own(c) {
			foreign++
		}
	}
	counted.Validate = func(v any) error {
		m.spend((count + enums) * numberCost(v))
		if foreign > 0 {
			m.spend(foreign * 64 * extent(v))
		}
		switch v := v.(type) {
		case map[string]any:
			m.object(s, v, count)
		case []any:
			m.list(s, v, count)
		case string:
			m.spend(len(v) / 256)
		}
		return format(v)
	}
	s.Format = counted
}

// object charges the check of the fields of v.
func (m *meter) object(s *jsonschema.Schema, v map[string]any, branches int) {
	// The validator then looks through the unevaluated fields in each branch.
	if m.unevaluated {
		m.spend(branches * len(v) / 4)
	}
	steps := len(v)/16 + len(s.Required)/4 + len(s.Dependencies) + len(s.DependentSchemas)
	for _, names := range s.DependentRequired {
		steps += 1 + len(names)/4
	}
	for _, d := range s.Dependencies {
		if names, ok := d.([]string); ok {
			steps += len(names) / 4
		}
	}
	m.spend(steps)
	rest, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for name, e := range v {
		m.enter(s.Properties[name], e)
		m.enter(rest, e)
		m.enter(s.UnevaluatedProperties, e)
		m.enter(s.PropertyNames, name)
		for _, c := range s.PatternProperties {
			m.enter(c, e)
		}
	}
}

// list charges the check of the items of v.
func (m *meter) list(s *jsonschema.Schema, v []any, branches int) {
	if m.unevaluated {
		m.spend(branches * len(v) / 4)
	}
	m.spend(len(v) / 16)
	if s.UniqueItems {
		// Unique items are compared with each other by all of their content.
		m.spend(2 * extent(v))
	}
	tuple := s.PrefixItems
	rest := []*jsonschema.Schema{s.Items2020, s.Contains, s.UnevaluatedItems}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		rest = append(rest, items)
	case []*jsonschema.Schema:
		tuple = items
	}
	if more, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		rest = append(rest, more)
	}
	for i, e := range v {
		if i < len(tuple) {
			m.enter(tuple[i], e)
		}
		for _, c := range rest {
			m.enter(c, e)
		}
	}
}

// enter charges v against s, a schema of a field or an item; nil means none.
func (m *meter) enter(s *jsonschema.Schema, v any) {
	if s == nil || m.now == nil {
		return
	}
	m.spend((1 + m.before[s]) * numberCost(v))
	if !own(s) {
		m.spend(64 * extent(v))
	}
}

// compared returns the steps that the validator spends in s before it checks the format.
func compared(s *jsonschema.Schema) (n int) {
	if s.Const != nil {
		n += extent(*s.Const)
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		n += 8 // it looks through the whole path for its target
	}
	if s.Enum == nil {
		return n
	}
	words := 0
	for _, v := range s.Enum.Values {
		if _, word := v.(string); word {
			words++
		} else {
			n += extent(v)
		}
	}
	return n + words/64
}

// extent returns the number of values in v, with long numbers and texts counted several times.
func extent(v any) int {
	n := numberCost(v)
	switch v := v.(type) {
	case string:
		n += len(v) / 256
	case []any:
		for _, e := range v {
			n += extent(e)
		}
	case map[string]any:
		for k, e := range v {
			n += 1 + len(k)/256 + extent(e)
		}
	}
	return n
}

// numberCost returns the steps of a calculation with v. It is 1 for other values than numbers.
func numberCost(v any) int {
	n, _ := v.(json.Number)
	if len(n) == 0 || len(n) <= 20 && !strings.ContainsAny(string(n), "eE") {
		return 1
	}
	digits, exp, _ := exponent(string(n))
	return 1 + (digits+max(exp, -exp))/10
}

// pattern is a regular expression that charges its matches.
type pattern struct {
	*regexp.Regexp
	size  int
	meter *meter
}

// MatchString reports whether s contains a match.
func (p *pattern) MatchString(s string) bool {
	e := p.meter.now
	if e == nil {
		return p.Regexp.MatchString(s)
	}
	e.spend(1 + len(s)/256)
	work := (len(s) + 16) * p.size
	e.match -= work
	if e.match < 0 {
		panic(errTooMuch)
	}
	if work < 100_000 {
		return p.Regexp.MatchString(s)
	}
	return p.MatchReader(&watched{strings.NewReader(s), e})
}

// watched reads the text of a long match. It panics with errEnded when the run has ended.
type watched struct {
	*strings.Reader
	effort *effort
}

func (w *watched) ReadRune() (rune, int, error) {
	if w.Len()%64 == 0 && w.effort.ctx.Err() != nil {
		panic(errEnded)
	}
	return w.Reader.ReadRune()
}

// compile is the regular expression engine of the validator. It compiles the patterns of the
// schema, and texts of the format regex during a check.
func (m *meter) compile(expr string) (jsonschema.Regexp, error) {
	if p := m.patterns[expr]; p != nil {
		return p, nil
	}
	size, err := programSize(expr)
	if err != nil {
		return nil, err
	}
	// A text of the format regex comes from the model, and its compilation counts as work of the
	// check.
	m.spend(1 + size + len(expr))
	if size > maxProgram || m.now == nil && m.program+size > maxPrograms {
		err = fmt.Errorf("a pattern compiles to %d instructions; at most %d, and %d for all patterns, are allowed",
			size, maxProgram, maxPrograms)
		if m.now == nil && m.refused == nil {
			m.refused = err
		}
		return nil, err
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	p := &pattern{re, size, m}
	// Only patterns of the schema are stored, since texts of calls would fill the memory.
	if m.now == nil {
		m.program += size
		m.patterns[expr] = p
	}
	return p, nil
}

// same returns the schemas that apply to the same value as s.
func same(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else},
		s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas)))
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	for _, c := range s.Dependencies {
		if c, ok := c.(*jsonschema.Schema); ok {
			all = append(all, c)
		}
	}
	return slices.DeleteFunc(all, func(c *jsonschema.Schema) bool { return c == nil })
}

// inner returns the schemas in s that apply to fields, names and items. Some may be nil.
func inner(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020,
		s.UnevaluatedItems, s.ContentSchema}, s.PrefixItems, slices.Collect(maps.Values(s.Properties)),
		slices.Collect(maps.Values(s.PatternProperties)))
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch v := v.(type) {
		case *jsonschema.Schema:
			all = append(all, v)
		case []*jsonschema.Schema:
			all = append(all, v...)
		}
	}
	return all
}
