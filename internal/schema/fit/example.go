package fit

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl/internal/jsonform"
)

// maxExample is the largest size of an example in bytes. A longer example does not help.
const maxExample = 1500

// Example returns the smallest arguments that fit s, as far as it can construct them. They have
// required fields only, with values from the examples, defaults and lists of the schema if there
// are any. Nil means that the constructed arguments do not fit or are too long.
func Example(s *jsonschema.Schema, spend func(steps int)) []byte {
	e := exampler{maxChecks, spend}
	v, ok := e.value(s, 0)
	if !ok || s.Validate(v) != nil {
		return nil
	}
	if b, err := jsonform.Marshal(v); err == nil && len(b) <= maxExample {
		return b
	}
	return nil
}

type exampler struct {
	left  int // the number of schemas it may still visit
	spend func(steps int)
}

// value returns a value that fits s.
func (e *exampler) value(s *jsonschema.Schema, depth int) (any, bool) {
	e.left--
	if e.left < 0 || depth > maxDepth {
		return nil, false
	}

	rules := flatten(s)
	fits := func(v any) bool {
		_, object := v.(map[string]any)
		// Arguments are an object, even if the schema does not say so.
		return (object || depth > 0) && s.Validate(v) == nil
	}
	for _, v := range offered(rules) {
		if fits(v) {
			return v, true
		}
	}

	// A branch is tried together with the rules around it, because all of them apply.
	kinds := kindsToTry(rules, depth)
	sets := [][]*jsonschema.Schema{rules}
	for _, r := range rules {
		for _, b := range slices.Concat(r.AnyOf, r.OneOf) {
			more := flatten(b)
			e.spend(1 + (len(rules)+len(more))/8)
			sets = append(sets, slices.Concat(rules, more))
		}
	}

	for _, set := range sets {
		for _, v := range offered(set) {
			if fits(v) {
				return v, true
			}
		}

		within := kinds
		if t := types(set); t != nil && depth > 0 {
			within = t
		}
		for _, kind := range within {
			if kind == "null" && len(within) > 1 {
				continue // null shows nothing where there can be a value
			}
			if v, ok := e.plain(kind, set, depth); ok && fits(v) {
				return v, true
			}
		}
	}
	return nil, false
}

// kindsToTry returns the types of which a value is tried, in order.
func kindsToTry(rules []*jsonschema.Schema, depth int) wanted {
	if depth == 0 {
		return wanted{"object"} // arguments are an object, even if the schema allows more
	}
	if kinds := types(rules); kinds != nil {
		return kinds
	}
	fields := func(r *jsonschema.Schema) bool { return r.Properties != nil || r.Required != nil }
	if slices.ContainsFunc(rules, fields) {
		return wanted{"object", "string", "number", "array", "boolean", "null"}
	}
	return wanted{"string", "number", "array", "boolean", "null", "object"}
}

// offered returns the values that the schema itself names.
func offered(rules []*jsonschema.Schema) (out []any) {
	for _, r := range rules {
		if r.Const != nil {
			out = append(out, *r.Const)
		}
		if r.Enum != nil {
			out = append(out, r.Enum.Values...)
		}
		out = append(out, r.Examples...)
		if r.Default != nil && *r.Default != nil {
			out = append(out, *r.Default)
		}
	}
	return out
}

func (e *exampler) plain(kind string, rules []*jsonschema.Schema, depth int) (any, bool) {
	switch kind {
	case "object":
		return e.object(rules, depth)
	case "array":
		return e.list(rules, depth)
	case "string":
		return sampleText(rules), true
	case "integer", "number":
		return number(rules, kind == "integer"), true
	case "boolean":
		return true, true
	}
	return nil, true
}

