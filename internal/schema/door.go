package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of a schema. Schemas come from MCP servers, OpenAPI documents, files of tools and clients,
// who may all be hostile. The largest schema in use that is known has a tenth of these sizes.
const (
	maxSchema   = 512 << 10 // bytes
	maxNodes    = 20_000    // values
	maxDepth    = 160       // of nested values
	maxBranches = 4_000     // schemas in allOf, anyOf and oneOf
	maxChain    = 64        // schemas that apply to one value through one another
	maxPaths    = 4 << 20   // bytes of the paths of all values
	maxDigits   = 400       // of a number, and its largest exponent
	maxProgram  = 8_000     // instructions of a pattern
	maxPrograms = 20_000    // instructions of all patterns
)

// Limits of arguments that need the full validator.
const (
	maxValues    = 150_000
	maxArgsDepth = 256
)

// Bounds returns an error for a schema that is too large, or that has numbers that cannot be
// compared. It is the first part of Compile, for callers that read a foreign schema before.
func Bounds(src json.RawMessage) error {
	_, err := bounded(src)
	return err
}

// bounded decodes a schema within the limits.
func bounded(src json.RawMessage) (map[string]any, error) {
	if len(src) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes; at most %d are allowed", len(src), maxSchema)
	}
	// Measured before decoding, which for a hostile schema needs many times its memory.
	if n, deep := measure(src); n > maxNodes || deep > maxDepth {
		return nil, fmt.Errorf("it has about %d values, %d deep; at most %d, %d deep, are allowed",
			n, deep, maxNodes, maxDepth)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want a JSON object, got %s", jsonKind(doc))
	}
	var c counter
	if err := c.walk(m, len(schemaURL)); err != nil {
		return nil, err
	}
	return m, nil
}

// counter sums what a schema costs to compile.
type counter struct{ branches, paths int }

func (c *counter) walk(v any, path int) error {
	// The validator stores the path of each schema. Long names at a great depth make their sum
	// quadratic.
	c.paths += path
	if c.paths > maxPaths {
		return errors.New("its names are too long for its depth; use shorter ones")
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "allOf" || k == "anyOf" || k == "oneOf" {
				list, _ := e.([]any)
				c.branches += len(list)
			}
			if err := c.walk(e, path+1+len(k)); err != nil {
				return err
			}
		}
	case []any:
		for i, e := range v {
			if err := c.walk(e, path+1+len(strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case json.Number:
		if digits, exp, ok := exponent(string(v)); !ok || digits > maxDigits || max(exp, -exp) > maxDigits {
			return fmt.Errorf("it has the number %s; a number has at most %d digits, and an exponent of at most %d",
				clipNumber(v), maxDigits, maxDigits)
		}
	}
	if c.branches > maxBranches {
		return fmt.Errorf("it has more than %d alternatives in allOf, anyOf and oneOf", maxBranches)
	}
	return nil
}

func clipNumber(n json.Number) string {
	if len(n) > 40 {
		return string(n[:40]) + "…"
	}
	return string(n)
}

// measure returns the largest possible number of values in b and their depth, without decoding.
func measure(b []byte) (values, deep int) {
	depth := 0
	inText := false
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deep = max(deep, depth)
			values++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	return values + 1, deep
}

// exponent returns the number of digits and the exponent of a JSON number. ok is false if the
// exponent is too large for an int.
func exponent(number string) (digits, exp int, ok bool) {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return len(number), 0, true
	}
	exp, err := strconv.Atoi(number[i+1:])
	return i, exp, err == nil
}

// programSize returns the number of instructions of a pattern, or nearly so.
func programSize(expr string) (int, error) {
	if len(expr) > maxProgram {
		return len(expr), nil
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, err
	}
	// Repetitions multiply what they repeat: a{1000} is a thousand instructions.
	var size func(re *syntax.Regexp) int
	size = func(re *syntax.Regexp) int {
		n := 1 + len(re.Rune)/8
		switch re.Op {
		case syntax.OpLiteral:
			n = len(re.Rune)
		case syntax.OpRepeat:
			return min(size(re.Sub[0])*max(re.Min, re.Max, 1), 1<<30)
		}
		for _, s := range re.Sub {
			n += size(s)
		}
		return min(n, 1<<30)
	}
	return size(re), nil
}

// admitted compiles a decoded schema, and tries it. The validator is not made for hostile schemas:
// a panic in it is an error.
func admitted(m map[string]any, any bool) (s *Schema, err error) {
	defer func() {
		if v := recover(); v != nil {
			s = nil
			err = fmt.Errorf("%w: %v", errBroken, v)
		}
	}()
	s, err = compile(m, any)
	if err != nil {
		return nil, err
	}
	if s.fast == nil {
		err = s.trial()
	}
	return s, err
}

// chained returns an error for schemas that apply to one value through too many others, or
// through themselves.
func chained(all []*jsonschema.Schema) error {
	length := map[*jsonschema.Schema]int{} // of the chain from here; -1 means not measured yet
	var measure func(s *jsonschema.Schema, depth int) int
	measure = func(s *jsonschema.Schema, depth int) int {
		n, done := length[s]
		if n < 0 || depth > maxChain {
			return maxChain + 1
		}
		if done {
			return n
		}
		// A schema that is met while it is measured refers to itself for the same value: validation
		// would not end.
		length[s] = -1
		for _, c := range same(s) {
			if own(c) {
				n = max(n, measure(c, depth+1))
			}
		}
		length[s] = n + 1
		return n + 1
	}
	for _, s := range all {
		if measure(s, 0) > maxChain {
			return fmt.Errorf("at %s it refers to itself for the same value, or through more than %d schemas",
				strings.TrimPrefix(s.Location, schemaURL), maxChain)
		}
	}
	return nil
}

// trial checks small values of each kind in each field.
func (s *Schema) trial() error {
	e := newEffort(context.Background(), 0)
	props, _ := s.doc["properties"].(map[string]any)
	for _, sample := range []any{nil, true, json.Number("1.5"), "text", []any{json.Number("7"), "a"}, map[string]any{"a": "b"}} {
		all := map[string]any{"a": sample}
		for name := range props {
			all[name] = sample
		}
		if err := s.meter.run(e, func() { _ = s.full.Validate(all) }); err != nil {
			return fmt.Errorf("the simplest values cannot be checked: %w", err)
		}
	}
	s.Example("", "")
	return nil
}
