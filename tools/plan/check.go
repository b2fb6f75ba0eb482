package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/nearest"
)

// read parses the steps and their references to each other, and checks them against the tools of
// the run. faults are sentences for the model.
func (p *flow) read(v *pawl.Invocation) (faults []string) {
	for _, n := range p.steps {
		add := func(list ...string) {
			for _, f := range list {
				faults = append(faults, fmt.Sprintf("step %d: %s", n.number, f))
			}
		}

		// Args that are no JSON have no references: the call of the step reports what is wrong.
		if tree, err := jsonform.Value(n.Args); err == nil {
			refs, bad := refsIn(tree, nil)
			add(bad...)
			if len(refs) > 0 {
				n.tree = tree
				n.refs = refs
			}
		}
		add(n.Each.read("each")...)
		add(n.When.read("when")...)
	}

	// Each check relies on the one before: waves on references that can be read, types on waves
	// without a cycle.
	if len(faults) == 0 {
		faults = p.order()
	}
	if len(faults) == 0 {
		faults = p.check(v)
	}
	return faults
}

// order assigns each step to a wave. faults report steps that cannot be ordered.
func (p *flow) order() (faults []string) {
	for _, n := range p.steps {
		for _, r := range n.allRefs() {
			if fault := p.misplaced(n, r); fault != "" {
				faults = append(faults, fmt.Sprintf("step %d: $from %q%s", n.number, r.text, fault))
			}
		}

		// After a fault, a source may be a later step, which has no wave yet.
		if len(faults) > 0 {
			continue
		}
		for _, d := range n.sources() {
			n.wave = max(n.wave, p.steps[d].wave+1)
		}
	}
	return faults
}

// misplaced says why step n cannot have the reference r. Empty means that it can.
func (p *flow) misplaced(n *node, r ref) string {
	isEach := n.Each != nil && n.Each.ref.text == r.text && n.Each.ref.step == r.step
	switch {
	case r.step < 0 && (n.Each == nil || isEach):
		return `: there is an item only where the step has "each", and in args and when`
	case r.step < 0:
		return ""
	case r.step == n.number:
		return " names the step itself; a step can take only from those before it"
	case r.step >= len(p.steps):
		return fmt.Sprintf(" names step %d, and the last one is %d", r.step, len(p.steps)-1)
	case r.step > n.number && p.takes(r.step, n.number, nil):
		return fmt.Sprintf(": step %d takes from this one in turn, so neither could begin", r.step)
	case r.step > n.number:
		return fmt.Sprintf(" names step %d, which comes later; put that one first", r.step)
	}
	return ""
}

// takes reports whether step a uses values of step b, directly or through other steps.
func (p *flow) takes(a, b int, seen map[int]bool) bool {
	if seen == nil {
		seen = map[int]bool{}
	}
	if a >= len(p.steps) || seen[a] {
		return false
	}
	seen[a] = true
	for _, d := range p.steps[a].sources() {
		if d == b || p.takes(d, b, seen) {
			return true
		}
	}
	return false
}

func (n *node) allRefs() []ref {
	out := append([]ref(nil), n.refs...)
	for _, f := range []*from{n.Each, n.When} {
		if f != nil {
			out = append(out, f.ref)
		}
	}
	return out
}

// check examines the tools of the steps: they exist, they can be called here, and referenced values
// fit their arguments as far as the schemas say.
func (p *flow) check(v *pawl.Invocation) (faults []string) {
	tools := make([]*pawl.Tool, len(p.steps))
	for i, n := range p.steps {
		t := toolOf(v, n.Tool)
		tools[i] = t
		switch {
		case t == nil:
			faults = append(faults, fmt.Sprintf("step %d: %s", i, unknownTool(v, n.Tool)))
		case t.Passive && !v.CanWait():
			faults = append(faults, fmt.Sprintf("step %d: %s is answered from outside, and a plan cannot "+
				"wait for that here; "+
				"call it directly", i, n.Tool))
		}
	}
	// Without the tools there are no schemas to check references with.
	if len(faults) > 0 {
		return faults
	}

	c := &checker{flow: p, gives: make([]schema, len(tools))}
	for i, t := range tools {
		c.gives[i] = parseSchema(t.Output)
		if p.steps[i].Each != nil {
			c.gives[i] = listOf(c.gives[i])
		}
	}
	for i, n := range p.steps {
		c.step(n, parseSchema(tools[i].Input))
	}
	return c.faults
}

// unknownTool says that there is no tool with that name, and which tools a plan can call.
func unknownTool(v *pawl.Invocation, name string) string {
	var names []string
	for _, t := range v.Tools() {
		if t.Name != v.Tool().Name {
			names = append(names, t.Name)
		}
	}
	text := fmt.Sprintf("there is no tool %q; there are: %s", name, strings.Join(names, ", "))
	if near := nearest.Word(name, names); near != "" {
		text += fmt.Sprintf(". Did you mean %q?", near)
	}
	return text
}

// checker compares the types of referenced values with the types that the arguments require.
type checker struct {
	flow   *flow
	gives  []schema
	faults []string
}

func (c *checker) add(n *node, format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf("step %d: ", n.number)+fmt.Sprintf(format, args...))
}