func (e *exampler) object(rules []*jsonschema.Schema, depth int) (any, bool) {
	out := map[string]any{}
	names := map[string]bool{}
	least := 0
	for _, r := range rules {
		for _, name := range r.Required {
			names[name] = true
		}
		if r.MinProperties != nil {
			least = max(least, *r.MinProperties)
		}
	}
	for _, r := range rules {
		for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
			// Optional fields are in the example only if the schema requires a number of fields: a
			// model copies what it sees.
			if len(names) < least {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		subs, _ := members(rules, name)
		out[name] = "text"
		if len(subs) == 0 {
			continue
		}
		v, ok := e.value(subs[0], depth+1)
		if !ok {
			return nil, false
		}
		out[name] = v
	}
	for i := 1; len(out) < least && i <= 8; i++ {
		name := "name" + strconv.Itoa(i)
		out[name] = "text"
		if subs, _ := members(rules, name); len(subs) > 0 {
			out[name], _ = e.value(subs[0], depth+1)
		}
	}
	return out, true
}

func (e *exampler) list(rules []*jsonschema.Schema, depth int) (any, bool) {
	least := 0
	for _, r := range rules {
		if r.MinItems != nil {
			least = max(least, *r.MinItems)
		}
		least = max(least, len(r.PrefixItems))
	}
	// A long example is no help, and its items would have to be invented.
	if least > 8 {
		return nil, false
	}
	if least == 0 && depth > 0 && depth < 4 {
		least = 1 // an empty list is not a useful example
	}
	out := []any{}
	for i := range least {
		var v any = "text"
		if subs := itemRules(rules, i); len(subs) > 0 {
			var ok bool
			v, ok = e.value(subs[0], depth+1)
			if !ok {
				if i == 0 {
					break // the list may be empty
				}
				return nil, false
			}
		}
		if s, ok := v.(string); ok && i > 0 && v == out[0] {
			v = s + strconv.Itoa(i+1) // items may have to differ
		}
		out = append(out, v)
	}
	return out, true
}

// samples are texts of the formats that validators know.
var samples = map[string]string{
	"date":          "2025-01-31",
	"time":          "12:30:00Z",
	"date-time":     "2025-01-31T12:30:00Z",
	"duration":      "PT1H",
	"email":         "name@example.com",
	"idn-email":     "name@example.com",
	"uri":           "https://example.com/",
	"uri-reference": "/path",
	"iri":           "https://example.com/",
	"hostname":      "example.com",
	"ipv4":          "192.0.2.1",
	"ipv6":          "2001:db8::1",
	"uuid":          "123e4567-e89b-42d3-a456-426614174000",
	"json-pointer":  "/name",
	"regex":         "^a+$",
}

// guesses are texts that are tried for a pattern, the plainest first.
var guesses = []string{
	"a", "A", "abc", "ABC", "Abc", "1", "12", "123", "1234", "12345", "2025-01-31", "12:30", "abc-123",
	"ABC-123", "a1", "A1", "1.0", "1.0.0", "#aabbcc", "/path", "https://example.com/",
}

func sampleText(rules []*jsonschema.Schema) string {
	s := "text"
	for _, r := range rules {
		if r.Format != nil && samples[r.Format.Name] != "" {
			s = samples[r.Format.Name]
		}
	}

	for _, r := range rules {
		if r.MinLength != nil && len(s) < *r.MinLength && *r.MinLength <= 200 {
			s += strings.Repeat("x", *r.MinLength-len(s))
		}
		if r.MaxLength != nil && len(s) > *r.MaxLength && *r.MaxLength >= 0 {
			s = s[:*r.MaxLength]
		}
		// A text for an arbitrary pattern cannot be made. Common forms are tried, and the caller
		// validates the example.
		if r.Pattern != nil && !r.Pattern.MatchString(s) {
			if i := slices.IndexFunc(guesses, r.Pattern.MatchString); i >= 0 {
				s = guesses[i]
			}
		}
	}
	return s
}

// number returns the number nearest to 1 within all bounds.
func number(rules []*jsonschema.Schema, integer bool) json.Number {
	one := big.NewRat(1, 1)
	v := big.NewRat(1, 1)
	step := big.NewRat(1, 1)
	for _, r := range rules {
		if r.MultipleOf != nil && r.MultipleOf.Sign() > 0 {
			step.Set(r.MultipleOf)
			v.Set(step)
		}
	}

	// Below a small maximum there may be no whole number.
	small := slices.ContainsFunc(rules, func(r *jsonschema.Schema) bool {
		return r.Maximum != nil && r.Maximum.Cmp(one) < 0 || r.ExclusiveMaximum != nil
	})
	if small && !integer && step.Cmp(one) == 0 {
		step.SetFrac64(1, 10)
	}

	// grid returns the multiple of step that is not below, or not above, r.
	grid := func(r *big.Rat, up bool) *big.Rat {
		q := new(big.Rat).Quo(r, step)
		n := new(big.Int).Div(q.Num(), q.Denom()) // rounds down
		if up && !q.IsInt() {
			n.Add(n, big.NewInt(1))
		}
		return new(big.Rat).Mul(new(big.Rat).SetInt(n), step)
	}

	within := func(bound, exclusive *big.Rat, side int) { // 1: v is at least this; -1: at most
		for _, b := range []*big.Rat{bound, exclusive} {
			if b != nil && v.Cmp(b)*side < 0 {
				v = grid(b, side > 0)
			}
		}
		if exclusive != nil && v.Cmp(exclusive) == 0 {
			v.Add(v, new(big.Rat).Mul(step, big.NewRat(int64(side), 1)))
		}
	}
	for _, r := range rules {
		within(r.Minimum, r.ExclusiveMinimum, 1)
		within(r.Maximum, r.ExclusiveMaximum, -1)
	}

	if v.IsInt() {
		return json.Number(v.Num().String())
	}
	f, _ := v.Float64()
	return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
}