func (c *checker) step(n *node, input schema) {
	var item schema
	if n.Each != nil {
		s, ok := c.source(n, n.Each.ref, nil)
		if ok && !s.may("array") {
			c.add(n, "each takes a list, and %s is %s", n.Each.From, s.kinds())
		}
		item = s.items()
	}

	if n.When != nil {
		s, ok := c.source(n, n.When.ref, item)
		// Other values are neither true nor false, and each language has its own rule for them.
		truth := s.may("boolean") || s.may("null")
		if ok && n.When.Equals == nil && !truth {
			c.add(n, `when: %s is %s, neither true nor false; say with "equals" what it must be`, n.When.From, s.kinds())
		}
	}

	for _, r := range n.refs {
		given, ok := c.source(n, r, item)
		if !ok {
			continue
		}
		wanted, fault := input.within(r.at)
		if fault != "" {
			c.add(n, "args%s: %s", pathText(r.at), fault)
		} else if !wanted.takes(given) {
			c.add(n, "args%s takes %s, and $from %q is %s", pathText(r.at), wanted.kinds(), r.text, given.kinds())
		}
	}
}

// source returns the schema of the value that r refers to. If r refers to nothing, source reports a
// fault and returns false.
func (c *checker) source(n *node, r ref, item schema) (schema, bool) {
	s := item
	switch {
	case r.step == fromIndex:
		return schema{"type": "integer"}, true
	case r.step >= 0:
		s = c.gives[r.step]
	}
	s, fault := s.within(r.path)
	if fault != "" {
		c.add(n, "$from %q: %s", r.text, fault)
		return nil, false
	}
	return s, true
}

// schema is the part of a JSON Schema that a plan examines before it runs: fields, items and types.
// A nil schema allows everything, and so does a schema in another form ($ref, oneOf, …). An unknown
// type is not refused, because each call is validated in full when it is made.
type schema map[string]any

func parseSchema(b json.RawMessage) schema {
	var s schema
	if json.Unmarshal(b, &s) != nil {
		return nil
	}
	return s.plain()
}

func listOf(s schema) schema {
	out := schema{"type": "array"}
	if s != nil {
		out["items"] = map[string]any(s)
	}
	return out
}

// unexamined are keywords by which a schema can say more than its fields, items and types.
var unexamined = []string{
	"$ref", "$dynamicRef", "oneOf", "anyOf", "allOf", "not", "if", "patternProperties", "prefixItems",
}

// plain returns s, or nil if s uses keywords that are not examined here.
func (s schema) plain() schema {
	for _, word := range unexamined {
		if s[word] != nil {
			return nil
		}
	}
	return s
}

func asSchema(v any) schema {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	return schema(m).plain()
}

// types returns the types that s allows, without null. Nil means any type.
func (s schema) types() (out []string) {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok {
				out = append(out, name)
			}
		}
		if len(out) > 1 {
			out = slices.DeleteFunc(out, func(t string) bool { return t == "null" })
		}
	}
	return out
}

// may reports whether a value that matches s can have the type kind.
func (s schema) may(kind string) bool {
	types := s.types()
	if types == nil || slices.Contains(types, kind) {
		return true
	}
	switch kind {
	case "number":
		return slices.Contains(types, "integer")
	case "integer":
		return slices.Contains(types, "number")
	}
	return false
}

// takes reports whether a value that matches given can match s.
func (s schema) takes(given schema) bool {
	types := given.types()
	return types == nil || s.types() == nil || slices.ContainsFunc(types, s.may)
}

// kinds names the types of s for a sentence.
func (s schema) kinds() string {
	types := s.types()
	if types == nil {
		return "any value"
	}
	return strings.Join(types, " or ")
}

func (s schema) items() schema { return asSchema(s["items"]) }

// within returns the schema of the value at path within a value that matches s. A fault says that
// there can be no value at path.
func (s schema) within(path []string) (_ schema, fault string) {
	for _, name := range path {
		types := s.types()
		switch {
		// A schema that says nothing allows anything: the check finds faults, and proves nothing.
		case s == nil, types == nil:
			return nil, ""
		case s.may("object"):
			s, fault = s.field(name)
			if fault != "" {
				return nil, fault
			}
		case s.may("array"):
			if strings.Trim(name, "0123456789") != "" {
				return nil, fmt.Sprintf("%s is not an index of a list; an index is a number from 0", name)
			}
			s = s.items()
		default:
			return nil, fmt.Sprintf("there is no %s in it: it is %s", name, s.kinds())
		}
	}
	return s, ""
}

func (s schema) field(name string) (schema, string) {
	fields, _ := s["properties"].(map[string]any)
	if f, ok := fields[name]; ok {
		return asSchema(f), ""
	}
	if s["additionalProperties"] != false {
		return asSchema(s["additionalProperties"]), ""
	}

	names := slices.Sorted(maps.Keys(fields))
	fault := fmt.Sprintf("there is no %s in it; there are: %s", name, strings.Join(names, ", "))
	if near := nearest.Word(name, names); near != "" {
		fault += fmt.Sprintf(". Did you mean %q?", near)
	}
	return nil, fault
}
